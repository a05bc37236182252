//! The guard under test: the real binary, serving TLS, with the rights of the ServiceAccount in `manifests/` and no others.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client as HttpClient, rt::TokioExecutor};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    pki::{Authority, base64},
    plane::{ControlPlane, free_ports},
    process::Supervised,
    wait::eventually,
};

/// Everything enforced, as far as the design lets it; each test has Namespaces and Applications of its own.
const POLICY: &str = "
apiVersion: cascade-guard.io/v1alpha1
kind: GuardPolicy
metadata: {name: default}
spec:
  argocd: {namespace: argocd}
  rules:
    sharedClaim: {mode: enforce}
    sharedUpdate: {mode: warn}
    namespaceApproval: {mode: enforce, maxTTL: 24h}
    syncWave: {mode: enforce}
    runtimeDependency: {mode: warn}
    controlPlane: {mode: enforce}
";

/// A guard that can be stopped and started again.
pub struct Guard {
    name: &'static str,
    folder: PathBuf,
    arguments: Vec<String>,
    process: Mutex<Option<Supervised>>,
    admin_port: u16,
    /// Where it serves reviews.
    pub port: u16,
    /// CA of its certificate, as a webhook configuration wants it.
    pub ca_bundle: String,
    authority: Authority,
}

impl Guard {
    /// Starts the guard that the API server asks, and waits until it is ready.
    pub async fn start(plane: &ControlPlane, folder: &Path) -> Result<Self> {
        let policy = folder.join("policy.yaml");
        fs::write(&policy, POLICY)?;
        Self::with(plane, folder, "guard", &[&format!("--policy={}", policy.display()), "--no-reports"]).await
    }

    /// Starts a further guard, with these flags, and waits until it is ready. The API server does not ask it.
    pub async fn with(plane: &ControlPlane, folder: &Path, name: &'static str, flags: &[&str]) -> Result<Self> {
        let [port, admin_port] = free_ports()?;
        let authority = Authority::new("webhook")?;
        authority.server(&[])?.write(folder, name)?;
        let ca_bundle = base64(&authority.pem());
        let identity = plane.service_account("cascade-guard", "cascade-guard").await?;
        let file = |extension: &str| folder.join(format!("{name}.{extension}"));
        fs::write(file("kubeconfig"), plane.kubeconfig(&identity))?;
        let mut arguments = vec![
            "serve".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--admin-listen=127.0.0.1:{admin_port}"),
            format!("--tls-cert={}", file("crt").display()),
            format!("--tls-key={}", file("key").display()),
            format!("--kubeconfig={}", file("kubeconfig").display()),
            // There is no Service here that would have to stop sending requests first.
            "--drain-seconds=0".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let folder = folder.to_owned();
        let guard = Self { name, folder, arguments, process: Mutex::new(None), admin_port, port, ca_bundle, authority };
        guard.resume().await?;
        Ok(guard)
    }

    /// Gives it a certificate that ends in a day; it takes it when it is started again.
    pub fn shorten_certificate(&self) -> Result<()> {
        self.authority.short_lived_server()?.write(&self.folder, self.name)
    }

    /// Sends a review to it as the API server would; gives its answer.
    pub async fn review(&self, review: &Value) -> Result<Value> {
        let mut config = kube::Config::new(format!("https://localhost:{}", self.port).parse()?);
        config.root_cert = Some(vec![self.authority.der()]);
        let request = http::Request::post("/validate")
            .header("content-type", "application/json")
            .body(serde_json::to_vec(review)?)?;
        let answer = kube::Client::try_from(config)?.request_text(request).await?;
        Ok(serde_json::from_str::<Value>(&answer)?["response"].take())
    }

    /// What it has logged.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.folder.join(format!("{}.log", self.name)))?)
    }

    /// Starts it again where it was.
    pub async fn resume(&self) -> Result<()> {
        let binary = Path::new(env!("CARGO_BIN_EXE_cascade-guard"));
        *self.process.lock() = Some(Supervised::start(&self.folder, self.name, binary, &self.arguments)?);
        eventually("the guard", async || {
            self.process.lock().as_mut().context("it was stopped")?.check()?;
            ensure!(self.admin("/readyz").await?.0 == 200, "it is not ready");
            Ok(())
        })
        .await
    }

    /// Stops it as a cluster would, with SIGTERM.
    pub fn stop(&self) -> Result<()> {
        if let Some(mut process) = self.process.lock().take() {
            let status = process.stop()?;
            ensure!(status.success(), "the guard ended with {status}:\n{}", process.log_tail());
        }
        Ok(())
    }

    /// How many reviews it has answered, dry runs included.
    pub async fn reviews(&self) -> Result<u64> {
        let (status, metrics) = self.admin("/metrics").await?;
        ensure!(status == 200, "/metrics answered {status}");
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("cascade_guard_admission_duration_seconds_count"))
            .filter_map(|line| line.rsplit(' ').next())
            .map(str::parse::<u64>);
        Ok(counts.sum::<Result<u64, _>>()?)
    }

    /// GET on its second, plain port: status and body.
    pub async fn admin(&self, path: &str) -> Result<(u16, String)> {
        plain_get(self.admin_port, path).await
    }
}

/// GET on a plain port of this machine: status and body.
pub async fn plain_get(port: u16, path: &str) -> Result<(u16, String)> {
    let client: HttpClient<_, Empty<Bytes>> = HttpClient::builder(TokioExecutor::new()).build_http();
    let answer = client.get(format!("http://127.0.0.1:{port}{path}").parse()?).await?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec())?))
}
