//! The bare cache of one repository: fetched, read, and where reverts are made and pushed.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use tokio::fs;

use super::git::Git;
use cascade_guard_core::watchdog::{
    facts::is_object_id,
    schema::repository_name,
    settings::{Identity, Repository},
};

/// Where the branches that get reverts are kept.
const REVERTS: &str = "refs/watchdog/reverts/";
/// The first fetch of a checkout may take long: contents come then.
const REVERT_PATIENCE: Duration = Duration::from_secs(600);

/// How a push ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the repository.
    Done,
    /// The branch is no longer where it was.
    Moved,
    /// The server does not take it: why.
    Refused(String),
}

/// Why no revert was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// It does not apply to what is there now.
    Conflict(String),
    /// It would change nothing.
    Nothing,
}

/// A repository and its cache.
#[derive(Debug)]
pub struct Remote {
    /// As it is configured.
    pub repository: Repository,
    git: Git,
    /// The newest commit of each branch.
    tips: BTreeMap<String, String>,
    default_branch: Option<String>,
    fetches: u64,
}

/// The parts of a commit that reverts another one.
#[derive(Clone, Copy, Debug)]
pub struct Revert<'a> {
    /// What is reverted.
    pub commit: &'a str,
    /// What it comes on top of.
    pub tip: &'a str,
    /// The files that the reverted commit touched.
    pub paths: &'a [String],
    /// Whether it is a merge, of which the first parent is kept.
    pub merge: bool,
    /// The message.
    pub message: &'a str,
    /// Who commits.
    pub identity: &'a Identity,
}

