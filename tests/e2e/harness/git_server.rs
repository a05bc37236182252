//! A Git server: `git http-backend` behind TLS and a password, with hooks that a test can hold up.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
};
use tokio::{io::AsyncWriteExt, net::TcpListener, process::Command};

use super::pki::{Authority, base64};

/// The user and the token that the server wants.
pub const USER: &str = "watchdog";
pub const TOKEN: &str = "a-token-that-must-not-be-seen";

/// A server with one repository, `org/shop.git`.
pub struct GitServer {
    pub folder: PathBuf,
    pub address: SocketAddr,
    pub ca_file: PathBuf,
    pub token_file: PathBuf,
    pub clone: PathBuf,
}

#[derive(Clone)]
struct Backend {
    root: PathBuf,
}

impl GitServer {
    /// Starts it; it serves as long as the runtime lives.
    pub async fn start(folder: &Path) -> Result<Self> {
        let (root, clone) = (folder.join("srv"), folder.join("clone"));
        let bare = root.join("org/shop.git");
        fs::create_dir_all(&bare)?;
        fs::create_dir_all(&clone)?;
        git(&bare, &["init", "--quiet", "--bare", "--initial-branch=main"]).await?;
        for key in ["http.receivepack", "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            git(&bare, &["config", key, "true"]).await?;
        }
        git(&clone, &["init", "--quiet", "--initial-branch=main"]).await?;
        git(&clone, &["remote", "add", "origin", bare.to_str().context("no text")?]).await?;
        let authority = Authority::new("git")?;
        let pair = authority.server(&[])?;
        let (ca_file, token_file) = (folder.join("git-ca.crt"), folder.join("git-token"));
        fs::write(&ca_file, authority.pem())?;
        fs::write(&token_file, TOKEN)?;
        let tls = server_config(&pair.certificate, &pair.key)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let app = Router::new().fallback(serve).with_state(Backend { root });
        tokio::spawn(accept(listener, tls, app));
        Ok(Self { folder: bare, address, ca_file, token_file, clone })
    }

    /// URL of the repository.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/org/shop.git", self.address.port())
    }

    /// Writes a file, commits it and pushes; gives the commit.
    pub async fn commit(&self, file: &str, content: &str, message: &str) -> Result<String> {
        let path = self.clone.join(file);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, content)?;
        git(&self.clone, &["add", "--all"]).await?;
        git(&self.clone, &["commit", "--quiet", "-m", message]).await?;
        git(&self.clone, &["push", "--quiet", "origin", "HEAD:main"]).await?;
        git(&self.clone, &["rev-parse", "HEAD"]).await
    }

    /// Takes in what others pushed.
    pub async fn pull(&self) -> Result<()> {
        git(&self.clone, &["pull", "--quiet", "--rebase", "origin", "main"]).await.map(|_| ())
    }

    /// Puts a hook in place; an empty script removes it.
    pub fn hook(&self, kind: &str, script: &str) -> Result<()> {
        let file = self.folder.join("hooks").join(kind);
        fs::create_dir_all(file.parent().context("no folder")?)?;
        if script.is_empty() {
            let _ = fs::remove_file(file);
            return Ok(());
        }
        fs::write(&file, format!("#!/bin/sh\n{script}\n"))?;
        Ok(fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?)
    }

    /// The commits on the branch that say they revert this one.
    pub async fn reverts(&self, commit: &str) -> Result<Vec<String>> {
        let grep = format!("--grep=This reverts commit {commit}");
        let log = git(&self.folder, &["log", "--format=%H", &grep, "main"]).await?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

/// Runs git as a developer; gives what it prints.
pub async fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "dev").env(format!("GIT_{who}_EMAIL"), "dev@example.com");
    }
    let out = command.output().await?;
    ensure!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn server_config(certificate: &str, key: &str) -> Result<Arc<rustls::ServerConfig>> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    Ok(Arc::new(rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?))
}

async fn accept(listener: TcpListener, tls: Arc<rustls::ServerConfig>, app: Router) {
    let acceptor = tokio_rustls::TlsAcceptor::from(tls);
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, app) = (acceptor.clone(), app.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = hyper_util::service::TowerToHyperService::new(app);
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

/// One request, by the protocol of CGI.
async fn serve(
    State(backend): State<Backend>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let expected = format!("Basic {}", base64(&format!("{USER}:{TOKEN}")));
    if text(header::AUTHORIZATION) != expected {
        let answer =
            Response::builder().status(StatusCode::UNAUTHORIZED).header(header::WWW_AUTHENTICATE, "Basic realm=git");
        return answer.body(Body::empty()).unwrap_or_default();
    }
    answer(&backend, &method, &uri, &headers, body).await.unwrap_or_else(|error| {
        let answer = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
        answer.body(Body::from(format!("{error:#}"))).unwrap_or_default()
    })
}

async fn answer(
    backend: &Backend,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response<Body>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &backend.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", USER)
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", text("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", text("content-encoding"))
        .env("GIT_PROTOCOL", text("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let feed = async move { stdin.write_all(&body).await };
    let (sent, output) = tokio::join!(feed, child.wait_with_output());
    let output = output?.stdout;
    let _ = sent;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no headers")?;
    let mut answer = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").context("no header")?;
        answer = match name {
            "Status" => answer.status(value.split(' ').next().unwrap_or("200")),
            _ => answer.header(name, value),
        };
    }
    Ok(answer.body(Body::from(output[end + 4..].to_vec()))?)
}
