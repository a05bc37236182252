//! How far something that holds for one Application reaches.

use std::sync::Arc;

use super::{App, Inventory};
use crate::{
    argo::ProjectSpec,
    object::{GroupKind, ObjectRef},
};

/// Where an Application may deploy to, so that what is waived for it holds for what its cascade takes and no further.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Everywhere, or nobody knows what its project permits.
    Everywhere,
    /// Where one of these projects permits its destination.
    Projects {
        /// The projects, one for each Argo CD that serves it.
        projects: Vec<Arc<ProjectSpec>>,
        /// Names and URLs of the cluster that it deploys to.
        cluster: Vec<String>,
    },
}

impl Reach {
    /// Whether it covers an object.
    pub fn covers(&self, object: &ObjectRef) -> bool {
        self.covers_namespace(if object.is_namespace() { &object.name } else { &object.namespace })
            || (object.is_namespace() && self.covers_kind(&object.kind))
    }

    /// Whether it covers what is in a namespace. What has no namespace is covered where the project permits some kind without
    /// one, or every namespace.
    pub fn covers_namespace(&self, namespace: &str) -> bool {
        let Self::Projects { projects, cluster } = self else { return true };
        let cluster: Vec<&str> = cluster.iter().map(String::as_str).collect();
        let (into, any_kind) = if namespace.is_empty() { ("*", true) } else { (namespace, false) };
        projects.iter().any(|project| {
            project.permits_destination(&cluster, into) || (any_kind && project.permits_some_cluster_scoped())
        })
    }

    fn covers_kind(&self, kind: &GroupKind) -> bool {
        let Self::Projects { projects, .. } = self else { return true };
        projects.iter().any(|project| project.permits_cluster_scoped(kind))
    }
}

impl Inventory {
    /// Whether the policy names an Argo CD that really serves an Application, so that what is waived for it holds further down.
    pub fn is_trusted(&self, app: &App) -> bool {
        self.homes_of(app).any(|home| self.installations().is_named(home))
    }

    /// How far what is waived for an Application reaches.
    pub fn reach_of(&self, app: &App) -> Reach {
        let mut projects = Vec::new();
        for home in self.homes_of(app) {
            let Some(project) = self.project(home, &app.project) else {
                if home == &*app.namespace || !self.knows_projects(home) {
                    return Reach::Everywhere;
                }
                continue;
            };
            if self.permitted_by(&project.spec, home, app, "") {
                projects.push(project.spec.clone());
            }
        }
        let cluster = self.clusters.spellings(&app.destination).into_iter().map(str::to_owned).collect();
        Reach::Projects { projects, cluster }
    }
}
