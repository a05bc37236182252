//! Who loses what: ServiceAccounts that go, and those whose roles or bindings go.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use super::Going;
use crate::{
    deletion::find_name,
    facts::{Facts, ListQuestion, Listing, Reading},
    object::{GroupKind, ObjectRef, RBAC_GROUP},
    rbac::{Binding, RoleRef, RoleSubject},
};

/// Kind of a ServiceAccount.
pub(super) const ACCOUNT: &str = "ServiceAccount";
/// So many bindings are looked at in one namespace, and of all namespaces together.
const MAX_BINDINGS: u32 = 500;
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
    fn from_subject(subject: &RoleSubject) -> Option<Self> {
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
    fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everyone, _) => true,
            (Self::Namespace(namespace), Self::Account { namespace: other, .. }) => namespace == other,
            _ => self == other,
        }
    }
}

/// Who loses what.
#[derive(Default)]
pub(super) struct Losses {
    /// The objects each of them loses, a ServiceAccount first.
    pub by: BTreeMap<Who, Vec<ObjectRef>>,
    /// What could not be read, with the reason.
    pub unread: Vec<String>,
    /// Whether an answer is out.
    pub pending: bool,
}

impl Losses {
    pub(super) fn of(going: &Going<'_, '_>, facts: &mut Facts) -> Self {
        let mut losses = Self::default();
        let things = losses.things(going, facts);
        let of_kind = |kinds: &'static [&str]| things.iter().filter(move |thing| kinds.contains(&&*thing.kind.kind));
        for account in of_kind(&[ACCOUNT]) {
            let who = Who::Account { namespace: account.namespace.clone(), name: account.name.clone() };
            losses.add(who, account);
        }
        let gone: HashSet<&ObjectRef> = things.iter().collect();
        for role in of_kind(&["Role", "ClusterRole"]) {
            for (_, binding) in losses.bindings_of(going, facts, role, &gone) {
                losses.subjects(going, &binding, role);
            }
        }
        for object in of_kind(&["RoleBinding", "ClusterRoleBinding"]) {
            if let Some(binding) = losses.body(going, facts, object) {
                losses.unbound(going, facts, object, &binding, &gone);
            }
        }
        losses
    }

    /// ServiceAccounts, roles and bindings that go, by name.
    fn things(&mut self, going: &Going<'_, '_>, facts: &mut Facts) -> Vec<ObjectRef> {
        let mut things = Vec::new();
        for item in going.items() {
            let is_binding_or_role = item.kind.group == RBAC_GROUP
                && ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"].contains(&&*item.kind.kind);
            if !is_binding_or_role && !item.kind.is("", ACCOUNT) {
                continue;
            }
            match find_name(going.cx.inputs(), facts, going.plan(), item) {
                None => self.pending = true,
                Some(Ok(object)) => things.push(object),
                Some(Err(reason)) => self.miss(format!("{} ({reason})", item.label())),
            }
        }
        things
    }

    fn add(&mut self, who: Who, thing: &ObjectRef) {
        let things = self.by.entry(who).or_default();
        if !things.contains(thing) {
            things.push(thing.clone());
        }
    }

    /// Everybody a binding binds loses `thing`.
    fn subjects(&mut self, going: &Going<'_, '_>, binding: &Binding, thing: &ObjectRef) {
        for who in binding.subjects.iter().filter_map(Who::from_subject).filter(|who| !is_swept(going, who)) {
            self.add(who, thing);
        }
    }

