//! Sends verdicts as JSON to a URL, apart from judging: what does not arrive is tried again, and given up in the end.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, ensure};
use axum::http::{Request, Uri, header};
use serde::Serialize;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::{sleep, timeout},
};

use super::store::Kept;

/// So many verdicts wait at most.
const WAITING: usize = 256;
/// So often one is tried.
const TRIES: u32 = 6;
/// So long the other side may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is sent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The watch.
    pub watch: String,
    /// The Application.
    pub application: String,
    /// The repository.
    pub repository: String,
    /// The commit.
    pub commit: String,
    /// `shadow` or `arm`.
    pub mode: &'static str,
    /// The verdict.
    pub phase: &'static str,
    /// One sentence about it.
    pub message: String,
    /// Conditions for a revert that were not met.
    pub unmet: Vec<String>,
    /// The same in one line, for whatever shows only that.
    pub text: String,
    #[serde(skip)]
    url_file: PathBuf,
}

impl Notice {
    /// About one watch, to the URL that a file holds.
    pub fn new(kept: &Kept, url_file: PathBuf) -> Self {
        let phase = kept.status.phase.as_str();
        let application = kept.spec.application.to_string();
        let short = kept.spec.commit.get(..10).unwrap_or_default();
        Self {
            watch: kept.name.clone(),
            repository: kept.spec.repository.clone(),
            commit: kept.spec.commit.clone(),
            mode: kept.spec.mode.as_str(),
            phase,
            text: format!("{application} at {short}: {phase}: {}", kept.status.message),
            message: kept.status.message.clone(),
            unmet: kept.status.unmet.clone(),
            application,
            url_file,
        }
    }
}

/// Sends notices for ever.
pub struct Notifier(Receiver<Notice>);

impl Notifier {
    /// A notifier, and where to hand it notices. One that does not fit is dropped, and that is logged.
    pub fn new() -> (Sender<Notice>, Self) {
        let (sender, receiver) = channel(WAITING);
        (sender, Self(receiver))
    }

    /// Sends what comes.
    ///
    /// # Errors
    /// When nobody can hand in any more: the process ends then.
    pub async fn run(mut self) -> anyhow::Result<()> {
        while let Some(notice) = self.0.recv().await {
            let mut pause = Duration::from_secs(1);
            for attempt in 1..=TRIES {
                // An error could quote the URL, which is a secret with most services.
                match send(&notice).await {
                    Ok(()) => break,
                    Err(_) if attempt == TRIES => {
                        tracing::error!(watch = notice.watch, "the notification could not be sent; it is given up");
                    }
                    Err(_) => {
                        tracing::warn!(watch = notice.watch, attempt, "the notification could not be sent yet");
                        sleep(pause).await;
                        pause *= 2;
                    }
                }
            }
        }
        anyhow::bail!("nobody notifies any more")
    }
}

async fn send(notice: &Notice) -> anyhow::Result<()> {
    let url = tokio::fs::read_to_string(&notice.url_file).await.context("the file of the URL cannot be read")?;
    let url: Uri = url.trim().parse()?;
    let base = format!("{}://{}", url.scheme_str().context("no scheme")?, url.authority().context("no host")?);
    let client = kube::Client::try_from(kube::Config::new(base.parse()?))?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let request =
        Request::post(path).header(header::CONTENT_TYPE, "application/json").body(serde_json::to_vec(notice)?)?;
    let answer = timeout(PATIENCE, client.request_text(request)).await?;
    ensure!(answer.is_ok(), "it was not taken");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// Takes one request and answers it; gives its body.
    async fn take(listener: &TcpListener, answer: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !request.contains('}') {
            let mut part = vec![0; 4096];
            let read = stream.read(&mut part).await.unwrap();
            request.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        assert!(request.starts_with("POST /hook?key=x HTTP/1.1"), "{request}");
        request.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    #[tokio::test]
    async fn verdict_is_sent_as_json_and_again_until_it_is_taken() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let url = format!("http://{}/hook?key=x\n", listener.local_addr().unwrap());
        std::fs::write(file.path(), url).unwrap();
        let mut kept = Kept { name: "web-0123456789".to_owned(), ..Kept::default() };
        kept.status.phase = cascade_guard_core::watchdog::Phase::WouldRevert;
        kept.status.unmet = vec!["mode".to_owned()];
        let (sender, notifier) = Notifier::new();
        let running = tokio::spawn(notifier.run());
        sender.send(Notice::new(&kept, file.path().to_owned())).await.unwrap();
        let first = take(&listener, "503 Service Unavailable").await;
        let second = take(&listener, "200 OK").await;
        assert_eq!(first, second);
        let sent: serde_json::Value = serde_json::from_str(&second).unwrap();
        assert_eq!((&sent["watch"], &sent["phase"]), (&"web-0123456789".into(), &"WouldRevert".into()));
        assert_eq!(sent["unmet"], serde_json::json!(["mode"]));
        assert!(sent.get("urlFile").is_none());
        running.abort();
    }
}
