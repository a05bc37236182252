//! The Argo CDs of the cluster: found by what lies in their namespaces, and named by the policy.
//!
//! Anybody may create a ConfigMap where he may create anything. So what is found here gives no power: it adds instance names
//! that an Application could have, and claims. Whom the guard trusts is named by the policy ([`Installations::is_named`]).

use std::collections::{BTreeMap, HashSet};

use super::Names;
use crate::{
    argo::{Controller, Patterns, controller::Setting, tracking::TrackingSettings},
    policy::Policy,
};

/// Name that an application controller's ServiceAccount has in the manifests that Argo CD ships; the operator puts the name
/// of the ArgoCD resource before it.
const USUAL_ACCOUNT: &str = "argocd-application-controller";

/// Every Argo CD, by the namespace of its controllers.
#[derive(Clone, Debug, Default)]
pub struct Installations {
    found: BTreeMap<String, Installation>,
    /// Namespaces that the policy names.
    named: Vec<String>,
    /// What the policy says of the namespaces that are served, for those installations that do not say it themselves.
    served_by_policy: Option<Patterns>,
    /// Whether every `argocd-cmd-params-cm` was listed, so that one that is not there says something.
    parameters_listed: bool,
}

/// What lies in the namespace of one Argo CD.
#[derive(Clone, Debug, Default)]
struct Installation {
    settings: Option<TrackingSettings>,
    /// `application.namespaces`, where there is that key.
    parameters: Option<String>,
    controllers: BTreeMap<String, Controller>,
    served: Served,
}

/// The namespaces that one Argo CD serves besides its own.
#[derive(Clone, Debug, Default)]
enum Served {
    /// Nobody can tell.
    #[default]
    Unseen,
    /// Those that match. A pattern that cannot be read may match any.
    Seen(Patterns),
}

impl Installation {
    fn is_evidence(&self) -> bool {
        self.settings.is_some() || !self.controllers.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.is_evidence() && self.parameters.is_none()
    }

    /// A flag of a controller counts before the ConfigMap. A controller that is seen without the setting serves its own
    /// namespace only.
    fn look(&mut self, parameters_listed: bool) {
        let said = |controller: &Controller| match &controller.namespaces {
            Setting::Said(list) => Some(Served::list(list)),
            Setting::Elsewhere => Some(Served::Unseen),
            Setting::Unsaid => None,
        };
        self.served = match (self.controllers.values().find_map(said), &self.parameters) {
            (Some(served), _) => served,
            (None, Some(list)) => Served::list(list),
            (None, None) if parameters_listed && !self.controllers.is_empty() => Served::list(""),
            (None, None) => Served::Unseen,
        };
    }
}

impl Served {
    fn list(setting: &str) -> Self {
        Self::Seen(Patterns::new(setting.split(',')))
    }
}

impl Installations {
    /// Takes over what the policy says.
    pub(super) fn set_policy(&mut self, policy: &Policy) {
        self.named = policy.named_installations().map(str::to_owned).collect();
        let served = &policy.spec.argocd.application_namespaces;
        self.served_by_policy =
            Some(Patterns::new(served.iter().map(String::as_str))).filter(|patterns| !patterns.is_empty());
    }

    /// Names one installation, where there is no policy to do so.
    pub(super) fn name(&mut self, namespace: &str) {
        self.named.push(namespace.to_owned());
    }

    pub(super) fn set_settings(&mut self, namespace: &str, settings: Option<TrackingSettings>) {
        self.change(namespace, |installation| installation.settings = settings);
    }

    pub(super) fn set_parameters(&mut self, namespace: &str, served: Option<String>) {
        self.change(namespace, |installation| installation.parameters = served);
    }

    pub(super) fn set_controller(&mut self, namespace: &str, workload: &str, controller: Option<Controller>) {
        self.change(namespace, |installation| {
            match controller {
                Some(controller) => installation.controllers.insert(workload.to_owned(), controller),
                None => installation.controllers.remove(workload),
            };
        });
    }

    pub(super) fn set_parameters_listed(&mut self) {
        self.parameters_listed = true;
        for installation in self.found.values_mut() {
            installation.look(true);
        }
    }

    pub(super) fn retain_settings(&mut self, names: &Names) {
        let listed = namespaces(names);
        self.change_each(|namespace, installation| {
            installation.settings.take_if(|_| !listed.contains(namespace));
        });
    }

    pub(super) fn retain_parameters(&mut self, names: &Names) {
        let listed = namespaces(names);
        self.change_each(|namespace, installation| {
            installation.parameters.take_if(|_| !listed.contains(namespace));
        });
        self.set_parameters_listed();
    }

