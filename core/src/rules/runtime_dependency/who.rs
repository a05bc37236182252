//! Whose rights a binding gives.

use crate::rbac::RoleSubject;

/// Kind of a ServiceAccount.
pub(super) const ACCOUNT: &str = "ServiceAccount";
/// Group of every ServiceAccount; with a namespace behind a colon, of those in it (`apiserver/serviceaccount/util.go`).
const ALL_ACCOUNTS: &str = "system:serviceaccounts";
/// Group of everybody, ServiceAccounts included.
const EVERYBODY: &str = "system:authenticated";
/// What a ServiceAccount's user name begins with.
const USER: &str = "system:serviceaccount:";

/// Whose Pods are hit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Who {
    /// One ServiceAccount.
    Account {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Every ServiceAccount of a namespace.
    Namespace(String),
    /// Every ServiceAccount there is.
    Everyone,
}

impl Who {
    /// The ServiceAccounts that a subject of a binding means. A namespace may be left out in a RoleBinding only by
    /// mistake; then the subject binds nobody.
    pub(super) fn from_subject(subject: &RoleSubject) -> Option<Self> {
        let account = |namespace: &str, name: &str| {
            (!namespace.is_empty()).then(|| Self::Account { namespace: namespace.to_owned(), name: name.to_owned() })
        };
        match subject.kind.as_str() {
            ACCOUNT => account(&subject.namespace, &subject.name),
            "User" => {
                let (namespace, name) = subject.name.strip_prefix(USER)?.split_once(':')?;
                account(namespace, name)
            }
            "Group" if subject.name == ALL_ACCOUNTS || subject.name == EVERYBODY => Some(Self::Everyone),
            "Group" => {
                let namespace = subject.name.strip_prefix(ALL_ACCOUNTS)?.strip_prefix(':')?;
                Some(Self::Namespace(namespace.to_owned()))
            }
            _ => None,
        }
    }

    /// Whether everybody in `other` is in here too.
    pub(super) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everyone, _) => true,
            (Self::Namespace(namespace), Self::Account { namespace: other, .. }) => namespace == other,
            _ => self == other,
        }
    }
}
