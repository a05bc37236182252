//! Whose mode counts for a finding.

use jiff::Timestamp;

use crate::object::ObjectRef;

/// Whose mode counts: an object's namespace and the project of the Application that is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Scope {
    /// Namespace of the object, or the Namespace's own name.
    pub namespace: String,
    /// AppProject of the Application that is deleted.
    pub project: Option<String>,
    /// When a delete began that was admitted and takes the object along: an exemption that held then still holds for it.
    pub since: Option<Timestamp>,
}

impl Scope {
    /// The scope of an object.
    pub fn of(object: &ObjectRef, project: Option<&str>) -> Self {
        let namespace = if object.is_namespace() { &object.name } else { &object.namespace };
        Self { namespace: namespace.clone(), project: project.map(str::to_owned), since: None }
    }
}
