//! `runtime-dependency`: Pods that stay behind need their ServiceAccount and its rights.

mod bonds;
mod lost_rights;
mod pods;
mod who;

use std::collections::{BTreeSet, HashSet};

use self::{
    bonds::Bond,
    lost_rights::Losses,
    pods::Workloads,
    who::{ACCOUNT, Who},
};
use super::{Context, Rule, prune_last};
use crate::{
    admission::Request,
    argo::Class,
    catalog::{
        RuleMeta,
        runtime_dependency::{META, NOT_READ, RIGHTS_LOST},
    },
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation, Item, Plan, confirm},
    facts::Facts,
    inventory::{App, LOCAL},
    object::ObjectRef,
    policy::{RuleKey, Scopes},
    remedy::{Command, Remedy, type_and_name},
    text::some,
};

/// What it does: looks for Pods that stay behind and run under a ServiceAccount that goes, or whose rights go.
///
/// Why that is bad: a process that elects a leader, or reads anything else through the API, stops when its rights stop.
/// Nothing restarts it when they come back, and no new Pod can start under an account that is gone.
///
/// How to proceed: give the workload another ServiceAccount first, or keep the objects.
pub(super) struct RuntimeDependency;

impl Rule for RuntimeDependency {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        request.sub_resource.is_empty()
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        // This rule reads more than any other, so it comes last and only where somebody wants to hear of it.
        if cx.policy.is_off(RuleKey::RuntimeDependency) {
            return;
        }
        let Some(deletion) = cx.deletion else { return };
        // Below an admitted cascade everything was said at its root, and a replaced object is back at once.
        if !deletion.judged
            || deletion.takes_nothing()
            || deletion.is_mere_replacement()
            || matches!(deletion.explanation, Explanation::Cascade(_))
        {
            return;
        }
        let going = Going::new(cx, deletion);
        let mut losses = Losses::of(&going, facts);
        let mut pending = losses.pending;
        let mut unread = Vec::new();
        for who in losses.threatened() {
            match bereft(&going, facts, &mut losses, &who, &mut unread) {
                Some((things, workloads)) => told(&going, &who, &things, workloads, findings),
                None => pending = true,
            }
        }
        if !pending {
            findings.extend(not_read(deletion, &[losses.take_unread(), unread].concat()));
        }
    }
}

/// What `who` loses, and the workloads that stay behind without it; both may be empty. `None` while an answer is out.
fn bereft(
    going: &Going<'_, '_>,
    facts: &mut Facts,
    losses: &mut Losses,
    who: &Who,
    unread: &mut Vec<String>,
) -> Option<(Vec<ObjectRef>, Workloads)> {
    let workloads = Workloads::that_stay(going, facts, who, losses.account_of(who), unread)?;
    if workloads.names.is_empty() {
        return Some((Vec::new(), workloads));
    }
    let things = losses.lost(going, facts, who)?;
    let account_goes = things.iter().any(|thing| thing.kind.is("", ACCOUNT));
    if account_goes == losses.account_of(who) {
        return Some((things, workloads));
    }
    // The ServiceAccount is passed by, so that Pods without a token lose nothing.
    let workloads = Workloads::that_stay(going, facts, who, account_goes, unread)?;
    Some((things, workloads))
}

/// Adds what is said of the workloads of `who`. What the Application that prunes lists it applies in the same sync, perhaps
/// with other rights: refusing the prune would fail that sync, again and again.
fn told(going: &Going<'_, '_>, who: &Who, things: &[ObjectRef], workloads: Workloads, findings: &mut Vec<Finding>) {
    let deletion = going.deletion;
    let inventory = going.cx.inventory;
    let pruning = deletion.pruning(inventory);
    let is_listed = |workload: &ObjectRef| pruning.is_some_and(|by| by.lists(inventory.key_of(LOCAL, workload)));
    let (own, others) = workloads.partition(is_listed);
    findings.extend(finding(deletion, who, things, &others));
    findings.extend(pruning.and_then(|by| pruned_first(deletion, by, who, things, &own)));
}

/// What goes of a binding and its role.
enum Gone<'b> {
    /// Neither.
    Nothing,
    /// One of them, so that the binding gives nothing any more.
    Object(&'b ObjectRef),
}

/// What goes, for quick look-ups.
struct Going<'c, 'r> {
    cx: &'c Context<'r>,
    deletion: &'c Deletion,
    namespaces: HashSet<&'c str>,
}

impl<'c, 'r> Going<'c, 'r> {
    fn new(cx: &'c Context<'r>, deletion: &'c Deletion) -> Self {
        let namespaces = deletion.plan.namespaces().into_keys().collect();
        Self { cx, deletion, namespaces }
    }