    /// Everybody a binding that goes binds loses it, unless another one that stays gives them the same role.
    fn unbound(
        &mut self,
        going: &Going<'_, '_>,
        facts: &mut Facts,
        object: &ObjectRef,
        binding: &Binding,
        gone: &HashSet<&ObjectRef>,
    ) {
        for who in binding.subjects.iter().filter_map(Who::from_subject).filter(|who| !is_swept(going, who)) {
            // Whoever loses the ServiceAccount itself loses everything.
            let lost_already =
                self.by.get(&who).is_some_and(|things| things.iter().any(|thing| thing.kind.is("", ACCOUNT)));
            if lost_already {
                continue;
            }
            let role = role_of(object, &binding.role_ref);
            let others = if gone.contains(&role) { Vec::new() } else { self.bindings_of(going, facts, &role, gone) };
            let still_bound = others.iter().any(|(place, other)| {
                // A ClusterRoleBinding reaches every namespace, a RoleBinding its own.
                (place.namespace.is_empty() || place.namespace == object.namespace)
                    && other.subjects.iter().filter_map(Who::from_subject).any(|other| other.includes(&who))
            });
            if !still_bound {
                self.add(who, object);
            }
        }
    }

    /// Bindings that bind to `role` and stay.
    fn bindings_of(
        &mut self,
        going: &Going<'_, '_>,
        facts: &mut Facts,
        role: &ObjectRef,
        gone: &HashSet<&ObjectRef>,
    ) -> Vec<(ObjectRef, Binding)> {
        let mut found = Vec::new();
        let cluster_wide = role.namespace.is_empty();
        let mut kinds = vec!["RoleBinding"];
        if cluster_wide {
            kinds.push("ClusterRoleBinding");
        }
        for kind in kinds {
            for raw in self.list(facts, kind, &role.namespace) {
                let Ok(binding) = serde_json::from_str::<Binding>(raw.get()) else { continue };
                let place = ObjectRef::new(RBAC_GROUP, kind, &binding.metadata.namespace, &binding.metadata.name);
                let same = binding.role_ref.kind == role.kind.kind && binding.role_ref.name == role.name;
                if same
                    && !gone.contains(&place)
                    && !going.sweeps(&place.namespace)
                    && !binding.metadata.is_terminating()
                {
                    found.push((place, binding));
                }
            }
        }
        found
    }

    fn list(&mut self, facts: &mut Facts, kind: &str, namespace: &str) -> Vec<Box<RawValue>> {
        let question = ListQuestion {
            what: Listing::Every(GroupKind::new(RBAC_GROUP, kind)),
            namespace: if kind == "RoleBinding" { namespace.to_owned() } else { String::new() },
            limit: MAX_BINDINGS,
        };
        let place = if question.namespace.is_empty() { String::new() } else { format!(" of {namespace}") };
        match facts.list(question) {
            None => {
                self.pending = true;
                Vec::new()
            }
            Some(Reading::Found(list)) => {
                if !list.complete {
                    self.miss(format!("{kind}s{place} (only {MAX_BINDINGS} of them were looked at)"));
                }
                list.items.to_vec()
            }
            Some(Reading::NotFound) => Vec::new(),
            Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
                self.miss(format!("{kind}s{place} ({reason})"));
                Vec::new()
            }
        }
    }

    /// A binding that goes: as the review carries it, or as it is read.
    fn body(&mut self, going: &Going<'_, '_>, facts: &mut Facts, object: &ObjectRef) -> Option<Binding> {
        if *object == going.deletion.object {
            return serde_json::from_str(going.cx.stored?.raw().get()).ok();
        }
        match facts.object(object) {
            None => {
                self.pending = true;
                None
            }
            Some(Reading::Found(raw)) => serde_json::from_str(raw.get()).ok(),
            Some(Reading::NotFound) => None,
            Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
                self.miss(format!("{object} ({reason})"));
                None
            }
        }
    }

    fn miss(&mut self, what: String) {
        if !self.unread.contains(&what) {
            self.unread.push(what);
        }
    }
}

/// The role that a binding of this name refers to.
fn role_of(binding: &ObjectRef, role: &RoleRef) -> ObjectRef {
    let namespace = if role.kind == "Role" { &binding.namespace } else { "" };
    ObjectRef::new(RBAC_GROUP, &role.kind, namespace, &role.name)
}

/// Whether all of them go with their Namespace.
fn is_swept(going: &Going<'_, '_>, who: &Who) -> bool {
    match who {
        Who::Account { namespace, .. } | Who::Namespace(namespace) => going.sweeps(namespace),
        Who::Everyone => false,
    }
}
