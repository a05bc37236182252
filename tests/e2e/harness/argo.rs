//! Applications, and what Argo CD's application controller does with them, as it was seen to do it.

use anyhow::{Result, ensure};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{wait::eventually, world::World};

/// Finalizer by which the deletion of an Application cascades.
pub const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

/// One object that an Application lists.
#[derive(Clone, Debug)]
pub struct Entry {
    pub group: &'static str,
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub status: &'static str,
    pub wave: i64,
}

/// An object that an Application lists as in sync.
pub fn entry(group: &'static str, kind: &'static str, namespace: &str, name: &str) -> Entry {
    Entry { group, kind, namespace: namespace.to_owned(), name: name.to_owned(), status: "Synced", wave: 0 }
}

impl Entry {
    /// The same object, not in sync.
    pub fn out_of_sync(mut self) -> Self {
        self.status = "OutOfSync";
        self
    }

    /// The same object in a sync wave.
    pub fn wave(mut self, wave: i64) -> Self {
        self.wave = wave;
        self
    }

    /// What Argo CD writes on the object when `application` has synced it.
    pub fn tracking_id(&self, application: &str) -> String {
        format!("{application}:{}/{}:{}/{}", self.group, self.kind, self.namespace, self.name)
    }

    fn resource(&self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(self.group, "v1", self.kind))
    }

    /// Access to the object for Argo CD.
    pub fn api(&self, world: &World) -> Api<DynamicObject> {
        if self.namespace.is_empty() {
            Api::all_with(world.argocd.clone(), &self.resource())
        } else {
            Api::namespaced_with(world.argocd.clone(), &self.namespace, &self.resource())
        }
    }

    fn status(&self) -> Value {
        let mut status = json!({"version": "v1", "kind": self.kind, "name": self.name, "status": self.status});
        for (key, value) in [("group", self.group), ("namespace", &self.namespace)] {
            if !value.is_empty() {
                status[key] = json!(value);
            }
        }
        if self.wave != 0 {
            status["syncWave"] = json!(self.wave);
        }
        status
    }
}

/// An Application in Argo CD's Namespace.
pub struct Application<'a> {
    world: &'a World,
    pub name: String,
    destination: String,
}

/// Access to Applications, as the platform engineer.
pub fn applications(world: &World) -> Api<DynamicObject> {
    applications_by(world.ops.clone())
}

/// Access to Applications, as whoever the client is.
pub fn applications_by(client: Client) -> Api<DynamicObject> {
    Api::namespaced_with(client, "argocd", &resource())
}

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application"))
}

impl<'a> Application<'a> {
    /// Creates an Application that deploys into `destination`, lists `entries` and has the given finalizers.
    pub async fn create(
        world: &'a World,
        name: &str,
        destination: &str,
        finalizers: &[&str],
        entries: &[Entry],
    ) -> Result<Self> {
        let application = Self { world, name: name.to_owned(), destination: destination.to_owned() };
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "finalizers": finalizers},
            "spec": application.spec(),
        });
        applications(world).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        application.compare(entries).await?;
        Ok(application)
    }

    fn spec(&self) -> Value {
        json!({"project": "default", "source": self.source(), "destination": self.target()})
    }

    fn source(&self) -> Value {
        json!({"repoURL": "https://git.example.com/deploy.git", "path": self.name, "targetRevision": "main"})
    }

    fn target(&self) -> Value {
        json!({"server": "https://kubernetes.default.svc", "namespace": self.destination})
    }

    /// What the controller writes after it has compared the Application: its whole list, in one patch of the object
    /// itself.
    pub async fn compare(&self, entries: &[Entry]) -> Result<()> {
        let synced = entries.iter().all(|entry| entry.status == "Synced");
        let resources: Vec<Value> = entries.iter().map(Entry::status).collect();
        self.patch_as_argocd(json!({"status": {
            "controllerNamespace": "argocd",
            "reconciledAt": jiff::Timestamp::now().to_string(),
            "sourceType": "Directory",
            "sync": {
                "status": if synced { "Synced" } else { "OutOfSync" },
                "revision": "0123456789abcdef0123456789abcdef01234567",
                "comparedTo": {"source": self.source(), "destination": self.target()},
            },
            "resources": resources,
        }}))
        .await
    }

    /// A merge patch by the controller.
    pub async fn patch_as_argocd(&self, patch: Value) -> Result<()> {
        self.api_of_argocd().patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    fn api_of_argocd(&self) -> Api<DynamicObject> {
        applications_by(self.world.argocd.clone())
    }

    /// Creates or takes over objects: the controller writes this Application's name into their tracking-id.
    pub async fn sync(&self, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            let mut object = json!({
                "apiVersion": if entry.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", entry.group) },
                "kind": entry.kind,
                "metadata": {"name": entry.name, "annotations": {"argocd.argoproj.io/tracking-id": entry.tracking_id(&self.name)}},
            });
            match entry.kind {
                "Role" => object["rules"] = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]),
                "RoleBinding" => {
                    object["roleRef"] = json!({"apiGroup": entry.group, "kind": "Role", "name": entry.name});
                    object["subjects"] =
                        json!([{"kind": "ServiceAccount", "name": entry.name, "namespace": entry.namespace}]);
                }
                _ => {}
            }
            let parameters = PatchParams::apply("argocd-controller").force();
            entry.api(self.world).patch(&entry.name, &parameters, &Patch::Apply(object)).await?;
        }
        Ok(())
    }

    /// Whether the Application is there and not being deleted.
    pub async fn is_untouched(&self) -> Result<()> {
        let object = applications(self.world).get(&self.name).await?;
        ensure!(object.metadata.deletion_timestamp.is_none(), "{} is being deleted", self.name);
        Ok(())
    }

    /// What the controller does with an Application that is being deleted: delete what carries its marker, wait for that
    /// to be gone, take its finalizer off.
    pub async fn cascade(&self, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            let api = entry.api(self.world);
            let Some(object) = api.get_opt(&entry.name).await? else { continue };
            let marker = object.annotations().get("argocd.argoproj.io/tracking-id");
            if marker == Some(&entry.tracking_id(&self.name)) {
                api.delete(&entry.name, &DeleteParams::foreground()).await?;
                gone(&api, &entry.name).await?;
            }
        }
        self.patch_as_argocd(json!({"metadata": {"finalizers": null}})).await?;
        gone(&applications(self.world), &self.name).await
    }
}

/// Waits until an object is gone.
pub async fn gone<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    eventually(&format!("{name} to be gone"), async || {
        ensure!(api.get_opt(name).await?.is_none(), "it is still there");
        Ok(())
    })
    .await
}
