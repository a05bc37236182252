//! Objects stuck in deletion: metrics count them, and the log names each once a day, with what holds it and the command
//! that helps.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::LiveSource;
use crate::{
    audit::{AuditInput, Options, Stuck, metadata_of, terminating},
    state::{LiveInventory, LivePolicy},
    telemetry::Metrics,
};
use cascade_guard_core::{
    inventory::Inventory,
    object::{ARGO_GROUP, GroupKind, KnownObject, ObjectRef},
};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(20);
/// How often objects of further kinds are listed.
const LIST_EVERY: Duration = Duration::from_secs(300);
/// The same object is told again after this long.
const AGAIN: Duration = Duration::from_secs(24 * 3600);

/// Looks for ever.
pub struct StuckWatch {
    /// Reads of the cluster.
    pub source: LiveSource,
    /// The Namespaces, Applications and ApplicationSets that are known.
    pub inventory: Arc<LiveInventory>,
    /// Needed to tell what holds an object.
    pub policy: Arc<LivePolicy>,
    /// Where further kinds are counted.
    pub metrics: Arc<Metrics>,
    /// An object that has been terminating for this long is stuck.
    pub after: SignedDuration,
    /// Further kinds to look at.
    pub kinds: Vec<GroupKind>,
}

/// Objects that are being deleted, and since when.
type Terminating = BTreeMap<ObjectRef, Timestamp>;

/// What was told and when.
#[derive(Debug, Default)]
struct Told(HashMap<(ObjectRef, Timestamp), Instant>);

impl Told {
    /// What is stuck and has not been told for a day. An object that was made anew and deleted again is another one.
    fn due(&mut self, there: &Terminating, now: Timestamp, after: SignedDuration, instant: Instant) -> Vec<ObjectRef> {
        self.0.retain(|(object, since), _| there.get(object) == Some(since));
        let mut due = Vec::new();
        for (object, since) in there {
            let place = (object.clone(), *since);
            let told = self.0.get(&place).is_some_and(|at| instant.duration_since(*at) < AGAIN);
            if !told && terminating::is_stuck(*since, now, after) {
                self.0.insert(place, instant);
                due.push(object.clone());
            }
        }
        due
    }
}

impl StuckWatch {
    /// Looks for ever.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn run(self) -> anyhow::Result<()> {
        let mut told = Told::default();
        let mut further: Vec<KnownObject> = Vec::new();
        let mut listed: Option<Instant> = None;
        let mut trouble = BTreeMap::new();
        loop {
            sleep(EVERY).await;
            if !self.inventory.read().is_ready() {
                continue;
            }
            if listed.is_none_or(|at| at.elapsed() >= LIST_EVERY) {
                listed = Some(Instant::now());
                further = self.list(&mut trouble).await;
            }
            let now = Timestamp::now();
            let mut there = known(&self.inventory.read());
            there.extend(
                further.iter().filter_map(|subject| Some((subject.object.clone(), subject.meta.deletion_timestamp?))),
            );
            let due = told.due(&there, now, self.after, Instant::now());
            for stuck in self.explain(&due, &further, now).await {
                tell(&stuck);
            }
        }
    }

    /// Objects of further kinds that are being deleted. A kind that cannot be listed is named once.
    async fn list(&self, trouble: &mut BTreeMap<String, String>) -> Vec<KnownObject> {
        let mut found = Vec::new();
        for kind in &self.kinds {
            match self.source.subjects(kind, "").await {
                Ok(subjects) => {
                    trouble.remove(&kind.to_string());
                    let before = found.len();
                    found.extend(subjects.into_iter().filter(|subject| subject.meta.is_terminating()));
                    let began: Vec<Timestamp> =
                        found[before..].iter().filter_map(|subject| subject.meta.deletion_timestamp).collect();
                    self.metrics.observe_terminating(&kind.to_string(), &began, Timestamp::now(), self.after);
                }
                Err(reason) => {
                    if trouble.get(&kind.to_string()) != Some(&reason) {
                        tracing::warn!(%kind, reason, "nobody can tell what of this kind is stuck; grant list");
                        trouble.insert(kind.to_string(), reason);
                    }
                }
            }
        }
        found
    }

    async fn explain(&self, due: &[ObjectRef], further: &[KnownObject], now: Timestamp) -> Vec<Stuck> {
        if due.is_empty() {
            return Vec::new();
        }
        // What else is terminating in a Namespace may be what holds it.
        let mut objects = further.to_vec();
        for namespace in due.iter().filter(|object| object.is_namespace()) {
            let held = self.source.held_in(&namespace.name).await;
            objects.extend(held.into_iter().filter(|held| further.iter().all(|known| known.object != held.object)));
        }
        let unknown = due.iter().filter(|object| objects.iter().all(|subject| subject.object != **object));
        let unknown: Vec<ObjectRef> = unknown.cloned().collect();
        let read = metadata_of(&self.source, unknown).await;
        objects.extend(read.into_iter().map(|(object, meta)| KnownObject { object, meta }));
        let policy = self.policy.load();
        let input =
            AuditInput { view: &*self.inventory, source: &self.source, policy: &policy, now, objects: &objects };
        let options = Options { stuck_after: self.after, ..Options::default() };
        let mut found = terminating::find(&input, &options).await;
        found.retain(|stuck| due.contains(&stuck.object));
        found
    }
}

