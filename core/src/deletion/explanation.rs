//! What a DELETE means: the request names no Application and gives no reason, so both are worked out from the object's
//! marker and from what Applications list and are doing (design of `shared-claim`, sections 6.3 and 9 of the Argo CD
//! facts).

use std::collections::HashSet;

use super::{caller::Caller, plan::Inputs};
use crate::{
    argo::{
        Class,
        hook::Hook,
        sync_options::{SYNC_OPTIONS, in_annotation},
    },
    facts::Facts,
    inventory::{App, AppId, AppSet, LOCAL, Ownership, Reach},
    object::{ARGO_GROUP, ObjectMeta, ObjectRef, RBAC_GROUP},
};

/// Why an object is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// Somebody wants it gone.
    Direct,
    /// It is part of the cascade of this terminating Application.
    Cascade(AppId),
    /// This Application removes what left Git.
    Prune(AppId),
    /// This Application deletes it only to make it anew, or because the delete policy of the hook that it is says so.
    Replacement(AppId),
    /// Its owner is gone and the garbage collector follows.
    Collected,
    /// Its Namespace is terminating and is being emptied.
    Swept,
}

impl Explanation {
    /// The Application that explains it.
    pub fn app(self) -> Option<AppId> {
        match self {
            Self::Cascade(id) | Self::Prune(id) | Self::Replacement(id) => Some(id),
            Self::Direct | Self::Collected | Self::Swept => None,
        }
    }
}

/// Explains the DELETE of `object`. `None` while an answer is out.
pub fn explain(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    object: &ObjectRef,
    meta: &ObjectMeta,
    user: &str,
    caller: Option<&Caller<'_>>,
) -> Option<Explanation> {
    if !object.is_namespace() && !object.namespace.is_empty() && is_swept(inputs, facts, &object.namespace, user)? {
        return Some(Explanation::Swept);
    }
    if inputs.policy.is_garbage_collector(user) {
        return Some(Explanation::Collected);
    }
    Some(caller.map_or(Explanation::Direct, |caller| by_argocd(inputs, caller, object, meta)))
}

/// Whether the object's Namespace is on its way out, so that the object goes whatever anybody says. The watch may lag
/// behind the namespace controller; then the Namespace is read.
fn is_swept(inputs: Inputs<'_>, facts: &mut Facts, namespace: &str, user: &str) -> Option<bool> {
    if inputs.inventory.namespace(namespace).is_some_and(ObjectMeta::is_terminating) {
        return Some(true);
    }
    if !inputs.policy.is_namespace_controller(user) {
        return Some(false);
    }
    // What cannot be read is believed: a refusal would leave the Namespace half empty for ever.
    let reading = facts.metadata(&ObjectRef::namespace(namespace))?;
    Some(reading.found().is_none_or(|meta| meta.is_terminating()))
}

