//! Why a list or a watch did not do, and what follows from that.

use std::time::Duration;

use super::client::in_words;

/// Why a list or a watch did not do.
pub(super) enum Failure {
    List(kube::Error),
    Watch(kube::Error),
    Silent(&'static str, Duration),
    Stale,
    NoVersion,
}

impl Failure {
    /// Whether only a fresh list helps: the version is too old, or an event was lost because nobody can read it.
    pub(super) fn needs_list(&self) -> bool {
        match self {
            Self::Watch(kube::Error::Api(status)) => status.code == 410,
            Self::Watch(kube::Error::SerdeError(_)) => true,
            _ => false,
        }
    }

    pub(super) fn is_no_such_kind(&self) -> bool {
        matches!(self, Self::List(kube::Error::Api(status)) if status.code == 404)
    }

    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::List(kube::Error::Api(status)) if status.code == 403)
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Self::List(error) => format!("the list failed: {}", in_words(error)),
            Self::Watch(error) => format!("the watch failed: {}", in_words(error)),
            Self::Silent(what, after) => {
                format!("the {what} failed: the API server sent nothing for {} s", after.as_secs_f64())
            }
            Self::Stale => "the watch is open, but nothing is heard of the API server".to_owned(),
            Self::NoVersion => "the API server gave no resource version".to_owned(),
        }
    }
}
