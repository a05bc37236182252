//! The audit as a list of findings. Every format has this list, and audits are compared by it.

use std::borrow::Cow;

use super::{
    ApprovalValidity, Audit, AuditedApproval, FailedOpen, Overlap, Refusal, Stuck, Unprotected, Unsettled, Untrusted,
};
use cascade_guard_core::{
    decision::{Effect, Severity},
    object::ObjectRef,
    policy::{Mode, POLICY_NAME},
    remedy::{Command, Remedy},
    report::{ReportFinding, Rule, known_rules},
};

const DOCS: &str = "docs/audit.md";

const TERMINATING: &str = "terminating";
const UNTRUSTED: &str = "untrusted-list";
const UNPROTECTED: &str = "unprotected";
const APPROVAL: &str = "approval";
const FAILED_OPEN: &str = "failed-open";
const INSTALLATIONS: &str = "installations";

/// The rules of reviews, and what only an audit looks at.
pub fn rules() -> Vec<Rule> {
    let mut rules = known_rules();
    rules.extend([
        Rule::new(TERMINATING, "the deletion of an object does not end", DOCS),
        Rule::new(UNTRUSTED, "the list of an Application is not to be believed", DOCS),
        Rule::new(UNPROTECTED, "a Namespace with Applications is less protected than the rules say", DOCS),
        Rule::new(APPROVAL, "an approval opens nothing any more, or never did", DOCS),
        Rule::new(INSTALLATIONS, "Argo CDs mix Applications up, leave them alone, or are not known well enough", DOCS),
        Rule::new(FAILED_OPEN, "a delete went through while the guard did not answer", DOCS),
    ]);
    rules
}

impl Audit {
    /// Everything that somebody should do something about, worst first. What the guard keeps, as it should (a Namespace
    /// that nobody approved), is no finding, and neither is an approval that waits to be used.
    pub fn findings(&self) -> Vec<ReportFinding> {
        let mut found: Vec<ReportFinding> = Vec::new();
        found.extend(self.failed_open.iter().filter_map(failed_open));
        found.extend(self.refusals.iter().filter(|refusal| !refusal.expected).map(refusal));
        found.extend(self.terminating.iter().map(stuck));
        found.extend(self.hooks.iter().cloned());
        found.extend(self.overlaps.iter().map(overlap));
        found.extend(self.untrusted.iter().map(untrusted));
        found.extend(self.installations.iter().map(unsettled));
        found.extend(self.unprotected.iter().map(unprotected));
        found.extend(self.approvals.iter().filter_map(approval));
        // A stable sort keeps the order of the sections.
        found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        found
    }
}

fn finding(
    rule: impl Into<Cow<'static, str>>,
    severity: Severity,
    object: ObjectRef,
    summary: &str,
    detail: String,
) -> ReportFinding {
    ReportFinding {
        rule: rule.into(),
        check: Cow::Borrowed(""),
        severity,
        mode: None,
        effect: None,
        object,
        summary: summary.to_owned(),
        detail,
        regarding: None,
        claimants: Vec::new(),
        remedies: Vec::new(),
        location: None,
        fix: None,
    }
}

fn overlap(overlap: &Overlap) -> ReportFinding {
    let tracked = match &overlap.tracked_by {
        Some(instance) => format!("; {instance} tracks it, so its cascade would delete it"),
        None => String::new(),
    };
    let cluster = if overlap.cluster == "in-cluster" { String::new() } else { format!(" on {}", overlap.cluster) };
    let detail = format!("{}{cluster} is claimed by {}{tracked}", named(&overlap.object), overlap.claimants.join(", "));
    let mut found = finding(
        "shared-claim",
        Severity::Warn,
        overlap.object.clone(),
        "an object is claimed by several Applications",
        detail,
    );
    found.check = Cow::Borrowed("overlap");
    found.claimants.clone_from(&overlap.claimants);
    found.remedies.push("remove it from the manifests of all Applications but one, and sync those".into());
    found
}

fn named(object: &ObjectRef) -> String {
    if object.name.is_empty() { format!("a {} in {}", object.kind.kind, object.namespace) } else { object.to_string() }
}

fn refusal(refusal: &Refusal) -> ReportFinding {
    let would = if refusal.refused { "is refused" } else { "would be refused" };
    let more = refusal.count.saturating_sub(refusal.details.len().max(1));
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let what = if refusal.details.is_empty() { refusal.summary.clone() } else { refusal.details.join("; ") };
    let mut found = finding(
        refusal.rule.clone(),
        Severity::Deny,
        refusal.object.clone(),
        &refusal.summary,
        format!("deleting {} {would}: {what}{more}", refusal.object),
    );
    found.check.clone_from(&refusal.check);
    found.mode = Some(refusal.mode);
    found.effect = Some(match (refusal.refused, refusal.mode) {
        (true, _) => Effect::Refused,
        (false, Mode::Off | Mode::Audit) => Effect::Recorded,
        (false, Mode::Warn | Mode::Enforce) => Effect::Warned,
    });
    found.claimants.clone_from(&refusal.claimants);
    found.remedies.clone_from(&refusal.remedies);
    found
}

