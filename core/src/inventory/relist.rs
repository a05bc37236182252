//! What a fresh list leaves out is gone: the other half of every relist.

use std::collections::HashSet;

use super::Inventory;

/// Namespaces and names of the objects that a list held.
pub type Names = HashSet<(String, String)>;

impl Inventory {
    /// Removes every Application that is not in `names`.
    pub fn retain_applications(&mut self, names: &Names) {
        let gone: Vec<_> = self
            .applications()
            .filter(|(_, app)| !names.contains(&(app.namespace.to_string(), app.name.to_string())))
            .map(|(_, app)| (app.namespace.clone(), app.name.clone()))
            .collect();
        for (namespace, name) in gone {
            self.remove_application(&namespace, &name);
        }
    }

    /// Removes every ApplicationSet that is not in `names`.
    pub fn retain_appsets(&mut self, names: &Names) {
        let gone: Vec<_> = self.appsets.keys().filter(|place| !names.contains(*place)).cloned().collect();
        for (namespace, name) in gone {
            self.remove_appset(&namespace, &name);
        }
    }

    /// Removes every AppProject that is not in `names`.
    pub fn retain_projects(&mut self, names: &Names) {
        self.projects.retain(|place, _| names.contains(place));
    }

    /// Removes every Namespace that is not in `names`; Namespaces have no namespace themselves.
    pub fn retain_namespaces(&mut self, names: &Names) {
        let gone: Vec<String> =
            self.namespaces.keys().filter(|name| !names.contains(&(String::new(), (*name).clone()))).cloned().collect();
        for name in gone {
            self.remove_namespace(&name);
        }
    }

    /// Forgets the settings of every Argo CD whose `argocd-cm` is not in `names`.
    pub fn retain_settings(&mut self, names: &Names) {
        self.installations.retain_settings(names);
    }

    /// Forgets what every Argo CD serves whose `argocd-cmd-params-cm` is not in `names`. From then on, one that is not there
    /// is known not to be there.
    pub fn retain_parameters(&mut self, names: &Names) {
        self.installations.retain_parameters(names);
    }

    /// Forgets every workload of this kind that is not in `names`.
    pub fn retain_controllers(&mut self, kind: &str, names: &Names) {
        self.installations.retain_controllers(&format!("{kind}/"), names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        argo::{Clusters, tracking::TrackingSettings},
        inventory::{AppSet, Project},
        object::ObjectMeta,
    };

    fn named(namespace: &str, name: &str) -> ObjectMeta {
        ObjectMeta { namespace: namespace.to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
    }

    #[test]
    fn objects_that_a_list_leaves_out_are_gone() {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        for name in ["kept", "gone"] {
            inventory.apply_namespace(named("", name));
            inventory.apply_appset(AppSet::new(named("argocd", name), "{}"));
            inventory.apply_project(Project { meta: named("argocd", name), ..Project::default() });
            inventory.set_settings(name, Some(TrackingSettings::default()));
        }
        inventory.retain_namespaces(&[(String::new(), "kept".to_owned())].into());
        let listed = [("argocd".to_owned(), "kept".to_owned())].into();
        inventory.retain_appsets(&listed);
        inventory.retain_projects(&listed);
        inventory.retain_settings(&[("kept".to_owned(), "argocd-cm".to_owned())].into());
        assert!(inventory.namespace("kept").is_some() && inventory.namespace("gone").is_none());
        assert!(inventory.appset("argocd", "kept").is_some() && inventory.appset("argocd", "gone").is_none());
        assert_eq!(inventory.projects().count(), 1);
        assert!(inventory.settings("kept").is_some() && inventory.settings("gone").is_none());
    }
}
