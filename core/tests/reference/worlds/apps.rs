//! ApplicationSets and Applications, before they list anything.

use serde_json::{Value, json};

use super::{BEGAN, EAST, FINALIZER, HERE, Maker, TOPICS};

const SET: [&str; 3] = ["ApplicationSet", "argocd", "teams"];

impl Maker {
    pub(super) fn set(&mut self) -> usize {
        let at = self.make(SET[0], SET[1], SET[2]);
        self.objects[at]["spec"] = json!({});
        let policy = self.pick(&[
            (5, None),
            (1, Some("create-only")),
            (1, Some("create-update")),
            (1, Some("sync")),
            (1, Some("create-delete")),
        ]);
        if let Some(policy) = policy {
            self.objects[at]["spec"]["syncPolicy"]["applicationsSync"] = json!(policy);
        }
        if self.chance(35) {
            self.objects[at]["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        if self.chance(12) {
            self.terminate(at, BEGAN, "foregroundDeletion");
        }
        self.options(at, 10);
        at
    }

    /// The reference to the owner of a generated Application.
    pub(super) fn owner(name: &str) -> Value {
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": name,
            "uid": format!("u-applicationset-argocd-{name}"), "controller": true, "blockOwnerDeletion": true}])
    }

    pub(super) fn app(&mut self, name: &str) {
        let namespace = if self.elsewhere && self.chance(40) { "team-a" } else { "argocd" };
        let at = self.make("Application", namespace, name);
        let has_projects = self.has(["AppProject", "argocd", "default"]);
        let project = if has_projects { self.pick(&[(8, "default"), (2, "team"), (1, "gone")]) } else { "default" };
        // A project that does not exist permits nothing elsewhere.
        let exists = self.has(["AppProject", "argocd", project]);
        let project = if exists || TOPICS.permissions { project } else { "default" };
        let shared = self.chance(14);
        let revision = self.one_of(&["main", "main", "next"]);
        let target = self.pick(&[(5, "shop"), (4, "store"), (2, "argocd")]);
        self.objects[at]["spec"] = json!({"project": project,
            "source": {"repoURL": "https://git.example.com/deploy.git", "path": if shared { "common" } else { name },
                "targetRevision": revision},
            "destination": self.destination(target)});
        self.objects[at]["status"] = json!({});
        self.finalizers(at);
        self.sync_policy(at);
        self.origin(at, namespace);
        self.options(at, 6);
    }

    fn destination(&mut self, namespace: &str) -> Value {
        let slash = format!("{HERE}/");
        let (odd, name) = (if TOPICS.urls { 2 } else { 0 }, if TOPICS.names { 3 } else { 0 });
        let (key, value) = self.pick(&[
            (70, ("server", HERE)),
            (5, ("server", slash.as_str())),
            (6, ("name", "in-cluster")),
            (6, ("server", EAST)),
            (odd, ("server", "https://EAST.example.com:6443/")),
            (name, ("name", "prod-cluster")),
        ]);
        json!({key: value, "namespace": namespace})
    }

    fn finalizers(&mut self, at: usize) {
        let finalizers = self.pick(&[
            (24, json!([])),
            (45, json!([FINALIZER])),
            (8, json!([format!("{FINALIZER}/foreground")])),
            (8, json!([format!("{FINALIZER}/background")])),
            (2, json!([format!("{FINALIZER}/orphan")])),
            (4, json!(["pre-delete-finalizer.argocd.argoproj.io"])),
            (4, json!(["post-delete-finalizer.argocd.argoproj.io", FINALIZER])),
            (2, json!(["example.com/other"])),
        ]);
        if finalizers == json!([]) {
            return;
        }
        self.objects[at]["metadata"]["finalizers"] = finalizers;
        if self.chance(14) {
            let since = self.pick(&[(3, BEGAN), (1, "2026-11-29T11:58:00Z")]);
            self.objects[at]["metadata"]["deletionTimestamp"] = json!(since);
        }
    }

    fn sync_policy(&mut self, at: usize) {
        let automated = self.pick(&[
            (50, Value::Null),
            (6, json!({})),
            (14, json!({"prune": true})),
            (10, json!({"selfHeal": true})),
            (14, json!({"prune": true, "selfHeal": true})),
            (2, json!({"enabled": false, "selfHeal": true})),
        ]);
        if !automated.is_null() {
            self.objects[at]["spec"]["syncPolicy"]["automated"] = automated;
        }
        if self.chance(6) {
            let option =
                self.pick(&[(2, "Delete=false"), (1, "Prune=false"), (1, "CreateNamespace=true"), (1, "Replace=true")]);
            self.objects[at]["spec"]["syncPolicy"]["syncOptions"] = json!([option]);
        }
    }

    /// Whether a set made it.
    fn origin(&mut self, at: usize, namespace: &str) {
        if namespace != "argocd" {
            return;
        }
        let owner = if self.has(SET) && self.chance(45) {
            "teams"
        } else if self.chance(5) {
            "vanished"
        } else {
            return;
        };
        self.objects[at]["metadata"]["ownerReferences"] = Self::owner(owner);
    }
}
