//! Everything about one Namespace that is to go: its approval, what is in it, what would keep it from going.

use std::{fmt::Write, time::Duration};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Serialize;

use super::{
    super::{
        output::{self, Format},
        thorough,
    },
    Clock,
    list::{Row, row},
};
use crate::judge::{Source, settle};
use cascade_guard_core::{
    admission::{UserInfo, decode, delete_review},
    decision::Effect,
    facts::Reading,
    inventory::Inventory,
    judge::Inquiry,
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Policy, RuleKey, Subject},
    rules::{
        approval::{Approval, how_to_approve},
        namespace_content::{Content, Count, look_into},
    },
    snapshot::Snapshot,
};

/// So much may be read for a person who waits for it.
const MAX_READS: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(30);

/// One Namespace, as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Where its approval stands.
    #[serde(flatten)]
    pub approval: Row,
    /// UID of the Namespace.
    pub uid: String,
    /// Mode of `namespace-approval` for it.
    pub mode: Mode,
    /// The line of the policy that says so.
    pub decided_by: String,
    /// When its deletion began, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_since: Option<Timestamp>,
    /// Whether its delete would be admitted now.
    pub deletable: bool,
    /// What else than its own approval keeps it from going.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// Whether somebody else than the approver has to delete it.
    pub four_eyes: bool,
    /// What is in it.
    pub content: Content,
    /// How to approve it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// Why the delete would be refused, approved or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Rule id.
    pub rule: &'static str,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// The delete is judged for nobody in particular: who approved may look, whoever deletes.
const ANYBODY: &str = "";

/// Reads everything about the Namespace called `name`. `world` says what Applications claim, `source` what is there.
///
/// # Errors
/// When there is no such Namespace.
pub async fn read(
    name: &str,
    world: &Snapshot,
    source: &impl Source,
    policy: &Policy,
    now: Timestamp,
) -> anyhow::Result<Status> {
    let inventory = world.inventory(policy, (0, 0));
    let meta = inventory.namespace(name).with_context(|| format!("there is no Namespace {name}"))?;
    let content = content(meta, &inventory, source).await.context("what is in the Namespace cannot be found out")?;
    let approval = row(meta, &inventory, policy, now);
    let subject = Subject { namespace: name, labels: Some(&meta.labels), project: None, user: ANYBODY };
    let resolved = policy.resolve(RuleKey::NamespaceApproval, &subject, now);
    let valid = Approval::read(meta).problems(meta, now, policy).is_empty();
    let (deletable, refusals) = judged(meta, world, &inventory, source, policy, now).await?;
    Ok(Status {
        uid: meta.uid.clone(),
        mode: resolved.mode,
        decided_by: resolved.decided_by,
        deleting_since: meta.deletion_timestamp,
        deletable,
        refusals,
        four_eyes: policy.spec.rules.namespace_approval.four_eyes,
        content,
        commands: if valid || meta.is_terminating() { Vec::new() } else { how_to_approve(meta, now, policy).to_vec() },
        approval,
    })
}

/// Whether the delete of the Namespace would be admitted, and what refuses it other than that it is not approved.
async fn judged(
    meta: &ObjectMeta,
    world: &Snapshot,
    inventory: &Inventory,
    source: &impl Source,
    policy: &Policy,
    now: Timestamp,
) -> anyhow::Result<(bool, Vec<Refusal>)> {
    let object = ObjectRef::namespace(&meta.name);
    let json = world.json_of(&object).with_context(|| format!("there is no {object}"))?;
    let body =
        delete_review(&object, &json, &UserInfo::default()).with_context(|| format!("{object} cannot be read"))?;
    let request = decode(&body)?;
    let decision = thorough::judge(&request, inventory, policy, source, now).await.decision;
    let own = RuleKey::NamespaceApproval;
    let refused = decision.outcomes.iter().filter(|outcome| outcome.effect == Effect::Refused);
    // The approval of the Namespace itself has lines of its own; one that goes along and is not approved has none.
    let others = refused
        .map(|outcome| &outcome.finding)
        .filter(|finding| !(finding.rule.key == Some(own) && finding.object == object));
    let refusals = others.map(|finding| Refusal {
        rule: finding.rule.id,
        detail: if finding.detail.is_empty() { finding.summary.clone() } else { finding.detail.clone() },
        commands: finding.remedies.clone(),
    });
    Ok((decision.allowed(), refusals.collect()))
}

