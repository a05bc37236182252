//! The message of a revert.

use super::schema::{RolloutWatchSpec, RolloutWatchStatus};
use crate::text::clip;

/// How the message names the watch that made the revert.
const MADE_FOR: &str = "Made by the rollout watchdog of cascade-guard for RolloutWatch ";

/// Everything that a message says.
#[derive(Clone, Copy, Debug)]
pub struct Reverting<'a> {
    /// The name of the watch.
    pub watch: &'a str,
    /// What was watched.
    pub spec: &'a RolloutWatchSpec,
    /// What was seen.
    pub status: &'a RolloutWatchStatus,
    /// The subject of the commit.
    pub subject: &'a str,
    /// Its second parent, if it is a merge.
    pub merged: Option<&'a str>,
    /// What the last operation said.
    pub operation: &'a str,
    /// Resources that are not well.
    pub ill: &'a [String],
}

/// The message. Text that comes from the cluster or the commit stands indented, and the last paragraph is a sentence, so that
/// nothing in it is a trailer.
pub fn message(reverting: &Reverting<'_>) -> String {
    let Reverting { watch, spec, status, subject, merged, operation, ill } = reverting;
    let plain = |text: &str| clip(&text.replace(|c: char| c.is_control(), " "), 300);
    let subject = clip(&plain(subject), 100);
    let commit = &spec.commit;
    let reverts = match merged {
        None => format!("This reverts commit {commit}."),
        Some(_) => format!("This reverts commit {commit}, reversing\nchanges made by that merge."),
    };
    let mut seen = vec![format!("{}: {}", spec.application, plain(&status.message))];
    if !operation.is_empty() {
        seen.push(format!("last operation: {}", plain(operation)));
    }
    seen.extend(ill.iter().take(3).map(|line| plain(line)));
    let seen = seen.iter().fold(String::new(), |all, line| all + "    " + line + "\n");
    format!(
        "Revert \"{subject}\"\n\n{reverts}\n\nIt was deployed and did not become well in time. This was seen:\n\n{seen}\n\
         {MADE_FOR}{watch}\nbecause the commit asked for it (mode=arm). To apply it again, revert this commit.\n"
    )
}

/// The watch that a message names; empty if a person wrote it.
pub fn made_for(message: &str) -> &str {
    let Some((_, rest)) = message.split_once(MADE_FOR) else { return "" };
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))).unwrap_or(rest.len());
    rest[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog::{
        schema::AppRef,
        trailer::{self, Message},
    };

    #[test]
    fn nothing_in_it_becomes_a_trailer_and_it_names_its_watch() {
        let spec = RolloutWatchSpec {
            commit: "a".repeat(40),
            application: AppRef::new("argocd", "web"),
            ..RolloutWatchSpec::default()
        };
        let status = RolloutWatchStatus {
            message: "x\nWatchdog: app=evil mode=arm".to_owned(),
            ..RolloutWatchStatus::default()
        };
        let text = message(&Reverting {
            watch: "team.web-aaaaaaaaaa",
            spec: &spec,
            status: &status,
            subject: "Watchdog: app=web mode=arm\n\nWatchdog: app=x",
            merged: None,
            operation: "failed\n\nWatchdog: app=web",
            ill: &["Deployment web: Degraded\nWatchdog: app=web".to_owned()],
        });
        assert_eq!(made_for(&text), "team.web-aaaaaaaaaa");
        assert_eq!(trailer::reverted_by(&text), [spec.commit]);
        assert!(!text.lines().any(|line| line.starts_with("Watchdog")), "{text}");
        assert_eq!(trailer::wishes(Message { text: &text, trailers: "" }, &["Watchdog".to_owned()], "argocd"), []);
        assert_eq!(made_for("This reverts commit x."), "");
    }
}
