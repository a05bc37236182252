//! What is deleted, and by whom.

use super::{COLLECTOR, CONTROLLER, FINALIZER, Maker, NAMESPACE_CONTROLLER, SERVER, SETS, Shape};
use crate::json::{list, terminating, text, truth};

impl Maker {
    /// The place of what is deleted, who deletes it, and the propagation policy.
    pub(super) fn request(&mut self, shape: Shape) -> (usize, &'static str, String) {
        if shape == Shape::Set && self.chance(50) {
            if let Some(set) = self.find(["ApplicationSet", "argocd", "teams"]).filter(|at| self.is_fresh(*at)) {
                let user = self.pick(&[(3, "ops-user"), (1, CONTROLLER), (1, SERVER)]);
                return self.ask(set, Some(user));
            }
            let owned = |at: &usize| !list(&self.objects[*at], "/metadata/ownerReferences").is_empty();
            let children: Vec<_> = self.apps().into_iter().filter(owned).filter(|at| self.is_fresh(*at)).collect();
            if !children.is_empty() {
                let child = self.one_of(&children);
                return self.ask(child, Some(COLLECTOR));
            }
        }
        let explained = self.explained();
        let percent = if shape == Shape::Plain { 20 } else { 60 };
        if !explained.is_empty() && self.chance(percent) {
            let at = self.one_of(&explained);
            return self.ask(at, Some(CONTROLLER));
        }
        let at = self.wanted();
        self.ask(at, None)
    }

    fn is_fresh(&self, at: usize) -> bool {
        !terminating(&self.objects[at])
    }

    fn cascades(&self, at: usize) -> bool {
        let finalizers = list(&self.objects[at], "/metadata/finalizers");
        finalizers.iter().any(|one| one.as_str().is_some_and(|one| one.starts_with(FINALIZER)))
    }

    /// Something of a kind that is rarely deleted, or an Application that cascades.
    fn wanted(&mut self) -> usize {
        let kinds = [
            (50, "Application"),
            (5, "ApplicationSet"),
            (14, "Namespace"),
            (4, "CustomResourceDefinition"),
            (4, "AppProject"),
            (6, "Role"),
            (6, "RoleBinding"),
            (4, "ServiceAccount"),
            (4, "ClusterRole"),
            (3, "ConfigMap"),
            (2, "Foo"),
        ];
        let settings = |at: &usize| text(&self.objects[*at], "/metadata/name").starts_with("argocd-cm");
        let known: Vec<(u32, Vec<usize>)> = kinds
            .iter()
            .map(|(weight, kind)| (*weight, self.places_of(kind).into_iter().filter(|at| !settings(at)).collect()))
            .filter(|(_, places): &(u32, Vec<usize>)| !places.is_empty())
            .collect();
        let places = self.pick(&known);
        // What is terminating already is allowed at once.
        let fresh: Vec<usize> = places.iter().copied().filter(|at| self.is_fresh(*at)).collect();
        let places = if fresh.is_empty() || self.chance(3) { places } else { fresh };
        let cascading: Vec<usize> = places.iter().copied().filter(|at| self.cascades(*at)).collect();
        let at = if cascading.is_empty() || self.chance(10) { self.one_of(&places) } else { self.one_of(&cascading) };
        self.take_over(at);
        at
    }

    /// Most of what an Application lists carries its marker.
    fn take_over(&mut self, app: usize) {
        if text(&self.objects[app], "/kind") == "Application" && self.chance(50) {
            for at in self.listed(app, |_| true) {
                if self.chance(60) {
                    self.mark_by(at, app);
                }
            }
        }
    }

    /// What the application controller has a reason to delete.
    fn explained(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for app in self.apps() {
            if !self.is_fresh(app) {
                for _ in 0..3 {
                    found.extend(self.listed(app, |_| true));
                }
            }
            found.extend(self.listed(app, |entry| truth(entry, "/requiresPruning")));
            let object = &self.objects[app];
            if object.get("operation").is_some() || text(object, "/status/operationState/phase") == "Running" {
                let desired = |entry: &serde_json::Value| {
                    !truth(entry, "/requiresPruning") && ["Synced", "OutOfSync"].contains(&text(entry, "/status"))
                };
                found.extend(self.listed(app, desired));
            }
        }
        found.retain(|at| self.is_fresh(*at));
        found
    }

    fn ask(&mut self, at: usize, user: Option<&'static str>) -> (usize, &'static str, String) {
        let user = user.unwrap_or_else(|| {
            self.pick(&[
                (40, "ops-user"),
                (3, "alice"),
                (8, SERVER),
                (9, SETS),
                (30, CONTROLLER),
                (6, COLLECTOR),
                (4, NAMESPACE_CONTROLLER),
            ])
        });
        let object = &self.objects[at];
        let is_child = text(object, "/kind").starts_with("Application");
        let has_owner = !list(object, "/metadata/ownerReferences").is_empty();
        let home = text(object, "/metadata/namespace");
        let cannot_be = (user == COLLECTOR && is_child && !has_owner)
            || (user == NAMESPACE_CONTROLLER && !home.is_empty() && !self.has(["Namespace", "", home]));
        let user = if cannot_be { "ops-user" } else { user };
        let policy = self.pick(&[(60, ""), (20, "Foreground"), (10, "Background"), (4, "Orphan")]);
        let policy = if policy == "Orphan" && !["ops-user", SERVER].contains(&user) { "" } else { policy };
        (at, user, policy.to_owned())
    }
}