/// What is in a Namespace. `None` only if the questions never end.
pub async fn content(meta: &ObjectMeta, inventory: &Inventory, source: &impl Source) -> Option<Content> {
    settle(
        Inquiry::with_limit(MAX_READS),
        source,
        || PATIENCE,
        |facts| {
            let whole = facts.object(&ObjectRef::namespace(&meta.name));
            let raw = whole.as_ref().and_then(Reading::found).map(|raw| &**raw);
            let content = look_into(inventory, facts, meta, raw, true)?;
            whole.is_some().then_some(content)
        },
    )
    .await
}

pub(super) fn print(status: &Status, format: Format, clock: &Clock) -> anyhow::Result<()> {
    match format {
        Format::Json | Format::Yaml => output::structured(format, status),
        Format::Table => Ok(output::line(text(status, clock).trim_end())?),
    }
}

/// As people read it.
pub fn text(status: &Status, clock: &Clock) -> String {
    let row = &status.approval;
    let mut text = match status.deleting_since {
        None => format!("Namespace {} (UID {}): {}\n", row.namespace, status.uid, row.state),
        Some(since) => format!(
            "Namespace {} (UID {}) is being deleted, since {}. There is nothing to approve any more.\n",
            row.namespace,
            status.uid,
            clock.local_and_left(since)
        ),
    };
    if !row.approved_by.is_empty() {
        let until =
            row.approved_until.parse().map_or_else(|_| row.approved_until.clone(), |end| clock.local_and_left(end));
        let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
        let _ = writeln!(text, "Approved by {} until {until}{reason}", row.approved_by);
    }
    for problem in &row.problems {
        let _ = writeln!(text, "  {problem}");
    }
    for app in &row.wanted_by {
        let _ = writeln!(text, "The cascade of Application {app} waits for an approval.");
    }
    let _ = writeln!(text, "namespace-approval: {} ({})", status.mode.as_str(), status.decided_by);
    if status.four_eyes && status.deleting_since.is_none() {
        text.push_str("Four eyes: somebody else than the approver has to delete it.\n");
    }
    text.push('\n');
    text.push_str(&checklist(&status.content, status.deleting_since.is_some()));
    if !status.refusals.is_empty() {
        text.push_str("\nRefused all the same, approved or not:\n");
        for refusal in &status.refusals {
            let _ = writeln!(text, "  [{}] {}", refusal.rule, refusal.detail);
        }
        text.push_str("What to do:\n");
        let mut said: Vec<&str> = Vec::new();
        for command in status.refusals.iter().flat_map(|refusal| &refusal.commands) {
            if !said.contains(&command.as_str()) {
                said.push(command);
                let _ = writeln!(text, "  {command}");
            }
        }
    }
    if !status.commands.is_empty() {
        text.push_str("\nTo approve its deletion:\n");
        for command in &status.commands {
            let _ = writeln!(text, "  {command}");
        }
    }
    text
}

