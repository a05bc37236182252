//! The page in a real browser: no fault on the console, nothing beyond the edge, readable, and usable without a mouse.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use fantoccini::{Client, ClientBuilder, Locator, key::Key};
use serde_json::{Value, json};

use super::{NOW, file, guard, stdout, troubled};

const INSTALL: &str = "run `make tools` as root, which installs Debian's chromium and chromium-driver";

/// A driver that ends with the test.
struct Driver {
    process: Child,
    port: u16,
}

impl Driver {
    fn start() -> Self {
        // Port 0: the driver takes a free one and says which.
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("chromedriver cannot be started ({error}): {INSTALL}"));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.split_once("on port ")?.1.trim_end_matches('.').parse().ok().filter(|port| *port != 0)
        });
        let port = port.unwrap_or_else(|| panic!("chromedriver named no port: {INSTALL}"));
        // Whatever else it says must be read, or it would block.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, port }
    }

    async fn client(&self) -> Client {
        let capabilities = json!({
            "goog:chromeOptions": {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1600"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{}", self.port))
            .await
            .unwrap_or_else(|error| panic!("no browser ({error}): {INSTALL}"))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn run(client: &Client, script: &str) -> Value {
    client.execute(script, Vec::new()).await.unwrap()
}

/// What the console said. WebDriver has no common command for it; this one is Chromium's.
async fn console(client: &Client) -> Value {
    #[derive(Debug)]
    struct Log;
    impl fantoccini::wd::WebDriverCompatibleCommand for Log {
        fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
            base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
        }
        fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
            (http::Method::POST, Some(json!({"type": "browser"}).to_string()))
        }
    }
    client.issue_cmd(Log).await.unwrap()
}

/// Text that is too small, or too close to its ground, by the formula of WCAG 2 (4.5 to 1).
const UNREADABLE: &str = r"
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const parse = text => text.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const faults = [];
for (const element of document.querySelectorAll('main *, header *, footer *')) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  if (!own || element.closest('svg') || !element.checkVisibility()) continue;
  const style = getComputedStyle(element);
  const [a, b] = [light(parse(style.color)), light(ground(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const opacity = [...(function* () { for (let at = element; at; at = at.parentElement) yield at; })()]
    .reduce((value, at) => value * Number(getComputedStyle(at).opacity), 1);
  if (parseFloat(style.fontSize) < 13 || ratio < 4.5 || opacity < 0.7)
    faults.push(`${element.tagName} '${element.textContent.trim().slice(0, 40)}': ${style.fontSize}, contrast ${ratio.toFixed(1)}`);
}
return faults;";

#[tokio::test]
async fn page_is_readable_in_a_browser_and_usable_without_a_mouse() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = file(folder.path(), "cluster.json", &troubled());
    let page = guard(&["audit", "--snapshot", snapshot.to_str().unwrap(), "--now", NOW, "-o", "html"]);
    let page = file(folder.path(), "audit.html", &stdout(&page));
    let driver = Driver::start();
    let client = driver.client().await;
    // An empty console only means something if a fault would be seen in it.
    client.goto("data:text/html,<script>console.error('probe')</script>").await.unwrap();
    assert!(console(&client).await.to_string().contains("probe"), "the console cannot be read");
    client.goto(&format!("file://{}", page.display())).await.unwrap();

    let requested = run(&client, "return performance.getEntriesByType('resource').map(entry => entry.name)").await;
    assert_eq!(requested, json!([]), "the page must load nothing");
    for (width, height) in [(1280, 1600), (390, 844)] {
        client.set_window_size(width, height).await.unwrap();
        let beyond =
            run(&client, "return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
        assert!(beyond.as_i64().unwrap() <= 0, "at {width} pixels the page is {beyond} too wide");
        let faults = run(&client, UNREADABLE).await;
        assert_eq!(faults, json!([]), "at {width} pixels");
    }
    client.set_window_size(1280, 1600).await.unwrap();

    let drawn = run(&client, "return [...document.querySelectorAll('svg text')].map(text => text.textContent)").await;
    let drawn: Vec<&str> = drawn.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    for name in ["argocd/flink-old", "argocd/flink-new", "Role streaming/flink-leader-election"] {
        assert!(drawn.contains(&name), "{name} is not drawn: {drawn:?}");
    }
    let outside = run(
        &client,
        "return [...document.querySelectorAll('svg')].flatMap(svg => { const frame = svg.getBoundingClientRect(); \
         return [...svg.querySelectorAll('text')].filter(text => { const box = text.getBoundingClientRect(); \
         return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1; }).map(text => text.textContent); })",
    )
    .await;
    assert_eq!(outside, json!([]), "text must not leave the picture");

    // The tabulator reaches every link and every fold, and the enter key opens a fold.
    let wanted = run(&client, "return document.querySelectorAll('a[href], summary').length").await.as_u64().unwrap();
    run(
        &client,
        "window.reached = new Set(); document.addEventListener('focusin', event => reached.add(event.target))",
    )
    .await;
    let body = client.find(Locator::Css("body")).await.unwrap();
    body.send_keys(&Key::Tab.to_string()).await.unwrap();
    for _ in 1..wanted {
        client.active_element().await.unwrap().send_keys(&Key::Tab.to_string()).await.unwrap();
    }
    let reached = run(&client, "return reached.size").await.as_u64().unwrap();
    assert_eq!(reached, wanted, "links and folds that the keyboard reaches");
    run(&client, "document.querySelector('summary').focus()").await;
    client.active_element().await.unwrap().send_keys(&Key::Enter.to_string()).await.unwrap();
    assert_eq!(run(&client, "return document.querySelector('details').open").await, json!(true));

    let said = console(&client).await;
    assert_eq!(said, json!([]), "the console must stay empty");

    run(&client, "document.activeElement.blur(); scrollTo(0, 0)").await;
    let picture = concat!(env!("CARGO_TARGET_TMPDIR"), "/audit-page.png");
    std::fs::write(picture, client.screenshot().await.unwrap()).unwrap();
    client.close().await.unwrap();
}
