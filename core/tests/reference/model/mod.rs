//! A slow and obviously right reading of what a DELETE takes, who claims it, and whether it may pass.
//!
//! It is written from the design alone: it shares no code with the crate it is compared with, holds no index, and looks
//! through the whole cluster for every question. Quoted sentences are those of the design that a line stands for.
//! `shared-claim`, `namespace-approval` and `control-plane` on DELETE are read here, with every rule in enforce.

mod approval;
mod controllers;
mod explain;
mod installations;
mod lists;
mod plan;
mod projects;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

pub use self::{
    controllers::Begun,
    explain::is_undecided,
    plan::{Extent, Plan},
    verdict::decide,
};
use crate::{
    json::{group_of, list, text},
    world::World,
};

pub const ARGO: &str = "argoproj.io";
const DEFINITIONS: &str = "apiextensions.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// "Compare group, kind, namespace, name. Never version."
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Key {
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub fn is_namespace(&self) -> bool {
        self.is("", "Namespace")
    }

    pub fn is_application(&self) -> bool {
        self.is(ARGO, "Application")
    }

    fn is_set(&self) -> bool {
        self.is(ARGO, "ApplicationSet")
    }

    fn is_definition(&self) -> bool {
        self.is(DEFINITIONS, "CustomResourceDefinition")
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cluster {
    /// The cluster of the request.
    This,
    /// Another one, by its URL.
    Url(String),
    /// One whose name nobody can resolve.
    Name(String),
}

/// An object on a cluster.
pub type Item = (Cluster, Key);

/// The cluster that the model looks at.
pub struct Model<'w> {
    objects: BTreeMap<Key, &'w Value>,
    cluster_scoped: BTreeSet<(String, String)>,
    policy: Value,
    now: Timestamp,
}

impl<'w> Model<'w> {
    /// The cluster of a world.
    pub fn new(world: &'w World) -> Self {
        let mut cluster_scoped: BTreeSet<(String, String)> = [
            ("", "Namespace"),
            (RBAC, "ClusterRole"),
            (RBAC, "ClusterRoleBinding"),
            (DEFINITIONS, "CustomResourceDefinition"),
        ]
        .map(|(group, kind)| (group.to_owned(), kind.to_owned()))
        .into();
        for definition in world.objects.iter().filter(|object| text(object, "/spec/scope") == "Cluster") {
            let named = |path| text(definition, path).to_owned();
            cluster_scoped.insert((named("/spec/group"), named("/spec/names/kind")));
        }
        let now = world.now.parse().expect("the clock of a world is a time");
        let mut model = Self { objects: BTreeMap::new(), cluster_scoped, policy: world.policy(), now };
        let objects = world.objects.iter().map(|object| (model.key_of(object), object)).collect();
        model.objects = objects;
        model
    }

    /// "Cluster-scoped objects have no namespace even when a manifest or tracking-id says one."
    fn key(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Key {
        let scoped = self.cluster_scoped.contains(&(group.to_owned(), kind.to_owned()));
        let namespace = if scoped { "" } else { namespace };
        Key { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    pub fn key_of(&self, object: &Value) -> Key {
        let at = |path| text(object, path);
        self.key(group_of(at("/apiVersion")), at("/kind"), at("/metadata/namespace"), at("/metadata/name"))
    }

    /// The object that an entry of a list names. "An entry may lack a name."
    fn entry_key(&self, entry: &Value) -> Option<Key> {
        let at = |path| text(entry, path);
        (!at("/name").is_empty()).then(|| self.key(at("/group"), at("/kind"), at("/namespace"), at("/name")))
    }

    fn item_of(&self, object: &Value) -> Item {
        (Cluster::This, self.key_of(object))
    }

    fn live(&self, item: &Item) -> Option<&'w Value> {
        self.objects.get(&item.1).copied().filter(|_| item.0 == Cluster::This)
    }

    fn namespace(&self, name: &str) -> Option<&'w Value> {
        self.live(&(Cluster::This, self.key("", "Namespace", "", name)))
    }

    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &'w Value> {
        self.objects.iter().filter(move |(key, _)| key.is(ARGO, kind)).map(|(_, object)| *object)
    }

    fn apps(&self) -> impl Iterator<Item = &'w Value> {
        self.of_kind("Application")
    }

    /// "targets the same physical cluster (server or name, trailing slash, `in-cluster`, aliases from config)"
    fn cluster_of(&self, app: &Value) -> Cluster {
        let (server, name) = (text(app, "/spec/destination/server"), text(app, "/spec/destination/name"));
        let known =
            |text: &str| if text.contains("://") { Cluster::Url(url(text)) } else { Cluster::Name(text.into()) };
        let target = if server.is_empty() { known(name) } else { Cluster::Url(url(server)) };
        let this = [known("https://kubernetes.default.svc"), known("in-cluster")];
        if this.contains(&target) {
            return Cluster::This;
        }
        for group in list(&self.policy, "/argocd/clusterAliases") {
            let names: Vec<Cluster> = list(group, "").iter().filter_map(Value::as_str).map(known).collect();
            if names.contains(&target) {
                let is_this = names.iter().any(|name| this.contains(name));
                let by_url = names.iter().filter(|name| matches!(name, Cluster::Url(_))).min();
                return if is_this { Cluster::This } else { by_url.or(names.iter().min()).cloned().unwrap_or(target) };
            }
        }
        target
    }

    /// Whether `owner`, in the same namespace or without one, owns the object.
    fn is_owned_by(&self, object: &Value, owner: &Value) -> bool {
        let (key, uid) = (self.key_of(owner), text(owner, "/metadata/uid"));
        let same = |reference: &Value| {
            group_of(text(reference, "/apiVersion")) == key.group
                && text(reference, "/kind") == key.kind
                && text(reference, "/name") == key.name
                && text(reference, "/uid") == uid
        };
        (key.namespace.is_empty() || key.namespace == text(object, "/metadata/namespace"))
            && list(object, "/metadata/ownerReferences").iter().any(same)
    }
}

/// "Server URLs are compared by scheme, host in lower case, port, path."
fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (scheme, (host, path)) = (scheme.to_lowercase(), rest.split_once('/').unwrap_or((rest, "")));
    let usual = if scheme == "https" { "443" } else { "80" };
    let (host, port) = host.rsplit_once(':').unwrap_or((host, usual));
    format!("{scheme}://{}:{port}/{}", host.to_lowercase(), path.trim_end_matches('/'))
}

/// `namespace/name` of an Application.
pub fn path(app: &Value) -> String {
    format!("{}/{}", text(app, "/metadata/namespace"), text(app, "/metadata/name"))
}
