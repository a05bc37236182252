//! A running `serve` over a snapshot, and clients of it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};

/// Nobody waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What a guard says of a review that it had no time to judge.
const UNJUDGED: &str = "not judged in time";

/// A running `serve`, ended when it is dropped.
pub struct Guard {
    child: Child,
    webhook: String,
    plain: String,
    tls: Arc<ClientConfig>,
    _folder: tempfile::TempDir,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Guard {
    /// Starts it over `world`, with every rule of `policy`.
    pub fn start(world: &[Value], policy: &Value) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let made = binary().arg("certs").arg(path("tls")).args(["--name", "localhost"]).output()?;
        ensure!(made.status.success(), "certs: {}", String::from_utf8_lossy(&made.stderr));
        fs::write(path("world.json"), json!({"apiVersion": "v1", "kind": "List", "items": world}).to_string())?;
        fs::write(path("policy.yaml"), policy.to_string())?;
        let mut child = binary()
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-seconds", "0"])
            .arg("--tls-cert")
            .arg(path("tls/tls.crt"))
            .arg("--tls-key")
            .arg(path("tls/tls.key"))
            .arg("--policy")
            .arg(path("policy.yaml"))
            .arg("--snapshot")
            .arg(path("world.json"))
            .stderr(Stdio::piped())
            .spawn()?;
        let log = BufReader::new(child.stderr.take().context("no log")?);
        let mut guard = Self {
            child,
            webhook: String::new(),
            plain: String::new(),
            tls: trusting(&path("tls/ca.crt"))?,
            _folder: folder,
        };
        let mut lines = log.lines();
        for line in lines.by_ref() {
            let line: Value = serde_json::from_str(&line?).context("a line of the log")?;
            match line["message"].as_str() {
                Some("started") => text(&line["plain"]).clone_into(&mut guard.plain),
                Some("the webhook port is open") => {
                    text(&line["address"]).clone_into(&mut guard.webhook);
                    break;
                }
                _ => {}
            }
        }
        ensure!(!guard.webhook.is_empty() && !guard.plain.is_empty(), "it ended before it served");
        // A pipe that nobody empties would hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(guard)
    }

    /// A client with a connection of its own.
    pub fn client(&self) -> Result<Client> {
        let stream = TcpStream::connect(&self.webhook)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let connection = ClientConnection::new(self.tls.clone(), ServerName::try_from("localhost")?)?;
        Ok(Client { stream: StreamOwned::new(connection, stream) })
    }

    /// Asks the plain port for `path` each time it is called, over a new connection; gives the status line.
    pub fn prober(&self, path: &'static str) -> impl Fn() -> Result<String> + Send + 'static {
        let plain = self.plain.clone();
        move || {
            let mut stream = TcpStream::connect(&plain)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).context("the plain port does not answer")?;
            Ok(answer.lines().next().unwrap_or_default().to_owned())
        }
    }

    /// The address of the webhook port.
    pub fn webhook(&self) -> &str {
        &self.webhook
    }

    /// The address of the plain port.
    pub fn plain(&self) -> &str {
        &self.plain
    }

    /// Processor time that it spent so far.
    pub fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name in parentheses may hold anything; fields 14 and 15 of the whole are 12 and 13 of the rest.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
        // Linux counts hundredths of a second for user space on every architecture.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Most memory that it ever held, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
    }
}

/// One connection to the webhook port.
pub struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

/// An answer to a review.
pub struct Answer {
    /// The HTTP status line.
    pub status: String,
    /// The response in the review; `null` if there is none.
    pub response: Value,
}

impl Answer {
    /// The answer in two words.
    pub fn verdict(&self) -> String {
        let warnings = self.response["warnings"].as_array().map_or(0, Vec::len);
        match self.response["allowed"].as_bool() {
            Some(true) if warnings > 0 => format!("allowed with {warnings} warnings"),
            Some(true) => "allowed".to_owned(),
            Some(false) if self.response["status"]["message"].as_str().is_some_and(|said| said.contains(UNJUDGED)) => {
                "refused without a judgement".to_owned()
            }
            Some(false) => "refused".to_owned(),
            None => self.status.clone(),
        }
    }
}

impl Client {
    /// Sends a part of a request and waits for nothing.
    pub fn begin(&mut self, part: &str) -> Result<()> {
        // Also where there is nothing to send: the handshake comes first.
        while self.stream.conn.is_handshaking() {
            self.stream.conn.complete_io(&mut self.stream.sock)?;
        }
        self.stream.write_all(part.as_bytes())?;
        Ok(self.stream.flush()?)
    }

    /// Posts a review to `path` and waits for the answer.
    pub fn post(&mut self, path: &str, body: &str) -> Result<Answer> {
        write!(
            self.stream,
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        self.stream.flush()?;
        let (head, mut rest) = self.head()?;
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse::<usize>().ok())
            .context("an answer without a length")?;
        while rest.len() < length {
            self.more(&mut rest)?;
        }
        let review: Value = serde_json::from_slice(&rest).unwrap_or_default();
        let status = head.lines().next().unwrap_or_default().to_owned();
        Ok(Answer { status, response: review["response"].clone() })
    }

    /// The head of the answer, and what came with it of the body.
    fn head(&mut self) -> Result<(String, Vec<u8>)> {
        let mut bytes = Vec::new();
        loop {
            self.more(&mut bytes)?;
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = bytes.split_off(end + 4);
                return Ok((String::from_utf8(bytes)?, rest));
            }
        }
    }

    fn more(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer).context("the webhook does not answer")?;
        ensure!(read > 0, "the connection was closed");
        bytes.extend_from_slice(&buffer[..read]);
        Ok(())
    }
}

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cascade-guard"));
    command.env_remove("CASCADE_GUARD_MODE_CEILING").env_remove("CASCADE_GUARD_LOG");
    command
}

fn trusting(authority: &Path) -> Result<Arc<ClientConfig>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
