//! The last states of every Application: what it was like before a commit arrived can only be known by whoever looked then.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    facts::{Asked, Facts},
    schema::{AppRef, State},
    source::Source,
    view::{Deployed, View, is_of},
};
use crate::object::ObjectRef;

/// So many states of an Application are kept.
const MAX_LOOKS: usize = 24;

/// What an Application was like at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    uid: String,
    valid: bool,
    health: String,
    health_since: Option<Timestamp>,
    sync: String,
    comparison: Deployed,
    running: bool,
    operation: Deployed,
    started: Option<Timestamp>,
    deployed: Option<Deployed>,
    sources: Arc<[Source]>,
    children: Arc<[AppRef]>,
    objects: Option<Arc<[ObjectRef]>>,
}

/// An Application as it is now, and as it was.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// As it is now.
    pub view: Arc<View>,
    looks: VecDeque<(Timestamp, Look)>,
}

/// All Applications.
#[derive(Clone, Debug, Default)]
pub struct Applications(BTreeMap<AppRef, Observed>);

impl Applications {
    /// Takes note of an Application as it is at a time.
    pub fn observe(&mut self, view: View, at: Timestamp) {
        let observed = self.0.entry(view.app.clone()).or_default();
        let mut look = Look::of(&view);
        if let Some((_, last)) = observed.looks.back() {
            look.share(last);
            if *last == look {
                observed.view = Arc::new(view);
                return;
            }
            if last.uid != look.uid {
                observed.looks.clear();
            }
        }
        observed.view = Arc::new(view);
        observed.looks.push_back((at, look));
        if observed.looks.len() > MAX_LOOKS {
            observed.looks.pop_front();
        }
    }

    /// Takes note that an Application is gone.
    pub fn remove(&mut self, app: &AppRef) {
        self.0.remove(app);
    }

    /// Forgets the Applications that are not among these: they went while nobody looked.
    pub fn keep_only(&mut self, listed: &BTreeSet<AppRef>) {
        self.0.retain(|app, _| listed.contains(app));
    }

    /// An Application.
    pub fn get(&self, app: &AppRef) -> Option<&Observed> {
        self.0.get(app)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Observed> {
        self.0.values()
    }

    /// The Applications below one, to any depth, without itself; those that do not exist too.
    pub fn below(&self, app: &AppRef) -> Vec<AppRef> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([app.clone()]);
        let mut open = vec![app.clone()];
        while let Some(next) = open.pop() {
            let Some(observed) = self.0.get(&next) else { continue };
            for child in observed.view.children.iter() {
                if seen.insert(child.clone()) {
                    found.push(child.clone());
                    open.push(child.clone());
                }
            }
        }
        found
    }
}

/// What the looks say about the time before a commit.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The state then.
    pub state: State,
    /// When the deployment of the commit was first seen.
    pub at: Timestamp,
    /// The children then.
    pub children: Arc<[AppRef]>,
}

impl Look {
    fn of(view: &View) -> Self {
        Self {
            uid: view.uid.clone(),
            valid: view.is_valid(),
            health: view.health.clone(),
            health_since: view.health_since,
            sync: view.sync.clone(),
            comparison: view.comparison.clone(),
            running: view.busy,
            operation: view.operation.deploys.clone(),
            started: view.operation.started,
            deployed: view.last_deployed().cloned(),
            sources: view.sources.clone(),
            children: view.children.clone(),
            objects: view.objects.clone(),
        }
    }

    /// Holds what it has in common with another look once.
    fn share(&mut self, other: &Self) {
        let known = [&other.sources, &other.comparison.sources, &other.operation.sources];
        let mine = [&mut self.sources, &mut self.comparison.sources, &mut self.operation.sources];
        for sources in mine.into_iter().chain(self.deployed.as_mut().map(|deployed| &mut deployed.sources)) {
            if let Some(same) = known.iter().find(|known| ***known == *sources) {
                *sources = Arc::clone(same);
            }
        }
        if self.children == other.children {
            self.children = other.children.clone();
        }
        if self.objects == other.objects {
            self.objects.clone_from(&other.objects);
        }
    }

    /// What was deployed: what a valid comparison found in sync, else the last sync.
    fn deployment(&self) -> Option<&Deployed> {
        if self.valid && self.sync == "Synced" { Some(&self.comparison) } else { self.deployed.as_ref() }
    }

