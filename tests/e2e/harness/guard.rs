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
    folder: PathBuf,
    arguments: Vec<String>,
    process: Mutex<Option<Supervised>>,
    admin_port: u16,
    /// Where it serves reviews.
    pub port: u16,
    /// CA of its certificate, as a webhook configuration wants it.
    pub ca_bundle: String,
}

impl Guard {
    /// Starts the guard and waits until it is ready.
    pub async fn start(plane: &ControlPlane, folder: &Path) -> Result<Self> {
        let [port, admin_port] = free_ports()?;
        let authority = Authority::new("webhook")?;
        authority.server(&[])?.write(folder, "guard")?;
        let ca_bundle = base64(&authority.pem());
        let identity = plane.service_account("cascade-guard", "cascade-guard").await?;
        fs::write(folder.join("guard.kubeconfig"), plane.kubeconfig(&identity))?;
        fs::write(folder.join("policy.yaml"), POLICY)?;
        let file = |name: &str| folder.join(name).display().to_string();
        let arguments = vec![
            "serve".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--admin-listen=127.0.0.1:{admin_port}"),
            format!("--tls-cert={}", file("guard.crt")),
            format!("--tls-key={}", file("guard.key")),
            format!("--kubeconfig={}", file("guard.kubeconfig")),
            format!("--policy={}", file("policy.yaml")),
            // There is no Service here that would have to stop sending requests first.
            "--drain-seconds=0".to_owned(),
        ];
        let guard =
            Self { folder: folder.to_owned(), arguments, process: Mutex::new(None), admin_port, port, ca_bundle };
        guard.resume().await?;
        Ok(guard)
    }

    /// Starts it again where it was.
    pub async fn resume(&self) -> Result<()> {
        let binary = Path::new(env!("CARGO_BIN_EXE_cascade-guard"));
        *self.process.lock() = Some(Supervised::start(&self.folder, "guard", binary, &self.arguments)?);
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
        let client: HttpClient<_, Empty<Bytes>> = HttpClient::builder(TokioExecutor::new()).build_http();
        let answer = client.get(format!("http://127.0.0.1:{}{path}", self.admin_port).parse()?).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8(body.to_vec())?))
    }
}
