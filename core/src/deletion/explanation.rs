//! What a DELETE means: the request names no Application and gives no reason, so both are worked out from the object's
//! marker and from what Applications list and are doing (design of `shared-claim`, sections 6.3 and 9 of the Argo CD
//! facts).

use std::collections::HashSet;

use jiff::Timestamp;

use super::plan::Inputs;
use crate::{
    argo::{
        Class, Marker,
        hook::Hook,
        sync_options::{SYNC_OPTIONS, in_annotation},
        tracking,
    },
    facts::Facts,
    inventory::{App, AppId, AppSet, LOCAL},
    object::{ARGO_GROUP, ObjectMeta, ObjectRef, RBAC_GROUP},
    policy::break_glass_reason,
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

/// Whether `user` syncs, prunes and cascades for Argo CD: named by the policy, or impersonated by an AppProject
/// (`destinationServiceAccounts`).
pub fn is_sync_identity(inputs: Inputs<'_>, user: &str) -> bool {
    if inputs.policy.is_argocd(user) {
        return true;
    }
    let Some(account) = user.strip_prefix("system:serviceaccount:") else { return false };
    inputs.inventory.projects().flat_map(|project| &project.sync_accounts).any(|pattern| same_account(pattern, account))
}

/// Compares `<namespace>:<name>` with a pattern of which the namespace may hold wildcards or be empty (any destination).
fn same_account(pattern: &str, account: &str) -> bool {
    let (Some((namespace, name)), Some((in_namespace, account_name))) =
        (pattern.split_once(':'), account.split_once(':'))
    else {
        return false;
    };
    name == account_name
        && (namespace.is_empty()
            || globset::Glob::new(namespace).is_ok_and(|glob| glob.compile_matcher().is_match(in_namespace)))
}

/// Explains the DELETE of `object`. `None` while an answer is out.
pub fn explain(
    inputs: Inputs<'_>,
    facts: &mut Facts,
    object: &ObjectRef,
    meta: &ObjectMeta,
    user: &str,
) -> Option<Explanation> {
    if !object.is_namespace() && !object.namespace.is_empty() && is_swept(inputs, facts, &object.namespace, user)? {
        return Some(Explanation::Swept);
    }
    if inputs.policy.is_garbage_collector(user) {
        return Some(Explanation::Collected);
    }
    if is_sync_identity(inputs, user) {
        return Some(by_argocd(inputs, object, meta));
    }
    Some(Explanation::Direct)
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

fn by_argocd(inputs: Inputs<'_>, object: &ObjectRef, meta: &ObjectMeta) -> Explanation {
    let inventory = inputs.inventory;
    let key = inventory.key_of(LOCAL, object);
    // An annotation alone makes no hook: `Skip`, Helm's tests and what is misspelt are never run.
    let is_hook = Hook::of(meta).is_some_and(|hook| hook.phase().is_some());
    let involved = involved(inputs, object, meta);
    let apps: Vec<(AppId, &App)> = involved.iter().filter_map(|id| inventory.app(*id).map(|app| (*id, app))).collect();

    let class = |app: &App| app.claim(key).map(|claim| claim.class);
    let object_replaces =
        ["Replace", "Force"].iter().any(|option| in_annotation(meta.annotation(SYNC_OPTIONS), option) == Some("true"));
    // `kubectl auth reconcile`, which Argo CD runs for RBAC, deletes a binding whose roleRef changed.
    let is_binding = object.kind.group == RBAC_GROUP && object.kind.kind.ends_with("Binding");
    // The cascade of an Application that still lists the object passes it by once another one marks it.
    let marked = named_by_marker(inputs, meta);
    // One that was never compared lists nothing yet; what carries its marker it made before it was made anew.
    let wants = |id: AppId, app: &App| {
        class(app).is_some_and(|class| app.claims_class(class)) || (app.never_compared && marked.contains(&id))
    };
    let says_so = |id: AppId, app: &App| {
        let running = app.running.filter(|_| wants(id, app));
        running.is_some_and(|running| running.replaces || object_replaces || is_binding)
    };
    let owns = |id: &AppId, app: &App| marked.contains(id) && app.terminating.is_none();
    if let Some((id, _)) = apps.iter().find(|(id, app)| owns(id, app) && says_so(*id, app)) {
        return Explanation::Replacement(*id);
    }
    // Hooks that run before and after a deletion are cleaned up when the cascade's own finalizer is gone already.
    let ends = |id: &AppId, app: &App| app.cascades || (is_hook && marked.contains(id));
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
    let (named, listing): (Vec<_>, Vec<_>) = apps.iter().partition(|(id, _)| marked.contains(id));
    // Of several that only list it, one that prunes is the worse.
    let mut listing: Vec<Explanation> = listing.into_iter().filter_map(syncs).collect();
    listing.sort_by_key(|explanation| !matches!(explanation, Explanation::Prune(_)));
    named.into_iter().find_map(syncs).or(listing.first().copied()).unwrap_or(Explanation::Direct)
}

/// Applications that may be behind a delete by Argo CD: those the marker names first, then those that list the object, and
/// of these first those that want it. Each of the groups is in the order of names, whatever came first into the inventory.
fn involved(inputs: Inputs<'_>, object: &ObjectRef, meta: &ObjectMeta) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let mut found: Vec<AppId> = named_by_marker(inputs, meta);
    let named: HashSet<AppId> = found.iter().copied().collect();
    let key = inventory.key_of(LOCAL, object);
    let listing = inventory.claims().owners(key).iter().filter(|id| !named.contains(id));
    let mut listing: Vec<(bool, String, AppId)> = listing
        .filter_map(|id| inventory.app(*id).map(|app| (*id, app)))
        .map(|(id, app)| (!app.claim(key).is_some_and(|claim| app.claims_class(claim.class)), app.path(), id))
        .collect();
    listing.sort_unstable();
    found.extend(listing.into_iter().map(|(_, _, id)| id));
    found
}

/// Applications on the guard's own cluster that an object's marker may mean.
fn named_by_marker(inputs: Inputs<'_>, meta: &ObjectMeta) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    let namespaces: HashSet<&str> = inventory.controller_namespaces().collect();
    for namespace in namespaces {
        let Marker::Instance(instance) = tracking::marker(meta, inventory.settings(namespace)) else { continue };
        for id in inventory.apps_of_instance(instance) {
            let here =
                inventory.app(*id).is_some_and(|app| &*app.controller_namespace == namespace && app.cluster == LOCAL);
            if here && known.insert(*id) {
                found.push(*id);
            }
        }
    }
    found.sort_by_cached_key(|id| inventory.app(*id).map(App::path));
    found
}

/// The Application that manages an object which is deleted by hand: the living one its marker names or, where there is
/// none, the only one that claims it. It is not "another" Application, so its own claim does not stand in the way.
///
/// The Argo CD of another cluster deletes for an Application of its own. Where the marker names none that is known here,
/// whoever claims the object here is another.
pub fn manager(inputs: Inputs<'_>, object: &ObjectRef, meta: &ObjectMeta, user: &str) -> Option<AppId> {
    let inventory = inputs.inventory;
    let alive = |id: &AppId| inventory.app(*id).is_some_and(|app| app.terminating.is_none());
    let named: Vec<AppId> = named_by_marker(inputs, meta).into_iter().filter(alive).collect();
    let claimants: Vec<AppId> = inventory.claimants(inventory.key_of(LOCAL, object), inputs.policy).collect();
    match (&named[..], &claimants[..]) {
        // Several Argo CDs may have an Application of that name; the one that wants the object is meant.
        ([_, _, ..], _) => {
            let wanting: HashSet<&AppId> = claimants.iter().collect();
            named.iter().find(|id| wanting.contains(id)).or(named.first()).copied()
        }
        ([only], _) => Some(*only),
        ([], [only]) if !is_foreign(inputs, user, *only) => Some(*only),
        ([], _) => None,
    }
}

/// Whether `user` is an Argo CD by the policy and not the one whose controllers look after the Application.
fn is_foreign(inputs: Inputs<'_>, user: &str, id: AppId) -> bool {
    let lives_in = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split(':').next());
    let own = inputs.inventory.app(id).is_some_and(|app| lives_in == Some(&*app.controller_namespace));
    inputs.policy.is_argocd(user) && !own
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
            let named: HashSet<AppId> = named_by_marker(inputs, meta).into_iter().collect();
            let cascading = involved(inputs, object, meta).into_iter().filter(|other| {
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
                listing(inputs, &set_object(&child.meta.namespace, &child.meta.name))
                    .chain(named_by_marker(inputs, &child.meta))
                    .collect()
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

    /// When each of these deletes began.
    pub fn began(&self, inputs: Inputs<'_>) -> Vec<Timestamp> {
        let apps = self.apps.iter().filter_map(|id| inputs.inventory.app(*id)?.terminating);
        apps.chain(self.sets.iter().filter_map(|set| set.meta.deletion_timestamp)).collect()
    }

    /// The reason by which the glass was broken for one of them.
    pub fn broken_glass(&self, inputs: Inputs<'a>) -> Option<&'a str> {
        let inventory = inputs.inventory;
        let of_apps = self.apps.iter().find_map(|id| inventory.app(*id).and_then(|app| inventory.broken_glass(app)));
        of_apps.or_else(|| self.sets.iter().find_map(|set| break_glass_reason(&set.meta)))
    }
}

/// Applications whose cascade would take `child` along: those that list it or its marker names, unless they pass it by,
/// and those that list the ApplicationSet that generated it, which may be gone already.
fn above_application(inputs: Inputs<'_>, child: &App) -> Vec<AppId> {
    let inventory = inputs.inventory;
    let marked = child.parent.as_deref().map_or(&[][..], |parent| inventory.apps_of_instance(parent));
    let takes = |id: &AppId| {
        let parent = inventory.app(*id).filter(|parent| !child.kept && !parent.keeps_objects);
        parent.is_some_and(|parent| marked.is_empty() || child.parent.as_deref() == Some(&*parent.instance))
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