/// What is in a Namespace, whole.
pub fn checklist(content: &Content, going: bool) -> String {
    let mut text = String::from("What goes with it:\n");
    let unread = |what: &str| content.not_read.iter().any(|unread| unread.what == what);
    let apps = if unread("Applications") {
        "not read".to_owned()
    } else if content.applications.is_empty() {
        "none".to_owned()
    } else {
        format!("{} ({} claimed objects)", content.applications.join(", "), content.claimed_objects)
    };
    let count = |count: Option<Count>| match count {
        None => "not read".to_owned(),
        Some(Count { number, more }) => format!("{}{number}", if more { "at least " } else { "" }),
    };
    let rows = [
        ("Applications", apps),
        ("running Pods", count(content.running_pods)),
        ("bound PersistentVolumeClaims", count(content.bound_volumes)),
        ("LoadBalancers", count(content.load_balancers)),
        ("Ingresses", count(content.ingresses)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(what, value)| vec![format!("  {what}"), value]).collect();
    text.push_str(&output::table(&rows));
    text.push('\n');
    section(
        &mut text,
        if going { "Keeps it Terminating unless it goes:" } else { "May keep it Terminating:" },
        content.held.iter().filter(|held| held.hangs()).map(|held| {
            let (who, advice) = held.known.map_or(("its controller", ""), |known| (known.removed_by, known.advice));
            // Of a Namespace that goes already there is no "first" any more.
            let advice = if going { advice.trim_end_matches("; only then delete the Namespace") } else { advice };
            let advice = if advice.is_empty() { String::new() } else { format!("\n      {advice}") };
            format!("{}: {}, removed by {who}{advice}", held.object, held.finalizer)
        }),
    );
    section(
        &mut text,
        "Goes by itself:",
        content.held.iter().filter(|held| !held.hangs()).map(|held| format!("{}: {}", held.object, held.finalizer)),
    );
    section(
        &mut text,
        "APIs that are not available, while which no Namespace can be emptied:",
        content.unavailable_apis.iter().cloned(),
    );
    section(&mut text, "What the Namespace says itself:", content.conditions.iter().cloned());
    section(&mut text, "Not read:", content.not_read.iter().map(|unread| format!("{}: {}", unread.what, unread.why)));
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        let _ = writeln!(text, "{title}");
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    const CLUSTER: &str = include_str!("tests.yaml");
    const CONTENT: &str = "
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: valid}, status: {phase: Running}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: valid, finalizers: [ingress.k8s.aws/resources]}}
";

    fn status(name: &str) -> (Status, String) {
        status_in("rules: {namespaceApproval: {mode: enforce, fourEyes: true}}", CONTENT, name)
    }

    /// The status of a Namespace under a policy, with more in the cluster than every test has.
    fn status_in(spec: &str, more: &str, name: &str) -> (Status, String) {
        let clock = Clock::new("2026-11-29T12:00:00Z".parse().unwrap(), TimeZone::UTC);
        let policy = Policy::new(serde_saphyr::from_str(spec).unwrap()).unwrap();
        let snapshot = Snapshot::parse("test", format!("{CLUSTER}{more}")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let status = runtime.block_on(read(name, &snapshot, &snapshot, &policy, clock.now)).unwrap();
        let text = text(&status, &clock);
        (status, text)
    }

    #[test]
    fn approved_namespace_shows_who_until_when_and_what_would_hang() {
        let (status, text) = status("valid");
        assert!(status.deletable);
        for part in [
            "Namespace valid (UID u-valid): valid",
            "Approved by alice until 2026-11-29 16:00:00 +00:00 (in 4h): CHG-7",
            "namespace-approval: enforce (rules.namespaceApproval)",
            "Four eyes",
            "running Pods                  1",
            "Ingress valid/web: ingress.k8s.aws/resources, removed by the AWS Load Balancer Controller\n      see that it runs",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("To approve"));
    }

    const CLAIMED: &str = "
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: valid,
  annotations: {argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:valid/prices'}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec: {project: default, destination: {server: 'https://kubernetes.default.svc', namespace: valid}}
status:
  reconciledAt: '2026-11-29T11:40:00Z'
  sync: {status: Synced}
  resources: [{version: v1, kind: ConfigMap, namespace: valid, name: prices, status: Synced}]
";

    #[test]
    fn approved_namespace_that_another_rule_holds_may_not_go() {
        let (status, text) =
            status_in("rules: {namespaceApproval: {mode: enforce}, sharedClaim: {mode: enforce}}", CLAIMED, "valid");
        assert!(!status.deletable, "{text}");
        assert_eq!(status.refusals.len(), 1, "{text}");
        for part in
            ["valid\n", "Refused all the same, approved or not:\n  [shared-claim] ", "argocd/shop", "What to do:\n  "]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("To approve"), "{text}");
        // Where that rule only records, nothing keeps the Namespace.
        let (status, text) = status_in("rules: {namespaceApproval: {mode: enforce}}", CLAIMED, "valid");
        assert!(status.deletable && !text.contains("Refused"), "{text}");
    }

    #[test]
    fn namespace_that_is_going_is_not_presented_for_approval() {
        for name in ["going", "bare"] {
            let (status, text) = status_in("rules: {namespaceApproval: {mode: enforce}}", "", name);
            assert!(status.deletable);
            let first =
                format!("Namespace {name} (UID u-{name}) is being deleted, since 2026-11-29 11:55:00 +00:00 (5m ago).");
            assert!(text.starts_with(&first), "{text}");
            assert!(!text.contains("To approve") && !text.contains("not approved"), "{text}");
        }
    }

    #[test]
    fn namespace_that_waits_says_how_to_approve_it() {
        let (status, text) = status("wanted");
        assert!(!status.deletable);
        for part in
            ["pending", "The cascade of Application argocd/wanted waits", "cascade-guard approve wanted --for 2h"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
