//! Applications that cannot be decoded. One of them must not spoil what is known of all others, and must not be forgotten.

use std::sync::Arc;

use super::{AppId, Inventory, app::UNREADABLE, with_earlier};
use crate::argo::{Application, Destination};

impl Inventory {
    /// Adds or changes an Application of which only `part` can be decoded. Its list is not believed, and nobody knows what
    /// else it wants; what it was known to claim before it still claims.
    pub fn apply_unreadable(&mut self, part: &Application<'_>) -> AppId {
        let metadata = &part.metadata;
        let old = self.app_named(&metadata.namespace, &metadata.name).and_then(|id| self.app(id));
        let old = old.filter(|old| *old.uid == *metadata.uid || metadata.uid.is_empty()).cloned();
        let id = self.apply_application(part);
        let Some(app) = self.apps.get_mut(id.0 as usize).and_then(Option::take) else { return id };
        let mut app = Arc::unwrap_or_clone(app);
        self.unlink(id, &app);
        let listed = std::mem::take(&mut app.claims);
        app.distrust = Some(UNREADABLE);
        app.claims = match old {
            Some(old) => {
                // What cannot be read of the destination is what it was.
                if app.destination == Destination::default() {
                    (app.destination, app.cluster) = (old.destination.clone(), old.cluster);
                }
                if app.cluster == old.cluster { with_earlier(&listed, old.claims.iter()) } else { listed.clone() }
            }
            None => listed.clone(),
        };
        self.claims.replace(id, &listed, &app.claims);
        self.link(id, &app);
        self.apps.set(id.0 as usize, Some(Arc::new(app)));
        id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        argo::{Clusters, partial},
        inventory::{App, LOCAL},
        object::ObjectRef,
    };

    fn application(lists: &[&str]) -> Value {
        let entry = |name: &&str| json!({"kind": "ConfigMap", "namespace": "shop", "name": name, "status": "Synced"});
        json!({"metadata": {"name": "a", "namespace": "argocd", "uid": "u", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
            "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
                "resources": lists.iter().map(entry).collect::<Vec<_>>()}})
    }

    fn inventory(first: Option<&Value>, then: &Value) -> Inventory {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        if let Some(first) = first {
            inventory.apply_application(&serde_json::from_str::<Application<'_>>(&first.to_string()).unwrap());
        }
        inventory.apply_unreadable(&partial("argocd", "a", &then.to_string()));
        inventory
    }

    fn app(inventory: &Inventory) -> &App {
        inventory.app(inventory.app_named("argocd", "a").unwrap()).unwrap()
    }

    fn claims(inventory: &Inventory, name: &str) -> bool {
        let key = inventory.key_of(LOCAL, &ObjectRef::new("", "ConfigMap", "shop", name));
        let app = app(inventory);
        inventory.claims().owners(key).len() == 1 && app.claim(key).is_some_and(|claim| app.claims_class(claim.class))
    }

    #[test]
    fn what_it_was_known_to_claim_and_what_can_be_read_now_both_count() {
        let mut odd = application(&["new"]);
        odd["spec"]["source"] = json!(5);
        let inventory = inventory(Some(&application(&["old"])), &odd);
        assert!(claims(&inventory, "old") && claims(&inventory, "new"));
        assert!(app(&inventory).wants_unknown() && !app(&inventory).list_valid() && app(&inventory).cascades);
    }

    #[test]
    fn another_one_of_its_name_claims_only_what_can_be_read() {
        let mut odd = application(&["new"]);
        (odd["spec"]["source"], odd["metadata"]["uid"]) = (json!(5), json!("another"));
        let inventory = inventory(Some(&application(&["old"])), &odd);
        assert!(!claims(&inventory, "old") && claims(&inventory, "new"));
    }

    #[test]
    fn destination_that_cannot_be_read_is_what_it_was() {
        let mut odd = application(&[]);
        odd["spec"] = json!(5);
        let known = inventory(Some(&application(&["old"])), &odd);
        assert_eq!(app(&known).destination.namespace, "shop");
        assert!(claims(&known, "old") && known.applications_to("shop").len() == 1);
        assert!(app(&inventory(None, &odd)).destination.namespace.is_empty());
    }

    #[test]
    fn one_that_can_be_read_again_is_believed_again() {
        let mut odd = application(&[]);
        odd["status"] = json!(5);
        let mut inventory = inventory(Some(&application(&["old"])), &odd);
        assert!(inventory.wanting_unknown().next().is_some());
        inventory
            .apply_application(&serde_json::from_str::<Application<'_>>(&application(&["new"]).to_string()).unwrap());
        assert!(
            inventory.wanting_unknown().next().is_none() && !claims(&inventory, "old") && claims(&inventory, "new")
        );
    }
}
