//! What a rule needs from outside, as data.
//!
//! A rule never reads anything. It asks [`Facts`]; what is not known yet becomes a [`Question`] that the shell answers
//! (from a live cluster or from a snapshot), and the rules run again. The loop ends when no rule asks anything new.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::value::RawValue;

use crate::{
    admission::UserInfo,
    budget::{Budget, Interrupt},
    inventory::{BuildKeyHasher, Key},
    object::{GroupKind, ObjectMeta, ObjectRef},
};

/// At most this many objects are read for one review; what lies beyond counts as not read.
pub const MAX_READS: usize = 50;

/// Something a rule wants to know about the world as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The metadata of one object in this cluster.
    Metadata(ObjectRef),
    /// One whole object in this cluster.
    Object(ObjectRef),
    /// All objects of a kind in this cluster.
    List(ListQuestion),
    /// Whether a user holds a verb on a resource (one SubjectAccessReview).
    Access(AccessQuestion),
}

impl Question {
    /// The answer "not read" to this question, with the reason in words for a person.
    pub fn unreadable(&self, reason: &str) -> Answer {
        let reason = reason.to_owned();
        match self {
            Self::Metadata(_) => Answer::Metadata(Reading::Unreadable(reason)),
            Self::Object(_) => Answer::Object(Reading::Unreadable(reason)),
            Self::List(_) => Answer::List(Reading::Unreadable(reason)),
            Self::Access(_) => Answer::Access(Reading::Unreadable(reason)),
        }
    }
}

/// Objects of one kind, in one namespace or everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListQuestion {
    /// Which objects.
    pub what: Listing,
    /// Namespace, empty for all.
    pub namespace: String,
    /// At most this many objects are needed.
    pub limit: u32,
}

/// Which objects a list is of.
///
/// The API server selects most kinds by name and namespace alone and refuses every other field
/// (`pkg/apis/core/v1/conversion.go` holds the exceptions), so a selection is named here only if it is known to work. What
/// cannot be selected is looked through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// All objects of a kind.
    Every(GroupKind),
    /// Pods that run under the ServiceAccount of this name.
    PodsOfAccount(String),
    /// Pods whose phase is Running.
    RunningPods,
}

impl Listing {
    /// The kind of the objects.
    pub fn kind(&self) -> GroupKind {
        match self {
            Self::Every(kind) => kind.clone(),
            Self::PodsOfAccount(_) | Self::RunningPods => GroupKind::new("", "Pod"),
        }
    }

    /// By which field the objects are selected, and its value; `None` where all are meant.
    pub fn selection(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Every(_) => None,
            Self::PodsOfAccount(name) => Some(("spec.serviceAccountName", name)),
            Self::RunningPods => Some(("status.phase", "Running")),
        }
    }
}

/// May this user do this? Mirrors `authorization.k8s.io/v1` `ResourceAttributes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessQuestion {
    /// Who asks, with groups and extra exactly as the request carried them.
    pub user: UserInfo,
    /// RBAC verb.
    pub verb: String,
    /// API group of the resource.
    pub group: String,
    /// Resource (plural, lower case).
    pub resource: String,
    /// Name of the object.
    pub name: String,
}

/// What came back for one thing that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// It is there.
    Found(T),
    /// It does not exist.
    NotFound,
    /// It could not be read in time, or the read failed. Holds the reason in words for a person.
    Unreadable(String),
    /// It cannot be read for this review, however often it is tried: no right to this kind, no such kind, or too much is
    /// read already. Holds the reason in words for a person.
    Forbidden(String),
}

impl<T> Reading<T> {
    /// The value if it was found.
    pub fn found(&self) -> Option<&T> {
        if let Self::Found(value) = self { Some(value) } else { None }
    }

    /// What `change` makes of the value, if it was found.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Found(value) => Reading::Found(change(value)),
            Self::NotFound => Reading::NotFound,
            Self::Unreadable(reason) => Reading::Unreadable(reason),
            Self::Forbidden(reason) => Reading::Forbidden(reason),
        }
    }
}

/// The objects of a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Those that were read, [`ListQuestion::limit`] at most.
    pub items: Arc<[Box<RawValue>]>,
    /// Whether these are all. If not, what is not among them may still be there.
    pub complete: bool,
}

impl Listed {
    /// A list that was read to its end.
    pub fn whole(items: impl Into<Arc<[Box<RawValue>]>>) -> Self {
        Self { items: items.into(), complete: true }
    }
}

/// The answer to a [`Question`], of the matching variant.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Question::Metadata`].
    Metadata(Reading<Arc<ObjectMeta>>),
    /// To [`Question::Object`].
    Object(Reading<Arc<RawValue>>),
    /// To [`Question::List`].
    List(Reading<Listed>),
    /// To [`Question::Access`].
    Access(Reading<bool>),
}

/// The answers so far, and the questions that came up.
#[derive(Debug)]
pub struct Facts {
    answers: HashMap<Question, Answer>,
    pending: Vec<Question>,
    asked: HashSet<Question>,
    closed: Option<String>,
    limit: usize,
    names: HashMap<ObjectRef, Result<ListedNames, String>>,
    budget: Budget,
}

/// Names of what an Application lists, by fingerprint: the inventory keeps none.
pub type ListedNames = HashMap<Key, Box<str>, BuildKeyHasher>;

impl Default for Facts {
    fn default() -> Self {
        Self::with_limit(MAX_READS)
    }
}

impl Facts {
    /// Facts of which nothing is known yet, for one review.
    pub fn new() -> Self {
        Self::default()
    }