    fn plan(&self) -> &'c Plan {
        &self.deletion.plan
    }

    /// Whether this Namespace goes, and every Pod in it.
    fn sweeps(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Objects of this cluster that go and are not swept away with all that could use them.
    fn items(&self) -> impl Iterator<Item = &'c Item> {
        self.plan()
            .items
            .iter()
            .filter(|item| item.cluster == LOCAL && !item.fate.is_spared() && !self.sweeps(&item.namespace))
    }

    /// Whether an object goes; `None` while an answer is out.
    fn takes(&self, facts: &mut Facts, object: &ObjectRef) -> Option<bool> {
        let key = self.cx.inventory.key_of(LOCAL, object);
        if let Some(item) = self.plan().item(key) {
            return Some(!confirm(self.cx.inputs(), facts, self.plan(), item, object)?.is_spared());
        }
        // A prune arrives object by object; the list of the Application that prunes tells what else goes.
        let Explanation::Prune(id) = self.deletion.explanation else { return Some(false) };
        let app = self.cx.inventory.app(id).filter(|app| app.cluster == LOCAL && app.list_valid());
        Some(app.and_then(|app| app.claim(key)).is_some_and(|claim| claim.class == Class::Prune))
    }

    /// What goes of a binding and its role, so that it gives nothing any more: the one that is deleted before the other,
    /// the binding before the role. `None` while an answer is out.
    fn takes_of<'b>(&self, facts: &mut Facts, bond: &'b Bond) -> Option<Gone<'b>> {
        // Both questions are asked before the first answer is waited for.
        let (binding, role) = (self.takes(facts, &bond.binding), self.takes(facts, &bond.role));
        let (binding, role) = (binding?, role?);
        Some(match (binding, role) {
            (_, true) if bond.role == self.deletion.object => Gone::Object(&bond.role),
            (true, _) => Gone::Object(&bond.binding),
            (false, true) => Gone::Object(&bond.role),
            (false, false) => Gone::Nothing,
        })
    }
}

/// What is lost, in words.
fn in_words(who: &Who, things: &[ObjectRef], first: &ObjectRef) -> String {
    if first.kind.is("", ACCOUNT) {
        short(first)
    } else {
        let named: Vec<String> = things.iter().map(short).collect();
        let whose =
            if let Who::Account { name, .. } = who { format!(" of ServiceAccount {name}") } else { String::new() };
        format!("{}{whose}", some(&named, 2))
    }
}

/// The strictest mode of the namespaces of what goes counts.
fn scopes(deletion: &Deletion, things: &[ObjectRef]) -> Scopes {
    let namespaces: BTreeSet<&str> = things.iter().map(|thing| &*thing.namespace).collect();
    deletion.scopes_in(namespaces)
}

/// Workloads that another Application, or nobody, will give other rights.
fn finding(deletion: &Deletion, who: &Who, things: &[ObjectRef], workloads: &Workloads) -> Option<Finding> {
    let first = things.first().filter(|_| !workloads.names.is_empty())?;
    let lost = in_words(who, things, first);
    let verb = if workloads.count() == 1 { "loses" } else { "lose" };
    let mut finding = Finding::new(
        &RIGHTS_LOST,
        Severity::Deny,
        first.clone(),
        "Pods that stay would lose their ServiceAccount or its rights, and nothing brings them back",
    )
    .detail(format!("{workloads} {verb} {lost}: leader election through the API stops"));
    finding.scopes = scopes(deletion, things);
    if let Some(workload) = workloads.names.first() {
        finding.remedies.push(give_another(workload));
    }
    if *first != deletion.object {
        finding.remedies.push(Remedy::run(
            "keep it through the cascade",
            Command::new("kubectl").namespace(&first.namespace).words([
                "annotate",
                &type_and_name(first),
                KEEP,
                "--overwrite",
            ]),
        ));
    }
    Some(finding)
}

/// Workloads that the pruning Application lists: its sync may give them other rights a moment later.
fn pruned_first(
    deletion: &Deletion,
    by: &App,
    who: &Who,
    things: &[ObjectRef],
    workloads: &Workloads,
) -> Option<Finding> {
    let first = things.first().filter(|_| !workloads.names.is_empty())?;
    let verb = if workloads.count() == 1 { "loses" } else { "lose" };
    let summary = "Pods lose their ServiceAccount or its rights before the same sync gives them others";
    let detail = format!(
        "without PruneLast=true on {} {workloads} {verb} {} until the sync has applied",
        by.path(),
        in_words(who, things, first)
    );
    Some(
        Finding::new(&RIGHTS_LOST, Severity::Warn, first.clone(), summary)
            .detail(detail)
            .remedy(prune_last(by))
            .judged_in(scopes(deletion, things)),
    )
}

/// How a workload gets another ServiceAccount. `kubectl set serviceaccount` changes the template that Pods are made from;
/// where there is none, or where it cannot be changed, the API server refuses.
fn give_another(workload: &ObjectRef) -> Remedy {
    let ObjectRef { kind, namespace, .. } = workload;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "CronJob")
        | ("", "ReplicationController") => Remedy::run(
            format!("give {workload} another ServiceAccount first"),
            Command::new("kubectl").namespace(namespace).words([
                "set",
                "serviceaccount",
                &type_and_name(workload),
                "OTHER",
            ]),
        ),
        ("", "Pod") | ("batch", "Job") => Remedy::advice(format!(
            "make {workload} anew under another ServiceAccount first (spec{}.serviceAccountName cannot be changed in place)",
            if kind.kind == "Job" { ".template.spec" } else { "" }
        )),
        _ => Remedy::advice(format!("give it another ServiceAccount first, where the manifest of {workload} names it")),
    }
}

/// What makes a cascade pass an object by.
const KEEP: &str = "argocd.argoproj.io/sync-options=Delete=false";

/// Kind and name; the namespace is that of the workload, or there is none.
fn short(object: &ObjectRef) -> String {
    format!("{} {}", object.kind.kind, object.name)
}

/// What nobody knows is said, and never refused: this rule is no lock.
fn not_read(deletion: &Deletion, unread: &[String]) -> Option<Finding> {
    let first = unread.first()?;
    let more = if unread.len() > 1 { format!(" (and {} more reads)", unread.len() - 1) } else { String::new() };
    let summary = "whether Pods that stay need what goes could not be read";
    Some(
        Finding::new(&NOT_READ, Severity::Warn, deletion.object.clone(), summary)
            .detail(format!("not read, so Pods that stay may lose their rights: {first}{more}"))
            .judged_in(deletion.scopes(&deletion.object)),
    )
}
