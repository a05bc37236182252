//! A server's repository in a folder, an engine that watches it, and Applications as they are handed to it.

use std::{path::Path, sync::Arc};

use cascade_guard::watchdog::{
    engine::{Engine, Report, Seen},
    store::Kept,
};
use cascade_guard_core::watchdog::{Settings, View};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::process::Command;
use tempfile::TempDir;
use tokio::time::Instant;

use super::memory::Memory;

/// The time at which every test begins.
pub fn epoch() -> Timestamp {
    "2026-11-30T20:00:00Z".parse().unwrap()
}

/// Runs git in a folder, as a developer, and gives what it prints.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "dev").env(format!("GIT_{who}_EMAIL"), "dev@example.com");
    }
    let out = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    assert!(out.status.success(), "git {arguments:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// A world for one test.
pub struct Stage {
    pub folder: TempDir,
    pub memory: &'static Memory,
    pub seen: Arc<Mutex<Seen>>,
    pub engine: Engine<&'static Memory>,
    pub settings: Arc<Settings>,
    pub now: Timestamp,
}

impl Stage {
    /// A server with an empty repository that Applications call `url`; `extra` goes into its part of the configuration, and
    /// `spec` into the rest.
    pub fn new(url: &str, extra: &str, spec: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("server.git");
        std::fs::create_dir(&server).unwrap();
        git(&server, &["init", "--quiet", "--bare", "--initial-branch=main"]);
        git(&server, &["config", "uploadpack.allowFilter", "true"]);
        git(&server, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let text = format!(
            "apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\nspec:\n  arm: {{applications: ['**']}}\n  \
             repositories:\n  - {{url: '{url}', remote: 'file://{}', allowFile: true, branches: [main]{extra}}}\n{spec}",
            server.display()
        );
        let settings = Arc::new(Settings::parse(&text).unwrap());
        let memory: &'static Memory = Box::leak(Box::default());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let engine = Engine::new(memory, seen.clone(), settings.clone(), folder.path().join("cache"));
        Self { folder, memory, seen, engine, settings, now: epoch() }
    }

    /// The server's repository.
    pub fn server(&self) -> std::path::PathBuf {
        self.folder.path().join("server.git")
    }

    /// Another process with what is stored, and an empty cache.
    pub fn restart(&mut self) {
        let cache = self.folder.path().join(format!("cache-{}", self.now.as_millisecond()));
        *self.memory.lives.lock() = None;
        self.engine = Engine::new(self.memory, self.seen.clone(), self.settings.clone(), cache);
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: f64) {
        self.now += SignedDuration::from_secs_f64(seconds);
    }

    /// An Application is like this now.
    pub fn show(&self, object: &serde_json::Value) {
        let view = View::parse(&object.to_string()).unwrap();
        self.seen.lock().applications.observe(view, self.now);
    }

    /// One cycle, with a fetch.
    pub async fn cycle(&mut self) -> anyhow::Result<Report> {
        self.engine.cycle(true, self.now, &|| Some(Instant::now() + std::time::Duration::from_secs(60))).await
    }

    /// A look at what happened in the cluster.
    pub async fn glance(&mut self) -> anyhow::Result<Report> {
        self.engine.cycle(false, self.now, &|| Some(Instant::now() + std::time::Duration::from_secs(60))).await
    }

    /// The watch of that name.
    pub fn watch(&self, name: &str) -> Kept {
        self.memory.watches.lock().get(name).unwrap_or_else(|| panic!("there is no {name}")).clone()
    }
}