/// What the inventory knows to be terminating.
fn known(inventory: &Inventory) -> Terminating {
    let namespaces =
        inventory.namespaces().filter_map(|meta| Some((ObjectRef::namespace(&meta.name), meta.deletion_timestamp?)));
    let applications = inventory.applications().filter_map(|(_, app)| Some((app.object(), app.terminating?)));
    let sets = inventory.appsets().filter_map(|set| {
        let object = ObjectRef::new(ARGO_GROUP, "ApplicationSet", &set.meta.namespace, &set.meta.name);
        Some((object, set.meta.deletion_timestamp?))
    });
    namespaces.chain(applications).chain(sets).collect()
}

fn tell(stuck: &Stuck) {
    let held: Vec<String> =
        stuck.holders.iter().take(5).map(|holder| format!("{}: {}", holder.what, holder.why)).collect();
    let mend =
        stuck.holders.first().map_or("nothing on it says what holds it".to_owned(), |holder| holder.mend.to_string());
    tracing::warn!(
        object = %stuck.object,
        since = %stuck.since,
        held_by = held.join("; "),
        mend,
        "the deletion of an object does not end"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-29T{time}Z").parse().unwrap()
    }

    #[test]
    fn stuck_object_is_told_once_a_day() {
        let after = SignedDuration::from_mins(10);
        let there: Terminating = [(ObjectRef::namespace("shop"), at("12:00:00"))].into();
        let mut told = Told::default();
        let start = Instant::now();
        assert!(told.due(&there, at("12:09:00"), after, start).is_empty(), "not stuck yet");
        assert_eq!(told.due(&there, at("12:10:00"), after, start), [ObjectRef::namespace("shop")]);
        assert!(told.due(&there, at("12:11:00"), after, start + EVERY).is_empty(), "told a moment ago");
        assert_eq!(told.due(&there, at("12:11:00"), after, start + AGAIN).len(), 1);
    }

    #[test]
    fn object_of_the_same_name_that_is_deleted_later_is_told_anew() {
        let mut told = Told::default();
        let start = Instant::now();
        for since in ["12:00:00", "12:30:00"] {
            let there: Terminating = [(ObjectRef::namespace("shop"), at(since))].into();
            assert_eq!(told.due(&there, at("13:00:00"), SignedDuration::ZERO, start).len(), 1);
        }
        told.due(&Terminating::new(), at("13:00:00"), SignedDuration::ZERO, start);
        assert!(told.0.is_empty(), "what is gone is forgotten");
    }
}
