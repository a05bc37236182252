//! What Argo CD would delete if a change to rendered manifests were merged and synced with prune.
//!
//! The manifests before the change become a small cluster (`world`): every object is there, and every Application lists
//! what it will want after the change. What would be deleted and changed then is put to the webhook's own judgement, and
//! told as it tells it. Added is what no single request shows: what only moves, and in which order that is safe
//! (`moves`), what cannot be changed in place (`replaced`), and what goes unclaimed (`deletes`).

mod changes;
mod deletes;
mod judged;
mod moves;
mod replaced;
mod side;
mod world;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

pub use self::{
    changes::Changes,
    side::{Piece, Side, Source},
};
use self::{judged::Judge, world::World};
use crate::{
    catalog::{self, Check},
    decision::Severity,
    object::ObjectRef,
    policy::Policy,
    report::{Location, ReportFinding, Rule},
    snapshot::{DocumentError, Snapshot},
};

/// What is said about a change as a whole.
pub const DIFF: Rule = Rule::new("diff", "What a merge would delete, move or replace", "docs/pull-requests.md");

/// What is known beside the two trees.
#[derive(Debug)]
pub struct Context<'a> {
    /// The cluster that the change will meet; empty where only the trees are known.
    pub cluster: Snapshot,
    /// The policy that applies there.
    pub policy: &'a Policy,
    /// The time.
    pub now: Timestamp,
    /// Where objects without a namespace go, if no Application says so.
    pub namespace: String,
}

/// Compares two trees.
///
/// # Errors
/// When an object cannot be put into a cluster.
pub fn diff(before: Side, after: Side, context: Context<'_>) -> Result<Vec<ReportFinding>, DocumentError> {
    let (before, after) = placed(before, after, &context);
    let mut changes = Changes::between(&before, &after);
    let world = World::new(&before, &after, context)?;
    changes.moved.retain(|(giver, taker, _)| world.share_a_cluster(giver, taker));
    let judge = Judge::new(&world);
    let mut findings = Vec::new();
    moves::find(&changes, &world, &mut findings);
    deletes::find(&changes, &world, &judge, &mut findings);
    replaced::find(&changes, &world, &mut findings);
    judge.updates(&changes, &mut findings);
    findings.dedup_by(|one, other| one.fingerprint() == other.fingerprint() && one.detail == other.detail);
    Ok(findings)
}

/// Says of every object in which namespace it is. Where nobody says that of an Application, its objects are in one of
/// their own, so that they are never taken for those of another.
fn placed(mut before: Side, mut after: Side, context: &Context<'_>) -> (Side, Side) {
    // An Application that is there and renders nothing any more may have no folder.
    let empty: Vec<String> =
        before.applications.keys().filter(|folder| after.application(folder).is_some()).cloned().collect();
    for folder in empty {
        after.applications.entry(folder).or_default();
    }
    let scoped: HashSet<_> = before.cluster_scoped().union(after.cluster_scoped()).cloned().collect();
    let written: HashMap<String, String> = [&before, &after]
        .iter()
        .flat_map(|side| side.applications.keys().filter_map(|folder| Some((folder, side.application(folder)?))))
        .filter_map(|(folder, piece)| {
            let namespace = piece.value.pointer("/spec/destination/namespace")?.as_str()?;
            Some((folder.clone(), namespace.to_owned()))
        })
        .collect();
    let namespace = |folder: &str| match written.get(folder) {
        Some(namespace) => namespace.clone(),
        None if context.namespace.is_empty() => format!("namespace-of-{folder}"),
        None => context.namespace.clone(),
    };
    before.give_namespaces(&scoped, namespace);
    after.give_namespaces(&scoped, namespace);
    before.reduce_live_to(&after);
    (before, after)
}

/// Every rule that takes part.
pub fn rules() -> Vec<Rule> {
    [DIFF]
        .into_iter()
        .chain(catalog::ALL.iter().filter(|rule| rule.id != "sync-wave").copied().map(Rule::from))
        .collect()
}

/// A finding about a change.
fn finding(check: &'static str, severity: Severity, piece: &Piece, summary: &str, detail: String) -> ReportFinding {
    ReportFinding {
        rule: DIFF.id,
        check: check.into(),
        severity,
        mode: None,
        effect: None,
        object: piece.object.clone(),
        summary: summary.to_owned(),
        detail,
        regarding: None,
        claimants: Vec::new(),
        remedies: Vec::new(),
        location: Some(piece.location.clone()).filter(|location: &Location| !location.file.is_empty()),
        fix: None,
    }
}

/// Whether a rule found that somebody claims the object.
fn is_claimed(check: &Check) -> bool {
    check.rule.id == "shared-claim"
}

/// Whether an object holds or takes more than itself.
fn is_grave(object: &ObjectRef) -> bool {
    object.kind.takes_others()
        || object.kind.is("", "PersistentVolumeClaim")
        || object.kind.is("", "PersistentVolume")
        || object.kind.is("argoproj.io", "AppProject")
}
