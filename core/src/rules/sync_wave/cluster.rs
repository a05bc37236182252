//! The surroundings of a hook on its way into a cluster: its Application in the inventory, and reads.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::subject::{Plan, Presence, Surroundings};
use crate::{
    argo::{
        Class, TrackingId,
        hook::{HOOK_FINALIZER, Hook, Phase, Stage},
        sync_options::is_kept,
        tracking::{INSTANCE_LABEL, TRACKING_ID},
    },
    deletion::is_sync_identity,
    facts::{Facts, ListQuestion, Listing, Reading},
    inventory::{App, AppId, Claim, Inventory, LOCAL, Ownership},
    needs::{self, producers},
    object::{GroupKind, ObjectMeta, ObjectRef, null_to_default},
    rules::Context,
};

/// Which Application an object belongs to, by its marker.
pub(super) enum Home<'a> {
    /// One, or several that share an instance name.
    Known(Vec<(AppId, &'a App)>),
    /// The marker names an Application that nothing is known of, by this name.
    Unknown(String),
    /// Nothing on the object names an Application.
    Unmarked,
}

/// Looks for the Application of an object.
pub(super) fn home<'a>(cx: &Context<'a>, object: &ObjectRef, meta: &ObjectMeta) -> Home<'a> {
    let inventory = cx.inventory;
    if meta.annotation(TRACKING_ID).and_then(TrackingId::parse).is_some_and(|id| !id.names(object, meta)) {
        // A copy: the tracking id came along from another object.
        return Home::Unmarked;
    }
    let tracked = meta.annotation(TRACKING_ID).and_then(TrackingId::parse).map(|id| id.instance);
    let label_keys = inventory.installations().homes().filter_map(|home| inventory.settings(home));
    // A label means little where nobody knows whether Argo CD goes by it: Helm writes the same on its own releases. Then
    // it takes something that only Argo CD does.
    let by_argocd = || {
        meta.finalizers.iter().any(|finalizer| finalizer == HOOK_FINALIZER)
            || is_sync_identity(cx.inputs(), &cx.request.user.username)
    };
    let proven = tracked.is_some() || by_argocd();
    let mut names: Vec<&str> = tracked
        .into_iter()
        .chain(label_keys.filter_map(|of| meta.label(&of.label_key)))
        .chain(meta.label(INSTANCE_LABEL))
        .collect();
    names.sort_unstable();
    names.dedup();
    let known: Vec<(AppId, &App)> = names
        .into_iter()
        .flat_map(|name| inventory.apps_of_instance(name))
        .filter_map(|id| Some((id, inventory.app(id)?)))
        .filter(|(_, app)| app.cluster == LOCAL)
        .filter(|(_, app)| proven || inventory.marks_are_known(app))
        .filter(|(_, app)| inventory.ownership(app, meta) == Ownership::Own)
        .collect();
    if !known.is_empty() {
        return Home::Known(known);
    }
    match tracked.filter(|instance| !instance.is_empty()) {
        Some(instance) => Home::Unknown(instance.replace('_', "/")),
        // A label alone is no proof: Helm itself writes it on everything it installs.
        None => Home::Unmarked,
    }
}

/// Kinds that keep referring to a Secret, ConfigMap or account.
const USERS: [(&str, &str); 6] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("", "Pod"),
];

/// Kinds that Pods refer to by name.
const USED: [&str; 4] = ["Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim"];

/// So many objects of one kind are looked through for one that uses a hook.
const MAX_USERS: u32 = 200;

/// One Application, seen from one of its hooks.
pub(super) struct Cluster<'a> {
    pub cx: &'a Context<'a>,
    pub facts: &'a mut Facts,
    pub id: AppId,
    pub app: &'a App,
}

impl Cluster<'_> {
    fn claim(&self, object: &ObjectRef) -> Option<&Claim> {
        self.app.claim(self.cx.inventory.key_of(LOCAL, object))
    }

    fn is_desired(&self, object: &ObjectRef) -> bool {
        self.claim(object).is_some_and(|claim| claim.class == Class::Desired)
    }

    fn elsewhere(&self, object: &ObjectRef) -> Plan {
        elsewhere(self.cx.inventory, Some(self.id), object)
    }

    /// Where a kind may not be read (Secrets, usually) the list has to tell: before its first sync an Application has made
    /// nothing, and what it lists as out of sync then is not there.
    fn cannot_exist_yet(&self, object: &ObjectRef) -> bool {
        !self.app.has_history && self.claim(object).is_some_and(|claim| claim.class == Class::Desired && !claim.synced)
    }

    fn is_mine(&self, meta: &ObjectMeta) -> bool {
        self.cx.inventory.ownership(self.app, meta) == Ownership::Own
    }
}

