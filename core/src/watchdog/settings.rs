//! The configuration of the watchdog, as a file or in a ConfigMap, checked.

use std::path::PathBuf;

use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::SignedDuration;
use serde::Deserialize;

use super::{
    repository,
    schema::{AppRef, Mode},
};

/// What a file of the configuration says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    #[allow(dead_code, reason = "named so that it is allowed; nothing in it matters")]
    metadata: serde::de::IgnoredAny,
    spec: Spec,
}

/// `spec` of a `WatchdogConfiguration`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Spec {
    /// Namespace of Applications that a trailer names alone.
    pub argocd_namespace: String,
    /// Keys of the trailer.
    pub trailer_keys: Vec<String>,
    /// Time from one fetch to the next.
    pub fetch_interval: String,
    /// How long an Application that is not there may take to appear: Argo CD's polling interval.
    pub polling_interval: String,
    /// `shadow`: no commit is reverted, whatever it asks for.
    pub mode_ceiling: Mode,
    /// What may be armed.
    pub arm: Arm,
    /// The repositories.
    pub repositories: Vec<Repository>,
    /// Who makes the reverts.
    pub identity: Identity,
    /// When the circuit opens.
    pub circuit: Circuit,
    /// How long watches are kept after their end.
    pub keep: Keep,
    /// Where verdicts are sent as JSON.
    pub notify: Option<Notify>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            argocd_namespace: "argocd".to_owned(),
            trailer_keys: vec!["Watchdog".to_owned()],
            fetch_interval: "30s".to_owned(),
            polling_interval: "5m".to_owned(),
            mode_ceiling: Mode::Arm,
            arm: Arm::default(),
            repositories: Vec::new(),
            identity: Identity::default(),
            circuit: Circuit::default(),
            keep: Keep::default(),
            notify: None,
        }
    }
}

/// What may be armed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Arm {
    /// Patterns for `namespace/name`; one without a slash is for the namespace of Argo CD.
    pub applications: Vec<String>,
    /// Patterns for Applications that prune and may be armed all the same.
    pub accept_prune: Vec<String>,
}

/// A repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Repository {
    /// URL as Applications name it, in any of its forms.
    pub url: String,
    /// URL to fetch from and to push to, where it is another one than `url`.
    pub remote: Option<String>,
    /// Branches whose commits are read.
    pub branches: Vec<String>,
    /// How to authenticate.
    pub auth: Auth,
    /// Where branches are protected: the beginning of the name of a branch that gets the revert instead, such as
    /// `cascade-guard/revert-`. The short id of the reverted commit follows.
    pub revert_branch: Option<String>,
    /// Whether it may be a folder of this machine.
    pub allow_file: bool,
}

/// How to authenticate. All values but the user come from files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Auth {
    /// File of a private key for ssh.
    pub ssh_key_file: Option<PathBuf>,
    /// File of the host keys that are trusted.
    pub known_hosts_file: Option<PathBuf>,
    /// User for https.
    pub user: Option<String>,
    /// File of a token or password for https.
    pub token_file: Option<PathBuf>,
    /// File of the authorities that the server's certificate is checked by.
    pub ca_file: Option<PathBuf>,
}

/// Who makes the reverts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Identity {
    /// Name of author and committer.
    pub name: String,
    /// Address.
    pub email: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self { name: "cascade-guard watchdog".to_owned(), email: "cascade-guard@localhost".to_owned() }
    }
}

/// When the circuit opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Circuit {
    /// So many reverts in a row for one Application.
    pub reverts_in_a_row: u32,
    /// So many reverts within an hour over all.
    pub reverts_an_hour: u32,
}

impl Default for Circuit {
    fn default() -> Self {
        Self { reverts_in_a_row: 2, reverts_an_hour: 3 }
    }
}

/// How long watches are kept after their end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Keep {
    /// At least this long.
    pub time: String,
    /// The last ones of each Application, however old.
    pub last: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { time: "720h".to_owned(), last: 20 }
    }
}

/// Where verdicts are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Notify {
    /// File that holds the URL: with most services it is a secret.
    pub url_file: PathBuf,
}

/// Why a text is no usable configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As it was written.
    pub spec: Spec,
    /// Time from one fetch to the next.
    pub fetch_interval: SignedDuration,
    /// How long an Application that is not there may take to appear.
    pub polling_interval: SignedDuration,
    /// How long watches are kept after their end.
    pub keep: SignedDuration,
    /// Digest of the text.
    pub digest: String,
    armable: GlobSet,
    prunable: GlobSet,
}