impl Remote {
    /// The cache lies below `folder`, in a folder of its own. Nothing is fetched yet.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub async fn open(folder: &Path, repository: Repository) -> anyhow::Result<Self> {
        let url = repository.remote.as_ref().unwrap_or(&repository.url).clone();
        let own = folder.join(format!("{}.git", repository_name(&repository.url)));
        fs::create_dir_all(&own).await.with_context(|| format!("cannot make {}", own.display()))?;
        let git = Git::cache(&own, &repository);
        if !fs::try_exists(own.join("HEAD")).await? {
            git.text(&["init", "--quiet", "--bare"]).await?;
        }
        // History without contents is enough until a revert is due.
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.url", url.as_str()),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialCloneFilter", "blob:none"),
        ] {
            git.text(&["config", "--replace-all", key, value]).await?;
        }
        let _ = fs::remove_dir_all(own.join("reverting")).await;
        git.text(&["worktree", "prune"]).await?;
        Ok(Self { repository, git, tips: BTreeMap::new(), default_branch: None, fetches: 0 })
    }

    /// git in the cache.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The newest commit of a branch, as far as it is known.
    pub fn tip(&self, branch: &str) -> Option<&str> {
        self.tips.get(branch).map(String::as_str)
    }

    /// Whether a branch is the default one.
    pub fn is_default(&self, branch: &str) -> bool {
        self.default_branch.as_deref() == Some(branch)
    }

    /// Fetches every branch that is watched, and the branches that got reverts.
    ///
    /// # Errors
    /// When the repository cannot be reached, or a branch is not there. What was known stays known.
    pub async fn fetch(&mut self) -> anyhow::Result<()> {
        if self.fetches.is_multiple_of(20) {
            self.learn_default_branch().await?;
        }
        let mut specs: Vec<String> =
            self.repository.branches.iter().map(|branch| format!("+refs/heads/{branch}:refs/heads/{branch}")).collect();
        if let Some(prefix) = &self.repository.revert_branch {
            specs.push(format!("+refs/heads/{prefix}*:{REVERTS}*"));
        }
        let mut arguments = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--prune",
            "--no-write-fetch-head",
            "--filter=blob:none",
            "--update-head-ok",
        ];
        arguments.extend(["--end-of-options", "origin"]);
        arguments.extend(specs.iter().map(String::as_str));
        self.git.fetch(&arguments).await?.checked(&arguments)?;
        self.fetches += 1;
        let mut tips = BTreeMap::new();
        for branch in &self.repository.branches {
            let name = format!("refs/heads/{branch}^{{commit}}");
            tips.insert(branch.clone(), self.git.text(&["rev-parse", "--verify", "--end-of-options", &name]).await?);
        }
        tips.retain(|_, tip| {
            // `rev-parse` repeats `--end-of-options`, as long as it is not asked otherwise.
            *tip = tip.lines().last().unwrap_or_default().to_owned();
            is_object_id(tip)
        });
        ensure!(tips.len() == self.repository.branches.len(), "a branch is missing");
        self.tips = tips;
        Ok(())
    }

    async fn learn_default_branch(&mut self) -> anyhow::Result<()> {
        let arguments = ["ls-remote", "--symref", "--end-of-options", "origin", "HEAD"];
        let out = self.git.online(&arguments, &[], Duration::from_secs(120)).await?.checked(&arguments)?;
        let out = String::from_utf8_lossy(&out);
        let head = out.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"));
        self.default_branch = head.map(str::to_owned);
        Ok(())
    }

    /// The branch that gets the revert of a commit, where it is another one than the one it is on.
    pub fn revert_branch(&self, commit: &str) -> Option<String> {
        let prefix = self.repository.revert_branch.as_ref()?;
        Some(format!("{prefix}{}", commit.get(..10).unwrap_or(commit)))
    }

    /// The newest commit of that branch, if it is there.
    pub async fn revert_tip(&self, commit: &str) -> Option<String> {
        let name = format!("{REVERTS}{}", commit.get(..10)?);
        let found = self.git.text(&["for-each-ref", "--format=%(objectname)", "--count=1", &name]).await.ok()?;
        is_object_id(&found).then_some(found)
    }

    /// The subject of a commit and its parents.
    ///
    /// # Errors
    /// When git does not know it.
    pub async fn subject(&self, commit: &str) -> anyhow::Result<(String, Vec<String>)> {
        let arguments = ["log", "--no-walk", "--no-color", "--format=%P%n%s", "--end-of-options", commit];
        let text = self.git.text(&arguments).await?;
        let (parents, subject) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((subject.to_owned(), parents.split_whitespace().map(str::to_owned).collect()))
    }

    /// Makes the commit that reverts another one, and gives its object id.
    ///
    /// # Errors
    /// When git does not work. That it cannot be reverted is an answer, not an error.
    pub async fn revert(&self, revert: &Revert<'_>) -> anyhow::Result<Result<String, Unmade>> {
        let folder = self.git.folder().join("reverting");
        let _ = fs::remove_dir_all(&folder).await;
        self.git.text(&["worktree", "prune"]).await?;
        let place = folder.to_str().context("the folder of the cache is no text")?;
        self.git.text(&["worktree", "add", "--quiet", "--no-checkout", "--detach", place, revert.tip]).await?;
        let made = self.revert_in(&folder, revert).await;
        let _ = fs::remove_dir_all(&folder).await;
        self.git.text(&["worktree", "prune"]).await?;
        made
    }

    async fn revert_in(&self, folder: &Path, revert: &Revert<'_>) -> anyhow::Result<Result<String, Unmade>> {
        let Revert { commit, tip, paths, merge, message, identity } = *revert;
        let git = self.git.within(folder);
        // Of a large repository only the files that the commit touched are laid out.
        let sparse = git.text(&["rev-parse", "--git-path", "info/sparse-checkout"]).await?;
        let sparse = folder.join(sparse);
        fs::create_dir_all(sparse.parent().unwrap_or(folder)).await?;
        let patterns: Vec<String> = paths.iter().map(|path| format!("/{}\n", escaped(path))).collect();
        fs::write(&sparse, patterns.concat()).await?;
        let name = format!("user.name={}", identity.name);
        let email = format!("user.email={}", identity.email);
        let base = ["-c", "core.sparseCheckout=true", "-c", name.as_str(), "-c", email.as_str()];
        let with = |rest: &[&str]| -> Vec<String> { base.iter().chain(rest).map(|word| (*word).to_owned()).collect() };
        let run = async |rest: &[&str], input: &[u8]| {
            let words = with(rest);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            git.online(&words, input, REVERT_PATIENCE).await
        };
        let laid = run(&["checkout", "--quiet", "--detach", tip], &[]).await?;
        ensure!(laid.code == Some(0), "git checkout failed: {}", laid.complaint);
        let mut words = vec!["revert", "--no-edit", "--no-commit"];
        if merge {
            words.extend(["-m", "1"]);
        }
        words.push(commit);
        let reverted = run(&words, &[]).await?;
        if reverted.code != Some(0) {
            return Ok(Err(Unmade::Conflict(reverted.complaint)));
        }
        if run(&["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"], &[]).await?.code == Some(0) {
            return Ok(Err(Unmade::Nothing));
        }
        let words = ["commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--file=-"];
        let committed = run(&words, message.as_bytes()).await?;
        ensure!(committed.code == Some(0), "git commit failed: {}", committed.complaint);
        let made = git.text(&["rev-parse", "--verify", "HEAD"]).await?;
        let parents = git.text(&["rev-list", "--parents", "--max-count=1", &made]).await?;
        if parents != format!("{made} {tip}") {
            bail!("the revert is no child of the tip");
        }
        Ok(Ok(made))
    }

    /// Pushes a commit to a branch that must be at `expected` (empty: must not be there) at that moment. `expected` is the
    /// parent of the commit, so nothing is ever forced.
    ///
    /// # Errors
    /// When it is not known how the push ended: no answer, no connection.
    pub async fn push(&self, commit: &str, branch: &str, expected: &str, patience: Duration) -> anyhow::Result<Pushed> {
        let lease = format!("--force-with-lease=refs/heads/{branch}:{expected}");
        let spec = format!("{commit}:refs/heads/{branch}");
        let arguments = ["push", "--porcelain", "--no-verify", &lease, "--end-of-options", "origin", &spec];
        let ended = self.git.online(&arguments, &[], patience).await?;
        let out = String::from_utf8_lossy(&ended.out);
        let line = out.lines().find(|line| line.contains(&format!(":refs/heads/{branch}\t")));
        match (ended.code, line) {
            (Some(0), _) => Ok(Pushed::Done),
            (_, Some(line)) if line.starts_with('!') && !line.contains("[remote rejected]") => Ok(Pushed::Moved),
            (_, Some(line)) if line.starts_with('!') => {
                let why = line.rsplit('\t').next().unwrap_or_default();
                Ok(Pushed::Refused(format!("{why}: {}", ended.complaint)))
            }
            _ => bail!("git push failed: {}", ended.complaint),
        }
    }
}

/// A pattern of a sparse checkout that matches this path alone.
fn escaped(path: &str) -> String {
    let special = |c: char| matches!(c, '\\' | '*' | '?' | '[' | ']' | '!' | '#' | ' ');
    path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
