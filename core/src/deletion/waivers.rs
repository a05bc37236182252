//! Whose modes count for what a delete takes, besides that of the place where it lies: the project of the Application that is
//! deleted, and those of the Applications whose admitted cascade took it along, each as far as it may deploy.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    inventory::{App, Reach},
    policy::{Place, Scope},
};

/// What an admitted chain of Applications waives in one namespace.
#[derive(Clone, Debug)]
struct Chain {
    projects: Arc<[Option<String>]>,
    scopes: Arc<[Scope]>,
}

/// Whose modes count. A delete may have thousands of findings, so places under the same part of the chain share it.
#[derive(Debug)]
pub(super) struct Waivers {
    project: Option<String>,
    above: Vec<(Scope, Reach)>,
    /// The parts of the chain that the namespaces of the plan need, by which of it reaches them.
    parts: BTreeMap<Vec<bool>, Chain>,
}

impl Waivers {
    /// The project of the Application that is deleted or explains the delete, the Applications above it, the nearest first,
    /// and the namespaces that will be asked about.
    pub(super) fn new(project: Option<String>, above: &[(&App, Reach)], namespaces: BTreeSet<&str>) -> Self {
        let scope = |app: &App| Scope {
            namespace: app.namespace.to_string(),
            project: Some(app.project.to_string()),
            since: None,
        };
        let above = above.iter().map(|(app, reach)| (scope(app), reach.clone())).collect();
        let mut waivers = Self { project, above, parts: BTreeMap::new() };
        for namespace in namespaces {
            let reaching = waivers.reaching(namespace);
            if !waivers.parts.contains_key(&reaching) {
                let chain = waivers.chain(&reaching);
                waivers.parts.insert(reaching, chain);
            }
        }
        waivers
    }

    /// A namespace, with all that may waive a finding there now or at `since`.
    pub(super) fn place(&self, namespace: &str, since: Option<Timestamp>) -> Place {
        let reaching = self.reaching(namespace);
        let chain = self.parts.get(&reaching).cloned().unwrap_or_else(|| self.chain(&reaching));
        Place::within(namespace, &chain.projects, &chain.scopes, since)
    }

    fn reaching(&self, namespace: &str) -> Vec<bool> {
        self.above.iter().map(|(_, reach)| reach.covers_namespace(namespace)).collect()
    }

    fn chain(&self, reaching: &[bool]) -> Chain {
        let mut projects = vec![self.project.clone()];
        let mut scopes: Vec<Scope> = Vec::new();
        for ((scope, _), _) in self.above.iter().zip(reaching).filter(|(_, reaches)| **reaches) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
            if !projects.contains(&scope.project) {
                projects.push(scope.project.clone());
            }
        }
        Chain { projects: projects.into(), scopes: scopes.into() }
    }
}
