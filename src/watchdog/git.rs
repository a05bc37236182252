//! The `git` program at work in one folder: the bare cache of a watched repository, or somebody's clone.
//!
//! What comes from commits, Applications or the configuration never reaches git as an option, and a secret never as an
//! argument: git asks a helper, which reads the mounted file. Neither hooks nor submodules of the repository are run.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use cascade_guard_core::{
    text::clip,
    watchdog::{repository::without_credentials, settings::Repository},
};

/// What git does without the network takes at most so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// What has to be fetched to read one file.
pub(super) const CONTENT_PATIENCE: Duration = Duration::from_secs(120);
/// A fetch, which may be the first of a large repository.
const FETCH_PATIENCE: Duration = Duration::from_secs(3600);
/// So much of what git complains about is passed on.
const MAX_COMPLAINT: usize = 400;

/// Answers a question for credentials from the environment: the user, and the file that holds the token.
const HELPER: &str = r#"!f() { test "$1" = get || exit 0; echo "username=$CASCADE_GUARD_GIT_USER"; printf password=; cat "$CASCADE_GUARD_GIT_TOKEN_FILE"; echo; }; f"#;

/// What git printed, and how it ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// The last of standard error, in one line, without credentials.
    pub complaint: String,
}

/// git in one folder.
#[derive(Clone, Debug)]
pub struct Git {
    folder: PathBuf,
    settings: Vec<(String, String)>,
    environment: Vec<(String, OsString)>,
    protocols: String,
}

