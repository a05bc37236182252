//! Which Argo CD an Application belongs to, under which names its marker may stand on objects, and what its project permits.

use std::collections::HashSet;

use super::{App, AppId, Installations, Inventory, Key, LOCAL, markers::instances};
use crate::{
    argo::{
        Controller, Marker, ProjectSpec,
        tracking::{self, TRACKING_ID, TrackingSettings},
    },
    object::ObjectMeta,
    policy::Policy,
};

/// What an Application may be to one Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Namespace of that Argo CD's controllers.
    pub home: &'a str,
    /// The Application's name in the markers it writes.
    pub instance: String,
}

/// Whose marker an object carries, as one Application asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership<'m> {
    /// One under a name that the Application may have.
    Own,
    /// Another Application's, by this name.
    Other {
        /// The name.
        instance: &'m str,
        /// Whether it is only the usual label, and nobody knows whether Argo CD goes by it: Helm writes the same.
        unproven: bool,
    },
    /// None.
    Nobody,
    /// How this Argo CD marks its objects cannot be read, and nothing on the object names an owner.
    Unknown,
}

impl Inventory {
    /// The Argo CDs of the cluster.
    pub fn installations(&self) -> &Installations {
        &self.installations
    }

    /// Takes over what the policy says of Argo CD's namespaces.
    pub fn set_policy(&mut self, policy: &Policy) {
        self.installations.set_policy(policy);
    }

    /// Sets (or forgets) how the Argo CD in `namespace` marks its objects.
    pub fn set_settings(&mut self, namespace: &str, settings: Option<TrackingSettings>) {
        self.installations.set_settings(namespace, settings);
        self.mark_namespaces();
    }

    /// Sets (or forgets) what the `argocd-cmd-params-cm` in `namespace` says of the namespaces that are served.
    pub fn set_parameters(&mut self, namespace: &str, served: Option<String>) {
        self.installations.set_parameters(namespace, served);
    }

    /// Says that every `argocd-cmd-params-cm` was listed.
    pub fn set_parameters_listed(&mut self) {
        self.installations.set_parameters_listed();
    }

    /// Sets (or forgets) a workload of an application controller; `kind` is that of the workload.
    pub fn set_controller(&mut self, kind: &str, namespace: &str, name: &str, controller: Option<Controller>) {
        self.installations.set_controller(namespace, &format!("{kind}/{name}"), controller);
    }

    /// The tracking settings of the Argo CD whose controllers live in `namespace`, if they can be read.
    pub fn settings(&self, namespace: &str) -> Option<&TrackingSettings> {
        self.installations.settings(namespace)
    }