/// The kind that a file must have.
const KIND: (&str, &str) = ("cascade-guard.io/v1alpha1", "WatchdogConfiguration");

impl Settings {
    /// Reads a `WatchdogConfiguration`, YAML or JSON.
    ///
    /// # Errors
    /// With line, column and what is allowed where the text does not fit the format; with the field where a value is wrong.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let options = serde_saphyr::options! { with_snippet: false };
        let file: File =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| SettingsError(error.to_string()))?;
        if (file.api_version.as_str(), file.kind.as_str()) != KIND {
            return Err(SettingsError(format!(
                "it is a {} {}, not a {} {}",
                file.api_version, file.kind, KIND.0, KIND.1
            )));
        }
        let mut settings = Self::new(file.spec)?;
        settings.digest = digest(text);
        Ok(settings)
    }

    /// Checks a configuration.
    ///
    /// # Errors
    /// With the field whose value is wrong.
    pub fn new(spec: Spec) -> Result<Self, SettingsError> {
        let wrong = |field: &str, problem: &str| Err(SettingsError(format!("spec.{field}: {problem}")));
        if AppRef::parse("a", &spec.argocd_namespace).is_err() {
            return wrong("argocdNamespace", "it is no name of a Namespace");
        }
        let is_key = |key: &String| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if spec.trailer_keys.is_empty() || !spec.trailer_keys.iter().all(is_key) {
            return wrong("trailerKeys", "name at least one, of letters, digits and hyphens");
        }
        let plain = |text: &str| !text.trim().is_empty() && !text.contains(['<', '>', '\n', '\0']);
        if !plain(&spec.identity.name) || !plain(&spec.identity.email) {
            return wrong("identity", "name and email are needed, without < and >");
        }
        if spec.circuit.reverts_in_a_row == 0 || spec.circuit.reverts_an_hour == 0 {
            return wrong("circuit", "a number of reverts is at least 1");
        }
        for (index, repository) in spec.repositories.iter().enumerate() {
            if let Err(problem) = check(repository) {
                return wrong(&format!("repositories[{index}]"), &problem);
            }
            if spec.repositories[..index].iter().any(|other| repository::same(&other.url, &repository.url)) {
                return wrong(&format!("repositories[{index}].url"), "this repository is listed twice");
            }
        }
        Ok(Self {
            fetch_interval: duration(&spec.fetch_interval, "fetchInterval")?,
            polling_interval: duration(&spec.polling_interval, "pollingInterval")?,
            keep: duration(&spec.keep.time, "keep.time")?,
            armable: patterns(&spec.arm.applications, &spec.argocd_namespace, "arm.applications")?,
            prunable: patterns(&spec.arm.accept_prune, &spec.argocd_namespace, "arm.acceptPrune")?,
            digest: String::new(),
            spec,
        })
    }

    /// The same under a ceiling.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Mode) -> Self {
        self.spec.mode_ceiling = self.spec.mode_ceiling.min(ceiling);
        self
    }

    /// Whether the Application is among those that may be armed.
    pub fn is_armable(&self, app: &AppRef) -> bool {
        self.armable.is_match(app.to_string())
    }

    /// Whether it may be armed although it prunes.
    pub fn accepts_prune(&self, app: &AppRef) -> bool {
        self.prunable.is_match(app.to_string())
    }

    /// The repository that a URL means.
    pub fn repository(&self, url: &str) -> Option<&Repository> {
        self.spec.repositories.iter().find(|repository| repository::same(&repository.url, url))
    }
}

fn check(repository: &Repository) -> Result<(), String> {
    let remote = repository.remote.as_ref().unwrap_or(&repository.url);
    for url in [&repository.url, remote] {
        if repository::place(url).is_none() || url.starts_with('-') {
            return Err(format!("`{}` is no URL of a Git repository", repository::without_credentials(url)));
        }
    }
    if repository::without_credentials(remote) != *remote && remote.contains("://") && !remote.starts_with("ssh://") {
        return Err("credentials do not belong into a URL; use auth".to_owned());
    }
    let local = remote.starts_with('/') || remote.starts_with("file://");
    if local && !repository.allow_file {
        return Err("it is a folder; allowFile: true allows that".to_owned());
    }
    let plain = |name: &String| {
        !name.is_empty()
            && !name.starts_with('-')
            && !name.contains("..")
            && !name.ends_with(['/', '.'])
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@#".contains(c))
            && !name.contains("@{")
    };
    if repository.branches.is_empty() || !repository.branches.iter().all(plain) {
        return Err("name at least one branch".to_owned());
    }
    if repository.revert_branch.as_ref().is_some_and(|name| !plain(&format!("{name}0"))) {
        return Err("revertBranch is no beginning of the name of a branch".to_owned());
    }
    if repository.auth.token_file.is_some() && repository.auth.user.is_none() {
        return Err("auth.tokenFile needs auth.user".to_owned());
    }
    Ok(())
}

