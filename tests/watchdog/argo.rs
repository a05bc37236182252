//! Applications as Argo CD writes them.

use jiff::Timestamp;
use serde_json::{Value, json};

/// An Application of one folder of a repository.
#[derive(Clone, Debug)]
pub struct App {
    pub name: &'static str,
    pub url: String,
    pub history: Vec<String>,
    pub health: &'static str,
    pub health_since: Timestamp,
    pub sync: &'static str,
    pub compared: String,
    pub running: Option<(String, Timestamp)>,
    pub prune: bool,
    pub resources: Vec<Value>,
}

impl App {
    /// Deployed at a commit, in sync and healthy.
    pub fn well(name: &'static str, url: &str, commit: &str, now: Timestamp) -> Self {
        Self {
            name,
            url: url.to_owned(),
            history: vec![commit.to_owned()],
            health: "Healthy",
            health_since: now,
            sync: "Synced",
            compared: commit.to_owned(),
            running: None,
            prune: false,
            resources: Vec::new(),
        }
    }

    /// A sync of a commit has begun.
    pub fn begin(&mut self, commit: &str, now: Timestamp) {
        self.sync = "OutOfSync";
        commit.clone_into(&mut self.compared);
        self.running = Some((commit.to_owned(), now));
    }

    /// It has succeeded, and health is this.
    pub fn finish(&mut self, health: &'static str, now: Timestamp) {
        if let Some((commit, _)) = self.running.take() {
            self.history.push(commit);
        }
        self.sync = "Synced";
        self.become_(health, now);
    }

    /// Health is this from now on.
    pub fn become_(&mut self, health: &'static str, now: Timestamp) {
        self.health = health;
        self.health_since = now;
    }

    /// The object.
    pub fn object(&self) -> Value {
        let source = json!({"repoURL": self.url, "path": self.name, "targetRevision": "main"});
        let destination = json!({"server": "https://kubernetes.default.svc", "namespace": self.name});
        let last = self.history.last().cloned().unwrap_or_default();
        let (phase, revision, started) = match &self.running {
            Some((commit, since)) => ("Running", commit.clone(), since.to_string()),
            None => ("Succeeded", last, "2026-11-30T20:00:01Z".to_owned()),
        };
        let history: Vec<Value> = self
            .history
            .iter()
            .enumerate()
            .map(|(id, revision)| json!({"id": id, "revision": revision, "source": source}))
            .collect();
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": self.name, "namespace": "argocd", "uid": format!("uid-{}", self.name)},
            "spec": {
                "project": "default", "source": source, "destination": destination,
                "syncPolicy": {"automated": {"prune": self.prune, "selfHeal": true}},
            },
            "status": {
                "reconciledAt": "2026-11-30T20:00:00Z",
                "sync": {
                    "status": self.sync, "revision": self.compared,
                    "comparedTo": {"source": source, "destination": destination},
                },
                "health": {"status": self.health, "lastTransitionTime": self.health_since.to_string()},
                "history": history,
                "operationState": {
                    "phase": phase, "startedAt": started, "operation": {"sync": {"revision": revision}},
                    "syncResult": {"revision": revision, "source": source},
                },
                "resources": self.resources, "sourceType": "Directory",
            },
        })
    }
}
