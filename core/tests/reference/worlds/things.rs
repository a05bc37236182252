//! Settings, Namespaces, projects, and the objects that Applications deploy.

use serde_json::{Value, json};

use super::{BEGAN, EAST, FINALIZER, FOOS, HERE, Maker, RBAC, TOPICS, WHERE};
use crate::json::{list, text};

/// What Applications deploy: kind, namespace, name.
const POOL: [[&str; 3]; 10] = [
    ["ServiceAccount", "shop", "sa"],
    ["Role", "shop", "api"],
    ["RoleBinding", "shop", "bind"],
    ["ConfigMap", "shop", "cfg"],
    ["Role", "store", "api"],
    ["ConfigMap", "store", "cfg"],
    ["ClusterRole", "", "reader"],
    ["Foo", "shop", "foo"],
    ["Namespace", "", "shop"],
    ["Namespace", "", "store"],
];

impl Maker {
    pub(super) fn settings(&mut self) {
        self.method =
            self.pick(&[(70, Some("annotation")), (12, Some("label")), (8, Some("annotation+label")), (10, None)]);
        if let Some(method) = self.method {
            let at = self.make("ConfigMap", "argocd", "argocd-cm");
            let unsaid = method == "annotation" && self.chance(40);
            let data = if unsaid { json!({}) } else { json!({"application.resourceTrackingMethod": method}) };
            self.objects[at]["store"] = data;
        }
        self.elsewhere = self.chance(30);
        if self.elsewhere && self.chance(50) {
            let at = self.make("ConfigMap", "argocd", "argocd-cmd-params-cm");
            let patterns = self.pick(&[(3, "team-*"), (2, "*"), (1, "apps-*")]);
            self.objects[at]["store"] = json!({"application.namespaces": patterns});
        }
    }

    pub(super) fn places(&mut self) {
        self.namespace("argocd");
        for name in WHERE {
            if self.chance(92) {
                self.namespace(name);
            }
        }
        if self.elsewhere && self.chance(92) {
            self.namespace("team-a");
        }
        if self.chance(35) {
            self.project("default", true);
            if self.chance(50) {
                let wide = self.chance(60);
                self.project("team", wide);
            }
        }
    }

    fn namespace(&mut self, name: &str) {
        let at = self.make("Namespace", "", name);
        let uid = self.objects[at]["metadata"]["uid"].clone();
        self.objects[at]["status"] = json!({"phase": "Active"});
        self.objects[at]["metadata"]["labels"] = json!({"kubernetes.io/metadata.name": name});
        if self.chance(55) {
            let by = self.pick(&[(5, "alice"), (1, "ops-user")]);
            let until = self.pick(&[
                (75, "2026-11-29T18:00:00Z"),
                // It ends before a cascade that begins now is through.
                (15, "2026-11-29T12:05:00Z"),
                (3, "2026-11-29T11:00:00Z"),
                (3, "2026-12-02T18:00:00Z"),
                // It ended after the cascades of this world began.
                (4, "2026-11-29T11:59:30Z"),
            ]);
            let uid = if self.chance(3) { json!("another") } else { uid };
            let mut said = json!({"cascade-guard.io/deletion-approved-by": by,
                "cascade-guard.io/deletion-approved-until": until, "cascade-guard.io/deletion-approved-uid": uid});
            if self.chance(3) {
                let key = self.one_of(&["by", "until", "uid"]);
                said.as_object_mut().unwrap().remove(&format!("cascade-guard.io/deletion-approved-{key}"));
            }
            if self.chance(50) {
                said["cascade-guard.io/deletion-reason"] = json!("CHG-1");
            }
            self.objects[at]["metadata"]["annotations"] = said;
        }
        if name != "argocd" && self.chance(7) {
            self.objects[at]["metadata"]["deletionTimestamp"] = json!(BEGAN);
            self.objects[at]["status"]["phase"] = json!("Terminating");
        }
    }

    fn project(&mut self, name: &str, wide: bool) {
        let at = self.make("AppProject", "argocd", name);
        let narrow = TOPICS.permissions && !wide;
        let server = self.pick(&[(3, HERE), (1, "*")]);
        let namespace = self.one_of(&WHERE);
        let destination = if narrow { [server, namespace] } else { ["*", "*"] };
        self.objects[at]["spec"] = json!({"destinations": [{"server": destination[0], "namespace": destination[1]}]});
        let sources = self.pick(&[(3, None), (1, Some("team-*")), (1, Some("*")), (1, Some("apps"))]);
        let sources = if TOPICS.permissions { sources } else { Some("*") };
        if let Some(sources) = sources {
            self.objects[at]["spec"]["sourceNamespaces"] = json!([sources]);
        }
        if self.chance(30) {
            self.objects[at]["metadata"]["finalizers"] = json!([FINALIZER]);
        }
    }