    /// Workloads of one kind, whose keys begin with `prefix`.
    pub(super) fn retain_controllers(&mut self, prefix: &str, names: &Names) {
        let listed: HashSet<(&str, &str)> = names.iter().map(|(namespace, name)| (&**namespace, &**name)).collect();
        self.change_each(|namespace, installation| {
            installation.controllers.retain(|workload, _| {
                workload.strip_prefix(prefix).is_none_or(|name| listed.contains(&(namespace, name)))
            });
        });
    }

    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Installation)) {
        let installation = self.found.entry(namespace.to_owned()).or_default();
        change(installation);
        installation.look(self.parameters_listed);
        if installation.is_empty() {
            self.found.remove(namespace);
        }
    }

    fn change_each(&mut self, mut change: impl FnMut(&str, &mut Installation)) {
        let listed = self.parameters_listed;
        self.found.retain(|namespace, installation| {
            change(namespace, installation);
            installation.look(listed);
            !installation.is_empty()
        });
    }

    /// Whether anything was found of any Argo CD. While nothing was, those that the policy names are assumed.
    pub fn any_found(&self) -> bool {
        self.found.values().any(Installation::is_evidence)
    }

    /// The namespaces of their controllers.
    pub fn homes(&self) -> impl Iterator<Item = &str> {
        let found = self.found.iter().filter(|(_, installation)| installation.is_evidence());
        let assumed = self.named.iter().filter(|_| !self.any_found());
        found.map(|(namespace, _)| namespace.as_str()).chain(assumed.map(String::as_str))
    }

    /// Whether an Argo CD has its controllers in this namespace.
    pub fn is_home(&self, namespace: &str) -> bool {
        match self.found.get(namespace) {
            Some(installation) if installation.is_evidence() => true,
            _ => !self.any_found() && self.is_named(namespace),
        }
    }

    /// Whether the policy names it, so that what its controllers do is waived and admitted.
    pub fn is_named(&self, home: &str) -> bool {
        self.named.iter().any(|named| named == home)
    }

    /// Those that the policy does not name.
    pub fn unnamed(&self) -> impl Iterator<Item = &str> {
        self.homes().filter(|home| !self.is_named(home))
    }

    /// Whether the Argo CD in `home` may serve Applications in `namespace`, by all that is known.
    pub fn may_serve(&self, home: &str, namespace: &str) -> bool {
        home == namespace
            || match self.found.get(home).map(|installation| &installation.served) {
                Some(Served::Seen(patterns)) => patterns.is_opaque() || patterns.match_text(namespace),
                Some(Served::Unseen) | None => {
                    self.served_by_policy.as_ref().is_none_or(|patterns| patterns.match_text(namespace))
                }
            }
    }

    /// Whether it really serves them: its own, those that it says, and where it does not say it those in which no other
    /// Argo CD lives.
    pub fn serves(&self, home: &str, namespace: &str) -> bool {
        let says = || {
            let served = self.found.get(home).map(|installation| &installation.served);
            matches!(served, Some(Served::Seen(patterns)) if patterns.match_text(namespace))
        };
        home == namespace || says() || (self.may_serve(home, namespace) && !self.is_home(namespace))
    }

    /// How the Argo CD in `home` marks its objects, if that can be read.
    pub fn settings(&self, home: &str) -> Option<&TrackingSettings> {
        self.found.get(home)?.settings.as_ref()
    }

    /// Every settings that can be read.
    pub(super) fn every_settings(&self) -> impl Iterator<Item = &TrackingSettings> {
        self.found.values().filter_map(|installation| installation.settings.as_ref())
    }

    /// Whether a ServiceAccount is that of an application controller which lives in its own namespace. Where no workload is
    /// seen, by the name it usually has.
    pub fn is_controller(&self, namespace: &str, account: &str) -> bool {
        if let Some(seen) = self.found.get(namespace).filter(|installation| !installation.controllers.is_empty()) {
            seen.controllers.values().any(|controller| controller.account == account)
        } else {
            let before = account.strip_suffix(USUAL_ACCOUNT);
            self.is_home(namespace) && before.is_some_and(|name| name.is_empty() || name.ends_with('-'))
        }
    }

    /// The users under which application controllers run that are seen in `home`, for people.
    pub fn controllers_in(&self, home: &str) -> Vec<String> {
        let controllers = self.found.get(home).into_iter().flat_map(|installation| installation.controllers.values());
        controllers.map(|controller| format!("system:serviceaccount:{home}:{}", controller.account)).collect()
    }
}