    fn state(&self, health: &str, sync: &str) -> State {
        State {
            health: health.to_owned(),
            sync: sync.to_owned(),
            deployed: self.deployment().map(|deployed| deployed.revisions.clone()).unwrap_or_default(),
            sources: digest(&self.sources),
        }
    }
}

impl Observed {
    /// What it was like before `commit` of `repository` was deployed, once that is seen; `Some(None)` before.
    ///
    /// Its health is the one at the first look at the operation that brought the commit, if that still ran, or if health had
    /// not changed since it began; else the one at the last look before. Its sync status is that of the last valid comparison
    /// of a revision without the commit.
    pub fn earlier(&self, repository: &str, commit: &str, facts: &mut Facts) -> Asked<Option<Earlier>> {
        let mut last: Option<&Look> = None;
        let mut compared: Option<&Look> = None;
        for (at, look) in &self.looks {
            let brings = holds(&look.operation, repository, commit, facts)?.unwrap_or(false);
            let deployed = match look.deployment() {
                Some(deployed) => holds(deployed, repository, commit, facts)?.unwrap_or(false),
                None => false,
            };
            let is_before = !holds(&look.comparison, repository, commit, facts)?.unwrap_or(false);
            if is_before && look.valid {
                compared = Some(look);
            }
            if brings || deployed {
                let unchanged = look.health_since.zip(look.started).is_some_and(|(health, start)| health < start);
                let at_first = brings && (unchanged || look.running && look.health == "Healthy");
                let health = if at_first { &look.health } else { last.map_or("", |last| &last.health) };
                let state = match compared {
                    Some(before) => before.state(health, &before.sync),
                    None => State { health: health.to_owned(), ..State::default() },
                };
                let children = last.unwrap_or(look).children.clone();
                return Some(Some(Earlier { state, at: *at, children }));
            }
            last = Some(look);
        }
        Some(None)
    }

    /// The same of a child when its parent's deployment was first seen: what its own operation tells, if that came first,
    /// else what it was like then. `None` in the inner place if it was not there.
    pub fn child_at(&self, at: Timestamp, repository: &str, commit: &str, facts: &mut Facts) -> Asked<Option<State>> {
        let until = Self {
            view: self.view.clone(),
            looks: self.looks.iter().take_while(|(seen, _)| *seen <= at).cloned().collect(),
        };
        if let Some(earlier) = until.earlier(repository, commit, facts)? {
            return Some(Some(earlier.state));
        }
        let valid = |look: &&Look| look.valid;
        let compared = until.looks.iter().rev().map(|(_, look)| look).find(valid);
        Some(until.looks.back().map(|(_, look)| match compared {
            Some(compared) => compared.state(&look.health, &compared.sync),
            None => State { health: look.health.clone(), ..State::default() },
        }))
    }

    /// The objects that it lists now and did not list before the commit; `Some(None)` if nobody looked then.
    pub fn added(&self, repository: &str, commit: &str, facts: &mut Facts) -> Asked<Option<Vec<ObjectRef>>> {
        let Some(now) = &self.view.objects else { return Some(Some(Vec::new())) };
        let mut before = None;
        for (_, look) in &self.looks {
            if look.valid && !holds(&look.comparison, repository, commit, facts)?.unwrap_or(false) {
                before = look.objects.as_ref().or(before);
            }
        }
        Some(before.map(|before| {
            let before: BTreeSet<&ObjectRef> = before.iter().collect();
            now.iter().filter(|object| !before.contains(object)).cloned().collect()
        }))
    }
}

/// Whether every source of the repository was at the commit or later; `Some(None)` if Git does not know a revision.
pub(super) fn holds(deployed: &Deployed, repository: &str, commit: &str, facts: &mut Facts) -> Asked<Option<bool>> {
    let mut any = false;
    let mut unknown = false;
    for (index, source) in deployed.sources.iter().enumerate() {
        if !is_of(source, repository) {
            continue;
        }
        any = true;
        let revision = deployed.revisions.get(index).map_or("", String::as_str);
        match facts.contains(revision, commit)? {
            Some(true) => {}
            Some(false) => return Some(Some(false)),
            None => unknown = true,
        }
    }
    Some(if unknown { None } else { Some(any) })
}

/// A digest of sources, to see that they changed.
pub(super) fn digest(sources: &[Source]) -> String {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher13::new();
    for source in sources {
        hasher.write(source.text.as_bytes());
        hasher.write_u8(0);
    }
    format!("{:016x}", hasher.finish())
}