    pub(super) fn pool(&mut self) {
        let count = self.random.usize(2..=6);
        self.pool = POOL.to_vec();
        self.random.shuffle(&mut self.pool);
        self.pool.truncate(count);
    }

    /// Sync options on an object, of this percentage of objects.
    pub(super) fn options(&mut self, at: usize, percent: u32) {
        if self.chance(percent) {
            let option = self.pick(&[
                (5, "Delete=false"),
                (2, "Prune=false"),
                (1, "Prune=false, Delete=false"),
                (1, "Replace=true"),
                (1, "Force=true,Replace=true"),
                (1, "Delete=confirm"),
            ]);
            self.objects[at]["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = json!(option);
        }
        if self.chance(percent / 3) {
            self.objects[at]["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
        }
    }

    pub(super) fn things(&mut self) {
        for thing in self.pool.clone() {
            let [kind, namespace, name] = thing;
            if !self.has(thing) && kind != "Namespace" && self.chance(85) {
                let at = self.make(kind, namespace, name);
                if kind == "RoleBinding" {
                    self.objects[at]["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": "api"});
                    self.objects[at]["subjects"] =
                        json!([{"kind": "ServiceAccount", "name": "sa", "namespace": namespace}]);
                }
                self.options(at, 10);
                if self.chance(6) {
                    let owner = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u-w"});
                    self.objects[at]["metadata"]["ownerReferences"] = json!([owner]);
                }
                if self.chance(3) {
                    self.terminate(at, BEGAN, "foregroundDeletion");
                }
            }
            if let Some(at) = self.find(thing) {
                self.marker(at);
            }
        }
        for kind in ["Application", "ApplicationSet", "AppProject"] {
            for at in self.places_of(kind) {
                let is_listed = !self.listers(at).is_empty();
                if is_listed || self.chance(4) {
                    self.marker(at);
                }
            }
        }
    }

    /// The Applications that list an object.
    fn listers(&self, at: usize) -> Vec<usize> {
        let object = &self.objects[at];
        let [kind, namespace, name] = ["/kind", "/metadata/namespace", "/metadata/name"].map(|path| text(object, path));
        let names = |entry: &Value| {
            text(entry, "/kind") == kind
                && text(entry, "/name") == name
                && (namespace.is_empty() || text(entry, "/namespace") == namespace)
        };
        let lists = |app: &usize| list(&self.objects[*app], "/status/resources").iter().any(names);
        self.apps().into_iter().filter(|app| *app != at).filter(lists).collect()
    }

    fn marker(&mut self, at: usize) {
        let (listers, apps) = (self.listers(at), self.apps());
        match self.pick(&[(70, "lister"), (12, "none"), (8, "any"), (5, "gone"), (1, "junk")]) {
            "lister" if !listers.is_empty() => {
                let app = self.one_of(&listers);
                self.mark_by(at, app);
            }
            "any" => {
                let app = self.one_of(&apps);
                self.mark_by(at, app);
            }
            "gone" => self.mark(at, "departed", "shop"),
            "junk" if self.method != Some("label") => {
                let junk = self.one_of(&["junk", "alpha:Role:shop/api", ":/Role:shop/api"]);
                self.objects[at]["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(junk);
            }
            _ => {}
        }
    }

    pub(super) fn definitions(&mut self) {
        if self.chance(15) {
            let at = self.definition(FOOS[2], "example.com", "Foo");
            if self.method == Some("label") && self.chance(50) {
                let apps = self.apps();
                let app = self.one_of(&apps);
                self.mark_by(at, app);
            }
        }
        if self.chance(4) {
            self.definition("applications.argoproj.io", "argoproj.io", "Application");
        }
    }

    fn definition(&mut self, name: &str, group: &str, kind: &str) -> usize {
        let at = self.make("CustomResourceDefinition", "", name);
        let plural = name.split('.').next().unwrap_or_default();
        self.objects[at]["spec"] = json!({"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true}]});
        at
    }

    pub(super) fn policy(&mut self) -> Value {
        let mut policy = json!({});
        if self.chance(8) {
            policy["rules"]["sharedClaim"]["onUnknown"] = json!("warn");
        }
        if self.chance(8) {
            policy["rules"]["namespaceApproval"] =
                json!({"maxTTL": "24h", "fourEyes": self.chance(50), "requireReason": self.chance(50)});
        }
        if self.chance(6) {
            let one = self.pick(&[(1, [HERE, "prod-cluster"]), (1, [EAST, "prod-cluster"]), (1, ["in-cluster", EAST])]);
            policy["argocd"] = json!({"clusterAliases": [one]});
        }
        policy
    }
}