impl Git {
    /// git in somebody's clone, which is only read.
    pub fn local(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            settings: safe_settings(),
            environment: Vec::new(),
            protocols: "none".to_owned(),
        }
    }

    /// git in the cache of a repository.
    pub fn cache(folder: &Path, repository: &Repository) -> Self {
        let mut settings = safe_settings();
        let mut environment: Vec<(String, OsString)> = Vec::new();
        let auth = &repository.auth;
        if let (Some(user), Some(file)) = (&auth.user, &auth.token_file) {
            settings.push(("credential.helper".to_owned(), String::new()));
            settings.push(("credential.helper".to_owned(), HELPER.to_owned()));
            environment.push(("CASCADE_GUARD_GIT_USER".to_owned(), user.into()));
            environment.push(("CASCADE_GUARD_GIT_TOKEN_FILE".to_owned(), file.into()));
        }
        if let Some(file) = &auth.ca_file {
            environment.push(("GIT_SSL_CAINFO".to_owned(), file.into()));
        }
        environment.push(("GIT_SSH_COMMAND".to_owned(), ssh_command(repository).into()));
        let protocols = if repository.allow_file { "https:ssh:file" } else { "https:ssh" };
        Self { folder: folder.to_owned(), settings, environment, protocols: protocols.to_owned() }
    }

    /// The same in another folder.
    #[must_use]
    pub fn within(&self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self.clone() }
    }

    /// Where it works.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What git needs to do alone: nothing is fetched that is missing.
    ///
    /// # Errors
    /// When git cannot be started, or does not end in time.
    pub async fn offline(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        self.run(arguments, &[], "none", PATIENCE).await
    }

    /// The same with something on standard input.
    ///
    /// # Errors
    /// When git cannot be started, or does not end in time.
    pub async fn offline_with(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<Ended> {
        self.run(arguments, input, "none", PATIENCE).await
    }

    /// What may speak to the remote, within a time.
    ///
    /// # Errors
    /// When git cannot be started, or does not end in time.
    pub async fn online(&self, arguments: &[&str], input: &[u8], patience: Duration) -> anyhow::Result<Ended> {
        self.run(arguments, input, &self.protocols, patience).await
    }

    /// A fetch.
    ///
    /// # Errors
    /// When git cannot be started, or does not end in time.
    pub async fn fetch(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        self.online(arguments, &[], FETCH_PATIENCE).await
    }

    async fn run(
        &self,
        arguments: &[&str],
        input: &[u8],
        protocols: &str,
        patience: Duration,
    ) -> anyhow::Result<Ended> {
        let what = arguments.first().copied().unwrap_or_default();
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&self.folder)
            .args(arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .env("GIT_ALLOW_PROTOCOL", protocols)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CONFIG_COUNT", self.settings.len().to_string())
            .env("LC_ALL", "C")
            // A process that itself runs in a hook must not work in the repository of that hook.
            .env_remove("GIT_DIR")
            .env_remove("GIT_INDEX_FILE")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_TRACE")
            .env_remove("GIT_TRACE_CURL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (index, (key, value)) in self.settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        let mut child = command.spawn().context("git cannot be started; it has to be installed")?;
        let mut stdin = child.stdin.take().context("git has no standard input")?;
        let feed = async {
            // git may end without reading everything; its exit code says more than a broken pipe.
            let _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let both = async { tokio::join!(child.wait_with_output(), feed).0 };
        let Ok(output) = timeout(patience, both).await else {
            bail!("git {what} did not end within {} s", patience.as_secs());
        };
        let output = output.with_context(|| format!("git {what} failed"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Ok(Ended { code: output.status.code(), out: output.stdout, complaint: tidy(&lines.join("; ")) })
    }

    /// Runs git and gives what it printed.
    ///
    /// # Errors
    /// When git cannot be started, does not end in time, or fails.
    pub async fn text(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let ended = self.offline(arguments).await?;
        Ok(String::from_utf8_lossy(&ended.checked(arguments)?).trim_end().to_owned())
    }
}

impl Ended {
    /// What was printed, if it went well.
    ///
    /// # Errors
    /// When git failed: with what it complained of.
    pub fn checked(self, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        match self.code {
            Some(0) => Ok(self.out),
            _ => bail!("git {} failed: {}", arguments.first().copied().unwrap_or_default(), self.complaint),
        }
    }
}

/// In one line, without anything that stands before a host.
fn tidy(complaint: &str) -> String {
    let words: Vec<String> = complaint
        .split_whitespace()
        .map(|word| match word.find("://") {
            Some(_) => without_credentials(word.trim_start_matches(['\'', '"'])),
            None => word.to_owned(),
        })
        .collect();
    let text: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    // The end says what went wrong; before it git tells its progress.
    let skipped = text.chars().count().saturating_sub(MAX_COMPLAINT);
    clip(&text.chars().skip(skipped).collect::<String>(), MAX_COMPLAINT)
}

fn safe_settings() -> Vec<(String, String)> {
    [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "false"),
        ("push.recurseSubmodules", "no"),
        ("http.followRedirects", "false"),
        ("gc.autoDetach", "false"),
        ("advice.detachedHead", "false"),
        ("core.quotePath", "false"),
        ("log.showSignature", "false"),
        ("transfer.credentialsInUrl", "die"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .to_vec()
}

/// ssh that asks nobody anything and knows its hosts.
fn ssh_command(repository: &Repository) -> String {
    let mut words = vec!["ssh".to_owned()];
    let mut option = |text: &str| words.extend(["-o".to_owned(), text.to_owned()]);
    option("BatchMode=yes");
    option("StrictHostKeyChecking=yes");
    option("ConnectTimeout=30");
    let file = |path: &Path| path.display().to_string();
    if let Some(hosts) = &repository.auth.known_hosts_file {
        option(&format!("UserKnownHostsFile=\"{}\"", file(hosts)));
    }
    if let Some(key) = &repository.auth.ssh_key_file {
        option("IdentitiesOnly=yes");
        option(&format!("IdentityFile=\"{}\"", file(key)));
    }
    // git hands this to a shell.
    cascade_guard_core::remedy::Command::new("command").words(words).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_hold_no_credentials() {
        let text = tidy("fatal: unable to access 'https://alice:geheim@host/x.git/':\n  no");
        assert!(!text.contains("geheim") && text.contains("host/x.git"), "{text}");
        assert!(tidy(&"x".repeat(10_000)).chars().count() <= MAX_COMPLAINT);
    }

    #[test]
    fn ssh_checks_hosts_and_takes_paths_as_they_are() {
        let mut repository = Repository::default();
        repository.auth.ssh_key_file = Some("/keys/a b".into());
        let command = ssh_command(&repository);
        assert!(command.contains("StrictHostKeyChecking=yes"), "{command}");
        assert!(command.contains(r#"'IdentityFile="/keys/a b"'"#), "{command}");
    }
}
