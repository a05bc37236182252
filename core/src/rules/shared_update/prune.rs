//! An Application is told to prune: what its list holds to be pruned, and all that goes with it, is looked at before the
//! first object is gone.
//!
//! The prune will arrive object by object, each judged by `shared-claim` with its whole plan. What would be refused there
//! is refused here: a sync that comes to rest half-way has deleted the rest already.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::{
    argo::{
        Application, Class, Entry,
        sync_options::{self, SYNC_OPTIONS},
    },
    catalog::{
        namespace_approval,
        shared_update::{PRUNE, PRUNE_STOPS},
    },
    decision::{Finding, Severity},
    deletion::{Item, Leaving, MAX_ITEMS, Plan, Root, Via, build, root_of},
    facts::{Facts, Reading},
    inventory::{App, AppId, Key, LOCAL, Ownership},
    namespace::approval::{problems_at_delete, remedies},
    object::{ObjectMeta, ObjectRef},
    policy::{Mode, Scope, Scopes, namespace_of},
    remedy::{Command, Remedy, type_and_name},
    rules::Context,
    text::{count, some},
};

/// What is listed to be pruned, and is claimed by another Application or takes along what another one claims, is that
/// other's loss.
pub(super) fn check(
    cx: &Context<'_>,
    facts: &mut Facts,
    application: &Application<'_>,
    selected: impl Fn(&Entry<'_>) -> bool,
    findings: &mut Vec<Finding>,
) {
    let app = cx.inventory.examine(application);
    let id = cx.inventory.app_named(&app.namespace, &app.name);
    let mut pruning = Pruning { cx, app, id, left: MAX_ITEMS };
    for entry in application.status.resources.iter().filter(|entry| entry.class() == Class::Prune && selected(entry)) {
        pruning.object(facts, &cx.inventory.normalise(entry.object()), findings);
    }
}

/// The Application that is told to prune.
struct Pruning<'c, 'r> {
    cx: &'c Context<'r>,
    app: App,
    id: Option<AppId>,
    /// So many more objects are followed.
    left: usize,
}

impl Pruning<'_, '_> {
    fn object(&mut self, facts: &mut Facts, object: &ObjectRef, findings: &mut Vec<Finding>) {
        let key = self.cx.inventory.key_of(self.app.cluster, object);
        let claimants = self.claimants(key);
        let follows = object.kind.takes_others();
        if (claimants.is_empty() && !follows) || (self.is_here() && !self.is_pruned(facts, object)) {
            return;
        }
        if !claimants.is_empty() {
            findings.push(self.claimed(object, claimants));
        }
        if !follows {
            return;
        }
        if self.left == 0 {
            return findings.push(self.too_large(object));
        }
        let Some(plan) = self.plan(facts, object, key) else { return };
        if plan.too_large {
            findings.push(self.too_large(object));
        }
        self.left = self.left.saturating_sub(plan.items.len());
        self.taken_along(object, &plan, findings);
        self.not_approved(facts, &plan, findings);
    }

    fn is_here(&self) -> bool {
        self.app.cluster == LOCAL
    }

    /// Other Applications that claim an object.
    fn claimants(&self, key: Key) -> Vec<String> {
        let all = self.cx.inventory.claimants(key, self.cx.policy);
        let mut others: Vec<String> =
            all.filter(|id| Some(*id) != self.id).filter_map(|id| self.cx.inventory.app(id)).map(App::path).collect();
        others.sort();
        others
    }

    /// Everything that goes with a pruned object; `None` while an answer is out, or where nobody can tell.
    fn plan(&self, facts: &mut Facts, object: &ObjectRef, key: Key) -> Option<Plan> {
        let inputs = self.cx.inputs();
        let nothing = Leaving::default();
        let from = |root: Root<'_>, facts: &mut Facts| {
            let mut plan = build(inputs, facts, &root, &nothing, self.id);
            plan.too_large |= plan.items.len() > self.left;
            (!plan.pending).then_some(plan)
        };
        if !self.is_here() {
            let root = Root::Elsewhere(self.app.cluster, object.clone());
            return object.is_namespace().then(|| from(root, facts)).flatten();
        }
        if let Some(id) = self.cx.inventory.app_by_key(key).filter(|_| object.is_application()) {
            return from(Root::Known(id), facts);
        }
        if object.is_namespace() {
            return from(Root::Namespace(object.clone()), facts);
        }
        let Reading::Found(raw) = facts.object(object)? else { return None };
        let meta = ObjectMeta::of(raw.get()).ok()?;
        from(root_of(object, &raw, &meta, false), facts)
    }

    /// Whether the live object would really go. The list may be older than the moment at which another Application took the
    /// object over, and `Prune=false` counts on the live object. What is not found or cannot be read is taken to go, because
    /// the list says so; while the answer is out nothing is said.
    fn is_pruned(&self, facts: &mut Facts, object: &ObjectRef) -> bool {
        let Some(reading) = facts.metadata(object) else { return false };
        let Reading::Found(meta) = reading else { return true };
        let kept = sync_options::in_annotation(meta.annotation(SYNC_OPTIONS), "Prune") == Some("false");
        let taken_over =
            matches!(self.cx.inventory.ownership(&self.app, &meta), Ownership::Other { .. } | Ownership::Nobody);
        !kept && !taken_over
    }

    /// A prune is judged by the namespaces of the objects and the project of the Application that prunes.
    fn scope(&self, namespace: &str) -> Scope {
        Scope { namespace: namespace.to_owned(), project: Some(self.app.project.to_string()), since: None }
    }

    /// The pruned object itself is claimed.
    fn claimed(&self, object: &ObjectRef, claimants: Vec<String>) -> Finding {
        let (path, wanted_by) = (self.app.path(), some(&claimants, 3));
        let finding =
            self.deny(object, format!("{object} (claimed by {wanted_by}) would be pruned by {path}")).remedy(Remedy {
                text: format!("sync {wanted_by} first: it takes the object over, and the prune of {path} passes it by"),
                commands: claimants.iter().take(1).map(|app| Command::new("argocd app sync").word(app)).collect(),
            });
        finding.remedy(keep(object)).claimed_by(claimants).judged_in(self.scope(namespace_of(object)).into())
    }

    /// What it takes along is claimed: one finding for the same claimants.
    fn taken_along(&self, object: &ObjectRef, plan: &Plan, findings: &mut Vec<Finding>) {
        let mut by_claimants: BTreeMap<&[AppId], Vec<&Item>> = BTreeMap::new();
        for item in plan.items.iter().filter(|item| item.via != Via::Root && item.is_contested()) {
            by_claimants.entry(&item.claimants).or_default().push(item);
        }
        for (claimants, items) in by_claimants {
            let apps = claimants.iter().filter_map(|id| self.cx.inventory.app(*id));
            let mut claimants: Vec<String> = apps.map(App::path).collect();
            claimants.sort();
            let who = some(&claimants, 3);
            let what = match &items[..] {
                [only] => only.label(),
                several => count(several.len(), "object"),
            };
            let finding = self
                .deny(
                    object,
                    format!("{object} would be pruned by {} and takes along {what}, claimed by {who}", self.app.path()),
                )
                .remedy(format!("delete or move {who} first, or leave {object} in Git"));
            findings.push(finding.remedy(keep(object)).claimed_by(claimants).judged_in(self.scopes(&items)));
        }
    }

    /// The places that these items are in. A Namespace is one place, whatever is in it.
    fn scopes(&self, items: &[&Item]) -> Scopes {
        let mut places: Vec<&str> = items
            .iter()
            .map(|item| match (&item.via, &item.object) {
                (Via::Namespace(name), _) => &**name,
                (_, Some(object)) => namespace_of(object),
                _ => &*item.namespace,
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        Scopes::covering(places.into_iter().map(|namespace| self.scope(namespace).into()))
    }

    /// Unknown is not fine: of a prune that takes too much to follow, nobody can say what others claim of it.
    fn too_large(&self, object: &ObjectRef) -> Finding {
        self.deny(object, format!("{object} would be pruned by {} and takes too much to be judged", self.app.path()))
            .remedy("delete the Applications in it first, a part at a time")
            .judged_in(self.scope(namespace_of(object)).into())
    }

    fn deny(&self, object: &ObjectRef, detail: String) -> Finding {
        let summary = format!("switching on prune for {} deletes what other Applications claim", self.app.path());
        Finding::new(&PRUNE, Severity::Deny, object.clone(), summary).detail(detail)
    }

    /// Namespaces of the plan that carry no approval: the prune is not refused here, because an approval may still be
    /// given, but it will stop there.
    fn not_approved(&self, facts: &mut Facts, plan: &Plan, findings: &mut Vec<Finding>) {
        let cx = self.cx;
        let argocd = cx.policy.argocd_users().first().map_or("", String::as_str);
        let names: Vec<&str> = plan.namespaces().into_keys().collect();
        for name in names {
            let object = ObjectRef::namespace(name);
            let scopes: Scopes = self.scope(name).into();
            let refusal = Finding::new(&namespace_approval::NOT_APPROVED, Severity::Deny, object.clone(), "")
                .judged_in(scopes.clone());
            if cx.mode_of(&refusal) != Mode::Enforce {
                continue;
            }
            let Some(Reading::Found(meta)) = cx.inputs().live(facts, &object) else { continue };
            let problems = problems_at_delete(&meta, cx.now, cx.policy, argocd);
            if problems.is_empty() || meta.is_terminating() {
                continue;
            }
            let mut finding = Finding::new(
                &PRUNE_STOPS,
                Severity::Warn,
                object.clone(),
                "a prune will stop at a Namespace that is not approved",
            )
            .detail(format!("the prune by {} will stop at {object}: {}", self.app.path(), problems[0]))
            .judged_in(scopes);
            finding.remedies.extend(remedies(&meta, cx.now, cx.policy, &problems));
            findings.push(finding);
        }
    }
}

/// How a prune passes an object by.
fn keep(object: &ObjectRef) -> Remedy {
    Remedy::run(
        "keep it through the prune",
        Command::new("kubectl")
            .namespace(&object.namespace)
            .words(["annotate", &type_and_name(object), "--overwrite"])
            .word(format!("{SYNC_OPTIONS}=Prune=false")),
    )
}
