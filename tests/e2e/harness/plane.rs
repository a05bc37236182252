//! A control plane: etcd, kube-apiserver and kube-controller-manager on free ports of this machine.
//!
//! There is no kubelet and no scheduler: Pods stay Pending and Jobs never complete. Of the controllers only those run that
//! the tests need: the ones that empty Namespaces, collect garbage, make ServiceAccounts and aggregate ClusterRoles.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client, Config, api::PostParams, config::AuthInfo};
use serde_json::json;

use super::{
    pki::{Authority, base64},
    process::Supervised,
    wait::eventually,
};

const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
                           clusterrole-aggregation-controller";

/// A running control plane. Dropping it ends it.
pub struct ControlPlane {
    url: String,
    authority: Authority,
    folder: PathBuf,
    // In the order in which they are to be ended.
    controller_manager: Supervised,
    api_server: Supervised,
    etcd: Supervised,
}

impl ControlPlane {
    /// Starts everything; data and logs go to `folder`.
    pub async fn start(folder: &Path) -> Result<Self> {
        let programs = programs()?;
        let [etcd_port, etcd_peers, api_port] = free_ports()?;
        let url = format!("https://127.0.0.1:{api_port}");
        let authority = Authority::new("test cluster")?;
        fs::write(folder.join("ca.crt"), authority.pem())?;
        authority.server(&["kubernetes.default.svc"])?.write(folder, "api-server")?;
        let signer = rcgen::KeyPair::generate()?;
        fs::write(folder.join("service-accounts.key"), signer.serialize_pem())?;
        fs::write(folder.join("service-accounts.pub"), signer.public_key_pem())?;
        fs::write(folder.join("audit-policy.json"), audit_policy().to_string())?;
        let manager = authority.client("system:kube-controller-manager", "test-cluster")?;
        fs::write(folder.join("controller-manager.kubeconfig"), kubeconfig(&url, &authority, &manager.auth()))?;

        let etcd = Supervised::start(
            folder,
            "etcd",
            &programs.join("etcd"),
            &etcd_arguments(
                folder,
                &format!("http://127.0.0.1:{etcd_port}"),
                &format!("http://127.0.0.1:{etcd_peers}"),
            ),
        )?;
        let mut api_server = Supervised::start(
            folder,
            "kube-apiserver",
            &programs.join("kube-apiserver"),
            &api_server_arguments(folder, api_port, etcd_port),
        )?;
        let admin = Client::try_from(config(&url, &authority, authority.client("admin", "system:masters")?.auth())?)?;
        eventually("the API server", async || {
            api_server.check()?;
            let ready = http::Request::get("/readyz").body(Vec::new())?;
            ensure!(admin.request_text(ready).await? == "ok", "it is not ready");
            Ok(())
        })
        .await?;
        let controller_manager = Supervised::start(
            folder,
            "kube-controller-manager",
            &programs.join("kube-controller-manager"),
            &controller_manager_arguments(folder),
        )?;
        Ok(Self { url, authority, folder: folder.to_owned(), controller_manager, api_server, etcd })
    }

    /// A client of somebody known by certificate.
    pub fn person(&self, user: &str, group: &str) -> Result<Client> {
        self.client(self.certificate(user, group)?)
    }

    /// A person's certificate.
    pub fn certificate(&self, user: &str, group: &str) -> Result<AuthInfo> {
        Ok(self.authority.client(user, group)?.auth())
    }

    /// A client of the cluster's administrator, whom RBAC does not limit.
    pub fn admin(&self) -> Result<Client> {
        self.client(self.administrator()?)
    }

    /// The certificate of the cluster's administrator.
    pub fn administrator(&self) -> Result<AuthInfo> {
        Ok(self.authority.client("admin", "system:masters")?.auth())
    }

    /// A client of the administrator's that acts as somebody else.
    pub fn impersonate(&self, user: &str, groups: &[&str]) -> Result<Client> {
        let admin = self.administrator()?;
        self.client(AuthInfo {
            impersonate: Some(user.to_owned()),
            impersonate_groups: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
            ..admin
        })
    }

    /// A client that presents `auth`.
    pub fn client(&self, auth: AuthInfo) -> Result<Client> {
        Ok(Client::try_from(config(&self.url, &self.authority, auth)?)?)
    }

    /// A token of a ServiceAccount, as its Pod would hold one.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<AuthInfo> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin()?, namespace);
        let wanted = TokenRequest {
            spec: TokenRequestSpec { audiences: Vec::new(), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let answer = accounts.create_token_request(name, &PostParams::default(), &wanted).await?;
        let token = answer.status.context("the API server sent no token")?.token;
        Ok(AuthInfo { token: Some(token.into()), ..AuthInfo::default() })
    }

    /// A kubeconfig with `auth`.
    pub fn kubeconfig(&self, auth: &AuthInfo) -> String {
        kubeconfig(&self.url, &self.authority, auth)
    }

    /// The audit log of the API server so far: one JSON event a line.
    pub fn audit_log(&self) -> Result<String> {
        fs::read_to_string(self.folder.join("audit.log")).context("there is no audit log")
    }

    /// Ends everything, and says what did not end well.
    pub fn stop(&mut self) -> Result<()> {
        for program in [&mut self.controller_manager, &mut self.api_server, &mut self.etcd] {
            program.stop()?;
        }
        Ok(())
    }
}

/// The folder with the three programs.
fn programs() -> Result<PathBuf> {
    // `make control-plane` leaves the link, next to the folder that Cargo gives to tests.
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("control-plane");
    let folder = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map_or(built, PathBuf::from);
    for program in PROGRAMS {
        ensure!(
            folder.join(program).is_file(),
            "there is no {program} in {}: run `make control-plane`, which builds the control plane (minutes the first time)",
            folder.display()
        );
    }
    Ok(folder)
}

/// Ports that nobody uses. All are held until the last is found, so that they differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

fn etcd_arguments(folder: &Path, clients: &str, peers: &str) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // Nothing here needs to survive a power cut.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn api_server_arguments(folder: &Path, port: u16, etcd_port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--tls-cert-file={}", file("api-server.crt")),
        format!("--tls-private-key-file={}", file("api-server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--audit-policy-file={}", file("audit-policy.json")),
        format!("--audit-log-path={}", file("audit.log")),
        "--audit-log-mode=blocking".to_owned(),
    ]
}

fn controller_manager_arguments(folder: &Path) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", file("service-accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        // Without it every controller would appear in reviews under the same name.
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--controllers={CONTROLLERS}"),
        "--secure-port=0".to_owned(),
    ]
}

fn audit_policy() -> serde_json::Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]}, {"level": "None"}],
    })
}

fn config(url: &str, authority: &Authority, auth: AuthInfo) -> Result<Config> {
    let mut config = Config::new(url.parse()?);
    config.root_cert = Some(vec![authority.der()]);
    config.auth_info = auth;
    Ok(config)
}

fn kubeconfig(url: &str, authority: &Authority, auth: &AuthInfo) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": base64(&authority.pem())}}],
        "users": [{"name": "test", "user": auth}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    })
    .to_string()
}
