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
        Self { namespace: namespace_of(object).to_owned(), project: project.map(str::to_owned), since: None }
    }
}

/// The namespace by which the policy judges an object: a Namespace stands in itself.
pub(crate) fn namespace_of(object: &ObjectRef) -> &str {
    if object.is_namespace() { &object.name } else { &object.namespace }
}

/// One place that a finding covers, with every scope that may waive the finding there: the place itself under each project
/// that counts, and whatever was admitted further up. The weakest of their modes counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Vec<Scope>);

impl Place {
    /// A place that any of these scopes may waive a finding in.
    pub fn waived_by_any(scopes: Vec<Scope>) -> Self {
        Self(scopes)
    }

    /// Every scope that may waive a finding here.
    pub fn scopes(&self) -> &[Scope] {
        &self.0
    }
}

impl From<Scope> for Place {
    fn from(scope: Scope) -> Self {
        Self(vec![scope])
    }
}

/// Every place that a finding covers. The strictest of their modes decides, so a waiver counts only where each place has
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Vec<Place>);

impl Scopes {
    /// These places; the scope of nothing in particular if there are none.
    pub fn covering(places: impl IntoIterator<Item = Place>) -> Self {
        Self(places.into_iter().collect())
    }

    /// The places, in the order in which they were found.
    pub fn places(&self) -> &[Place] {
        &self.0
    }

    /// The same where what belongs to project `from` belongs to project `to` instead.
    #[must_use]
    pub fn moved(mut self, from: &str, to: &str) -> Self {
        let of_it = self.0.iter_mut().flat_map(|place| &mut place.0).filter_map(|scope| scope.project.as_mut());
        of_it.filter(|project| *project == from).for_each(|project| to.clone_into(project));
        self
    }

    /// Whether any project takes part.
    pub fn name_a_project(&self) -> bool {
        self.0.iter().flat_map(Place::scopes).any(|scope| scope.project.is_some())
    }
}

impl<T: Into<Place>> From<T> for Scopes {
    fn from(place: T) -> Self {
        Self(vec![place.into()])
    }
}
