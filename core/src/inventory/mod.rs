//! What the cluster looks like now, as far as the rules need it: Applications and what they claim, ApplicationSets,
//! AppProjects, Namespaces, and the settings of each Argo CD.
//!
//! A plain structure without IO: the shell feeds it with what its watches (or a snapshot) deliver, rules read it. No
//! object is kept whole.

mod app;
mod appset;
mod burst;
mod claims;
pub mod gaps;
mod installations;
mod key;
mod markers;
mod ownership;
mod reach;
mod relist;
mod shared;
mod unreadable;
mod unresolved;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

pub use self::{
    app::{App, Held, Running, generated_by},
    appset::AppSet,
    claims::{Bucket, BucketId, Claim, ClaimIndex},
    installations::Installations,
    key::{BuildKeyHasher, ClusterSalt, Fingerprinter, Key},
    ownership::{Identity, Ownership},
    reach::Reach,
    relist::Names,
};
use self::{
    markers::Marks,
    shared::{Shared, SharedList, SharedMap},
};
use crate::{
    argo::{Application, Clusters, ProjectSpec, destination::IN_CLUSTER},
    object::{GroupKind, ObjectMeta, ObjectRef, is_builtin_cluster_scoped},
    policy::{Policy, break_glass_reason},
};

/// Number of an Application in the inventory. Numbers of Applications that are gone are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(u32);

/// Number of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(u32);

/// The cluster the guard runs in.
pub const LOCAL: ClusterId = ClusterId(0);

/// An AppProject.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// Metadata.
    pub meta: ObjectMeta,
    /// What it permits.
    pub spec: Arc<ProjectSpec>,
}

/// Everything rules know without asking.
///
/// A copy costs little and shares what it holds, so that a review can go by one while events change the other.
#[derive(Clone, Debug)]
pub struct Inventory {
    prints: Fingerprinter,
    installations: Shared<Installations>,
    apps: SharedList<Option<Arc<App>>>,
    free_apps: Shared<Vec<u32>>,
    app_names: SharedMap<(Box<str>, Box<str>), AppId>,
    app_keys: SharedMap<Key, AppId, BuildKeyHasher>,
    by_name: SharedMap<Box<str>, Vec<AppId>>,
    reported_homes: SharedMap<Box<str>, Vec<AppId>>,
    generated: SharedMap<Box<str>, Vec<AppId>>,
    living_in: SharedMap<Box<str>, Vec<AppId>>,
    deploying_to: SharedMap<Box<str>, Vec<AppId>>,
    wanting_unknown: Shared<HashSet<AppId>>,
    claims: ClaimIndex,
    appsets: Shared<BTreeMap<(String, String), Arc<AppSet>>>,
    appset_keys: SharedMap<Key, (String, String), BuildKeyHasher>,
    broken_glass: Shared<HashMap<Box<str>, String>>,
    projects: Shared<BTreeMap<(String, String), Project>>,
    namespaces: SharedMap<String, ObjectMeta>,
    namespace_keys: SharedMap<Key, String, BuildKeyHasher>,
    marks: Marks,
    cluster_scoped: Shared<HashSet<GroupKind>>,
    clusters: Shared<Clusters>,
    cluster_ids: Shared<HashMap<String, ClusterId>>,
    cluster_names: Shared<Vec<String>>,
    cluster_salts: Shared<Vec<ClusterSalt>>,
    /// Applications on clusters that nobody can resolve.
    somewhere: Shared<BTreeSet<(ClusterId, AppId)>>,
    ready: bool,
}

