//! A DELETE, worked out before any rule looks at it: why it happens, what goes with it, what stays, and who claims what
//! goes.

mod caller;
mod certainty;
mod claimants;
mod closure;
mod explanation;
mod instances;
mod names;
mod perhaps_here;
mod places;
mod plan;
mod planning;
mod sparing;
mod stored;
mod unknown_claimants;
mod waivers;

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use serde_json::value::RawValue;

pub use self::{
    caller::{Caller, is_sync_identity},
    closure::{MAX_ITEMS, Root, RootApplication},
    explanation::Explanation,
    instances::{Unlisted, defined_by, unlisted_instances},
    names::find_name,
    plan::{Fate, Inputs, Item, Leaving, PerhapsHere, Plan, Spared, Taker, Via},
    planning::{build, leaving},
    sparing::confirm,
    stored::Stored,
    unknown_claimants::unknown_claimants_in,
};
use self::{
    explanation::{Admitted, explain, manager, siblings},
    waivers::Waivers,
};
use crate::{
    admission::Request,
    argo::{
        Application,
        application::cascades,
        hook::{DeletePolicies, DeletePolicy, Hook},
    },
    facts::Facts,
    inventory::{App, AppId, AppSet, ClusterId, Inventory, LOCAL, Reach},
    object::{ARGO_GROUP, Definition, ObjectMeta, ObjectRef},
    policy::{Place, Scopes, break_glass_reason, namespace_of},
};

/// A DELETE, explained and planned.
#[derive(Debug)]
pub struct Deletion {
    /// What is deleted.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// Why.
    pub explanation: Explanation,
    /// The Application that deletes it, or that manages it where somebody deletes it directly.
    pub manager: Option<AppId>,
    /// What goes with it.
    pub plan: Plan,
    /// Whether anything is left to judge: what is swept or collected anyway is not.
    pub judged: bool,
    /// Whether the policy trusts whoever deletes with what the Application that explains it does, so that what that one
    /// replaces may go.
    pub trusted: bool,
    /// Whether it is the first of its kind, not the consequence of one that was judged before.
    pub root: bool,
    /// Whose modes count besides that of the place itself.
    waivers: Waivers,
    /// The reason by which the glass was broken further up.
    pub broken_glass: Option<String>,
    /// Why the Application that is deleted cannot be decoded, if it cannot: its plan is the last one that was known.
    pub unreadable: Option<String>,
    /// When the deletes that were admitted before and take this one along began.
    pub began: Vec<Timestamp>,
    /// The Application that explains it if the cluster it deploys to, which nobody can resolve, is the guard's own.
    pub guessed: Option<AppId>,
}

impl Deletion {
    /// Explains and plans a DELETE of `stored`. `None` while an answer is out that the explanation hangs on. While
    /// [`Facts::is_asking`] the plan is provisional.
    pub fn new(inputs: Inputs<'_>, facts: &mut Facts, request: &Request<'_>, stored: &Stored<'_>) -> Option<Self> {
        work_out(inputs, facts, request, stored)
    }

    /// Whose modes count for a finding about `object`.
    pub fn scopes(&self, object: &ObjectRef) -> Scopes {
        self.scopes_in([namespace_of(object)])
    }

