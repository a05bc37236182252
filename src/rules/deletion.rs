//! What a DELETE means and takes along, worked out once for all rules that judge deletes.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    admission::Request,
    argo::{Application, application::cascades},
    decision::Scope,
    inventory::AppId,
    object::{ARGO_GROUP, Definition, ObjectMeta, ObjectRef, null_to_default},
    plan::{Explanation, Inputs, Plan, Root, RootApplication, explain, manager, siblings},
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
    /// Whose mode also counts: that of the Application that explains the delete.
    pub waivers: Vec<Scope>,
    /// The reason by which the glass was broken further up.
    pub broken_glass: Option<String>,
}

impl Deletion {
    /// Whose modes count for a finding about `object`.
    pub fn scopes(&self, object: &ObjectRef) -> Vec<Scope> {
        let mut scopes = vec![Scope::of(object, self.project.as_deref())];
        scopes.extend(self.waivers.iter().cloned());
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

    let mut with: HashSet<AppId> = HashSet::new();
    if let Explanation::Cascade(id) = explanation {
        // Whatever the admitted cascade takes goes too, not only this child.
        with.extend(Plan::new(inputs, &Root::Known(id), &HashSet::new(), None).apps);
        with.extend(inventory.app(id).map(|app| siblings(inputs, app, Explanation::Collected)).unwrap_or_default());
    }
    let siblings =
        known.and_then(|id| inventory.app(id)).map(|app| siblings(inputs, app, explanation)).unwrap_or_default();
    let root = explanation == Explanation::Direct && siblings.is_empty();
    with.extend(siblings);
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
        (None, None) => known.and_then(|id| inventory.app(id)).map(|app| app.project.to_string()),
    };
    let waivers = explaining.map(|app| Scope { namespace: app.namespace.to_string(), project: project.clone() });
    let broken_glass = explaining
        .or_else(|| {
            inventory
                .app(inventory.app_named(&object.namespace, &object.name)?)
                .filter(|_| explanation == Explanation::Collected)
        })
        .and_then(|app| inventory.broken_glass(app))
        .map(str::to_owned);
    let waivers = waivers.into_iter().collect();
    Some(Deletion { object, meta, explanation, plan, judged, project, root, waivers, broken_glass })
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
        && let Some(Definition { kind: defines, .. }) = Definition::read(raw.get())
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