impl Inventory {
    /// An empty inventory, not ready. `keys` seed the fingerprints and should be random; `argocd` is the namespace of the Argo
    /// CD that is assumed while none is found.
    pub fn new(keys: (u64, u64), argocd: &str, clusters: Clusters) -> Self {
        let prints = Fingerprinter::new(keys);
        let mut installations = Installations::default();
        installations.name(argocd);
        Self {
            prints,
            installations: installations.into(),
            apps: SharedList::default(),
            free_apps: Shared::default(),
            app_names: SharedMap::default(),
            app_keys: SharedMap::default(),
            by_name: SharedMap::default(),
            reported_homes: SharedMap::default(),
            generated: SharedMap::default(),
            living_in: SharedMap::default(),
            deploying_to: SharedMap::default(),
            wanting_unknown: Shared::default(),
            claims: ClaimIndex::default(),
            appsets: Shared::default(),
            appset_keys: SharedMap::default(),
            broken_glass: Shared::default(),
            projects: Shared::default(),
            namespaces: SharedMap::default(),
            namespace_keys: SharedMap::default(),
            marks: Marks::default(),
            cluster_scoped: Shared::default(),
            clusters: clusters.into(),
            cluster_ids: HashMap::from([(IN_CLUSTER.to_owned(), LOCAL)]).into(),
            cluster_names: vec![IN_CLUSTER.to_owned()].into(),
            cluster_salts: vec![prints.cluster(IN_CLUSTER)].into(),
            somewhere: Shared::default(),
            ready: false,
        }
    }

    /// Whether everything has been listed once. Until then absence means nothing.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Says that everything has been listed (or no longer is).
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    // ---- Applications

    /// Adds or changes an Application.
    pub fn apply_application(&mut self, application: &Application<'_>) -> AppId {
        let name = (Box::from(&*application.metadata.namespace), Box::from(&*application.metadata.name));
        let id = self.app_names.get(&name).copied().unwrap_or_else(|| self.free_app());
        let mut app = self.digest(application);
        app.claims = self.claims_of(application, app.cluster);
        let old = self.apps[id.0 as usize].clone();
        let before = old.as_ref().map_or(&[][..], |app| &app.claims);
        if app.comparison_failed
            && let Some(old) = old.as_ref().filter(|old| old.cluster == app.cluster && old.uid == app.uid)
        {
            app.claims = kept_through_an_error(old, &app.claims);
        }
        self.claims.replace(id, before, &app.claims);
        // Most events change nothing by which an Application is found.
        if !old.as_ref().is_some_and(|old| is_found_alike(old, &app)) {
            if let Some(old) = &old {
                self.unlink(id, old);
            }
            self.app_names.insert(name, id);
            self.link(id, &app);
        }
        self.mark(&app.object(), &application.metadata);
        self.apps.set(id.0 as usize, Some(Arc::new(app)));
        id
    }

    /// Removes an Application.
    pub fn remove_application(&mut self, namespace: &str, name: &str) {
        let Some(id) = self.app_names.remove(&(Box::from(namespace), Box::from(name))) else { return };
        if let Some(old) = self.apps.get_mut(id.0 as usize).and_then(Option::take) {
            self.claims.replace(id, &old.claims, &[]);
            self.unlink(id, &old);
            self.unmark(&old.object());
            self.free_apps.push(id.0);
        }
    }

    fn free_app(&mut self) -> AppId {
        if let Some(number) = self.free_apps.pop() {
            return AppId(number);
        }
        self.apps.push(None);
        AppId(u32::try_from(self.apps.len() - 1).unwrap_or(u32::MAX))
    }

    fn link(&mut self, id: AppId, app: &App) {
        self.app_keys.insert(self.key_of(LOCAL, &app.object()), id);
        self.by_name.entry(app.name.clone()).or_default().push(id);
        if !app.reported_home.is_empty() {
            self.reported_homes.entry(app.reported_home.clone()).or_default().push(id);
        }
        self.living_in.entry(app.namespace.clone()).or_default().push(id);
        self.deploying_to.entry(app.destination.namespace.as_str().into()).or_default().push(id);
        if let Some(set) = &app.generated_by {
            self.generated.entry(set.clone()).or_default().push(id);
        }
        if app.wants_unknown() {
            self.wanting_unknown.insert(id);
        }
        self.place(id, app.cluster);
    }