/// Who else than one Application creates an object.
pub fn elsewhere(inventory: &Inventory, except: Option<AppId>, object: &ObjectRef) -> Plan {
    let key = inventory.key_of(LOCAL, object);
    let others = inventory.claims().owners(key).iter().filter(|id| Some(**id) != except);
    let mut found = Plan::Nobody;
    for app in others.filter_map(|id| inventory.app(*id)) {
        let Some(claim) = app.claim(key) else { continue };
        if claim.class == Class::Desired && (claim.synced || found == Plan::Nobody) {
            found = Plan::Elsewhere { application: app.path(), synced: claim.synced };
        }
    }
    found
}

impl Surroundings for Cluster<'_> {
    fn application(&self) -> String {
        self.app.path()
    }

    fn plan(&self, object: &ObjectRef) -> Plan {
        let Some(claim) = self.claim(object) else { return self.elsewhere(object) };
        let stage = Stage::new(Phase::Sync, claim.wave);
        match claim.class {
            Class::Desired => {
                let outdated = self.app.syncs_other_revision.then_some("another revision is synced now");
                let synced = claim.synced || matches!(self.elsewhere(object), Plan::Elsewhere { synced: true, .. });
                Plan::At { stage, synced, doubt: self.app.distrust.or(outdated) }
            }
            Class::Unknown => {
                Plan::At { stage, synced: false, doubt: self.app.distrust.or(Some("it could not be compared")) }
            }
            Class::Hook | Class::SyncResult | Class::LeftBehind => Plan::Hook,
            Class::Prune | Class::NoStatus => self.elsewhere(object),
        }
    }

    fn presence(&mut self, object: &ObjectRef) -> Option<Presence> {
        Some(match self.facts.metadata(object)? {
            Reading::Found(meta) if meta.is_terminating() => Presence::Leaving,
            Reading::Found(meta) => Presence::There {
                hook: Hook::of(&meta).filter(|_| self.is_mine(&meta)).and_then(|_| Stage::of(&meta)),
                kept: is_kept(&meta, self.app.keeps_objects),
            },
            Reading::NotFound => Presence::Missing,
            Reading::Forbidden(_) if self.cannot_exist_yet(object) => Presence::Missing,
            Reading::Unreadable(reason) | Reading::Forbidden(reason) => Presence::Unread(reason),
        })
    }

    fn producer(&self, object: &ObjectRef) -> Option<(ObjectRef, Plan)> {
        let further = &self.cx.policy.spec.rules.sync_wave.secret_producers;
        producers::candidates(object, further)
            .into_iter()
            .map(|candidate| (self.plan(&candidate), candidate))
            .find(|(plan, _)| *plan != Plan::Nobody)
            .map(|(plan, candidate)| (candidate, plan))
    }

    /// Looks through the live workloads of the Application in the object's namespace. What cannot be listed uses nothing:
    /// this is only good for a warning.
    fn users(&mut self, object: &ObjectRef) -> Vec<ObjectRef> {
        if !object.kind.group.is_empty() || !USED.contains(&object.kind.kind.as_str()) {
            return Vec::new();
        }
        let claims = self.cx.inventory.claims();
        let here = |kind: &GroupKind| {
            claims
                .in_namespace(LOCAL, &object.namespace)
                .any(|(_, bucket)| *bucket.kind == *kind && bucket.apps().any(|app| app == self.id))
        };
        let mut found = Vec::new();
        for kind in USERS.iter().map(|(group, kind)| GroupKind::new(group, kind)).filter(|kind| here(kind)) {
            let question = ListQuestion {
                what: Listing::Every(kind.clone()),
                namespace: object.namespace.clone(),
                limit: MAX_USERS,
            };
            let Some(Reading::Found(listed)) = self.facts.list(question) else { continue };
            found.extend(
                listed.items.iter().filter_map(|raw| user(&kind, raw, object)).filter(|user| self.is_desired(user)),
            );
        }
        found
    }

    fn cascades(&self) -> bool {
        self.app.cascades
    }
}

/// The identity of a workload, if it is no hook and refers to `object`.
fn user(kind: &GroupKind, raw: &RawValue, object: &ObjectRef) -> Option<ObjectRef> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default, deserialize_with = "null_to_default")]
        metadata: ObjectMeta,
    }
    let Head { metadata } = serde_json::from_str(raw.get()).ok()?;
    let work = needs::read(kind, &metadata.namespace, raw).ok()?;
    let uses = Hook::of(&metadata).is_none() && work.needs.iter().any(|need| need.object == *object);
    uses.then(|| ObjectRef { kind: kind.clone(), namespace: metadata.namespace, name: metadata.name })
}