    /// What an Application may be to each Argo CD that may serve it. Where none is known to, every name it could have
    /// counts. Never empty, the likeliest first.
    pub fn identities_of<'a>(&'a self, app: &'a App) -> Vec<Identity<'a>> {
        let installations = &self.installations;
        let namespace = &*app.namespace;
        let mut found: Vec<Identity<'a>> = Vec::new();
        let mut add = |home: &'a str, plain: bool| {
            let within = if plain { namespace } else { "" };
            let identity = Identity { home, instance: tracking::instance_name(namespace, &app.name, within) };
            if !found.contains(&identity) {
                found.push(identity);
            }
        };
        let is_home = installations.is_home(namespace);
        if is_home {
            add(namespace, true);
        }
        let others = || installations.homes().filter(|home| *home != namespace);
        let mut is_known = is_home;
        for home in others().filter(|home| installations.may_serve(home, namespace)) {
            add(home, false);
            is_known |= installations.any_found();
        }
        // The status says so. Whoever may write an Application may write that, so it only adds.
        if !app.reported_home.is_empty() {
            add(&app.reported_home, *app.reported_home == *namespace);
        }
        if !is_known {
            for home in others() {
                add(home, false);
                add(home, true);
            }
        }
        found
    }

    /// The likeliest name of an Application in markers.
    pub fn instance_of(&self, app: &App) -> String {
        self.identities_of(app).into_iter().next().map_or_else(|| app.name.to_string(), |identity| identity.instance)
    }

    /// How the Argo CD marks its objects that is likeliest to serve an Application, if that can be read.
    pub fn settings_of(&self, app: &App) -> Option<&TrackingSettings> {
        let homes = self.homes_of(app).next();
        self.settings(homes.or_else(|| self.installations.homes().next())?)
    }

    /// Whether it can be read how some Argo CD marks its objects that may serve an Application.
    pub fn marks_are_known(&self, app: &App) -> bool {
        self.identities_of(app).iter().any(|identity| self.settings(identity.home).is_some())
    }

    /// Whether an Application may write markers with this name.
    pub fn may_be(&self, app: &App, instance: &str) -> bool {
        self.identities_of(app).iter().any(|identity| identity.instance == instance)
    }

    /// Namespaces of the Argo CDs that really serve an Application ([`Installations::serves`]).
    pub fn homes_of<'a>(&'a self, app: &'a App) -> impl Iterator<Item = &'a str> {
        let homes = self.installations.homes();
        homes.filter(|home| self.installations.serves(home, &app.namespace))
    }

    /// Whether the Argo CD in `home` really serves an Application.
    pub fn belongs_to(&self, app: &App, home: &str) -> bool {
        self.homes_of(app).any(|own| own == home)
    }

    /// Whether some Argo CD may serve Applications in `namespace`.
    pub fn is_served(&self, namespace: &str) -> bool {
        self.installations.homes().any(|home| self.installations.may_serve(home, namespace))
    }

    /// Whose marker an object carries, as `app` asks.
    pub fn ownership<'m>(&self, app: &App, meta: &'m ObjectMeta) -> Ownership<'m> {
        self.ownership_by(&self.identities_of(app), meta)
    }

    fn ownership_by<'m>(&self, identities: &[Identity<'_>], meta: &'m ObjectMeta) -> Ownership<'m> {
        let mut found = Ownership::Nobody;
        for identity in identities {
            let settings = self.settings(identity.home);
            match tracking::marker(meta, settings) {
                Marker::Instance(instance) if instance == identity.instance => return Ownership::Own,
                Marker::Unknown => found = Ownership::Unknown,
                Marker::Instance(instance) if found == Ownership::Nobody => {
                    let unproven = settings.is_none() && meta.annotation(TRACKING_ID).is_none();
                    found = Ownership::Other { instance, unproven };
                }
                Marker::Instance(_) | Marker::None => {}
            }
        }
        found
    }

    /// Applications of which an Argo CD may write this name into markers: several, where several Argo CDs have one of that
    /// name.
    pub fn apps_of_instance(&self, instance: &str) -> Vec<AppId> {
        // Names of Kubernetes hold no underscore.
        let named = match instance.split_once('_') {
            Some((namespace, name)) => self.app_named(namespace, name).into_iter().collect(),
            None => self.by_name.get(instance).cloned().unwrap_or_default(),
        };
        named.into_iter().filter(|id| self.app(*id).is_some_and(|app| self.may_be(app, instance))).collect()
    }

    /// Applications on the guard's own cluster that may have written the marker of an object: of those of that name the ones
    /// that an Argo CD really serves, and of these the ones that list it, where there are any.
    pub fn writers(&self, meta: &ObjectMeta, key: Key) -> Vec<AppId> {
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        for id in instances(meta).flat_map(|instance| self.apps_of_instance(instance)) {
            let wrote = |app: &App| app.cluster == LOCAL && self.ownership(app, meta) == Ownership::Own;
            if known.insert(id) && self.app(id).is_some_and(wrote) {
                found.push(id);
            }
        }
        let served = |app: &App| {
            let identities = self.identities_of(app).into_iter().filter(|identity| self.belongs_to(app, identity.home));
            self.ownership_by(&identities.collect::<Vec<_>>(), meta) == Ownership::Own
        };
        let lists = |app: &App| app.claim(key).is_some();
        for better in [&served as &dyn Fn(&App) -> bool, &lists] {
            let is_better = |id: &AppId| self.app(*id).is_some_and(better);
            if found.len() > 1 && found.iter().any(is_better) {
                found.retain(is_better);
            }
        }
        found
    }

    // ---- projects

    /// Whether the project of an Application permits it to deploy into a namespace; for objects that have none, whether it
    /// permits it to deploy anything. What nobody can tell is permitted: where the projects of its Argo CD are not known,
    /// or no Argo CD is known to serve it. One that lives with its Argo CD needs no project for that.
    pub fn permits(&self, app: &App, namespace: &str) -> bool {
        let mut homes = self.homes_of(app).peekable();
        homes.peek().is_none()
            || homes.any(|home| match self.project(home, &app.project) {
                Some(project) => self.permitted_by(&project.spec, home, app, namespace),
                None => home == &*app.namespace || !self.knows_projects(home),
            })
    }

    pub(super) fn permitted_by(&self, project: &ProjectSpec, home: &str, app: &App, namespace: &str) -> bool {
        let cluster = self.clusters.spellings(&app.destination);
        let into = |namespace: &str| namespace.is_empty() || project.permits_destination(&cluster, namespace);
        (home == &*app.namespace || project.permits_source(&app.namespace))
            && into(&app.destination.namespace)
            && into(namespace)
    }

    /// Whether the AppProjects of an Argo CD were seen. It makes one by itself, so that none at all means that they were not.
    pub(super) fn knows_projects(&self, home: &str) -> bool {
        let from = (home.to_owned(), String::new());
        self.projects.range(from..).next().is_some_and(|((namespace, _), _)| namespace == home)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        argo::{Application, Clusters},
        inventory::Project,
        object::ObjectRef,
    };

    fn inventory(homes: &[&str]) -> Inventory {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        for home in homes {
            inventory.set_settings(home, Some(TrackingSettings::default()));
        }
        inventory
    }

    fn app(inventory: &mut Inventory, namespace: &str, reported: &str) -> AppId {
        let text = json!({"metadata": {"name": "shop", "namespace": namespace}, "spec": {"project": "p",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
            "status": {"controllerNamespace": reported}})
        .to_string();
        inventory.apply_application(&serde_json::from_str::<Application<'_>>(&text).unwrap())
    }

    fn names(inventory: &Inventory, id: AppId) -> Vec<String> {
        let identities = inventory.identities_of(inventory.app(id).unwrap());
        identities.into_iter().map(|identity| format!("{} {}", identity.home, identity.instance)).collect()
    }

    #[test]
    fn application_has_every_name_that_some_argo_cd_may_give_it() {
        let mut all = inventory(&["argocd", "gitops"]);
        for home in ["argocd", "gitops"] {
            all.set_parameters(home, Some("team".to_owned()));
        }
        let own = app(&mut all, "gitops", "");
        let between = app(&mut all, "team", "");
        let nowhere = app(&mut all, "evil", "");
        assert_eq!(names(&all, own), ["gitops shop"]);
        assert_eq!(names(&all, between), ["argocd team_shop", "gitops team_shop"]);
        let either = ["argocd evil_shop", "argocd shop", "gitops evil_shop", "gitops shop"];
        assert_eq!(names(&all, nowhere), either, "none is known to serve it");
        assert!(all.is_served("team") && !all.is_served("evil"));
        assert_eq!(all.apps_of_instance("shop"), [own, nowhere]);
        assert_eq!(all.apps_of_instance("team_shop"), [between]);
        assert!(all.apps_of_instance("gitops_shop").is_empty());
    }

    #[test]
    fn reported_home_and_a_config_map_only_add_names() {
        let mut all = inventory(&["argocd"]);
        all.set_parameters("argocd", Some("*".to_owned()));
        let forged = app(&mut all, "evil", "evil");
        assert_eq!(names(&all, forged), ["argocd evil_shop", "evil shop"]);
        all.set_settings("evil", Some(TrackingSettings::default()));
        assert_eq!(names(&all, forged), ["evil shop", "argocd evil_shop"]);
    }

    #[test]
    fn without_any_argo_cd_the_named_one_is_assumed_and_nobody_knows_what_it_serves() {
        let mut none = inventory(&[]);
        let (own, other) = (app(&mut none, "argocd", ""), app(&mut none, "team", ""));
        assert_eq!(names(&none, own), ["argocd shop"]);
        assert_eq!(names(&none, other), ["argocd team_shop", "argocd shop"]);
    }

    #[test]
    fn project_permits_what_it_names_and_one_that_does_not_exist_only_at_home() {
        let mut all = inventory(&["argocd"]);
        let (own, tenant) = (app(&mut all, "argocd", ""), app(&mut all, "team", ""));
        let permits = |all: &Inventory, id: AppId, namespace: &str| all.permits(all.app(id).unwrap(), namespace);
        assert!(permits(&all, own, "x") && permits(&all, tenant, "x"), "nothing is known of projects");
        let project = |name: &str, spec: serde_json::Value| Project {
            meta: ObjectMeta { namespace: "argocd".to_owned(), name: name.to_owned(), ..ObjectMeta::default() },
            spec: ProjectSpec::read(&json!({ "spec": spec }).to_string()).into(),
        };
        all.apply_project(project("default", json!({})));
        assert!(permits(&all, own, "x") && !permits(&all, tenant, "x"));
        let to = |namespace: &str| json!([{"server": "*", "namespace": namespace}]);
        all.apply_project(project("p", json!({"destinations": to("shop")})));
        assert!(permits(&all, own, "shop") && permits(&all, own, "") && !permits(&all, own, "x"));
        assert!(!permits(&all, tenant, "shop"), "its namespace is none of the project's");
        all.apply_project(project("p", json!({"destinations": to("shop"), "sourceNamespaces": ["team"]})));
        assert!(permits(&all, tenant, "shop") && !permits(&all, tenant, "x"));
        all.apply_project(project("p", json!({"destinations": to("x"), "sourceNamespaces": ["team"]})));
        assert!(!permits(&all, tenant, "x"), "its own destination is not permitted, so nothing is deployed");
        let reach = all.reach_of(all.app(own).unwrap());
        assert!(!reach.covers_namespace("x") && !reach.covers(&ObjectRef::namespace("x")), "nothing is permitted");
        all.apply_project(project(
            "p",
            json!({"destinations": to("shop"),
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}),
        ));
        let reach = all.reach_of(all.app(own).unwrap());
        assert!(reach.covers_namespace("shop") && !reach.covers_namespace("x"));
        assert!(reach.covers(&ObjectRef::namespace("x")) && reach.covers_namespace(""));
    }
}