    fn unlink(&mut self, id: AppId, app: &App) {
        self.app_keys.remove(&self.key_of(LOCAL, &app.object()));
        drop_from(&mut self.by_name, &app.name, id);
        drop_from(&mut self.reported_homes, &app.reported_home, id);
        drop_from(&mut self.living_in, &app.namespace, id);
        drop_from(&mut self.deploying_to, &app.destination.namespace, id);
        if let Some(set) = &app.generated_by {
            drop_from(&mut self.generated, set, id);
        }
        self.wanting_unknown.remove(&id);
        self.somewhere.remove(&(app.cluster, id));
    }

    fn place(&mut self, id: AppId, cluster: ClusterId) {
        if self.clusters.is_unresolved(self.cluster_name(cluster)) {
            self.somewhere.insert((cluster, id));
        }
    }

    /// The facts of an Application, without its claims.
    fn digest(&mut self, application: &Application<'_>) -> App {
        App::new(application, self.intern_cluster(&self.clusters.resolve(&application.spec.destination)))
    }

    fn claims_of(&mut self, application: &Application<'_>, cluster: ClusterId) -> Box<[Claim]> {
        let salt = self.salt(cluster);
        let mut claims = Vec::with_capacity(application.status.resources.len());
        // Neighbours are often of one kind and in one namespace.
        let mut last = None;
        for held in app::entries(application) {
            let place = (held.group, held.kind, held.namespace);
            let (namespace, bucket) = match last {
                Some((same, namespace, bucket)) if same == place => (namespace, bucket),
                _ => {
                    let namespace = if self.is_cluster_scoped(held.group, held.kind) { "" } else { held.namespace };
                    let kind = GroupKind::new(held.group, held.kind);
                    (namespace, self.claims.bucket_for(cluster, &kind, namespace))
                }
            };
            last = Some((place, namespace, bucket));
            claims.push(Claim {
                key: self.prints.object(held.group, held.kind, namespace, held.name).on(salt),
                bucket,
                wave: held.wave,
                class: held.class,
                synced: held.synced,
            });
        }
        // The list comes before the sync result, so of two entries for one object the list's stays.
        claims.sort_by_key(|claim| claim.key);
        claims.dedup_by_key(|claim| claim.key);
        claims.into_boxed_slice()
    }