    /// Facts of which none will be known, for this reason.
    pub fn closed(reason: &str) -> Self {
        let mut facts = Self::new();
        facts.close(reason);
        facts
    }

    /// The same where more may be read than for a review that somebody waits for.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            answers: HashMap::new(),
            pending: Vec::new(),
            asked: HashSet::new(),
            closed: None,
            limit,
            names: HashMap::new(),
            budget: Budget::default(),
        }
    }

    /// The same, with a verdict that is no longer waited for once `interrupt` says so.
    #[must_use]
    pub fn until(mut self, interrupt: Interrupt) -> Self {
        self.budget = Budget::until(interrupt);
        self
    }

    /// Counts one step of work ([`Budget::step`]). `false` once nobody waits for the verdict any more.
    pub fn step(&mut self) -> bool {
        self.budget.step()
    }

    /// Counts several steps that are taken at once, because there is no good place to stop between them.
    pub fn spend(&mut self, steps: usize) {
        for _ in 0..steps {
            self.budget.step();
        }
    }

    /// What judging has cost so far.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Adds an answer.
    pub fn insert(&mut self, question: Question, answer: Answer) {
        self.answers.insert(question, answer);
    }

    /// Answers a question with "not read" unless it has an answer.
    pub fn insert_missing(&mut self, question: Question, reason: &str) {
        let answer = question.unreadable(reason);
        self.answers.entry(question).or_insert(answer);
    }

    /// Takes the questions that came up since the last call.
    pub fn take_pending(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.pending)
    }

    /// Whether a question came up that was not taken yet.
    pub fn is_asking(&self) -> bool {
        !self.pending.is_empty()
    }

    /// From now on every unanswered question is answered with "not read" for this reason, so that a decision falls
    /// whatever time is left.
    pub fn close(&mut self, reason: &str) {
        self.closed = Some(reason.to_owned());
    }

    /// Whether nothing more is read for this review.
    pub fn is_spent(&self) -> bool {
        self.asked.len() >= self.limit
    }

    /// The names in the list of an Application, decoded once by `decode` from the Application as it is read; or why they
    /// are not known. `None` while the answer is still out.
    pub fn names(
        &mut self,
        application: &ObjectRef,
        decode: impl FnOnce(&RawValue) -> Result<ListedNames, String>,
    ) -> Option<&Result<ListedNames, String>> {
        if !self.names.contains_key(application) {
            let names = match self.object(application)? {
                Reading::Found(raw) => decode(&raw),
                Reading::NotFound => Err("the Application is gone".to_owned()),
                Reading::Unreadable(reason) | Reading::Forbidden(reason) => Err(reason),
            };
            self.names.insert(application.clone(), names);
        }
        self.names.get(application)
    }

    /// Metadata of an object; `None` while the answer is still out.
    pub fn metadata(&mut self, object: &ObjectRef) -> Option<Reading<Arc<ObjectMeta>>> {
        self.read(Question::Metadata(object.clone()), |answer| match answer {
            Answer::Metadata(reading) => Some(reading),
            _ => None,
        })
    }

    /// A whole object; `None` while the answer is still out.
    pub fn object(&mut self, object: &ObjectRef) -> Option<Reading<Arc<RawValue>>> {
        self.read(Question::Object(object.clone()), |answer| match answer {
            Answer::Object(reading) => Some(reading),
            _ => None,
        })
    }

    /// Objects of a kind; `None` while the answer is still out. Who concludes from a list that something is not there has
    /// to look whether it is [`Listed::complete`].
    pub fn list(&mut self, question: ListQuestion) -> Option<Reading<Listed>> {
        self.read(Question::List(question), |answer| match answer {
            Answer::List(reading) => Some(reading),
            _ => None,
        })
    }

    /// The same for a list that only informs: once half of what may be read is used up it is not asked for, so that it
    /// takes no read from what a decision hangs on.
    pub fn list_to_inform(&mut self, question: ListQuestion) -> Option<Reading<Listed>> {
        let share = self.limit / 2;
        let wanted = Question::List(question.clone());
        let is_new = !self.answers.contains_key(&wanted) && !self.asked.contains(&wanted);
        if is_new && self.closed.is_none() && self.asked.len() >= share {
            return Some(Reading::Forbidden(too_many(share)));
        }
        self.list(question)
    }

    /// Whether a user may do something; `None` while the answer is still out.
    pub fn access(&mut self, question: AccessQuestion) -> Option<Reading<bool>> {
        self.read(Question::Access(question), |answer| match answer {
            Answer::Access(reading) => Some(reading),
            _ => None,
        })
    }

    fn read<T: Clone>(
        &mut self,
        question: Question,
        pick: impl Fn(&Answer) -> Option<&Reading<T>>,
    ) -> Option<Reading<T>> {
        if let Some(answer) = self.answers.get(&question) {
            // Another kind of answer is a fault of the shell, never of the world.
            let mismatch = || Reading::Unreadable("the answer does not fit the question".to_owned());
            return Some(pick(answer).cloned().unwrap_or_else(mismatch));
        }
        if let Some(reason) = &self.closed {
            return Some(Reading::Unreadable(reason.clone()));
        }
        if self.asked.len() >= self.limit && !self.asked.contains(&question) {
            return Some(Reading::Forbidden(too_many(self.limit)));
        }
        if self.asked.insert(question.clone()) {
            self.pending.push(question);
        }
        None
    }
}

fn too_many(limit: usize) -> String {
    format!("more than {limit} objects would have to be read")
}
