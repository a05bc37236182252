//! Reads and prints everything about one Namespace that somebody wants to delete.

use std::fmt::Write;

use anyhow::Context as _;
use jiff::Timestamp;

use super::{
    super::{
        output::{self, Format},
        thorough,
    },
    Clock,
};
use crate::judge::Source;
use cascade_guard_core::{
    admission::{UserInfo, decode, delete_review},
    namespace::{
        content::{Content, Count},
        status::NamespaceStatus,
    },
    object::ObjectRef,
    policy::Policy,
    remedy::Remedy,
    snapshot::Snapshot,
};

/// Reads everything about the Namespace called `name`. `snapshot` holds the Namespace and what Applications claim; `source`
/// answers what else is asked.
///
/// # Errors
/// When there is no such Namespace.
pub async fn read(
    name: &str,
    snapshot: &Snapshot,
    source: &impl Source,
    policy: &Policy,
    now: Timestamp,
) -> anyhow::Result<NamespaceStatus> {
    let inventory = snapshot.inventory(policy, (0, 0));
    let missing = || format!("there is no Namespace {name}");
    let meta = inventory.namespace(name).with_context(missing)?;
    let content = thorough::namespace_content(meta, &inventory, source).await?;
    let object = ObjectRef::namespace(name);
    let json = snapshot.json_of(&object).with_context(missing)?;
    let body =
        delete_review(&object, &json, &UserInfo::default()).with_context(|| format!("{object} cannot be read"))?;
    let verdict = thorough::judge(&decode(&body)?, &inventory, policy, source, now).await;
    Ok(NamespaceStatus::new(meta, &inventory, policy, now, content, &verdict.decision))
}

pub(super) fn print(status: &NamespaceStatus, format: Format, clock: &Clock) -> anyhow::Result<()> {
    output::print(format, status, || text(status, clock))
}

/// The status as text for people.
pub fn text(status: &NamespaceStatus, clock: &Clock) -> String {
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
        let mut said: Vec<&Remedy> = Vec::new();
        for remedy in status.refusals.iter().flat_map(|refusal| &refusal.commands) {
            if !said.contains(&remedy) {
                said.push(remedy);
                let _ = writeln!(text, "- {remedy}");
            }
        }
    }
    if !status.commands.is_empty() {
        text.push_str("\nTo approve its deletion:\n");
        for remedy in &status.commands {
            let _ = writeln!(text, "- {remedy}");
        }
    }
    text
}

/// The content of a Namespace as a checklist.
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
            // A Namespace that is being deleted leaves no time for anything "first".
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

    use super::{super::CLUSTER, *};

    const CONTENT: &str = "
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: valid}, status: {phase: Running}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: valid, finalizers: [ingress.k8s.aws/resources]}}
";

    fn status(name: &str) -> (NamespaceStatus, String) {
        status_in("rules: {namespaceApproval: {mode: enforce, fourEyes: true}}", CONTENT, name)
    }

    /// The status of a Namespace under a policy, with more in the cluster than every test has.
    fn status_in(spec: &str, more: &str, name: &str) -> (NamespaceStatus, String) {
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
            ["valid\n", "Refused all the same, approved or not:\n  [shared-claim] ", "argocd/shop", "What to do:\n- "]
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