/// Why an Argo CD deletes. Only Applications that it really serves can be the reason.
fn by_argocd(inputs: Inputs<'_>, caller: &Caller<'_>, object: &ObjectRef, meta: &ObjectMeta) -> Explanation {
    let inventory = inputs.inventory;
    let key = inventory.key_of(LOCAL, object);
    // An annotation alone makes no hook: `Skip`, Helm's tests and what is misspelt are never run.
    let is_hook = Hook::of(meta).is_some_and(|hook| hook.phase().is_some());
    // The cascade of an Application that still lists the object passes it by once another one marks it.
    let marked = named_by_marker(inputs, object, meta);
    let named: HashSet<AppId> = marked.iter().copied().collect();
    let apps: Vec<(AppId, &App)> = involved(inputs, object, &marked)
        .into_iter()
        .filter_map(|id| Some((id, inventory.app(id)?)))
        .filter(|(_, app)| caller.acts_for(inventory, app))
        .collect();

    let class = |app: &App| app.claim(key).map(|claim| claim.class);
    let object_replaces =
        ["Replace", "Force"].iter().any(|option| in_annotation(meta.annotation(SYNC_OPTIONS), option) == Some("true"));
    // `kubectl auth reconcile`, which Argo CD runs for RBAC, deletes a binding whose roleRef changed.
    let is_binding = object.kind.group == RBAC_GROUP && object.kind.kind.ends_with("Binding");
    // One that was never compared lists nothing yet; what carries its marker it made before it was made anew.
    let wants = |id: AppId, app: &App| {
        class(app).is_some_and(|class| app.claims_class(class)) || (app.never_compared && named.contains(&id))
    };
    let says_so = |id: AppId, app: &App| {
        let running = app.running.filter(|_| wants(id, app));
        running.is_some_and(|running| running.replaces || object_replaces || is_binding)
    };
    let owns = |id: &AppId, app: &App| named.contains(id) && app.terminating.is_none();
    if let Some((id, _)) = apps.iter().find(|(id, app)| owns(id, app) && says_so(*id, app)) {
        return Explanation::Replacement(*id);
    }
    // Hooks that run before and after a deletion are cleaned up when the cascade's own finalizer is gone already.
    let ends = |id: &AppId, app: &App| app.cascades || (is_hook && named.contains(id));
    if let Some((id, _)) = apps.iter().find(|(id, app)| app.terminating.is_some() && ends(id, app)) {
        return Explanation::Cascade(*id);
    }
    if let Some((id, _)) = apps.iter().find(|(_, app)| app.list_valid() && class(app) == Some(Class::Prune)) {
        return Explanation::Prune(*id);
    }
    // Hooks are deleted and made anew by every sync; the list holds them as hooks or not at all. The list of a sync that
    // prunes may be older than the revision it syncs.
    let syncs = |(id, app): &(AppId, &App)| {
        let running = app.running?;
        let replaces = is_hook || says_so(*id, app) || (wants(*id, app) && !running.prune);
        let prunes = running.prune && !running.replaces;
        replaces.then_some(Explanation::Replacement(*id)).or_else(|| prunes.then_some(Explanation::Prune(*id)))
    };
    let (marking, listing): (Vec<_>, Vec<_>) = apps.iter().partition(|(id, _)| named.contains(id));
    // Of several that only list it, one that prunes is the worse.
    let mut listing: Vec<Explanation> = listing.into_iter().filter_map(syncs).collect();
    listing.sort_by_key(|explanation| !matches!(explanation, Explanation::Prune(_)));
    marking.into_iter().find_map(syncs).or(listing.first().copied()).unwrap_or(Explanation::Direct)
}

/// Applications that may be behind a delete by Argo CD: those that may have written the marker first, then those that list
/// the object, and of these first those that want it. Each of the groups is in the order of names, whatever came first into
/// the inventory.
fn involved(inputs: Inputs<'_>, object: &ObjectRef, named: &[AppId]) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let key = inventory.key_of(LOCAL, object);
    let known: HashSet<&AppId> = named.iter().collect();
    let listing = inventory.claims().owners(key).iter().filter(|id| !known.contains(id));
    let mut listing: Vec<(bool, String, AppId)> = listing
        .filter_map(|id| inventory.app(*id).map(|app| (*id, app)))
        .map(|(id, app)| (!app.claim(key).is_some_and(|claim| app.claims_class(claim.class)), app.path(), id))
        .collect();
    listing.sort_unstable();
    named.iter().copied().chain(listing.into_iter().map(|(_, _, id)| id)).collect()
}

/// Applications on the guard's own cluster that may have written an object's marker, by name.
fn named_by_marker(inputs: Inputs<'_>, object: &ObjectRef, meta: &ObjectMeta) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let mut found = inventory.writers(meta, inventory.key_of(LOCAL, object));
    found.sort_by_cached_key(|id| inventory.app(*id).map(App::path));
    found
}

