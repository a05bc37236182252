//! What a rule needs from outside, as data.
//!
//! A rule never reads anything. It asks [`Facts`]; what is not known yet becomes a [`Question`] that the shell answers
//! (from a live cluster or from a snapshot), and the rules run again. The loop ends when no rule asks anything new.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::value::RawValue;

use crate::{
    admission::UserInfo,
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

/// All objects of one kind, in one namespace or everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListQuestion {
    /// Which kind.
    pub kind: GroupKind,
    /// Namespace, empty for all.
    pub namespace: String,
    /// Field selector the API server understands, such as `spec.serviceAccountName=flink`; empty for none.
    pub field_selector: String,
    /// At most this many objects are needed.
    pub limit: u32,
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
}

/// The answer to a [`Question`], of the matching variant.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Question::Metadata`].
    Metadata(Reading<Arc<ObjectMeta>>),
    /// To [`Question::Object`].
    Object(Reading<Arc<RawValue>>),
    /// To [`Question::List`].
    List(Reading<Arc<[Box<RawValue>]>>),
    /// To [`Question::Access`].
    Access(Reading<bool>),
}

/// The answers so far, and the questions that came up.
#[derive(Debug)]
pub struct Facts {
    answers: HashMap<Question, Answer>,
    pending: RefCell<Vec<Question>>,
    asked: RefCell<HashSet<Question>>,
    closed: Option<String>,
    limit: usize,
}

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

    /// The same where more may be read than for a review that somebody waits for.
    pub fn with_limit(limit: usize) -> Self {
        Self { answers: HashMap::new(), pending: RefCell::default(), asked: RefCell::default(), closed: None, limit }
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
        std::mem::take(self.pending.get_mut())
    }

    /// Whether a question came up that was not taken yet.
    pub fn is_asking(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// From now on every unanswered question is answered with "not read" for this reason, so that a decision falls
    /// whatever time is left.
    pub fn close(&mut self, reason: &str) {
        self.closed = Some(reason.to_owned());
    }

    /// Whether nothing more is read for this review.
    pub fn is_spent(&self) -> bool {
        self.asked.borrow().len() >= self.limit
    }

    /// Metadata of an object; `None` while the answer is still out.
    pub fn metadata(&self, object: &ObjectRef) -> Option<Reading<Arc<ObjectMeta>>> {
        match self.ask(Question::Metadata(object.clone())) {
            Asked::Known(Answer::Metadata(reading)) => Some(reading.clone()),
            Asked::Known(_) => Some(Reading::Unreadable(MISMATCH.to_owned())),
            Asked::Closed(reason) => Some(Reading::Unreadable(reason)),
            Asked::TooMany => Some(Reading::Forbidden(too_many(self.limit))),
            Asked::Pending => None,
        }
    }

    /// A whole object; `None` while the answer is still out.
    pub fn object(&self, object: &ObjectRef) -> Option<Reading<Arc<RawValue>>> {
        match self.ask(Question::Object(object.clone())) {
            Asked::Known(Answer::Object(reading)) => Some(reading.clone()),
            Asked::Known(_) => Some(Reading::Unreadable(MISMATCH.to_owned())),
            Asked::Closed(reason) => Some(Reading::Unreadable(reason)),
            Asked::TooMany => Some(Reading::Forbidden(too_many(self.limit))),
            Asked::Pending => None,
        }
    }

    /// All objects of a kind; `None` while the answer is still out.
    pub fn list(&self, question: ListQuestion) -> Option<Reading<Arc<[Box<RawValue>]>>> {
        match self.ask(Question::List(question)) {
            Asked::Known(Answer::List(reading)) => Some(reading.clone()),
            Asked::Known(_) => Some(Reading::Unreadable(MISMATCH.to_owned())),
            Asked::Closed(reason) => Some(Reading::Unreadable(reason)),
            Asked::TooMany => Some(Reading::Forbidden(too_many(self.limit))),
            Asked::Pending => None,
        }
    }

    /// The same for a list that only informs: once half of what may be read is used up it is not asked for, so that it
    /// takes no read from what a decision hangs on.
    pub fn list_to_inform(&self, question: ListQuestion) -> Option<Reading<Arc<[Box<RawValue>]>>> {
        let share = self.limit / 2;
        let wanted = Question::List(question.clone());
        let is_new = !self.answers.contains_key(&wanted) && !self.asked.borrow().contains(&wanted);
        if is_new && self.closed.is_none() && self.asked.borrow().len() >= share {
            return Some(Reading::Forbidden(too_many(share)));
        }
        self.list(question)
    }

    /// Whether a user may do something; `None` while the answer is still out.
    pub fn access(&self, question: AccessQuestion) -> Option<Reading<bool>> {
        match self.ask(Question::Access(question)) {
            Asked::Known(Answer::Access(reading)) => Some(reading.clone()),
            Asked::Known(_) => Some(Reading::Unreadable(MISMATCH.to_owned())),
            Asked::Closed(reason) => Some(Reading::Unreadable(reason)),
            Asked::TooMany => Some(Reading::Forbidden(too_many(self.limit))),
            Asked::Pending => None,
        }
    }

    fn ask(&self, question: Question) -> Asked<'_> {
        if let Some(answer) = self.answers.get(&question) {
            return Asked::Known(answer);
        }
        if let Some(reason) = &self.closed {
            return Asked::Closed(reason.clone());
        }
        let mut asked = self.asked.borrow_mut();
        if asked.len() >= self.limit && !asked.contains(&question) {
            return Asked::TooMany;
        }
        if asked.insert(question.clone()) {
            self.pending.borrow_mut().push(question);
        }
        Asked::Pending
    }
}

/// A question was answered with another kind of answer: a fault of the shell, never of the world.
const MISMATCH: &str = "the answer does not fit the question";

enum Asked<'a> {
    Known(&'a Answer),
    Pending,
    Closed(String),
    TooMany,
}

fn too_many(limit: usize) -> String {
    format!("more than {limit} objects would have to be read")
}
