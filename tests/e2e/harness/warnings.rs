//! Requests whose warnings matter. A typed client keeps them to itself, so these are sent by hand.

use anyhow::{Context as _, Result, bail};
use kube::{Client, client::Body};
use serde_json::Value;

/// Sends `body`, which must be admitted; gives the warnings that kubectl would print.
pub async fn warnings(client: &Client, method: &str, path: &str, body: &Value) -> Result<Vec<String>> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(body)?))?;
    let answer = client.send(request).await?;
    if !answer.status().is_success() {
        let status = answer.status();
        let said = answer.into_body().collect_bytes().await?;
        bail!("{method} {path} was answered with {status}: {}", String::from_utf8_lossy(&said));
    }
    let lines = answer.headers().get_all("warning").iter();
    lines
        .map(|line| text(std::str::from_utf8(line.as_bytes())?).with_context(|| format!("no warning header: {line:?}")))
        .collect()
}

/// The text of one `Warning` header: `299 AGENT "TEXT"` (RFC 7234, section 5.5).
fn text(header: &str) -> Option<String> {
    let quoted = header.split_once('"')?.1.strip_suffix('"')?;
    Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
}