    /// Whose modes count for a finding about what is in these namespaces, each named once; cluster-scoped objects are in
    /// the one without a name.
    pub fn scopes_in<'n>(&self, namespaces: impl IntoIterator<Item = &'n str>) -> Scopes {
        Scopes::covering(namespaces.into_iter().map(|namespace| self.place(namespace)))
    }

    /// Whose modes count for a finding about each of these Applications, which may want something of the plan, nobody knows
    /// what: the namespace it deploys into where the plan touches that, else every namespace that the plan touches on its
    /// cluster.
    pub fn scopes_wanted_by<'i>(&self, apps: impl IntoIterator<Item = &'i App>) -> Vec<(&'i App, Scopes)> {
        let touched = places::touched_by_cluster(&self.plan);
        let everywhere: HashMap<ClusterId, Scopes> =
            touched.iter().map(|(cluster, touched)| (*cluster, self.scopes_in(touched.iter().copied()))).collect();
        let scopes = |app: &App| match touched.get(&app.cluster) {
            Some(touched) if touched.contains(&*app.destination.namespace) => {
                self.scopes_in([&*app.destination.namespace])
            }
            _ => everywhere.get(&app.cluster).cloned().unwrap_or_else(|| self.scopes(&self.object)),
        };
        apps.into_iter().map(|app| (app, scopes(app))).collect()
    }

    /// Whose modes count for a finding about the whole plan.
    pub fn scopes_of_everything(&self) -> Scopes {
        let mut namespaces: BTreeSet<&str> =
            places::touched(&self.plan).into_iter().map(|(_, namespace)| namespace).collect();
        namespaces.insert(namespace_of(&self.object));
        self.scopes_in(namespaces)
    }

    /// Namespaces of the guard's own cluster that it touches, in order.
    pub fn namespaces_here(&self) -> Vec<&str> {
        let touched = places::touched_by_cluster(&self.plan).remove(&LOCAL);
        touched.into_iter().flatten().collect()
    }

    /// A namespace, with all that may waive a finding there. An exemption has an end and no beginning, so of all times at
    /// which something was admitted only the first counts.
    fn place(&self, namespace: &str) -> Place {
        self.waivers.place(namespace, self.began.iter().min().copied())
    }

    /// The Application that prunes, where this is a prune of what is on the guard's own cluster. A sync prunes before it
    /// applies, so what else the same Application lists may be about to change.
    pub fn pruning<'i>(&self, inventory: &'i Inventory) -> Option<&'i App> {
        let Explanation::Prune(id) = self.explanation else { return None };
        inventory.app(id).filter(|app| app.cluster == LOCAL)
    }

    /// Whether the object comes back at once and takes nothing along, as far as whoever deletes it can be trusted.
    pub fn is_mere_replacement(&self) -> bool {
        matches!(self.explanation, Explanation::Replacement(_))
            && self.trusted
            && self.plan.items.len() == 1
            && !self.object.is_namespace()
    }

    /// The delete policies, as Argo CD spells them, of a hook that Argo CD deletes not only before it makes it again but
    /// also when it has ended. Which of them is at work a request does not tell, so such a hook may not come back.
    pub fn ended_by(&self) -> Option<String> {
        Hook::of(&self.meta).filter(|hook| self.is_mere_replacement() && hook.phase().is_some())?;
        let policies = DeletePolicies::of(&self.meta).effective();
        let ends = policies.iter().any(|policy| *policy != DeletePolicy::BeforeHookCreation);
        ends.then(|| policies.into_iter().map(DeletePolicy::as_str).collect::<Vec<_>>().join(", "))
    }

    /// Whether it is an Application that leaves all its objects behind.
    pub fn takes_nothing(&self) -> bool {
        self.object.is_application() && !cascades(&self.meta.finalizers)
    }
}

/// Adds Applications that go together with the one that is deleted, and the children that go with them.
fn bring_along(inputs: Inputs<'_>, facts: &mut Facts, with: &mut Leaving, apps: Vec<AppId>) {
    for id in apps {
        if !with.surely.contains(&id) {
            let more = leaving(inputs, facts, &Root::Known(id));
            with.extend(more);
        }
    }
}

