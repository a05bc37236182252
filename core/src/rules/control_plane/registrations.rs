//! Secrets that register a cluster. Without one Argo CD drops the finalizers of an Application that is deleted and leaves its
//! objects where they are, without a word (`controller/appcontroller.go`, destination that cannot be resolved), and a
//! generator of clusters no longer finds the cluster: the Applications it made for it are deleted.

use super::named;
use crate::{
    admission::Request,
    argo::config::{SECRET_TYPE, cluster_secret},
    catalog::control_plane::CLUSTER_SECRET,
    decision::{Finding, Severity},
    deletion::{Deletion, Explanation, Item, Via, find_name},
    facts::{Facts, Reading},
    inventory::{App, AppId, AppSet, LOCAL},
    object::{ObjectMeta, ObjectRef},
    remedy::{Command, Remedy},
    rules::Context,
    text::{count, some},
};

/// A Secret that registers a cluster, and who would miss it.
struct Registration<'a> {
    object: ObjectRef,
    meta: &'a ObjectMeta,
    /// Name and server of the cluster. A review may come without them.
    cluster: Option<(String, String)>,
}

fn is_registration(meta: &ObjectMeta) -> bool {
    meta.label(SECRET_TYPE.0) == Some(SECRET_TYPE.1)
}

/// Refuses the delete of a Secret that something outside the plan needs.
pub(super) fn deleted(
    cx: &Context<'_>,
    facts: &mut Facts,
    deletion: &Deletion,
    item: &Item,
    findings: &mut Vec<Finding>,
) {
    let told_before = matches!(deletion.explanation, Explanation::Cascade(_)) || deletion.is_mere_replacement();
    if told_before || !cx.inventory.is_home(&item.namespace) {
        return;
    }
    let stays = |id: AppId| !deletion.plan.leaving.surely.contains(&id);
    let finding = if item.via == Via::Root {
        let Some(stored) = cx.stored.filter(|stored| is_registration(&stored.meta)) else { return };
        let cluster = cluster_secret(&stored.meta, stored.raw().get());
        Registration { object: deletion.object.clone(), meta: &stored.meta, cluster }.missed(
            cx,
            deletion.pruning(cx.inventory),
            stays,
        )
    } else {
        let Some(Ok(object)) = find_name(cx.inputs(), facts, &deletion.plan, item) else { return };
        // Only a Secret that says it registers a cluster is read whole.
        let Some(Reading::Found(meta)) = facts.metadata(&object) else { return };
        if !is_registration(&meta) {
            return;
        }
        let Some(reading) = facts.object(&object) else { return };
        let cluster = reading.found().and_then(|raw| cluster_secret(&meta, raw.get()));
        Registration { object, meta: &meta, cluster }.missed(cx, deletion.pruning(cx.inventory), stays)
    };
    findings.extend(finding);
}

/// Whether this is an update that takes the label off.
pub(super) fn loses_label(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    request.target.is_secret()
        && is_registration(&old.meta)
        && !is_registration(&new.meta)
        && !old.meta.is_terminating()
}

/// Refuses an update that takes the label off: Argo CD forgets the cluster as if the Secret were gone.
pub(super) fn unlabelled(cx: &Context<'_>, findings: &mut Vec<Finding>) {
    let Some(old) = cx.request.old_object.as_ref().filter(|_| loses_label(cx.request)) else { return };
    if !cx.inventory.is_home(&old.meta.namespace) {
        return;
    }
    let cluster = cluster_secret(&old.meta, old.raw.get());
    let registration = Registration { object: cx.request.target.clone(), meta: &old.meta, cluster };
    findings.extend(registration.missed(cx, None, |_| true));
}

impl Registration<'_> {
    /// What would miss it: Applications that deploy to the cluster and stay, and ApplicationSets that find the cluster by it.
    /// Where nobody can tell which cluster it is, it counts as that of every Application that needs some Secret.
    fn missed(&self, cx: &Context<'_>, pruning: Option<&App>, stays: impl Fn(AppId) -> bool) -> Option<Finding> {
        let needs = |app: &App| match &self.cluster {
            Some((cluster, server)) => app.destination.needs_secret(cluster, server),
            None => app.destination.needs_some_secret(),
        };
        let of_home = |app: &App| app.terminating.is_none() && cx.inventory.belongs_to(app, &self.object.namespace);
        let ours = || cx.inventory.applications().filter(|(id, app)| stays(*id) && of_home(app));
        let users: Vec<&App> = ours().map(|(_, app)| app).filter(|app| needs(app)).collect();
        let generates = |set: &&AppSet| {
            !set.meta.is_terminating()
                && !set.forbids_deletes
                && set.clusters.iter().any(|wanted| wanted.selects(&self.meta.labels))
                && cx
                    .inventory
                    .apps_generated_by(&set.meta)
                    .iter()
                    .any(|id| stays(*id) && cx.inventory.app(*id).is_some_and(of_home))
        };
        let sets: Vec<String> = cx.inventory.appsets().filter(generates).map(|set| set.object().path()).collect();
        if users.is_empty() && sets.is_empty() {
            return None;
        }
        let cluster = self.cluster.as_ref().map_or("a cluster that the review does not name", |(name, _)| name);
        let mut said = Vec::new();
        if !users.is_empty() {
            let deploy = if users.len() == 1 { "deploys" } else { "deploy" };
            said.push(format!(
                "{} {deploy} to {cluster}; deleted without it they leave everything behind: {}",
                count(users.len(), "Application"),
                named(users.iter().copied())
            ));
        }
        if !sets.is_empty() {
            said.push(format!(
                "ApplicationSet {} finds {cluster} by it and would delete the Applications made for that",
                some(&sets, 3)
            ));
        }
        // A sync prunes before it applies: what the pruning Application lists may be about to deploy elsewhere.
        let own = pruning.is_some_and(|by| {
            sets.is_empty() && users.iter().all(|app| by.lists(cx.inventory.key_of(LOCAL, &app.object())))
        });
        let Self { object, .. } = self;
        let claimants = users.iter().map(|app| app.path()).chain(sets).collect();
        let severity = if own { Severity::Warn } else { Severity::Deny };
        let finding = Finding::new(
            &CLUSTER_SECRET,
            severity,
            object.clone(),
            "a cluster that is still in use would be forgotten",
        )
        .detail(format!("{object}: {}", said.join("; ")))
        .claimed_by(claimants)
        .remedy(Remedy::run(
            "delete or move the Applications that deploy there first; this lists where each of them deploys",
            Command::new("kubectl get applications.argoproj.io -A -o")
                .word("custom-columns=NS:.metadata.namespace,NAME:.metadata.name,TO:.spec.destination"),
        ))
        .remedy("to give the cluster other credentials, change the Secret and leave its label on it");
        Some(finding)
    }
}