fn namespaces(names: &Names) -> HashSet<&str> {
    names.iter().map(|(namespace, _)| namespace.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(homes: &[&str]) -> Installations {
        let mut installations = Installations::default();
        installations.name("argocd");
        for home in homes {
            installations.set_settings(home, Some(TrackingSettings::default()));
        }
        installations
    }

    fn controller(namespaces: Setting) -> Controller {
        Controller { account: "controller".to_owned(), namespaces }
    }

    #[test]
    fn named_one_is_assumed_only_where_none_is_found() {
        assert_eq!(found(&[]).homes().collect::<Vec<_>>(), ["argocd"]);
        let one = found(&["gitops"]);
        assert_eq!(one.homes().collect::<Vec<_>>(), ["gitops"]);
        assert!(one.is_home("gitops") && !one.is_home("argocd") && !one.is_named("gitops"));
        assert_eq!(one.unnamed().collect::<Vec<_>>(), ["gitops"]);
    }

    #[test]
    fn what_is_not_seen_may_be_served_and_what_is_seen_decides() {
        let mut all = found(&["argocd", "gitops"]);
        assert!(all.may_serve("argocd", "team") && all.serves("argocd", "team"), "nobody can tell");
        assert!(all.may_serve("argocd", "gitops") && !all.serves("argocd", "gitops"), "another one lives there");
        all.set_parameters("argocd", Some("apps-*, team,/^x[0-9]$/".to_owned()));
        for (namespace, served) in [("argocd", true), ("apps-1", true), ("team", true), ("x1", true), ("other", false)]
        {
            assert_eq!(all.may_serve("argocd", namespace), served, "{namespace}");
            assert_eq!(all.serves("argocd", namespace), served, "{namespace}");
        }
        all.set_controller("argocd", "StatefulSet/c", Some(controller(Setting::Said("other".to_owned()))));
        assert!(
            all.serves("argocd", "other") && !all.may_serve("argocd", "team"),
            "a flag counts before the ConfigMap"
        );
        all.set_controller("argocd", "StatefulSet/c", Some(controller(Setting::Elsewhere)));
        assert!(all.may_serve("argocd", "anything"));
        all.set_parameters("gitops", Some("/(?!a)/".to_owned()));
        assert!(all.may_serve("gitops", "b") && all.serves("gitops", "b"), "what cannot be read may match");
        all.set_parameters("gitops", Some("*".to_owned()));
        assert!(all.serves("gitops", "argocd"), "it says so");
    }

    #[test]
    fn controller_without_the_setting_serves_its_own_namespace_once_the_config_maps_are_listed() {
        let mut all = found(&["argocd"]);
        all.set_controller("argocd", "StatefulSet/c", Some(controller(Setting::Unsaid)));
        assert!(all.may_serve("argocd", "team"), "the ConfigMap may say more");
        all.retain_parameters(&Names::new());
        assert!(!all.may_serve("argocd", "team") && all.serves("argocd", "argocd"));
        all.retain_controllers("StatefulSet/", &Names::new());
        assert!(all.may_serve("argocd", "team"));
    }

    #[test]
    fn policy_says_what_cannot_be_seen() {
        let mut all = found(&["gitops"]);
        let spec = serde_json::json!({"argocd": {"applicationNamespaces": ["team-*"], "installations": ["gitops"]}});
        all.set_policy(&Policy::new(serde_json::from_value(spec).unwrap()).unwrap());
        assert!(all.may_serve("gitops", "team-a") && !all.may_serve("gitops", "other"));
        assert!(all.is_named("gitops") && all.is_named("argocd"));
        all.set_parameters("gitops", Some("other".to_owned()));
        assert!(all.may_serve("gitops", "other") && !all.may_serve("gitops", "team-a"), "what is seen counts first");
    }

    #[test]
    fn controller_is_known_by_its_workload_or_by_the_usual_name() {
        let mut all = found(&["gitops"]);
        for (account, usual) in [
            ("argocd-application-controller", true),
            ("gitops-argocd-application-controller", true),
            ("argocd-server", false),
            ("xargocd-application-controller", false),
        ] {
            assert_eq!(all.is_controller("gitops", account), usual, "{account}");
            assert!(!all.is_controller("elsewhere", account));
        }
        all.set_controller("gitops", "Deployment/c", Some(controller(Setting::Unsaid)));
        assert!(all.is_controller("gitops", "controller"));
        assert!(!all.is_controller("gitops", "argocd-application-controller"), "the workload says which it is");
        assert_eq!(all.controllers_in("gitops"), ["system:serviceaccount:gitops:controller"]);
    }
}
