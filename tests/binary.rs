//! The binary itself: `certs`, and `serve` from start to end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cascade-guard"));
    command.env_remove("CASCADE_GUARD_MODE_CEILING").env_remove("CASCADE_GUARD_LOG");
    command
}

fn certs(folder: &Path, arguments: &[&str]) -> Output {
    binary()
        .arg("certs")
        .arg(folder)
        .args(["--name", "localhost", "--name", "127.0.0.1"])
        .args(arguments)
        .output()
        .unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn private_keys_are_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certs(folder.path(), &[]).status.success());
    for (name, wanted) in [("ca.key", 0o600), ("tls.key", 0o600)] {
        assert_eq!(mode(&folder.path().join(name)), wanted, "{name}");
    }
    assert!(fs::read_to_string(folder.path().join("tls.crt")).unwrap().contains("BEGIN CERTIFICATE"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certs(folder.path(), &[]).status.success());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (ca, cert) = (read("ca.crt"), read("tls.crt"));
    let refused = certs(folder.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("ca.crt") && said.contains("--force"), "{said}");
    assert_eq!((read("ca.crt"), read("tls.crt")), (ca.clone(), cert.clone()));
    // A rotation leaves the authority, and with it the caBundle, as it is.
    assert!(certs(folder.path(), &["--keep-ca", "--force"]).status.success());
    assert_eq!(read("ca.crt"), ca);
    assert_ne!(read("tls.crt"), cert);
    assert_eq!(mode(&folder.path().join("tls.key")), 0o600);
    assert!(certs(folder.path(), &["--force"]).status.success());
    assert_ne!(read("ca.crt"), ca);
}

#[test]
fn bad_name_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new");
    let refused = binary().arg("certs").arg(&target).args(["--name", "not a name"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("not a name"));
    assert!(!target.exists());
}

#[test]
fn ca_bundle_is_printed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let printed = certs(folder.path(), &["--print-ca-bundle"]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let bundle: k8s_openapi::ByteString = serde_json::from_value(json!(printed.trim())).unwrap();
    assert_eq!(bundle.0, fs::read(folder.path().join("ca.crt")).unwrap());
}

#[test]
fn completions_are_printed_for_a_shell() {
    let printed = binary().args(["completions", "bash"]).output().unwrap();
    assert!(printed.status.success());
    assert!(String::from_utf8(printed.stdout).unwrap().contains("_cascade"));
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A running `serve`, ended by its process id.
struct Serving {
    child: Child,
    log: BufReader<ChildStderr>,
    webhook: String,
    plain: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = binary()
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-seconds", "0"])
            .arg("--tls-cert")
            .arg(folder.join("tls.crt"))
            .arg("--tls-key")
            .arg(folder.join("tls.key"))
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut serving = Self { child, log, webhook: String::new(), plain: String::new() };
        serving.plain = text(&serving.line("started")["plain"]);
        serving.webhook = text(&serving.line("the webhook port is open")["address"]);
        serving
    }

    /// Reads the log up to a line with this message. Every line is one JSON object.
    fn line(&mut self, message: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the log ended before `{message}`");
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            if line["message"] == message {
                return line;
            }
        }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.plain).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn post(&self, folder: &Path, body: &str) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(folder.join("ca.crt")).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(&self.webhook).unwrap());
        write!(
            stream,
            "POST /validate?timeout=5s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        // The server may end TLS without saying goodbye.
        let _ = stream.read_to_string(&mut text);
        text
    }
}

#[test]
fn serve_works_over_a_snapshot_and_ends_in_order() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certs(folder.path(), &[]).status.success());
    let world = folder.path().join("world.yaml");
    fs::write(&world, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, uid: u}\n").unwrap();
    let mut serving = Serving::start(folder.path(), &["--snapshot", world.to_str().unwrap()]);
    assert!(serving.get("/readyz").starts_with("HTTP/1.1 200"));
    assert!(serving.get("/metrics").contains("cascade_guard_claim_index_ready 1"));
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "operation": "DELETE",
        "name": "a", "namespace": "shop", "oldObject": {"metadata": {"name": "a", "namespace": "shop"}}}});
    let answer = serving.post(folder.path(), &review.to_string());
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""uid":"u-1","allowed":true"#), "{answer}");
    let pid = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    serving.line("drained");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn bad_pair_is_refused_at_the_start_with_the_reason() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(certs(one.path(), &[]).status.success() && certs(other.path(), &[]).status.success());
    let refused = binary()
        .args(["serve", "--snapshot", "/dev/null", "--tls-cert"])
        .arg(one.path().join("tls.crt"))
        .arg("--tls-key")
        .arg(other.path().join("tls.key"))
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("do not belong together"), "{said}");
}

#[test]
fn bad_policy_is_refused_at_the_start_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certs(folder.path(), &[]).status.success());
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "apiVersion: cascade-guard.io/v1alpha1\nkind: GuardPolicy\nspec:\n  rulez: {}\n").unwrap();
    let refused = binary()
        .args(["serve", "--snapshot", "/dev/null", "--tls-cert"])
        .arg(folder.path().join("tls.crt"))
        .arg("--tls-key")
        .arg(folder.path().join("tls.key"))
        .arg("--policy")
        .arg(&policy)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("policy.yaml") && said.contains("rulez") && said.contains('4'), "{said}");
}

#[test]
fn overlap_ends_with_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let map = |name: &str, value: &str| {
        format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: {value}}}}}")
    };
    let (one, two, three) =
        (file("1.yaml", &map("m", "one")), file("2.yaml", &map("m", "two")), file("3.yaml", &map("other", "two")));
    let overlap = |a: &Path, b: &Path| binary().arg("overlap").args([a, b]).args(["-o", "json"]).output().unwrap();
    let found = overlap(&one, &two);
    assert_eq!(found.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["objects"][0]["name"], "m");
    assert_eq!(report["objects"][0]["differences"], json!([{"op": "replace", "path": "/data/a", "value": "two"}]));
    assert_eq!(overlap(&one, &three).status.code(), Some(0));
    let missing = overlap(&one, Path::new("no-such-thing"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-thing is no file or folder"));
}

#[test]
fn empty_ceiling_in_the_environment_caps_nothing_and_a_wrong_one_is_refused() {
    let explain = |ceiling: &str| {
        binary()
            .env("CASCADE_GUARD_MODE_CEILING", ceiling)
            .args(["policy", "explain", "namespace", "shop"])
            .output()
            .unwrap()
    };
    assert!(!String::from_utf8_lossy(&explain("").stderr).contains("is no mode"));
    let wrong = explain("of");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("use off, audit, warn or enforce"));
}
