//! One Application in the inventory: what rules need to know of it, in as few bytes as that takes.

use jiff::Timestamp;

use super::{Claim, ClusterId, Key};
use crate::{
    argo::{
        Application, Class, Destination,
        digest::Digest,
        sync_options::{in_list, is_kept},
        tracking::{INSTANCE_LABEL, TRACKING_ID, TrackingId},
    },
    object::{ARGO_GROUP, ObjectRef},
    policy::break_glass_reason,
};

/// Why the list of an Application that cannot be decoded is not believed.
pub(super) const UNREADABLE: &str = "it cannot be read";

/// A sync in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Whether it prunes.
    pub prune: bool,
    /// Whether it may delete objects and make them anew.
    pub replaces: bool,
}

/// An Application.
#[derive(Clone, Debug)]
pub struct App {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Namespace of the controller that wrote its status, as the status says; empty if it does not.
    pub reported_home: Box<str>,
    /// AppProject.
    pub project: Box<str>,
    /// Where it deploys to, as written.
    pub destination: Destination,
    /// Where it deploys to.
    pub cluster: ClusterId,
    /// What it renders, revisions aside; the empty digest if it names no source.
    pub rendered: Digest,
    /// When its deletion began.
    pub terminating: Option<Timestamp>,
    /// Whether its deletion cascades.
    pub cascades: bool,
    /// Whether it undoes changes by itself.
    pub self_heals: bool,
    /// Whether it prunes by itself.
    pub prunes_by_itself: bool,
    /// The sync in progress.
    pub running: Option<Running>,
    /// Whether it was never compared, so that nothing is known of what it wants.
    pub never_compared: bool,
    /// Whether its last comparison failed, so that its list may lack what it wants.
    pub comparison_failed: bool,
    /// Why its list is not to be believed; `None` if it is.
    pub distrust: Option<&'static str>,
    /// What keeps it from being compared and synced, as its own condition says it; clipped.
    pub trouble: Option<Box<str>>,
    /// Whether its controller leaves it alone (`skip-reconcile`).
    pub is_skipped: bool,
    /// Whether the sync in progress is of another revision than its list.
    pub syncs_other_revision: bool,
    /// Whether it was synced at least once.
    pub has_history: bool,
    /// When it was last compared.
    pub reconciled_at: Option<Timestamp>,
    /// When its last operation ended.
    pub finished_at: Option<Timestamp>,
    /// The ApplicationSet that generated it, as [`generated_by`] writes it.
    pub generated_by: Option<Box<str>>,
    /// Whether anything owns it.
    pub owned: bool,
    /// The Application it is itself an object of, by the marker on it.
    pub parent: Option<Box<str>>,
    /// Whether a cascade of its parent passes it by (`Delete=false`, or Helm's `keep`).
    pub kept: bool,
    /// Whether its cascade passes by every object that does not say otherwise (`Delete=false` among its sync options).
    pub keeps_objects: bool,
    /// The reason to break the glass that stands on it.
    pub break_glass: Option<Box<str>>,
    /// What it lists, sorted by key.
    pub claims: Box<[Claim]>,
}

impl App {
    /// Reads an Application; its claims are added by the inventory.
    pub(super) fn new(application: &Application<'_>, cluster: ClusterId) -> Self {
        let meta = &application.metadata;
        let running = application.running_sync().map(|sync| Running { prune: sync.prune, replaces: sync.replaces() });
        let owner =
            meta.owner_references.iter().find(|owner| owner.kind == "ApplicationSet" && owner.group() == ARGO_GROUP);
        let parent = meta
            .annotation(TRACKING_ID)
            .and_then(TrackingId::parse)
            .map(|id| id.instance)
            .or_else(|| meta.label(INSTANCE_LABEL))
            .filter(|parent| !parent.is_empty());
        Self {
            namespace: meta.namespace.as_str().into(),
            name: meta.name.as_str().into(),
            uid: meta.uid.as_str().into(),
            reported_home: application.status.controller_namespace.as_str().into(),
            project: if application.spec.project.is_empty() {
                "default".into()
            } else {
                application.spec.project.as_str().into()
            },
            destination: application.spec.destination.clone(),
            cluster,
            rendered: application.spec.rendered(),
            terminating: meta.deletion_timestamp,
            cascades: application.cascades(),
            self_heals: application.self_heals(),
            prunes_by_itself: application.prunes_by_itself(),
            running,
            never_compared: application.never_compared(),
            comparison_failed: application.comparison_failed(),
            distrust: application.list_distrust(),
            trouble: application.trouble().map(Box::from),
            is_skipped: application.is_skipped(),
            syncs_other_revision: application.syncs_other_revision(),
            has_history: !application.status.history.is_empty(),
            reconciled_at: application.status.reconciled_at,
            finished_at: application.status.operation_state.finished_at,
            generated_by: owner.map(|owner| generated_by(&owner.name, &owner.uid)),
            owned: !meta.owner_references.is_empty(),
            parent: parent.map(Box::from),
            kept: is_kept(meta, false),
            keeps_objects: in_list(&application.spec.sync_policy.sync_options, "Delete") == Some("false"),
            break_glass: break_glass_reason(meta).map(Box::from),
            claims: Box::default(),
        }
    }

