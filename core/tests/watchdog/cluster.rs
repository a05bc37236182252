//! Applications in memory, and an Argo CD that syncs them.

use std::sync::Arc;

use cascade_guard_core::watchdog::{
    AppRef, View,
    source::Source,
    view::{Deployed, Operation},
};
use jiff::Timestamp;

use super::repository::{Repository, id};

/// URL of the repository.
pub const URL: &str = "https://git.example.com/org/shop";

/// One Application, which lives in a folder of its own name.
#[derive(Clone, Debug)]
pub struct App {
    pub name: String,
    pub uid: u32,
    pub history: Vec<usize>,
    pub compared: usize,
    pub sync: &'static str,
    pub health: &'static str,
    pub health_since: Timestamp,
    /// The commit that is being deployed, and since when.
    pub running: Option<(usize, Timestamp)>,
    pub error: bool,
    /// Something beside Git makes it ill.
    pub ill: bool,
    pub sources: Arc<[Source]>,
}

impl App {
    /// Deployed at a commit and well.
    pub fn new(name: &str, commit: usize, now: Timestamp) -> Self {
        let source = Source {
            repository: URL.to_owned(),
            path: name.to_owned(),
            target: "main".to_owned(),
            text: name.to_owned(),
            ..Source::default()
        };
        Self {
            name: name.to_owned(),
            uid: 1,
            history: vec![commit],
            compared: commit,
            sync: "Synced",
            health: "Healthy",
            health_since: now,
            running: None,
            error: false,
            ill: false,
            sources: vec![source].into(),
        }
    }

    /// What is deployed.
    pub fn deployed(&self) -> usize {
        *self.history.last().unwrap()
    }

    /// Health is this from now on.
    pub fn become_(&mut self, health: &'static str, now: Timestamp) {
        if self.health != health {
            self.health = health;
            self.health_since = now;
        }
    }

    /// Whether what is deployed makes it ill: a commit that breaks it, and that no later one reverts.
    pub fn is_broken(&self, repository: &Repository) -> bool {
        let deployed = self.deployed();
        let path = format!("{}/", self.name);
        (0..=deployed).any(|commit| {
            let made = &repository.commits[commit];
            made.breaks
                && repository.contains(deployed, commit)
                && made.paths.iter().any(|file| file.starts_with(&path))
                && repository.reverts(deployed, commit).is_empty()
        })
    }

    /// As the watchdog sees it.
    pub fn view(&self) -> View {
        let at =
            |commit: usize, key: String| Deployed { sources: self.sources.clone(), revisions: vec![id(commit)], key };
        let (operation, started, phase) = match self.running {
            Some((commit, since)) => (commit, Some(since), "Running"),
            None => (self.deployed(), None, "Succeeded"),
        };
        View {
            app: AppRef::new("argocd", &self.name),
            uid: self.uid.to_string(),
            sources: self.sources.clone(),
            distrust: self.error.then(|| "its last comparison failed".to_owned()),
            compared: true,
            comparison: at(self.compared, String::new()),
            sync: self.sync.to_owned(),
            health: self.health.to_owned(),
            health_since: Some(self.health_since),
            busy: self.running.is_some(),
            operation: Operation {
                phase: phase.to_owned(),
                whole: true,
                deploys: at(operation, String::new()),
                started,
                message: String::new(),
            },
            history: self.history.iter().enumerate().map(|(key, commit)| at(*commit, key.to_string())).collect(),
            ..View::default()
        }
    }
}
