//! `runtime-dependency`: Pods that stay behind need their ServiceAccount and its rights.

mod lost_rights;
mod pods;

use std::collections::HashSet;

use self::{
    lost_rights::{ACCOUNT, Losses, Who},
    pods::Workloads,
};
use super::{Context, Rule};
use crate::{
    admission::Request,
    argo::Class,
    catalog::{
        RuleMeta,
        runtime_dependency::{META, NOT_READ, RIGHTS_LOST},
    },
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation, Fate, Item, Plan, confirm},
    facts::Facts,
    inventory::LOCAL,
    object::ObjectRef,
    policy::RuleKey,
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
        let losses = Losses::of(&going, facts);
        let mut unread = losses.unread.clone();
        let mut found = Vec::new();
        let mut pending = losses.pending;
        for (who, things) in &losses.by {
            let Some(workloads) = Workloads::that_stay(&going, facts, who, things, &mut unread) else {
                pending = true;
                continue;
            };
            if workloads.names.is_empty() {
                continue;
            }
            match going.confirmed(facts, things) {
                Some(things) => found.extend(finding(deletion, who, &things, &workloads)),
                None => pending = true,
            }
        }
        if !pending {
            found.extend(not_read(deletion, &unread));
        }
        for finding in &mut found {
            finding.scopes = deletion.scopes(&finding.object);
        }
        findings.append(&mut found);
    }
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
        self.plan().items.iter().filter(|item| {
            item.cluster == LOCAL && !matches!(item.fate, Fate::Spared(_)) && !self.sweeps(&item.namespace)
        })
    }

    /// Whether an object goes; `None` while an answer is out.
    fn takes(&self, facts: &mut Facts, object: &ObjectRef) -> Option<bool> {
        let key = self.cx.inventory.key_of(LOCAL, object);
        if let Some(item) = self.plan().item(key) {
            return Some(!matches!(confirm(self.cx.inputs(), facts, self.plan(), item, object)?, Fate::Spared(_)));
        }
        // A prune arrives object by object; the list of the Application that prunes tells what else goes.
        let Explanation::Prune(id) = self.deletion.explanation else { return Some(false) };
        let app = self.cx.inventory.app(id).filter(|app| app.cluster == LOCAL && app.list_valid());
        Some(app.and_then(|app| app.claim(key)).is_some_and(|claim| claim.class == Class::Prune))
    }

    /// Those of `things` that really go; `None` while an answer is out.
    fn confirmed(&self, facts: &mut Facts, things: &[ObjectRef]) -> Option<Vec<ObjectRef>> {
        // Every question is asked before the first answer is waited for.
        let taken: Vec<_> = things.iter().map(|thing| self.takes(facts, thing)).collect();
        let taken: Vec<bool> = taken.into_iter().collect::<Option<_>>()?;
        Some(things.iter().zip(taken).filter(|(_, taken)| *taken).map(|(thing, _)| thing.clone()).collect())
    }
}

fn finding(deletion: &Deletion, who: &Who, things: &[ObjectRef], workloads: &Workloads) -> Option<Finding> {
    let first = things.first()?;
    let lost = if first.kind.is("", ACCOUNT) {
        short(first)
    } else {
        let named: Vec<String> = things.iter().map(short).collect();
        let whose =
            if let Who::Account { name, .. } = who { format!(" of ServiceAccount {name}") } else { String::new() };
        format!("{}{whose}", some(&named, 2))
    };
    let verb = if workloads.count() == 1 { "loses" } else { "lose" };
    let mut finding = Finding::new(
        &RIGHTS_LOST,
        Severity::Deny,
        first.clone(),
        "Pods that stay would lose their ServiceAccount or its rights, and nothing brings them back",
    )
    .detail(format!("{workloads} {verb} {lost}: leader election through the API stops"));
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
            .detail(format!("not read, so Pods that stay may lose their rights: {first}{more}")),
    )
}