fn stuck(stuck: &Stuck) -> ReportFinding {
    let held: Vec<String> =
        stuck.holders.iter().take(5).map(|holder| format!("{}: {}", holder.what, holder.why)).collect();
    let held = if held.is_empty() { "nothing on it says why".to_owned() } else { held.join("; ") };
    let mut found = finding(
        TERMINATING,
        Severity::Deny,
        stuck.object.clone(),
        "the deletion of an object does not end",
        format!("{} has been terminating since {}: {held}", stuck.object, stuck.since),
    );
    for holder in &stuck.holders {
        if !found.remedies.contains(&holder.mend) {
            found.remedies.push(holder.mend.clone());
        }
    }
    found
}

fn untrusted(untrusted: &Untrusted) -> ReportFinding {
    let since = untrusted.since.map(|since| format!(" since {since}")).unwrap_or_default();
    let message = if untrusted.message.is_empty() { String::new() } else { format!(" ({})", untrusted.message.trim()) };
    let path = untrusted.object.path();
    let mut found = finding(
        UNTRUSTED,
        Severity::Warn,
        untrusted.object.clone(),
        "the list of an Application is not to be believed",
        format!("the list of {path} is not to be believed{since}: {}{message}", untrusted.why),
    );
    found
        .remedies
        .push(Remedy::run("have it compared again", Command::new("argocd app get").words([&path, "--hard-refresh"])));
    found
}

fn unsettled(unsettled: &Unsettled) -> ReportFinding {
    let mut found = finding(
        INSTALLATIONS,
        Severity::Warn,
        unsettled.object.clone(),
        "Argo CDs mix Applications up, leave them alone, or are not known well enough",
        unsettled.detail.clone(),
    );
    found.check = unsettled.what.clone().into();
    found.remedies.push(unsettled.remedy.clone());
    found
}

fn unprotected(unprotected: &Unprotected) -> ReportFinding {
    let policy = || ObjectRef::new("cascade-guard.io", "GuardPolicy", "", POLICY_NAME);
    let (object, place) = if unprotected.namespace.is_empty() {
        (policy(), "everywhere".to_owned())
    } else {
        (ObjectRef::namespace(&unprotected.namespace), format!("in Namespace {}", unprotected.namespace))
    };
    let mut found = finding(
        UNPROTECTED,
        Severity::Warn,
        object,
        "a Namespace with Applications is less protected than the rules say",
        format!(
            "{} is {} {place}, where {} Applications deploy: {}",
            unprotected.rule,
            unprotected.mode.as_str(),
            unprotected.applications,
            unprotected.decided_by
        ),
    );
    found.check = unprotected.rule.clone().into();
    found.remedies.push(Remedy::advice(format!("change {} of the policy, or let it end", unprotected.decided_by)));
    found
}

fn approval(approval: &AuditedApproval) -> Option<ReportFinding> {
    let (check, summary) = match approval.state {
        ApprovalValidity::Broken => ("broken", "an approval opens nothing as it is"),
        ApprovalValidity::Expired => ("expired", "an approval has expired"),
        ApprovalValidity::Ending | ApprovalValidity::Pending => return None,
    };
    let name = &approval.namespace;
    let detail = format!("Namespace {name}: {}", approval.problems.join("; "));
    let mut found = finding(APPROVAL, Severity::Warn, approval.object(), summary, detail);
    found.check = Cow::Borrowed(check);
    found.remedies.push(Remedy::run("withdraw it, or approve again", Command::new("cascade-guard revoke").word(name)));
    Some(found)
}

fn failed_open(failed: &FailedOpen) -> Option<ReportFinding> {
    if !failed.known {
        let detail = format!("{}; it is not in the snapshot, so it cannot be judged", failed.sentence());
        let mut found = finding(
            FAILED_OPEN,
            Severity::Warn,
            failed.object.clone(),
            "a delete went through while the guard did not answer",
            detail,
        );
        found.check = Cow::Borrowed("not-judged");
        return Some(found);
    }
    if failed.refusals.is_empty() {
        return None;
    }
    let reasons: Vec<String> = failed
        .refusals
        .iter()
        .map(|refusal| format!("[{}] {}", refusal.rule, refusal.details.first().unwrap_or(&refusal.summary)))
        .collect();
    let mut found = finding(
        FAILED_OPEN,
        Severity::Deny,
        failed.object.clone(),
        "a delete went through that would have been refused",
        format!("{}; it would have been refused: {}", failed.sentence(), reasons.join("; ")),
    );
    found.claimants = failed.refusals.iter().flat_map(|refusal| refusal.claimants.iter().cloned()).collect();
    found.remedies.push("sync each claimant: that brings back what it lost".into());
    Some(found)
}
