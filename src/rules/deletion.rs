//! What a DELETE means and takes along, worked out once for all rules that judge deletes.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    admission::Request,
    argo::{Application, application::cascades},
    decision::{BREAK_GLASS, Scope},
    inventory::{App, AppId, Inventory},
    object::{ARGO_GROUP, GroupKind, ObjectMeta, ObjectRef, null_to_default},
    plan::{Explanation, Inputs, Plan, Root, RootApplication, above, below, explain, manager, siblings},
};

/// A DELETE, explained and planned.
pub struct Deletion {
    /// What is deleted.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// Why.
    pub explanation: Explanation,
    /// What goes with it.
    pub plan: Plan,
    /// Whether anything is left to judge: what is swept or collected anyway is not.
    pub judged: bool,
    /// AppProject of the Application that is deleted or that explains the delete.
    pub project: Option<String>,
    /// Whether it is the first of its kind, not the consequence of one that was judged before.
    pub root: bool,
    /// Whose mode also counts: that of the Application that explains the delete and, in a cascade, those of all above it.
    pub waivers: Vec<Scope>,
    /// When the cascade began that this is part of, by the deletion of the Application at each of its levels.
    pub began: Vec<Timestamp>,
    /// The reason by which the glass was broken further up.
    pub broken_glass: Option<String>,
}

impl Deletion {
    /// Whose modes count for a finding about `object`.
    pub fn scopes(&self, object: &ObjectRef) -> Vec<Scope> {
        let mut scopes = vec![Scope::of(object, self.project.as_deref())];
        for above in &self.waivers {
            // As it was judged where the cascade began.
            scopes.push(Scope::of(object, above.project.as_deref()));
            scopes.push(above.clone());
        }
        scopes
    }

    /// Whether the object comes back at once and takes nothing along.
    pub fn is_mere_replacement(&self) -> bool {
        matches!(self.explanation, Explanation::Replacement(_))
            && self.plan.items.len() == 1
            && !self.object.is_namespace()
    }

    /// Whether it is an Application that leaves all its objects behind.
    pub fn takes_nothing(&self) -> bool {
        self.object.is_application() && !cascades(&self.meta.finalizers)
    }
}

/// Explains and plans a DELETE. Without `raw` the object is the one in the inventory. `None` while an answer is out.
pub(super) fn new(
    inputs: Inputs<'_>,
    request: &Request<'_>,
    raw: Option<&RawValue>,
    meta: ObjectMeta,
) -> Option<Deletion> {
    let inventory = inputs.inventory;
    let object = inventory.normalise(request.target.clone());
    let explanation = explain(inputs, &object, &meta, &request.user.username)?;
    let explaining = explanation.app().and_then(|id| inventory.app(id));
    let application: Option<Application<'_>> =
        raw.filter(|_| object.is_application()).and_then(|raw| serde_json::from_str(raw.get()).ok());
    let known = inventory.app_named(&object.namespace, &object.name).filter(|_| object.is_application());

    let itself = known.and_then(|id| inventory.app(id));
    let together = itself.map(|app| siblings(inputs, app, explanation)).unwrap_or_default();
    let root = explanation == Explanation::Direct && together.is_empty();
    // The cascade is judged where it began; here it is one all the way up.
    let mut levels: Vec<&App> = Vec::new();
    let mut with: HashSet<AppId> = HashSet::new();
    if let Some(app) = match explanation {
        Explanation::Cascade(_) => explaining,
        Explanation::Collected => itself,
        // By the controller of its ApplicationSet, which goes in an order of its own (`deletionOrder: Reverse`).
        Explanation::Direct if !root => itself,
        _ => None,
    } {
        let above = above(inventory, app);
        levels.push(app);
        levels.extend(above.iter().filter_map(|id| inventory.app(*id)));
        with.extend(below(inventory, above));
    }
    if let Explanation::Cascade(id) = explanation {
        // Whatever the admitted cascade takes goes too, not only this child.
        with.extend(Plan::new(inputs, &Root::Known(id), &HashSet::new(), None).apps);
        with.extend(inventory.app(id).map(|app| siblings(inputs, app, Explanation::Collected)).unwrap_or_default());
    }
    with.extend(together);
    let manager = match explanation {
        Explanation::Direct | Explanation::Collected => manager(inputs, &object, &meta),
        Explanation::Cascade(id) | Explanation::Prune(id) | Explanation::Replacement(id) => Some(id),
        Explanation::Swept => None,
    };
    let judged = match explanation {
        Explanation::Swept => false,
        Explanation::Collected => object.is_namespace() || (object.is_application() && cascades(&meta.finalizers)),
        _ => true,
    };
    let from = if judged {
        start(request, raw, &object, &meta, application.as_ref(), known)
    } else {
        Root::Object(object.clone())
    };
    let plan = Plan::new(inputs, &from, &with, manager);
    let project = match (explaining, &application) {
        (Some(app), _) => Some(app.project.to_string()),
        (None, Some(application)) => Some(match application.spec.project.as_str() {
            "" => "default".to_owned(),
            project => project.to_owned(),
        }),
        (None, None) => known
            .and_then(|id| inventory.app(id))
            .map(|app| app.project.to_string())
            .or_else(|| common_project(inventory, &object, &meta)),
    };
    // A prune and a replacement are no deletion of the Application: what was broken for that does not reach them.
    // What stands on the object itself counts by who deletes it.
    let own = |app: &App| explanation == Explanation::Direct && itself.is_some_and(|itself| std::ptr::eq(itself, app));
    let glass = levels.iter().find_map(|app| {
        let set = inventory.generator_of(app).and_then(|set| set.meta.annotation(BREAK_GLASS));
        if own(app) { set } else { inventory.broken_glass(app) }
    });
    let broken_glass = glass.map(str::to_owned);
    let began = levels.iter().filter_map(|app| app.terminating).collect();
    if matches!(explanation, Explanation::Collected | Explanation::Direct) {
        // It is what is deleted, not what explains the delete.
        levels.drain(..levels.len().min(1));
    } else if levels.is_empty() {
        levels.extend(explaining);
    }
    let scope = |app: &&App| Scope { namespace: app.namespace.to_string(), project: Some(app.project.to_string()) };
    let waivers = levels.iter().map(scope).collect();
    Some(Deletion { object, meta, explanation, plan, judged, project, root, waivers, began, broken_glass })
}