fn duration(text: &str, field: &str) -> Result<SignedDuration, SettingsError> {
    match text.parse::<SignedDuration>() {
        Ok(duration) if duration.is_positive() => Ok(duration),
        _ => Err(SettingsError(format!("spec.{field}: `{text}` is no time span; write 30s, 5m or 720h"))),
    }
}

fn patterns(patterns: &[String], namespace: &str, field: &str) -> Result<GlobSet, SettingsError> {
    let wrong = |problem: String| SettingsError(format!("spec.{field}: {problem}"));
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let whole = if pattern.contains('/') { pattern.clone() } else { format!("{namespace}/{pattern}") };
        let glob = Glob::new(&whole).map_err(|error| wrong(format!("`{pattern}` is no pattern: {}", error.kind())))?;
        set.add(glob);
    }
    set.build().map_err(|error| wrong(error.to_string()))
}

fn digest(text: &str) -> String {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher13::new();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &str) -> Result<Settings, String> {
        let text = format!("apiVersion: cascade-guard.io/v1alpha1\nkind: WatchdogConfiguration\nspec: {spec}\n");
        Settings::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_may_be_armed_unless_it_is_listed() {
        let settings = parse("{arm: {applications: ['pay-*', 'team/*']}}").unwrap();
        assert!(settings.is_armable(&AppRef::new("argocd", "pay-prod")));
        assert!(settings.is_armable(&AppRef::new("team", "web")));
        assert!(
            !settings.is_armable(&AppRef::new("team", "web")) || !settings.accepts_prune(&AppRef::new("team", "web"))
        );
        assert!(!settings.is_armable(&AppRef::new("other", "pay-prod")));
        assert!(!parse("{}").unwrap().is_armable(&AppRef::new("argocd", "a")));
    }

    #[test]
    fn ceiling_only_lowers() {
        let armed = parse("{}").unwrap();
        assert_eq!(armed.clone().with_ceiling(Mode::Shadow).spec.mode_ceiling, Mode::Shadow);
        let shadow = parse("{modeCeiling: shadow}").unwrap();
        assert_eq!(shadow.with_ceiling(Mode::Arm).spec.mode_ceiling, Mode::Shadow);
    }

    #[test]
    fn mistakes_are_refused_with_their_field() {
        for (spec, words) in [
            ("{colour: red}", "colour"),
            ("{trailerKeys: []}", "trailerKeys"),
            ("{trailerKeys: ['a b']}", "trailerKeys"),
            ("{fetchInterval: soon}", "fetchInterval"),
            ("{arm: {applications: ['[']}}", "arm.applications"),
            ("{identity: {name: 'a <b>'}}", "identity"),
            ("{circuit: {revertsAnHour: 0}}", "circuit"),
            ("{repositories: [{url: 'https://h/x'}]}", "branch"),
            ("{repositories: [{url: 'oci://h/x', branches: [main]}]}", "no URL"),
            ("{repositories: [{url: '/srv/x', branches: [main]}]}", "allowFile"),
            ("{repositories: [{url: 'https://u:p@h/x', branches: [main]}]}", "credentials"),
            ("{repositories: [{url: 'https://h/x', branches: ['--all']}]}", "branch"),
            ("{repositories: [{url: 'https://h/x', branches: [a], auth: {tokenFile: /t}}]}", "auth.user"),
            ("{repositories: [{url: 'https://h/x', branches: [a]}, {url: 'git@h:x.git', branches: [a]}]}", "twice"),
        ] {
            let error = parse(spec).unwrap_err();
            assert!(error.contains(words), "{spec}: {error}");
        }
        let credentials = parse("{repositories: [{url: 'https://u:geheim@h/x', branches: [main]}]}").unwrap_err();
        assert!(!credentials.contains("geheim"));
    }
}
