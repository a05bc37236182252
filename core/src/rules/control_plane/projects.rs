//! AppProjects. An Application whose project is gone can neither be synced nor deleted: its controller looks the project
//! up first and gives up (`controller/appcontroller.go`, start of the deletion).

use std::collections::{HashMap, HashSet};

use super::named;
use crate::{
    catalog::control_plane::{PROJECT, PROJECT_ORDER},
    decision::{Finding, Severity},
    deletion::{Deletion, Fate, Item, Plan, Via, confirm},
    facts::Facts,
    inventory::{App, AppId, BuildKeyHasher, Inventory, Key, LOCAL},
    object::{ARGO_GROUP, ObjectMeta, ObjectRef},
    remedy::{Command, Remedy},
    rules::{Context, prune_last},
    text::count,
};

/// An AppProject with this finalizer stays until no Application names it any more.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// Every AppProject and the Applications that use it, looked up once for all projects of a plan.
pub(super) struct Projects<'a> {
    by_key: HashMap<Key, &'a ObjectMeta, BuildKeyHasher>,
    users: HashMap<(&'a str, &'a str), Vec<(AppId, &'a App)>>,
}

impl<'a> Projects<'a> {
    pub(super) fn new(inventory: &'a Inventory) -> Self {
        let key = |meta: &ObjectMeta| {
            inventory.key_of(LOCAL, &ObjectRef::new(ARGO_GROUP, "AppProject", &meta.namespace, &meta.name))
        };
        let mut users: HashMap<_, Vec<_>> = HashMap::new();
        for (id, app) in inventory.applications() {
            for home in inventory.homes_of(app) {
                users.entry((home, &*app.project)).or_default().push((id, app));
            }
        }
        Self { by_key: inventory.projects().map(|project| (key(&project.meta), &project.meta)).collect(), users }
    }

    /// A project's metadata: as it is deleted, or as it is known from the inventory.
    fn metadata(&self, deletion: &'a Deletion, item: &Item) -> Option<&'a ObjectMeta> {
        if item.via == Via::Root { Some(&deletion.meta) } else { self.by_key.get(&item.key).copied() }
    }

    fn users(&self, project: &'a ObjectMeta) -> &[(AppId, &'a App)] {
        self.users.get(&(project.namespace.as_str(), project.name.as_str())).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn project<'a>(
    cx: &Context<'a>,
    facts: &mut Facts,
    deletion: &'a Deletion,
    projects: &Projects<'a>,
    item: &Item,
    findings: &mut Vec<Finding>,
) {
    // What goes with a Namespace or a definition is told by these.
    if matches!(item.via, Via::Namespace(_) | Via::Definition) || deletion.is_mere_replacement() {
        return;
    }
    let Some(meta) = projects.metadata(deletion, item) else { return };
    if meta.finalizers.iter().any(|finalizer| finalizer == FINALIZER) || meta.is_terminating() {
        return;
    }
    let object = ObjectRef::new(ARGO_GROUP, "AppProject", &meta.namespace, &meta.name);
    let (inside, outside): (Vec<_>, Vec<_>) =
        projects.users(meta).iter().copied().partition(|(id, _)| deletion.plan.leaving.surely.contains(id));
    if inside.is_empty() && outside.is_empty() {
        return;
    }
    match confirm(cx.inputs(), facts, &deletion.plan, item, &object) {
        None | Some(Fate::Spared(_)) => return,
        Some(Fate::Deleted | Fate::DeletedAlthough(_) | Fate::Absent) => {}
    }
    // What the pruning Application lists it applies in the same sync, with another project if Git says so.
    let pruning = deletion.pruning(cx.inventory);
    let is_listed = |app: &App| pruning.is_some_and(|by| by.lists(cx.inventory.key_of(LOCAL, &app.object())));
    let (own, others): (Vec<&App>, Vec<&App>) = outside.iter().map(|(_, app)| *app).partition(|app| is_listed(app));
    if !others.is_empty() {
        findings.push(used(&object, others.iter().copied()));
    }
    if let Some(by) = pruning.filter(|_| !own.is_empty()) {
        findings.push(pruned_first(&object, by, &own));
    }
    let order = Order::new(cx.inventory, &deletion.plan);
    let late: Vec<&App> = inside
        .iter()
        .filter(|(_, app)| app.cascades && app.terminating.is_none())
        .filter(|(_, app)| order.outlives(item, app))
        .map(|(_, app)| *app)
        .collect();
    if !late.is_empty() {
        findings.push(
            Finding::new(
                &PROJECT_ORDER,
                Severity::Warn,
                object.clone(),
                "a project goes before the Applications that need it",
            )
            .detail(format!(
                "{object} is gone before {}; they hang: give it a lower sync wave or the finalizer {FINALIZER}",
                named(late.iter().copied())
            )),
        );
    }
}

fn used<'a>(object: &ObjectRef, users: impl ExactSizeIterator<Item = &'a App> + Clone) -> Finding {
    let example = users.clone().map(App::path).min().unwrap_or_default();
    Finding::new(&PROJECT, Severity::Deny, object.clone(), "Applications still use a project that would go")
        .detail(format!(
            "{object} is used by {}; without it {} can neither be synced nor deleted",
            named(users.clone()),
            if users.len() == 1 {
                "that Application".to_owned()
            } else {
                format!("these {}", count(users.len(), "Application"))
            }
        ))
        .claimed_by(users.map(App::path).collect())
        .remedy(Remedy::run(
            "give each Application that uses it another project",
            Command::new("argocd app set").words([&example, "--project", "OTHER"]),
        ))
        .remedy(Remedy::run(
            "let it wait for them, then delete it",
            Command::new("kubectl").namespace(&object.namespace).words(["patch", "appproject", &object.name]).words([
                "--type",
                "merge",
                "-p",
                &format!("{{\"metadata\":{{\"finalizers\":[\"{FINALIZER}\"]}}}}"),
            ]),
        ))
}

