//! Bindings: which role they give to whom, and where.

use std::collections::HashMap;

use super::{Going, who::Who};
use crate::{
    facts::{Facts, ListQuestion, Listing, Reading},
    object::{GroupKind, ObjectRef, RBAC_GROUP},
    rbac::{Binding, RoleRef},
};

/// So many bindings are looked at in one namespace, and of all namespaces together.
const MAX_BINDINGS: u32 = 500;

const ROLE_BINDING: &str = "RoleBinding";
const CLUSTER_ROLE_BINDING: &str = "ClusterRoleBinding";

/// A binding.
#[derive(Clone)]
pub(super) struct Bond {
    /// The binding itself.
    pub binding: ObjectRef,
    /// The role it gives.
    pub role: ObjectRef,
    /// The ServiceAccounts it gives that to.
    pub subjects: Vec<Who>,
    terminating: bool,
}

impl Bond {
    fn new(kind: &str, binding: &Binding) -> Self {
        let meta = &binding.metadata;
        let object = ObjectRef::new(RBAC_GROUP, kind, &meta.namespace, &meta.name);
        Self {
            role: role_of(&object, &binding.role_ref),
            subjects: binding.subjects.iter().filter_map(Who::from_subject).collect(),
            terminating: meta.is_terminating(),
            binding: object,
        }
    }

    /// Whether it gives nothing any more, or goes with its Namespace.
    pub(super) fn is_over(&self, going: &Going<'_, '_>) -> bool {
        self.terminating || going.sweeps(&self.binding.namespace)
    }
}

/// The role that a binding refers to.
fn role_of(binding: &ObjectRef, role: &RoleRef) -> ObjectRef {
    let namespace = if role.kind == "Role" { &binding.namespace } else { "" };
    ObjectRef::new(RBAC_GROUP, &role.kind, namespace, &role.name)
}

/// Bindings that were listed, each list read and decoded once.
#[derive(Default)]
pub(super) struct Bonds {
    /// By kind and namespace; all namespaces without one.
    lists: HashMap<(&'static str, String), List>,
    /// Whether an answer is out.
    pub pending: bool,
    /// What could not be read, with the reason.
    pub unread: Vec<String>,
}

#[derive(Default)]
struct List {
    bonds: Vec<Bond>,
    complete: bool,
}

impl Bonds {
    /// Bindings that refer to a role.
    pub(super) fn of_role(&mut self, facts: &mut Facts, role: &ObjectRef) -> Vec<Bond> {
        let mut found = self.list(facts, ROLE_BINDING, &role.namespace).bonds.clone();
        if role.namespace.is_empty() {
            found.extend_from_slice(&self.list(facts, CLUSTER_ROLE_BINDING, "").bonds);
        }
        found.retain(|bond| bond.role == *role);
        found
    }

    /// Bindings that reach a namespace as a whole or, without one, every namespace.
    pub(super) fn reaching(&mut self, facts: &mut Facts, namespace: &str) -> Vec<Bond> {
        let mut found = if namespace.is_empty() { Vec::new() } else { self.within(facts, namespace) };
        found.extend_from_slice(&self.list(facts, CLUSTER_ROLE_BINDING, "").bonds);
        found
    }

    fn within(&mut self, facts: &mut Facts, namespace: &str) -> Vec<Bond> {
        let everywhere = self.lists.get(&(ROLE_BINDING, String::new())).filter(|list| list.complete);
        let Some(everywhere) = everywhere else { return self.list(facts, ROLE_BINDING, namespace).bonds.clone() };
        everywhere.bonds.iter().filter(|bond| bond.binding.namespace == namespace).cloned().collect()
    }

    /// One binding: as the review carries it, as it was listed, or else as it is read.
    pub(super) fn named(&mut self, going: &Going<'_, '_>, facts: &mut Facts, binding: &ObjectRef) -> Option<Bond> {
        let kind = if binding.namespace.is_empty() { CLUSTER_ROLE_BINDING } else { ROLE_BINDING };
        let decoded = |text: &str| {
            let mut decoded: Binding = serde_json::from_str(text).ok()?;
            decoded.metadata.namespace.clone_from(&binding.namespace);
            Some(Bond::new(kind, &decoded))
        };
        if *binding == going.deletion.object {
            return decoded(going.cx.stored?.raw().get());
        }
        let list = self.list(facts, kind, &binding.namespace);
        let listed = list.bonds.iter().find(|bond| bond.binding == *binding).cloned();
        if listed.is_some() || list.complete {
            return listed;
        }
        match facts.object(binding) {
            None => {
                self.pending = true;
                None
            }
            Some(Reading::Found(raw)) => decoded(raw.get()),
            Some(Reading::NotFound) => None,
            Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
                self.miss(format!("{binding} ({reason})"));
                None
            }
        }
    }

    fn list(&mut self, facts: &mut Facts, kind: &'static str, namespace: &str) -> &List {
        let place = (kind, namespace.to_owned());
        let known = self.lists.remove(&place);
        let list = known.unwrap_or_else(|| self.read(facts, kind, namespace));
        self.lists.entry(place).or_insert(list)
    }

    fn read(&mut self, facts: &mut Facts, kind: &'static str, namespace: &str) -> List {
        let question = ListQuestion {
            what: Listing::Every(GroupKind::new(RBAC_GROUP, kind)),
            namespace: namespace.to_owned(),
            limit: MAX_BINDINGS,
        };
        let place = if namespace.is_empty() { String::new() } else { format!(" of {namespace}") };
        match facts.list(question) {
            None => {
                self.pending = true;
                // It is taken for complete: nothing else is asked in its place while the answer is out.
                List { bonds: Vec::new(), complete: true }
            }
            Some(Reading::Found(list)) => {
                let complete = list.complete;
                if !complete {
                    self.miss(format!("{kind}s{place} (only {MAX_BINDINGS} of them were looked at)"));
                }
                let decoded = list.items.iter().filter_map(|raw| serde_json::from_str::<Binding>(raw.get()).ok());
                List { bonds: decoded.map(|binding| Bond::new(kind, &binding)).collect(), complete }
            }
            Some(Reading::NotFound) => List { bonds: Vec::new(), complete: true },
            Some(Reading::Unreadable(reason) | Reading::Forbidden(reason)) => {
                self.miss(format!("{kind}s{place} ({reason})"));
                List::default()
            }
        }
    }

    fn miss(&mut self, what: String) {
        if !self.unread.contains(&what) {
            self.unread.push(what);
        }
    }
}