/// The project of every Application that an ApplicationSet generated, if they have one in common: those are the
/// Applications that are deleted.
fn common_project(inventory: &Inventory, object: &ObjectRef, meta: &ObjectMeta) -> Option<String> {
    if !object.kind.is(ARGO_GROUP, "ApplicationSet") {
        return None;
    }
    let mut projects =
        inventory.apps_generated_by(meta).iter().filter_map(|id| inventory.app(*id)).map(|app| &app.project);
    let first = projects.next()?;
    projects.all(|project| project == first).then(|| first.to_string())
}

fn start<'r>(
    request: &Request<'_>,
    raw: Option<&RawValue>,
    object: &ObjectRef,
    meta: &'r ObjectMeta,
    application: Option<&'r Application<'r>>,
    known: Option<AppId>,
) -> Root<'r> {
    if let Some(application) = application {
        return Root::Application(RootApplication { application });
    }
    if let (None, Some(id)) = (raw, known) {
        return Root::Known(id);
    }
    let raw = raw.unwrap_or(RawValue::NULL);
    if object.kind.is(ARGO_GROUP, "ApplicationSet") {
        return Root::AppSet { meta, orphans: request.options.orphans() || keeps_applications(raw, meta) };
    }
    if object.is_namespace() {
        return Root::Namespace(object.clone());
    }
    if object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
        && let Some(defines) = defined_kind(raw)
    {
        return Root::Definition { object: object.clone(), defines };
    }
    Root::Object(object.clone())
}

/// Whether an ApplicationSet's own controller lets go of its Applications before it vanishes: with its finalizer, under a
/// policy that forbids deletes (`applicationset_controller.go`, removal of owner references). Without the finalizer the
/// garbage collector does not ask for any policy.
fn keeps_applications(raw: &RawValue, meta: &ObjectMeta) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        spec: Spec,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "null_to_default")]
        sync_policy: SyncPolicy,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct SyncPolicy {
        #[serde(deserialize_with = "null_to_default")]
        applications_sync: String,
    }
    let body: Body = serde_json::from_str(raw.get()).unwrap_or_default();
    cascades(&meta.finalizers)
        && matches!(body.spec.sync_policy.applications_sync.as_str(), "create-only" | "create-update")
}

/// The kind that a CustomResourceDefinition defines.
pub(super) fn defined_kind(raw: &RawValue) -> Option<GroupKind> {
    #[derive(Deserialize)]
    struct Body {
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Spec {
        group: String,
        names: Names,
    }
    #[derive(Deserialize)]
    struct Names {
        kind: String,
    }
    let Body { spec } = serde_json::from_str(raw.get()).ok()?;
    Some(GroupKind { group: spec.group, kind: spec.names.kind })
}