    /// The same Application without its list.
    #[must_use]
    pub fn without_claims(&self) -> Self {
        // The list is most of it and must not be copied only to be dropped.
        let Self {
            namespace,
            name,
            uid,
            reported_home,
            project,
            destination,
            cluster,
            rendered,
            terminating,
            cascades,
            self_heals,
            prunes_by_itself,
            running,
            never_compared,
            comparison_failed,
            distrust,
            trouble,
            is_skipped,
            has_history,
            reconciled_at,
            finished_at,
            generated_by,
            owned,
            parent,
            kept,
            keeps_objects,
            syncs_other_revision,
            break_glass,
            claims: _,
        } = self;
        Self {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            reported_home: reported_home.clone(),
            project: project.clone(),
            destination: destination.clone(),
            cluster: *cluster,
            rendered: *rendered,
            terminating: *terminating,
            cascades: *cascades,
            self_heals: *self_heals,
            prunes_by_itself: *prunes_by_itself,
            running: *running,
            never_compared: *never_compared,
            comparison_failed: *comparison_failed,
            distrust: *distrust,
            trouble: trouble.clone(),
            is_skipped: *is_skipped,
            has_history: *has_history,
            reconciled_at: *reconciled_at,
            finished_at: *finished_at,
            generated_by: generated_by.clone(),
            owned: *owned,
            parent: parent.clone(),
            kept: *kept,
            keeps_objects: *keeps_objects,
            syncs_other_revision: *syncs_other_revision,
            break_glass: break_glass.clone(),
            claims: Box::default(),
        }
    }

    /// The entry for an object, if it is listed.
    pub fn claim(&self, key: Key) -> Option<&Claim> {
        self.claims.binary_search_by_key(&key, |claim| claim.key).ok().map(|at| &self.claims[at])
    }

    /// Whether it lists an object to be there, not to be pruned.
    pub fn lists(&self, key: Key) -> bool {
        self.claim(key).is_some_and(|claim| claim.class != Class::Prune)
    }

    /// Identity of the Application itself.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::application(&self.namespace, &self.name)
    }

    /// `namespace/name`, as messages name it.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether its list says what its spec wants.
    pub fn list_valid(&self) -> bool {
        self.distrust.is_none()
    }

    /// Whether an entry of this class is a claim: what a valid list desires; of a list that is stale or in error,
    /// everything it holds but live hooks (section 9 of the Argo CD facts, `desired_by`). What its last whole sync made
    /// counts while its comparison fails, because then the list is emptied. At other times another Application may have
    /// taken it over since, and nothing would ever release it.
    pub fn claims_class(&self, class: Class) -> bool {
        match class {
            Class::Desired => true,
            Class::Prune | Class::Unknown | Class::NoStatus => !self.list_valid(),
            Class::SyncResult => self.comparison_failed,
            Class::Hook | Class::LeftBehind => false,
        }
    }

    /// Whether it cannot be decoded, so that it may list more than is known.
    pub fn is_unreadable(&self) -> bool {
        self.distrust == Some(UNREADABLE)
    }

    /// Whether nobody knows what it wants: it cannot be read, it was never compared, or its comparison fails and there is
    /// neither a list nor a sync to go by.
    pub fn wants_unknown(&self) -> bool {
        self.is_unreadable()
            || self.never_compared
            || (self.comparison_failed && !self.claims.iter().any(|claim| self.claims_class(claim.class)))
    }
}

/// Identity of an ApplicationSet in the owner references of what it generates.
pub fn generated_by(name: &str, uid: &str) -> Box<str> {
    format!("{name}/{uid}").into()
}

/// One object of an Application, from its list or from its last sync.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// API group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace as listed; cluster-scoped objects can carry one.
    pub namespace: &'a str,
    /// Name; can be empty.
    pub name: &'a str,
    /// What the entry means.
    pub class: Class,
    /// Whether the entry says `Synced`.
    pub synced: bool,
    /// Effective sync wave.
    pub wave: i64,
}

/// Everything an Application is known to hold: its list, then what its last sync made and the list leaves out. Of a valid
/// list that can only be hooks; of a list that is not to be believed it can be anything.
pub(super) fn entries<'a>(application: &'a Application<'a>) -> impl Iterator<Item = Held<'a>> {
    let listed = application.status.resources.iter().map(|entry| Held {
        group: &entry.group,
        kind: &entry.kind,
        namespace: &entry.namespace,
        name: &entry.name,
        class: entry.class(),
        synced: entry.status == "Synced",
        wave: entry.sync_wave,
    });
    let results = application.status.operation_state.sync_result.resources.iter();
    let valid = application.list_valid();
    let whole = application.synced_whole();
    let made = results.filter(move |result| result.left_behind() && (!valid || !result.hook_type.is_empty())).map(
        move |result| Held {
            group: &result.group,
            kind: &result.kind,
            namespace: &result.namespace,
            name: &result.name,
            class: match (result.hook_type.is_empty(), whole && result.status == "Synced") {
                (false, true) => Class::Hook,
                (true, true) => Class::SyncResult,
                (_, false) => Class::LeftBehind,
            },
            synced: false,
            wave: 0,
        },
    );
    // Objects with a generateName can be listed without a name; no two of them are the same object.
    listed.chain(made).filter(|held| !held.name.is_empty())
}
