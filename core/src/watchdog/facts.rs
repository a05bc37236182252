//! What the judgement asks Git, and what Git answered. Every answer but [`Answer::Unknown`] is for good: commits do not
//! change. What is asked and not answered yet stands in [`Facts::open`]; whoever judges answers it and judges again.

use std::collections::{BTreeMap, BTreeSet};

use super::schema::AppRef;
use crate::object::ObjectRef;

/// Whether a text is a full object id in lower case, SHA-1 or SHA-256.
pub fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Whether `commit` is `revision` or an ancestor of it.
    Contains {
        /// The newer one.
        revision: String,
        /// The older one.
        commit: String,
    },
    /// The parents of a commit and the files it changed, a merge against its first parent.
    Change(String),
    /// The commits in `tip` that are not in `deployed`, without `commit` and, if that is a merge, without what it brought.
    Others {
        /// The newest commit of the branch.
        tip: String,
        /// What was deployed before.
        deployed: Vec<String>,
        /// The commit that is judged.
        commit: String,
    },
    /// The commits in `tip` but not in `commit` that say they revert `commit`, or the merge that brought it.
    Reverts {
        /// The newest commit of the branch.
        tip: String,
        /// The commit that is judged.
        commit: String,
    },
    /// Whether what lies below `path` may need files elsewhere: a symbolic link, or a file that names `..` or a URL.
    Outside {
        /// The commit to look at.
        revision: String,
        /// A folder; empty for the root.
        path: String,
    },
    /// What speaks against the removal of these objects, each by the Application that prunes it.
    Removal(Vec<(AppRef, ObjectRef)>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Contains`] and [`Question::Outside`].
    Is(bool),
    /// To [`Question::Change`].
    Change(Change),
    /// To [`Question::Others`].
    Others(Vec<Change>),
    /// To [`Question::Reverts`].
    Reverts(Vec<OwnOrForeign>),
    /// To [`Question::Removal`]: one sentence for each thing that speaks against it.
    Removal(Vec<String>),
    /// Nobody knows: a commit that the repository does not have, or too much to look at.
    Unknown,
}

/// A commit and what it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Its object id.
    pub commit: String,
    /// Its parents.
    pub parents: Vec<String>,
    /// The files that it changed, from the root of the repository.
    pub paths: Vec<String>,
}

/// A commit that says it reverts another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOrForeign {
    /// Its object id.
    pub commit: String,
    /// The watch that its message names; empty where a person made it.
    pub watch: String,
}

/// What is known of something; `None` while it is asked.
pub type Asked<T> = Option<T>;

/// Questions and answers.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    answers: BTreeMap<Question, Answer>,
    /// What was asked and is not answered.
    pub open: BTreeSet<Question>,
}

impl Facts {
    /// Takes an answer.
    pub fn answer(&mut self, question: Question, answer: Answer) {
        self.open.remove(&question);
        self.answers.insert(question, answer);
    }

    /// Forgets what may be answered otherwise after a fetch, or a minute later.
    pub fn forget_unsettled(&mut self) {
        self.answers.retain(|question, answer| *answer != Answer::Unknown && !matches!(question, Question::Removal(_)));
        self.open.clear();
    }

    /// Forgets what is about an older tip.
    pub fn forget_tips(&mut self) {
        self.answers.retain(|question, _| matches!(question, Question::Contains { .. } | Question::Change(_)));
        self.open.clear();
    }

    /// How many answers are held.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answer; `None` if it is still out.
    pub fn ask(&mut self, question: Question) -> Option<Answer> {
        let known = self.answers.get(&question).cloned();
        if known.is_none() {
            self.open.insert(question);
        }
        known
    }

    /// Whether `commit` is in `revision`. What is no object id contains nothing; `Some(None)` if nobody knows.
    pub fn contains(&mut self, revision: &str, commit: &str) -> Asked<Option<bool>> {
        if !is_object_id(revision) {
            return Some(Some(false));
        }
        if revision == commit {
            return Some(Some(true));
        }
        let question = Question::Contains { revision: revision.to_owned(), commit: commit.to_owned() };
        Some(match self.ask(question)? {
            Answer::Is(is) => Some(is),
            _ => None,
        })
    }

    /// The same where what nobody knows is taken for a no.
    pub fn surely_contains(&mut self, revision: &str, commit: &str) -> Option<bool> {
        Some(self.contains(revision, commit)?.unwrap_or(false))
    }
}