/// A sync prunes before it applies. Refusing the prune would fail the sync that points these Applications elsewhere, again
/// and again.
fn pruned_first(object: &ObjectRef, by: &App, users: &[&App]) -> Finding {
    let (name, users_named) = (&object.name, named(users.iter().copied()));
    Finding::new(&PROJECT, Severity::Warn, object.clone(), "a project is pruned before its Applications leave it")
        .detail(format!(
            "without PruneLast=true on {} AppProject {name} goes before {users_named} may leave it",
            by.path()
        ))
        .claimed_by(users.iter().map(|app| app.path()).collect())
        .remedy(prune_last(by))
}

/// So many objects are looked at above one Application: more than any honest tree is deep.
const MAX_ABOVE: usize = 64;

/// In which order a cascade deletes: the objects of the highest wave first, and the next only when these are gone
/// (`controller/sort_delete.go`).
struct Order<'a> {
    inventory: &'a Inventory,
    plan: &'a Plan,
}

impl<'a> Order<'a> {
    fn new(inventory: &'a Inventory, plan: &'a Plan) -> Self {
        Self { inventory, plan }
    }

    /// Whether `app` is still there when the cascade that takes both deletes `project`. Applications of Applications are
    /// waited for, so whatever holds `app` further up counts like itself. Where nothing takes both, nothing is said.
    fn outlives(&self, project: &Item, app: &App) -> bool {
        let mut queue = vec![self.key(app)];
        let mut seen = HashSet::new();
        while let Some(key) = queue.pop() {
            let Some(item) = self.plan.item(key) else { continue };
            if seen.len() == MAX_ABOVE || !seen.insert(key) {
                continue;
            }
            for (taker, _) in &item.takers {
                if project.takers.iter().any(|(other, _)| other == taker) {
                    return match (self.wave(*taker, item), self.wave(*taker, project)) {
                        (Some(app), Some(project)) => app <= project,
                        _ => false,
                    };
                }
                queue.extend(self.plan.takers.get(*taker).map(|taker| self.key(&taker.app)));
            }
        }
        false
    }

    fn key(&self, app: &App) -> Key {
        self.inventory.key_of(LOCAL, &app.object())
    }

    fn wave(&self, taker: usize, item: &Item) -> Option<i64> {
        let app = self.inventory.app(self.plan.takers.get(taker)?.id?)?;
        Some(app.claim(item.key)?.wave)
    }
}