/// The terminating Application whose cascade this delete is, if the cluster that it deploys to, which nobody can resolve, is
/// the guard's own: it may deploy to where the object is, and it lists the object and marked it, or one of these where the
/// other says nothing.
pub(super) fn guess(inputs: Inputs<'_>, caller: &Caller<'_>, object: &ObjectRef, meta: &ObjectMeta) -> Option<AppId> {
    let inventory = inputs.inventory;
    let key = inventory.key_of(LOCAL, object);
    inventory.somewhere().find(|id| {
        inventory.app(*id).is_some_and(|app| {
            app.terminating.is_some()
                && app.cascades
                && caller.is_trusted_with(inventory, app)
                && inventory.reach_of(app).covers(object)
                && match inventory.ownership(app, meta) {
                    Ownership::Own => true,
                    Ownership::Other { .. } => false,
                    Ownership::Nobody | Ownership::Unknown => app.lists(inventory.moved(key, LOCAL, app.cluster)),
                }
        })
    })
}

/// The Application that manages an object which is deleted by hand: the living one its marker names or, where there is
/// none, the only one that claims it. It is not "another" Application, so its own claim does not stand in the way. Where
/// several may have written the marker it cannot tell: the one of them that claims the object is meant, and where several
/// do, none.
///
/// The Argo CD of another cluster deletes for an Application of its own, and so does another one on this cluster. Where the
/// marker names none that is known here, whoever claims the object here is another.
pub fn manager(
    inputs: Inputs<'_>,
    object: &ObjectRef,
    meta: &ObjectMeta,
    caller: Option<&Caller<'_>>,
) -> Option<AppId> {
    let inventory = inputs.inventory;
    let key = inventory.key_of(LOCAL, object);
    let alive = |id: &AppId| inventory.app(*id).is_some_and(|app| app.terminating.is_none());
    let named: Vec<AppId> = inventory.writers(meta, key).into_iter().filter(alive).collect();
    let claimants: Vec<AppId> = inventory.claimants(key, inputs.policy).collect();
    let is_foreign =
        |id| inventory.app(id).is_some_and(|app| caller.is_some_and(|caller| caller.is_foreign_to(inventory, app)));
    match (&named[..], &claimants[..]) {
        ([_, _, ..], _) => {
            let claiming: HashSet<&AppId> = claimants.iter().collect();
            let mut wanting = named.iter().filter(|id| claiming.contains(id));
            wanting.next().filter(|_| wanting.next().is_none()).copied()
        }
        ([only], _) => Some(*only),
        ([], [only]) if !is_foreign(*only) => Some(*only),
        ([], _) => None,
    }
}

/// Applications that go together with a generated one: its siblings, once their ApplicationSet is being deleted or the
/// garbage collector follows its end. Two of them that share an object never refuse each other.
pub fn siblings(inputs: Inputs<'_>, app: &App, explanation: Explanation) -> Vec<AppId> {
    let going = match inputs.inventory.generator_of(app) {
        Some(set) => set.meta.is_terminating() && !set.keeps_applications,
        None => explanation == Explanation::Collected,
    };
    if going { inputs.inventory.siblings(app).to_vec() } else { Vec::new() }
}

/// So many Applications, and so many ApplicationSets, are looked at above a delete: more than any honest tree is deep.
const MAX_ADMITTED: usize = 64;

/// Deletes that were admitted before the one that is judged and take it along: the cascade that explains it, the cascade
/// that took that one's Application, and so on up to where it all began.
#[derive(Default)]
pub struct Admitted<'a> {
    /// Terminating Applications, the nearest first.
    pub apps: Vec<AppId>,
    /// Terminating ApplicationSets.
    pub sets: Vec<&'a AppSet>,
}