    /// Everything an Application holds, with fingerprints and names.
    pub fn held<'a>(
        &'a self,
        application: &'a Application<'a>,
        cluster: ClusterId,
    ) -> impl Iterator<Item = (Key, Held<'a>)> {
        let salt = self.salt(cluster);
        app::entries(application).map(move |held| {
            let namespace = if self.is_cluster_scoped(held.group, held.kind) { "" } else { held.namespace };
            (self.prints.object(held.group, held.kind, namespace, held.name).on(salt), held)
        })
    }

    /// A cluster the inventory has never seen gets a salt that no known cluster has.
    fn salt(&self, cluster: ClusterId) -> ClusterSalt {
        self.cluster_salts.get(cluster.0 as usize).copied().unwrap_or_else(|| self.prints.cluster(""))
    }

    /// Every Application.
    pub fn applications(&self) -> impl Iterator<Item = (AppId, &App)> {
        self.apps.iter().enumerate().filter_map(|(number, app)| {
            app.as_deref().map(|app| (AppId(u32::try_from(number).unwrap_or(u32::MAX)), app))
        })
    }

    /// The Application with this number.
    pub fn app(&self, id: AppId) -> Option<&App> {
        self.apps.get(id.0 as usize)?.as_deref()
    }

    /// The Application with this name.
    pub fn app_named(&self, namespace: &str, name: &str) -> Option<AppId> {
        self.app_names.get(&(Box::from(namespace), Box::from(name))).copied()
    }

    /// The Application that this fingerprint (on the guard's own cluster) is.
    pub fn app_by_key(&self, key: Key) -> Option<AppId> {
        self.app_keys.get(&key).copied()
    }

    /// Applications whose own namespace this is.
    pub fn applications_in(&self, namespace: &str) -> &[AppId] {
        self.living_in.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Applications whose destination is a namespace of this name, on whichever cluster.
    pub fn applications_to(&self, namespace: &str) -> &[AppId] {
        self.deploying_to.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Applications generated by this ApplicationSet.
    pub fn apps_generated_by(&self, set: &ObjectMeta) -> &[AppId] {
        self.generated.get(&generated_by(&set.name, &set.uid)).map_or(&[], Vec::as_slice)
    }

    /// Applications generated by the same ApplicationSet as `app`, itself included.
    pub fn siblings(&self, app: &App) -> &[AppId] {
        app.generated_by.as_ref().and_then(|set| self.generated.get(set)).map_or(&[], Vec::as_slice)
    }

    /// The ApplicationSet that generated `app`, if it is still there.
    pub fn generator_of(&self, app: &App) -> Option<&AppSet> {
        // The names of neither hold a slash. An owner is always in the namespace of what it owns.
        let (name, uid) = app.generated_by.as_ref()?.split_once('/')?;
        self.appset(&app.namespace, name).filter(|set| set.meta.uid == uid)
    }

    /// Applications of which nobody knows what they want ([`App::wants_unknown`]).
    pub fn wanting_unknown(&self) -> impl Iterator<Item = AppId> {
        self.wanting_unknown.iter().copied()
    }

    /// Whether an Argo CD lives in a namespace, or the status of an Application says so.
    pub fn is_home(&self, namespace: &str) -> bool {
        self.installations.is_home(namespace)
            || self.installations.is_named(namespace)
            || self.reported_homes.contains_key(namespace)
    }

    /// The index of claims.
    pub fn claims(&self) -> &ClaimIndex {
        &self.claims
    }

    /// Applications that claim an object: they count by the policy, are not being deleted, their list (if it is to be
    /// believed) wants it, and their project permits it. Mirrors `desired_by` in section 9 of the Argo CD facts.
    pub fn claimants<'a>(&'a self, key: Key, policy: &'a Policy) -> impl Iterator<Item = AppId> + 'a {
        self.claims.owners(key).iter().copied().filter(move |id| {
            self.app(*id).is_some_and(|app| {
                app.terminating.is_none()
                    && policy.watches_applications_in(&app.namespace)
                    && app.claim(key).is_some_and(|claim| {
                        app.claims_class(claim.class) && self.permits(app, &self.claims.bucket(claim.bucket).namespace)
                    })
            })
        })
    }

    // ---- identity

    /// Whether objects of this kind have no namespace.
    pub fn is_cluster_scoped(&self, group: &str, kind: &str) -> bool {
        is_builtin_cluster_scoped(group, kind)
            || (!self.cluster_scoped.is_empty() && self.cluster_scoped.contains(&GroupKind::new(group, kind)))
    }

    /// Custom kinds without a namespace, from their definitions. Claims that were indexed before keep their namespace
    /// until their Application changes, so this is set before Applications are applied.
    pub fn set_cluster_scoped(&mut self, kinds: HashSet<GroupKind>) {
        self.cluster_scoped = kinds.into();
    }

    /// The object as it is on a cluster: without a namespace if its kind has none.
    #[must_use]
    pub fn normalise(&self, mut object: ObjectRef) -> ObjectRef {
        if self.is_cluster_scoped(&object.kind.group, &object.kind.kind) {
            object.namespace.clear();
        }
        object
    }

    /// Fingerprint of an object on a cluster.
    pub fn key_of(&self, cluster: ClusterId, object: &ObjectRef) -> Key {
        let (group, kind) = (&object.kind.group, &object.kind.kind);
        let namespace = if self.is_cluster_scoped(group, kind) { "" } else { &object.namespace };
        self.prints.object(group, kind, namespace, &object.name).on(self.salt(cluster))
    }

    fn intern_cluster(&mut self, name: &str) -> ClusterId {
        if let Some(id) = self.cluster_ids.get(name) {
            return *id;
        }
        let id = ClusterId(u32::try_from(self.cluster_salts.len()).unwrap_or(u32::MAX));
        self.cluster_salts.push(self.prints.cluster(name));
        self.cluster_ids.insert(name.to_owned(), id);
        self.cluster_names.push(name.to_owned());
        id
    }

    /// Canonical name of a cluster.
    pub fn cluster_name(&self, id: ClusterId) -> &str {
        self.cluster_names.get(id.0 as usize).map_or("?", String::as_str)
    }

    /// The facts and claims of an Application as a review carries it, without adding it to the inventory. Clusters and
    /// places the inventory has never seen hold no other claims, so they get numbers of their own.
    pub fn examine(&self, application: &Application<'_>) -> App {
        let cluster = self.clusters.resolve(&application.spec.destination);
        App::new(application, self.cluster_ids.get(&cluster).copied().unwrap_or(ClusterId(u32::MAX)))
    }

    // ---- ApplicationSets, AppProjects, Namespaces, settings

    /// Adds or changes an ApplicationSet.
    pub fn apply_appset(&mut self, set: AppSet) {
        let (object, name) = (set.object(), (set.meta.namespace.clone(), set.meta.name.clone()));
        self.mark(&object, &set.meta);
        self.appset_keys.insert(self.key_of(LOCAL, &object), name.clone());
        self.appsets.insert(name, Arc::new(set));
    }

    /// Removes an ApplicationSet. One whose glass was broken is remembered: the garbage collector deletes what it
    /// generated only after it is gone.
    pub fn remove_appset(&mut self, namespace: &str, name: &str) {
        let Some(set) = self.appsets.remove(&(namespace.to_owned(), name.to_owned())) else { return };
        self.unmark(&set.object());
        self.appset_keys.remove(&self.key_of(LOCAL, &set.object()));
        if let Some(reason) = break_glass_reason(&set.meta) {
            self.broken_glass.insert(generated_by(&set.meta.name, &set.meta.uid), reason.to_owned());
        }
    }

    /// The reason to break the glass that stands on an Application, or stands or stood on what generated it.
    pub fn broken_glass<'a>(&'a self, app: &'a App) -> Option<&'a str> {
        app.break_glass
            .as_deref()
            .or_else(|| break_glass_reason(&self.generator_of(app)?.meta))
            .or_else(|| self.broken_glass.get(app.generated_by.as_ref()?).map(String::as_str))
    }

    /// Every ApplicationSet.
    pub fn appsets(&self) -> impl Iterator<Item = &AppSet> {
        self.appsets.values().map(|set| &**set)
    }

    /// Every ApplicationSet in a namespace.
    pub fn appsets_in(&self, namespace: &str) -> impl Iterator<Item = &AppSet> {
        let from = (namespace.to_owned(), String::new());
        self.appsets.range(from..).map(|(_, set)| &**set).take_while(move |set| set.meta.namespace == namespace)
    }

    /// The ApplicationSet with this name.
    pub fn appset(&self, namespace: &str, name: &str) -> Option<&AppSet> {
        self.appsets.get(&(namespace.to_owned(), name.to_owned())).map(|set| &**set)
    }

    /// The ApplicationSet that this fingerprint (on the guard's own cluster) is.
    pub fn appset_by_key(&self, key: Key) -> Option<&AppSet> {
        self.appsets.get(self.appset_keys.get(&key)?).map(|set| &**set)
    }

    /// Adds or changes an AppProject.
    pub fn apply_project(&mut self, project: Project) {
        self.projects.insert((project.meta.namespace.clone(), project.meta.name.clone()), project);
    }

    /// Removes an AppProject.
    pub fn remove_project(&mut self, namespace: &str, name: &str) {
        self.projects.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// The AppProject with this name.
    pub fn project(&self, namespace: &str, name: &str) -> Option<&Project> {
        self.projects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Every AppProject.
    pub fn projects(&self) -> impl Iterator<Item = &Project> {
        self.projects.values()
    }

    /// Adds or changes a Namespace.
    pub fn apply_namespace(&mut self, meta: ObjectMeta) {
        self.mark(&ObjectRef::namespace(&meta.name), &meta);
        self.namespace_keys.insert(self.key_of(LOCAL, &ObjectRef::namespace(&meta.name)), meta.name.clone());
        self.namespaces.insert(meta.name.clone(), meta);
    }

    /// Removes a Namespace.
    pub fn remove_namespace(&mut self, name: &str) {
        self.unmark(&ObjectRef::namespace(name));
        self.namespace_keys.remove(&self.key_of(LOCAL, &ObjectRef::namespace(name)));
        self.namespaces.remove(name);
    }

    /// A Namespace's metadata.
    pub fn namespace(&self, name: &str) -> Option<&ObjectMeta> {
        self.namespaces.get(name)
    }

    /// Every Namespace.
    pub fn namespaces(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.namespaces.values()
    }

    /// The Namespace that this fingerprint (on the guard's own cluster) is.
    pub fn namespace_by_key(&self, key: Key) -> Option<&str> {
        self.namespace_keys.get(&key).map(String::as_str)
    }

    /// Changes which names and URLs mean one cluster, and moves every claim accordingly.
    pub fn set_clusters(&mut self, clusters: Clusters) {
        if clusters == *self.clusters {
            return;
        }
        self.clusters = clusters.into();
        self.somewhere.clear();
        for number in 0..self.apps.len() {
            let id = AppId(u32::try_from(number).unwrap_or(u32::MAX));
            let Some(mut app) = self.apps[number].clone() else { continue };
            let cluster = self.intern_cluster(&self.clusters.resolve(&app.destination));
            if cluster != app.cluster {
                let (from, to) = (self.cluster_salts[app.cluster.0 as usize], self.cluster_salts[cluster.0 as usize]);
                let mut moved = app.claims.to_vec();
                for claim in &mut moved {
                    claim.key = claim.key.on(from).on(to);
                    let (kind, namespace) = {
                        let bucket = self.claims.bucket(claim.bucket);
                        (bucket.kind.clone(), bucket.namespace.clone())
                    };
                    claim.bucket = self.claims.bucket_for(cluster, &kind, &namespace);
                }
                moved.sort_by_key(|claim| claim.key);
                self.claims.replace(id, &app.claims, &moved);
                let changed = Arc::make_mut(&mut app);
                changed.claims = moved.into_boxed_slice();
                changed.cluster = cluster;
                self.apps.set(number, Some(app));
            }
            self.place(id, cluster);
        }
    }
}

/// The claims of an Application whose comparison fails: what its list still holds, and what it wanted when it was last
/// compared.
fn kept_through_an_error(old: &App, listed: &[Claim]) -> Box<[Claim]> {
    with_earlier(listed, old.claims.iter().filter(|claim| old.claims_class(claim.class)))
}

/// What is listed, and of what was known before whatever the list leaves out.
fn with_earlier<'c>(listed: &'c [Claim], earlier: impl Iterator<Item = &'c Claim>) -> Box<[Claim]> {
    let is_listed = |claim: &&Claim| listed.binary_search_by_key(&claim.key, |listed| listed.key).is_ok();
    let mut claims: Vec<Claim> = listed.iter().chain(earlier.filter(|claim| !is_listed(claim))).copied().collect();
    claims.sort_by_key(|claim| claim.key);
    claims.into_boxed_slice()
}

/// Whether two states of an Application are found in the same places.
fn is_found_alike(old: &App, new: &App) -> bool {
    old.reported_home == new.reported_home
        && old.cluster == new.cluster
        && old.destination.namespace == new.destination.namespace
        && old.generated_by == new.generated_by
        && old.wants_unknown() == new.wants_unknown()
}

fn drop_from(map: &mut SharedMap<Box<str>, Vec<AppId>>, key: &str, id: AppId) {
    if let Some(ids) = map.get_mut(key) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}
