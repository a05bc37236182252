//! Random small worlds. Names come from a small alphabet, so that Applications collide. What the API server or Argo CD would
//! never show (an Application of two owners, a request for what does not exist) is left out; what is unusual is not.

mod apps;
mod lists;
mod requests;
mod shapes;
mod things;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::{
    json::{group_of, list, text},
    world::World,
};

pub const CONTROLLER: &str = "system:serviceaccount:argocd:argocd-application-controller";
pub const SETS: &str = "system:serviceaccount:argocd:argocd-applicationset-controller";
pub const SERVER: &str = "system:serviceaccount:argocd:argocd-server";
pub const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
pub const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";

const NOW: &str = "2026-11-29T12:00:00Z";
const EARLIER: &str = "2026-11-29T11:57:00Z";
const BEGAN: &str = "2026-11-29T11:59:00Z";
const HERE: &str = "https://kubernetes.default.svc";
const EAST: &str = "https://east.example.com:6443";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const APPS: [&str; 6] = ["alpha", "bravo", "carol", "delta", "eagle", "frank"];
/// Namespaces that Applications deploy into.
const WHERE: [&str; 2] = ["shop", "store"];
const FOOS: [&str; 3] = ["CustomResourceDefinition", "", "foos.example.com"];

/// Which questions the worlds raise beside the usual ones. A field is turned on when the program answers the question as the
/// design does; until then worlds of the kind would only find again what is known.
#[derive(Clone, Copy, Debug)]
pub struct Topics {
    /// Projects that do not permit everything to every Application.
    pub permissions: bool,
    /// Server URLs that are written in more than one way.
    pub urls: bool,
    /// Names of clusters that nobody can resolve.
    pub names: bool,
}

/// What is compared.
pub const TOPICS: Topics = Topics { permissions: false, urls: false, names: false };

/// The world of a number.
pub fn world(seed: u64) -> World {
    Maker { random: Rng::with_seed(seed), objects: Vec::new(), method: None, elsewhere: false, pool: Vec::new() }
        .world(seed)
}

/// How a world came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    Tree,
    Set,
}

struct Maker {
    random: Rng,
    objects: Vec<Value>,
    /// The tracking method; `None` where no Argo CD is seen.
    method: Option<&'static str>,
    /// Whether there are Applications outside the installation's own namespace.
    elsewhere: bool,
    /// What Applications deploy: kind, namespace, name.
    pool: Vec<[&'static str; 3]>,
}

impl Maker {
    fn world(mut self, seed: u64) -> World {
        self.settings();
        self.places();
        if self.chance(30) {
            self.set();
        }
        let count = self.random.usize(1..=APPS.len());
        for name in &APPS[..count] {
            self.app(name);
        }
        self.pool();
        self.lists();
        self.things();
        let shape = self.pick(&[(5, Shape::Plain), (3, Shape::Tree), (2, Shape::Set)]);
        match shape {
            Shape::Plain => {}
            Shape::Tree => self.tree(),
            Shape::Set => self.generated(),
        }
        self.definitions();
        let policy = self.policy();
        let (target, user, propagation) = self.request(shape);
        World { seed, objects: self.objects, policy, now: NOW.into(), target, user: user.into(), propagation }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(..100) < percent
    }

    /// One of these, by weight.
    fn pick<T: Clone>(&mut self, weighted: &[(u32, T)]) -> T {
        let mut at = self.random.u32(..weighted.iter().map(|(weight, _)| weight).sum::<u32>());
        for (weight, value) in weighted {
            if at < *weight {
                return value.clone();
            }
            at -= weight;
        }
        unreachable!("the weights cover it")
    }

    fn one_of<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.random.usize(..some.len())].clone()
    }

    fn make(&mut self, kind: &str, namespace: &str, name: &str) -> usize {
        let uid = format!("u-{}-{namespace}-{name}", kind.to_lowercase());
        let mut object = json!({"apiVersion": api(kind), "kind": kind, "metadata": {"name": name, "uid": uid}});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.objects.push(object);
        self.objects.len() - 1
    }

    fn find(&self, [kind, namespace, name]: [&str; 3]) -> Option<usize> {
        let is = |object: &Value| {
            text(object, "/kind") == kind
                && text(object, "/metadata/namespace") == namespace
                && text(object, "/metadata/name") == name
        };
        self.objects.iter().position(is)
    }

    fn has(&self, object: [&str; 3]) -> bool {
        self.find(object).is_some()
    }

    fn places_of(&self, kind: &str) -> Vec<usize> {
        (0..self.objects.len()).filter(|at| text(&self.objects[*at], "/kind") == kind).collect()
    }

    fn apps(&self) -> Vec<usize> {
        self.places_of("Application")
    }

    /// Live objects that an Application lists.
    fn listed(&self, app: usize, wanted: impl Fn(&Value) -> bool) -> Vec<usize> {
        let entries = list(&self.objects[app], "/status/resources").iter().filter(|entry| wanted(entry));
        let found = |entry: &Value| {
            let [kind, namespace, name] = ["/kind", "/namespace", "/name"].map(|path| text(entry, path));
            self.find([kind, namespace, name]).or_else(|| self.find([kind, "", name]))
        };
        entries.filter_map(found).filter(|at| *at != app).collect()
    }

    /// Puts the marker of an instance on an object, as the tracking method says.
    fn mark(&mut self, at: usize, instance: &str, target: &str) {
        let method = self.method.unwrap_or("annotation");
        let object = &mut self.objects[at];
        if method != "label" {
            let part = |path| text(object, path);
            let namespace = part("/metadata/namespace");
            let namespace = if namespace.is_empty() { target } else { namespace };
            let group = group_of(part("/apiVersion"));
            let id = format!("{instance}:{group}/{}:{namespace}/{}", part("/kind"), part("/metadata/name"));
            object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
        }
        if method != "annotation" {
            object["metadata"]["labels"]["app.kubernetes.io/instance"] = json!(instance);
        }
    }

    fn mark_by(&mut self, at: usize, app: usize) {
        let app = &self.objects[app];
        let (namespace, name) = (text(app, "/metadata/namespace"), text(app, "/metadata/name"));
        let instance = if namespace == "argocd" { name.to_owned() } else { format!("{namespace}_{name}") };
        let target = text(app, "/spec/destination/namespace").to_owned();
        self.mark(at, &instance, &target);
    }

    /// Begins the deletion of an object; something holds it.
    fn terminate(&mut self, at: usize, since: &str, held_by: &str) {
        let meta = &mut self.objects[at]["metadata"];
        meta["deletionTimestamp"] = json!(since);
        if meta["finalizers"].is_null() {
            meta["finalizers"] = json!([held_by]);
        }
    }
}

/// The `apiVersion` of a kind.
fn api(kind: &str) -> String {
    match kind {
        "Application" | "ApplicationSet" | "AppProject" => "argoproj.io/v1alpha1".to_owned(),
        "Role" | "RoleBinding" | "ClusterRole" => format!("{RBAC}/v1"),
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1".to_owned(),
        "Foo" => "example.com/v1".to_owned(),
        _ => "v1".to_owned(),
    }
}