impl<'a> Admitted<'a> {
    /// What took along `object`, which `explanation` explains; `app` is the Application that is deleted, if it is one.
    pub fn new(
        inputs: Inputs<'a>,
        explanation: Explanation,
        object: &ObjectRef,
        meta: &ObjectMeta,
        app: Option<AppId>,
    ) -> Self {
        let inventory = inputs.inventory;
        let mut admitted = Self::default();
        if let Explanation::Cascade(id) = explanation {
            admitted.apps.push(id);
            // Where no marker says which of several cascades took it, it may have been any of them.
            let marked = named_by_marker(inputs, object, meta);
            let named: HashSet<AppId> = marked.iter().copied().collect();
            let cascading = involved(inputs, object, &marked).into_iter().filter(|other| {
                let taker = inventory.app(*other);
                taker.is_some_and(|taker| taker.terminating.is_some() && taker.cascades && taker.cluster == LOCAL)
            });
            let alike = cascading.filter(|other| *other != id && named.contains(other) == named.contains(&id));
            admitted.apps.extend(alike.take(MAX_ADMITTED));
        }
        admitted.sets.extend(app.and_then(|id| terminating_generator(inputs, id)));
        let going = |id: &AppId| {
            inventory.app(*id).is_some_and(|app| app.terminating.is_some() && app.cascades && app.cluster == LOCAL)
        };
        // The garbage collector follows an ApplicationSet that is gone, and may have gone with a cascade.
        let collected = app.filter(|_| explanation == Explanation::Collected).and_then(|id| inventory.app(id));
        admitted.apps.extend(
            collected
                .map(|app| above_application(inputs, app))
                .unwrap_or_default()
                .iter()
                .filter(|id| going(id))
                .take(MAX_ADMITTED),
        );
        let (mut app, mut set) = (0, 0);
        let mut known: HashSet<AppId> = admitted.apps.iter().copied().collect();
        loop {
            let above = if let Some(id) = admitted.apps.get(app) {
                app += 1;
                let Some(child) = inventory.app(*id) else { continue };
                if let Some(generator) = terminating_generator(inputs, *id)
                    && admitted.sets.len() < MAX_ADMITTED
                    && !admitted.sets.iter().any(|known| known.meta.uid == generator.meta.uid)
                {
                    admitted.sets.push(generator);
                }
                above_application(inputs, child)
            } else if let Some(child) = admitted.sets.get(set) {
                set += 1;
                let set = set_object(&child.meta.namespace, &child.meta.name);
                let marked = inventory.writers(&child.meta, inventory.key_of(LOCAL, &set));
                listing(inputs, &set).chain(marked).collect()
            } else {
                return admitted;
            };
            for id in above {
                if admitted.apps.len() < MAX_ADMITTED && going(&id) && known.insert(id) {
                    admitted.apps.push(id);
                }
            }
        }
    }

    /// Those of the Applications that waive something for `object`: an Argo CD that the policy names serves them, and they may
    /// deploy to where it is.
    pub fn waiving(&self, inputs: Inputs<'a>) -> impl Iterator<Item = (&'a App, Reach)> {
        let inventory = inputs.inventory;
        let apps = self.apps.iter().filter_map(|id| inventory.app(*id)).filter(|app| inventory.is_trusted(app));
        apps.map(|app| (app, inventory.reach_of(app)))
    }
}

/// Applications whose cascade would take `child` along: those that list it or its marker names, unless they pass it by,
/// and those that list the ApplicationSet that generated it, which may be gone already.
fn above_application(inputs: Inputs<'_>, child: &App) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let marked = child.parent.as_deref().map(|parent| inventory.apps_of_instance(parent)).unwrap_or_default();
    let takes = |id: &AppId| {
        let parent = inventory.app(*id).filter(|parent| !child.kept && !parent.keeps_objects);
        parent.is_some() && (marked.is_empty() || marked.contains(id))
    };
    let mut above: Vec<AppId> =
        marked.iter().copied().chain(listing(inputs, &child.object())).filter(|id| takes(id)).collect();
    if let Some((set, _uid)) = child.generated_by.as_deref().and_then(|set| set.rsplit_once('/')) {
        above.extend(listing(inputs, &set_object(&child.namespace, set)));
    }
    above
}

/// Applications that list an object.
fn listing<'a>(inputs: Inputs<'a>, object: &ObjectRef) -> impl Iterator<Item = AppId> + use<'a> {
    inputs.inventory.claims().owners(inputs.inventory.key_of(LOCAL, object)).iter().copied()
}

fn set_object(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::new(ARGO_GROUP, "ApplicationSet", namespace, name)
}

/// The ApplicationSet that generated an Application, if it is on its way out.
fn terminating_generator(inputs: Inputs<'_>, id: AppId) -> Option<&AppSet> {
    let set = inputs.inventory.generator_of(inputs.inventory.app(id)?)?;
    set.meta.is_terminating().then_some(set)
}