/// Explains and plans a DELETE. `None` while an answer is out that the explanation hangs on; the plan is provisional while
/// [`Facts::is_asking`].
fn work_out(inputs: Inputs<'_>, facts: &mut Facts, request: &Request<'_>, stored: &Stored<'_>) -> Option<Deletion> {
    let (raw, meta) = (stored.sent(), stored.meta.clone().into_owned());
    let inventory = inputs.inventory;
    let object = inventory.normalise(request.target.clone());
    let caller = Caller::of(inputs, &request.user.username);
    let explanation = explain(inputs, facts, &object, &meta, &request.user.username, caller.as_ref())?;
    let explaining = explanation.app().and_then(|id| inventory.app(id));
    let trusted =
        explaining.is_none_or(|app| caller.as_ref().is_some_and(|caller| caller.is_trusted_with(inventory, app)));
    let decoded: Option<Result<Application<'_>, _>> =
        raw.filter(|_| object.is_application()).map(|raw| serde_json::from_str(raw.get()));
    let (application, unreadable) = match decoded {
        Some(Ok(application)) => (Some(application), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let known = inventory.app_named(&object.namespace, &object.name).filter(|_| object.is_application());

    let admitted = Admitted::new(inputs, explanation, &object, &meta, known);
    let mut with = Leaving::default();
    for id in admitted.apps.iter().rev() {
        // Whatever an admitted cascade takes goes too, not only this child: children of a lower wave are not even marked
        // for deletion yet. The plan of the one at the top usually holds all those below.
        if !with.perhaps.contains(id) {
            with.extend(build(inputs, facts, &Root::Known(*id), &Leaving::default(), None).leaving);
        }
        let siblings = inventory.app(*id).map(|app| siblings(inputs, app, Explanation::Collected)).unwrap_or_default();
        bring_along(inputs, facts, &mut with, siblings);
    }
    let mut siblings =
        known.and_then(|id| inventory.app(id)).map(|app| siblings(inputs, app, explanation)).unwrap_or_default();
    let root = explanation == Explanation::Direct && siblings.is_empty();
    siblings.retain(|id| known != Some(*id));
    bring_along(inputs, facts, &mut with, siblings);
    // Only where nothing else explains it.
    let guessed = caller
        .as_ref()
        .filter(|_| explanation == Explanation::Direct)
        .and_then(|caller| explanation::guess(inputs, caller, &object, &meta));
    let root = root && guessed.is_none();
    let manager = match explanation {
        Explanation::Direct if guessed.is_some() => guessed,
        Explanation::Direct | Explanation::Collected => manager(inputs, &object, &meta, caller.as_ref()),
        Explanation::Cascade(id) | Explanation::Prune(id) | Explanation::Replacement(id) => Some(id),
        Explanation::Swept => None,
    };
    let judged = is_judged(explanation, &object, &meta);
    let from = if judged {
        start(request, raw.filter(|_| unreadable.is_none()), &object, &meta, application.as_ref(), known)
    } else {
        Root::Object(object.clone())
    };
    let plan = build(inputs, facts, &from, &with, manager);
    let project = match (explaining, &application) {
        // Neither does an Argo CD that the policy does not name waive anything for its Applications.
        (Some(app), _) => waives(inputs, app, trusted, &object).then(|| app.project.to_string()),
        (None, Some(application)) => Some(match application.spec.project.as_str() {
            "" => "default".to_owned(),
            project => project.to_owned(),
        }),
        (None, None) => known
            .and_then(|id| inventory.app(id))
            .map(|app| app.project.to_string())
            .or_else(|| common_project(inventory, &object, &meta)),
    };
    // A prune and a replacement have no admitted root: only the project of the Application that prunes counts, as above.
    let waiving: Vec<(&App, Reach)> = admitted
        .waiving(inputs)
        .filter(|(app, _)| trusted || explaining.is_none_or(|explaining| !std::ptr::eq(*app, explaining)))
        .collect();
    // An ApplicationSet that is gone already is remembered under what it generated. A prune and a replacement are no
    // deletion of the Application: what was broken for that does not reach them.
    let collected = known.filter(|_| explanation == Explanation::Collected);
    let reaching = waiving.iter().filter(|(_, reach)| reach.covers(&object)).map(|(app, _)| *app);
    let broken_glass = collected
        .and_then(|id| inventory.app(id))
        .into_iter()
        .chain(reaching)
        .find_map(|app| inventory.broken_glass(app))
        .or_else(|| admitted.sets.iter().find_map(|set| break_glass_reason(&set.meta)))
        .map(str::to_owned);
    let began = waiving.iter().filter_map(|(app, _)| app.terminating);
    let began = began.chain(admitted.sets.iter().filter_map(|set| set.meta.deletion_timestamp)).collect();
    let namespaces = places::touched(&plan).into_iter().map(|(_, namespace)| namespace);
    let waivers = Waivers::new(project, &waiving, namespaces.chain(["", namespace_of(&object)]).collect());
    Some(Deletion {
        object,
        meta,
        explanation,
        manager,
        plan,
        judged,
        trusted,
        root,
        waivers,
        broken_glass,
        unreadable,
        began,
        guessed,
    })
}

/// Whether anything is left to judge: what is swept or collected anyway is not.
fn is_judged(explanation: Explanation, object: &ObjectRef, meta: &ObjectMeta) -> bool {
    match explanation {
        Explanation::Swept => false,
        Explanation::Collected => object.is_namespace() || (object.is_application() && cascades(&meta.finalizers)),
        _ => true,
    }
}

/// Whether a DELETE of which nothing else is known takes anything that is to be judged, by the request alone.
pub fn is_to_be_judged(inputs: Inputs<'_>, request: &Request<'_>, meta: &ObjectMeta) -> bool {
    let object = inputs.inventory.normalise(request.target.clone());
    let mut unread = Facts::closed("there was no time left");
    let caller = Caller::of(inputs, &request.user.username);
    let explanation = explain(inputs, &mut unread, &object, meta, &request.user.username, caller.as_ref());
    let leaves_all = object.is_application() && !cascades(&meta.finalizers);
    !leaves_all && explanation.is_none_or(|explanation| is_judged(explanation, &object, meta))
}

/// Whether what the policy says of the project of an Application counts for an object that it deletes.
fn waives(inputs: Inputs<'_>, app: &App, trusted: bool, object: &ObjectRef) -> bool {
    trusted && inputs.inventory.reach_of(app).covers(object)
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
    root_of(object, raw.unwrap_or(RawValue::NULL), meta, request.options.orphans())
}

/// Where the plan of an object other than an Application begins. With `orphans` an ApplicationSet leaves what it generated.
pub fn root_of<'r>(object: &ObjectRef, raw: &RawValue, meta: &'r ObjectMeta, orphans: bool) -> Root<'r> {
    if object.kind.is(ARGO_GROUP, "ApplicationSet") {
        return Root::AppSet { meta, orphans: orphans || AppSet::new(meta.clone(), raw.get()).keeps_applications };
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
