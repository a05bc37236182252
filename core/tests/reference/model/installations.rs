//! Whose Application it is, which names it goes by in markers, and who deletes on its behalf.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Cluster, Model};
use crate::json::{annotation, glob, label, list, text};

const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// How an installation marks what it deploys.
pub(super) struct Tracking {
    method: String,
    label: String,
    installation: String,
}

impl Model<'_> {
    fn config_map(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.live(&(Cluster::This, self.key("", "ConfigMap", namespace, name)))
    }

    fn policy_namespace(&self) -> &str {
        text(&self.policy, "/argocd/namespace")
    }

    /// "the namespace with `argocd-cm` itself"; the policy names one.
    pub(super) fn installations(&self) -> BTreeSet<&str> {
        let settings = self.objects.keys().filter(|key| key.is("", "ConfigMap") && key.name == "argocd-cm");
        settings.map(|key| key.namespace.as_str()).chain([self.policy_namespace()]).collect()
    }

    /// The namespaces that an installation serves besides its own; `None` where that cannot be seen.
    fn patterns(&self, installation: &str) -> Option<Vec<&str>> {
        // "`applicationNamespaces` unset means what the installations say"
        if installation == self.policy_namespace() && self.policy.pointer("/argocd/applicationNamespaces").is_some() {
            return Some(
                list(&self.policy, "/argocd/applicationNamespaces").iter().filter_map(Value::as_str).collect(),
            );
        }
        let parameters = self.config_map(installation, "argocd-cmd-params-cm");
        let said = parameters.map_or("", |map| map["data"]["application.namespaces"].as_str().unwrap_or_default());
        // "no key and no controller workload seen means that it cannot be seen, and every namespace counts as served"
        (!said.is_empty()).then(|| said.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).collect())
    }

    /// The installations that surely serve Applications in a namespace, and those that may.
    fn serving(&self, namespace: &str) -> (Vec<&str>, Vec<&str>) {
        let all = self.installations();
        if let Some(own) = all.get(namespace) {
            return (vec![own], vec![own]);
        }
        let covers = |installation: &&str| {
            self.patterns(installation).map(|some| some.iter().any(|pattern| glob(pattern, namespace)))
        };
        let sure = all.iter().copied().filter(|one| covers(one) == Some(true)).collect();
        let may = all.iter().copied().filter(|one| covers(one) != Some(false)).collect();
        (sure, may)
    }

    pub(super) fn is_served(&self, app: &Value) -> bool {
        !self.serving(text(app, "/metadata/namespace")).1.is_empty()
    }

    /// "an Application belongs to the installation that serves its namespace"
    pub(super) fn installation_of(&self, app: &Value) -> Option<&str> {
        let (sure, may) = self.serving(text(app, "/metadata/namespace"));
        let some = if sure.is_empty() { may } else { sure };
        some.iter().copied().find(|one| *one == self.policy_namespace()).or(some.first().copied())
    }

    /// "its instance name": NAME in the installation's own namespace, `NAMESPACE_NAME` elsewhere. "where more than one may
    /// serve an Application, or none is known to, every instance name it could have counts as its own"
    fn instance_names(&self, app: &Value) -> Vec<String> {
        let (namespace, name) = (text(app, "/metadata/namespace"), text(app, "/metadata/name"));
        let (plain, long) = (name.to_owned(), format!("{namespace}_{name}"));
        let all = self.installations();
        if all.contains(namespace) {
            let mut others = all.iter().filter(|other| **other != namespace).filter_map(|other| self.patterns(other));
            let shared = others.any(|patterns| patterns.iter().any(|pattern| glob(pattern, namespace)));
            return if shared { vec![plain, long] } else { vec![plain] };
        }
        match self.serving(namespace) {
            (sure, may) if sure.len() == 1 && may.len() == 1 => vec![long],
            _ => vec![plain, long],
        }
    }

    /// How an Application's objects are marked; `None` where the tracking method is not known.
    pub(super) fn tracking(&self, app: &Value) -> Option<Tracking> {
        let settings = self.config_map(self.installation_of(app)?, "argocd-cm")?;
        let set = |key: &str, usual: &str| settings["data"][key].as_str().unwrap_or(usual).to_owned();
        Some(Tracking {
            method: set("application.resourceTrackingMethod", "annotation"),
            label: set("application.instanceLabelKey", "app.kubernetes.io/instance"),
            installation: set("installationID", ""),
        })
    }

    /// The instance name that an object carries; empty for none.
    pub(super) fn marker<'o>(object: &'o Value, tracking: Option<&Tracking>) -> &'o str {
        let installation = tracking.map_or("", |tracking| &tracking.installation);
        if let Some(tracking) = tracking.filter(|tracking| tracking.method == "label") {
            return label(object, &tracking.label);
        }
        if !installation.is_empty() && annotation(object, "argocd.argoproj.io/installation-id") != installation {
            return "";
        }
        // `app:group/kind:namespace/name`; what is malformed names no owner.
        let parts: Vec<&str> = annotation(object, TRACKING_ID).splitn(3, ':').collect();
        match parts[..] {
            [app, kind, name] if kind.matches('/').count() == 1 && name.matches('/').count() == 1 => app,
            _ => "",
        }
    }

    pub(super) fn is_marked_by(&self, object: &Value, app: &Value) -> bool {
        let marker = Self::marker(object, self.tracking(app).as_ref());
        !marker.is_empty() && self.instance_names(app).iter().any(|name| name == marker)
    }

    pub(super) fn names(&self, app: &Value, marker: &str) -> bool {
        self.instance_names(app).iter().any(|name| name == marker)
    }

    fn is_identity(&self, key: &str, usual: &str, user: &str) -> bool {
        match self.policy.pointer(&format!("/identities/{key}")) {
            Some(named) => list(named, "").iter().any(|name| name == user),
            None => user == usual,
        }
    }

    /// "only identities that sync, prune and cascade (application-controller, ...)"
    pub(super) fn is_argocd(&self, user: &str) -> bool {
        self.is_identity("argocd", "system:serviceaccount:argocd:argocd-application-controller", user)
    }

    pub(super) fn is_garbage_collector(&self, user: &str) -> bool {
        let usual = "system:serviceaccount:kube-system:generic-garbage-collector";
        self.is_identity("garbageCollector", usual, user)
    }
}
