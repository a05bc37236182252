//! A developer at work: commits, merges, reverts, pushed to the server of a stage.

use std::path::PathBuf;

use super::stage::{Stage, git};

/// A clone.
pub struct Developer {
    pub clone: PathBuf,
}

impl Developer {
    /// Clones the server and makes the first commit.
    pub fn new(stage: &Stage) -> Self {
        let clone = stage.folder.path().join("clone");
        std::fs::create_dir(&clone).unwrap();
        git(&clone, &["init", "--quiet", "--initial-branch=main"]);
        git(&clone, &["remote", "add", "origin", stage.server().to_str().unwrap()]);
        let developer = Self { clone };
        developer.commit(&[("web/d.yaml", "1"), ("api/d.yaml", "1"), ("README", "x")], "first");
        developer.push();
        developer
    }

    /// Writes files and commits them; gives the commit.
    pub fn commit(&self, files: &[(&str, &str)], message: &str) -> String {
        for (file, content) in files {
            let path = self.clone.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{content}\n")).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head()
    }

    /// A commit that changes `web` and asks to be watched.
    pub fn watched(&self, content: &str, mode: &str) -> String {
        let message = format!("web: {content}\n\nWatchdog: app=web deadline=60 stable=10 mode={mode}");
        let commit = self.commit(&[("web/d.yaml", content)], &message);
        self.push();
        commit
    }

    /// Pushes the branch.
    pub fn push(&self) {
        self.git(&["push", "--quiet", "--force", "origin", "HEAD:main"]);
    }

    /// The commit that is checked out.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.clone, arguments)
    }
}
