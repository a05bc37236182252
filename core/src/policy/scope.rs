//! Whose mode counts for a finding.

use std::sync::Arc;

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

/// A [`Scope`] that lies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeRef<'a> {
    /// [`Scope::namespace`].
    pub namespace: &'a str,
    /// [`Scope::project`].
    pub project: Option<&'a str>,
    /// [`Scope::since`].
    pub since: Option<Timestamp>,
}

/// One place that a finding covers, with every scope that may waive the finding there: the place itself under each project
/// that counts, and whatever was admitted further up. The weakest of their modes counts.
///
/// A delete may have thousands of findings under a long chain of what was admitted, so they share the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    namespace: String,
    projects: Arc<[Option<String>]>,
    waivers: Arc<[Scope]>,
    since: Option<Timestamp>,
}

impl Place {
    /// A place that any of these scopes may waive a finding in.
    pub fn waived_by_any(scopes: Vec<Scope>) -> Self {
        Self { namespace: String::new(), projects: Arc::default(), waivers: scopes.into(), since: None }
    }

    /// A namespace under each of these projects, which any of `waivers` may waive a finding in, now or at `since`.
    pub fn within(
        namespace: &str,
        projects: &Arc<[Option<String>]>,
        waivers: &Arc<[Scope]>,
        since: Option<Timestamp>,
    ) -> Self {
        Self { namespace: namespace.to_owned(), projects: projects.clone(), waivers: waivers.clone(), since }
    }

    /// Every scope that may waive a finding here.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeRef<'_>> {
        let at = move |since: Option<Timestamp>| {
            let namespace = self.namespace.as_str();
            let own = self.projects.iter();
            let own = own.map(move |project| ScopeRef { namespace, project: project.as_deref(), since });
            own.chain(self.waivers.iter().map(move |waiver| ScopeRef {
                namespace: &waiver.namespace,
                project: waiver.project.as_deref(),
                since: since.or(waiver.since),
            }))
        };
        at(None).chain(self.since.into_iter().flat_map(move |since| at(Some(since))))
    }

    fn moved(&self, from: &str, to: &str) -> Self {
        let project = |project: &Option<String>| {
            project.as_ref().map(|project| if project == from { to.to_owned() } else { project.clone() })
        };
        let waiver = |waiver: &Scope| Scope { project: project(&waiver.project), ..waiver.clone() };
        let moves = |project: Option<&String>| project.is_some_and(|project| project == from);
        Self {
            projects: self.projects.iter().map(project).collect(),
            // Most have none, or none of that project; then the chain stays shared.
            waivers: if self.waivers.iter().any(|waiver| moves(waiver.project.as_ref())) {
                self.waivers.iter().map(waiver).collect()
            } else {
                Arc::clone(&self.waivers)
            },
            ..self.clone()
        }
    }

    /// The same for places that have the same scopes, as long as both are there.
    pub fn identity(&self) -> (&str, usize, usize, Option<Timestamp>) {
        let (projects, waivers) = (Arc::as_ptr(&self.projects), Arc::as_ptr(&self.waivers));
        (&self.namespace, projects.cast::<Option<String>>().addr(), waivers.cast::<Scope>().addr(), self.since)
    }
}

impl From<Scope> for Place {
    fn from(scope: Scope) -> Self {
        Self::waived_by_any(vec![scope])
    }
}

/// Every place that a finding covers. The strictest of their modes decides, so a waiver counts only where each place has
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Arc<[Place]>);

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
    pub fn moved(self, from: &str, to: &str) -> Self {
        Self::covering(self.0.iter().map(|place| place.moved(from, to)))
    }

    /// Whether any project takes part.
    pub fn name_a_project(&self) -> bool {
        self.0.iter().flat_map(Place::scopes).any(|scope| scope.project.is_some())
    }
}

impl<T: Into<Place>> From<T> for Scopes {
    fn from(place: T) -> Self {
        Self::covering([place.into()])
    }
}
