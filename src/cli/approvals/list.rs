//! Every approval there is, and Namespaces whose deletion waits for one.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    super::output::{self, Format},
    Clock,
};
use cascade_guard_core::{
    inventory::{App, Inventory, LOCAL},
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Policy, RuleKey, Subject},
    rules::approval::{Approval, Problem},
};

/// An approval that ends within this time is about to end.
const SOON: SignedDuration = SignedDuration::from_mins(15);

/// Where the approval of a Namespace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// There is none.
    None,
    /// There is none, and a cascade waits for one.
    Pending,
    /// The Namespace may be deleted.
    Valid,
    /// It may be deleted, but not much longer.
    Ending,
    /// It might have been deleted.
    Expired,
    /// Something else is wrong with the approval.
    Invalid,
    /// The Namespace is being deleted.
    Deleting,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not approved",
            Self::Pending => "pending",
            Self::Valid => "valid",
            Self::Ending => "about to end",
            Self::Expired => "expired",
            Self::Invalid => "invalid",
            Self::Deleting => "deleting",
        })
    }
}

/// One Namespace, as it is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name.
    pub namespace: String,
    /// Where its approval stands.
    pub state: State,
    /// Who approved.
    pub approved_by: String,
    /// When the approval ends, as written.
    pub approved_until: String,
    /// Why it may go.
    pub reason: String,
    /// What is wrong with the approval.
    pub problems: Vec<String>,
    /// Applications whose deletion waits for the approval.
    pub wanted_by: Vec<String>,
}

/// The Namespaces that carry anything of an approval or wait for one, by name.
pub fn rows(inventory: &Inventory, policy: &Policy, now: Timestamp) -> Vec<Row> {
    // What goes already needs no approval any more.
    let concerned = |meta: &&ObjectMeta| !(meta.is_terminating() && Approval::read(meta).is_absent());
    let mut rows: Vec<Row> = inventory
        .namespaces()
        .filter(concerned)
        .map(|meta| row(meta, inventory, policy, now))
        .filter(|row| row.state != State::None)
        .collect();
    rows.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    rows
}

/// One Namespace.
pub fn row(meta: &ObjectMeta, inventory: &Inventory, policy: &Policy, now: Timestamp) -> Row {
    let approval = Approval::read(meta);
    let problems = if approval.is_absent() { Vec::new() } else { approval.problems(meta, now, policy) };
    let wanted_by = wanted_by(meta, inventory, policy, now);
    Row {
        namespace: meta.name.clone(),
        state: state(meta, approval, &problems, &wanted_by, now),
        approved_by: approval.by.to_owned(),
        approved_until: approval.until.to_owned(),
        reason: approval.reason.to_owned(),
        problems: problems.iter().map(ToString::to_string).collect(),
        wanted_by,
    }
}

fn state(
    meta: &ObjectMeta,
    approval: Approval<'_>,
    problems: &[Problem],
    wanted_by: &[String],
    now: Timestamp,
) -> State {
    if meta.is_terminating() {
        return State::Deleting;
    }
    if approval.is_absent() {
        return if wanted_by.is_empty() { State::None } else { State::Pending };
    }
    match problems {
        [] if approval.end().is_some_and(|end| end.duration_since(now) <= SOON) => State::Ending,
        [] => State::Valid,
        [Problem::Expired { .. }] => State::Expired,
        _ => State::Invalid,
    }
}

/// Applications that are being deleted and cannot take the Namespace along, because nobody approved it in time.
fn wanted_by(meta: &ObjectMeta, inventory: &Inventory, policy: &Policy, now: Timestamp) -> Vec<String> {
    if meta.is_terminating() {
        return Vec::new();
    }
    let key = inventory.key_of(LOCAL, &ObjectRef::namespace(&meta.name));
    let waits = |app: &App| {
        let Some(began) = app.terminating.filter(|_| app.cascades) else { return false };
        let lists = app.claim(key).is_some_and(|claim| app.claims_class(claim.class));
        let subject =
            Subject { namespace: &meta.name, labels: Some(&meta.labels), project: Some(&app.project), user: "" };
        // A cascade is judged by the approval as it stood when it began.
        lists
            && policy.resolve(RuleKey::NamespaceApproval, &subject, now).mode == Mode::Enforce
            && !Approval::read(meta).problems(meta, began.min(now), policy).is_empty()
    };
    let owners = inventory.claims().owners(key).iter().filter_map(|id| inventory.app(*id));
    let mut paths: Vec<String> = owners.filter(|app| waits(app)).map(App::path).collect();
    paths.sort();
    paths
}

pub(super) fn print(rows: &[Row], format: Format, clock: &Clock) -> anyhow::Result<()> {
    match format {
        Format::Json | Format::Yaml => output::structured(format, &rows),
        Format::Table if rows.is_empty() => {
            Ok(output::line("No Namespace is approved for deletion, and none waits for it.")?)
        }
        Format::Table => Ok(output::line(&table(rows, clock))?),
    }
}

/// As people read it.
pub fn table(rows: &[Row], clock: &Clock) -> String {
    let heads = ["NAMESPACE", "STATE", "UNTIL", "APPROVED BY", "REASON", "NOTE"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for row in rows {
        let until =
            row.approved_until.parse().map_or_else(|_| row.approved_until.clone(), |end| clock.local_and_left(end));
        let mut notes = row.problems.clone();
        if !row.wanted_by.is_empty() {
            notes.push(format!("the cascade of {} waits for an approval", row.wanted_by.join(", ")));
        }
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        lines.push(vec![
            row.namespace.clone(),
            row.state.to_string(),
            or_dash(&until),
            or_dash(&row.approved_by),
            or_dash(&row.reason),
            notes.join("; "),
        ]);
    }
    output::table(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cascade_guard_core::snapshot::Snapshot;

    const CLUSTER: &str = include_str!("tests.yaml");

    fn clock() -> Clock {
        Clock::new("2026-11-29T12:00:00Z".parse().unwrap(), jiff::tz::TimeZone::fixed(jiff::tz::offset(1)))
    }

    #[test]
    fn every_approval_says_where_it_stands() {
        let spec = "rules: {namespaceApproval: {mode: enforce}}";
        let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
        let inventory = Snapshot::parse("test", CLUSTER.to_owned()).unwrap().inventory(&policy, (1, 2));
        let rows = rows(&inventory, &policy, clock().now);
        let states: Vec<(&str, State)> = rows.iter().map(|row| (row.namespace.as_str(), row.state)).collect();
        assert_eq!(
            states,
            [
                ("copied", State::Invalid),
                ("ending", State::Ending),
                ("expired", State::Expired),
                ("going", State::Deleting),
                ("valid", State::Valid),
                ("wanted", State::Pending),
            ]
        );
        let text = table(&rows, &clock());
        for part in [
            "valid      valid         2026-11-29 17:00:00 +01:00 (in 4h)    alice        CHG-7",
            "it was approved for an earlier Namespace of this name (UID other, this one is u-copied)",
            "the cascade of argocd/wanted waits for an approval",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn cascade_that_was_approved_when_it_began_waits_for_nothing() {
        let spec = "rules: {namespaceApproval: {mode: enforce}}";
        let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
        let inventory = Snapshot::parse("test", CLUSTER.to_owned()).unwrap().inventory(&policy, (1, 2));
        let rows = rows(&inventory, &policy, clock().now);
        let expired = rows.iter().find(|row| row.namespace == "expired").unwrap();
        assert_eq!(expired.wanted_by, [""; 0], "{expired:?}");
    }
}
