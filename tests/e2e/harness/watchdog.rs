//! The rollout watchdog under test: the real binary, with the rights of the manifests that ship and no others.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context as _, Result};
use cascade_guard_core::watchdog::{RolloutWatch, RolloutWatchStatus};
use kube::{Api, Client};
use parking_lot::Mutex;

use super::{
    git_server::{GitServer, USER},
    manifests,
    plane::free_ports,
    rights::gains,
    world::World,
};

/// Where its objects are.
pub const NAMESPACE: &str = "cascade-guard";

/// Applies the component.
pub async fn install(world: &World) -> Result<()> {
    let admin = world.plane.admin()?;
    for file in ["definitions", "service-account", "roles"] {
        for object in manifests::read(&format!("manifests/components/watchdog/{file}.yaml"))? {
            manifests::apply(&admin, &object).await?;
        }
    }
    let account = world.plane.client(world.plane.service_account(NAMESPACE, "cascade-guard-watchdog").await?)?;
    gains(&account, "list", "argoproj.io", "applications").await
}

/// One replica.
pub struct Replica {
    process: Mutex<Option<std::process::Child>>,
    log: PathBuf,
    arguments: Vec<String>,
    /// Its plain port.
    pub port: u16,
}

impl Replica {
    /// How a replica of this name is started. `spec` goes into its configuration.
    pub async fn new(world: &World, server: &GitServer, name: &str, spec: &str) -> Result<Self> {
        let folder = server.clone.parent().context("no folder")?.join(name);
        fs::create_dir_all(&folder)?;
        let account = world.plane.service_account(NAMESPACE, "cascade-guard-watchdog").await?;
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, world.plane.kubeconfig(&account))?;
        let config = folder.join("watchdog.yaml");
        fs::write(&config, configuration(server, spec))?;
        let [port] = free_ports()?;
        let arguments = [
            "watchdog".to_owned(),
            "run".to_owned(),
            format!("--config={}", config.display()),
            format!("--cache={}", folder.join("cache").display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--admin-listen=127.0.0.1:{port}"),
            "--lease-duration=10s".to_owned(),
        ];
        Ok(Self { process: Mutex::default(), log: folder.join("log"), arguments: arguments.to_vec(), port })
    }

    /// Starts it, or starts it again.
    pub fn start(&self) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(&self.log)?;
        let child = self.command().stdout(log.try_clone()?).stderr(log).spawn()?;
        *self.process.lock() = Some(child);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_cascade-guard")));
        command.args(&self.arguments).env("HOME", self.log.parent().unwrap_or(Path::new("/")));
        command
    }

    /// Runs it for one cycle.
    pub fn once(&self, flags: &[&str]) -> Result<(ExitStatus, String)> {
        let output = self.command().arg("--once").args(flags).output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Ends it without a word, as a node that dies does.
    pub fn kill(&self) -> Result<()> {
        if let Some(mut child) = self.process.lock().take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn configuration(server: &GitServer, spec: &str) -> String {
    format!(
        "apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\nspec:\n  fetchInterval: 1s\n  arm: \
         {{applications: ['**']}}\n  repositories:\n  - url: {}\n    branches: [main]\n    auth: {{user: {USER}, tokenFile: \
         {}, caFile: {}}}\n{spec}",
        server.url(),
        server.token_file.display(),
        server.ca_file.display(),
    )
}

/// The status of a watch, if it is there.
pub async fn status(client: &Client, name: &str) -> Result<Option<RolloutWatchStatus>> {
    let api: Api<RolloutWatch> = Api::namespaced(client.clone(), NAMESPACE);
    Ok(api.get_opt(name).await?.and_then(|watch| watch.status))
}
