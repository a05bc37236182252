//! Control plane, manifests, guard and the people of the tests, started once for all of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::{
    guard::Guard,
    manifests,
    outcome::refusal,
    people::{self, ON_CALL},
    plane::ControlPlane,
    rights::gains,
    wait::eventually,
};

/// What the tests share.
pub struct World {
    /// Files of this run.
    pub folder: PathBuf,
    pub plane: ControlPlane,
    pub guard: Guard,
    /// A platform engineer with every right of RBAC.
    pub ops: Client,
    /// Argo CD's application controller.
    pub argocd: Client,
    /// Held shared by ordinary tests, alone by those that count reviews or stop the guard.
    pub stage: RwLock<()>,
}

impl World {
    /// Starts everything and waits until the guard refuses something.
    pub async fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let plane = ControlPlane::start(folder).await?;
        let admin = plane.admin()?;
        for kind in ["application", "applicationset", "appproject"] {
            for object in manifests::read(&format!("tests/crds/{kind}.yaml"))? {
                manifests::apply(&admin, &object).await?;
            }
        }
        let (webhooks, rest): (Vec<_>, Vec<_>) =
            manifests::base()?.into_iter().partition(manifests::is_webhook_configuration);
        for object in &rest {
            manifests::apply(&admin, object).await?;
        }
        cast(&admin).await?;
        people::give_rights(&admin).await?;
        let ops = plane.person("ops@example.com", "platform-admins")?;
        let argocd = plane.client(plane.service_account("argocd", "argocd-application-controller").await?)?;
        let guard = Guard::start(&plane, folder).await?;
        for mut configuration in webhooks {
            manifests::point_to(&mut configuration, guard.port, &guard.ca_bundle)?;
            manifests::apply(&admin, &configuration).await?;
        }
        let world = Self { folder: folder.to_owned(), plane, guard, ops, argocd, stage: RwLock::new(()) };
        world.wait_for_rights().await?;
        world.wait_for_protection().await?;
        Ok(world)
    }

    /// Waits for the rights given last: the guard's reader role, which the controller manager fills in its own time, and
    /// those of people.
    async fn wait_for_rights(&self) -> Result<()> {
        gains(&self.guard_account().await?, "get", "apps", "deployments").await?;
        gains(&ON_CALL.client(self)?, "delete", "", "namespaces").await
    }

    /// A client with the guard's own rights.
    pub async fn guard_account(&self) -> Result<Client> {
        self.plane.client(self.plane.service_account("cascade-guard", "cascade-guard").await?)
    }

    /// Waits until the API server asks the guard and the guard refuses. A webhook configuration takes effect some time
    /// after it was written, so only a refusal proves it.
    pub async fn wait_for_protection(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.ops.clone());
        self.namespace("canary").await?;
        eventually("a refusal by the guard", async || {
            let status = refusal(namespaces.delete("canary", &dry_run()).await)?;
            ensure!(status.message.contains("cascade-guard denied"), "{}", status.message);
            Ok(())
        })
        .await
    }

    /// Runs `test` while the guard goes by the policy that `edit` makes of the usual one. The guard is started again for it,
    /// and with the usual policy afterwards, so only a test that runs alone may do this.
    pub async fn with_policy(&self, edit: (&str, &str), test: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let file = self.policy();
        let usual = fs::read_to_string(&file)?;
        let changed = usual.replacen(edit.0, edit.1, 1);
        ensure!(changed != usual, "the usual policy has no {:?}", edit.0);
        self.restart(&changed).await?;
        let outcome = test().await;
        self.restart(&usual).await?;
        outcome
    }

    async fn restart(&self, policy: &str) -> Result<()> {
        self.guard.stop()?;
        fs::write(self.policy(), policy)?;
        self.guard.resume().await?;
        self.wait_for_protection().await
    }

    /// The file of the policy that the guard goes by.
    pub fn policy(&self) -> PathBuf {
        self.folder.join("policy.yaml")
    }

    /// Makes sure that a Namespace is there.
    pub async fn namespace(&self, name: &str) -> Result<Namespace> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&Api::all(self.ops.clone()), name, &object).await
    }

    /// Writes a valid approval on a Namespace, as the platform engineer.
    pub async fn approve(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.ops.clone());
        let patch = approval(&namespaces.get(name).await?, "ops@example.com", SignedDuration::from_hours(2));
        namespaces.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// The patch that approves the deletion of a Namespace in somebody's name.
pub fn approval(namespace: &Namespace, by: &str, lasts: SignedDuration) -> Value {
    json!({"metadata": {"annotations": {
        "cascade-guard.io/deletion-approved-by": by,
        "cascade-guard.io/deletion-approved-until": (Timestamp::now() + lasts).to_string(),
        "cascade-guard.io/deletion-approved-uid": namespace.metadata.uid,
    }}})
}

/// Parameters of a delete that deletes nothing.
pub fn dry_run() -> DeleteParams {
    DeleteParams { dry_run: true, ..DeleteParams::default() }
}

/// Applies an object, server-side.
pub async fn apply<K>(api: &Api<K>, name: &str, object: &Value) -> Result<K>
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let parameters = PatchParams::apply("cascade-guard-tests").force();
    Ok(api.patch(name, &parameters, &Patch::Apply(object)).await?)
}

/// Argo CD's Namespace and controller, and the rights of everybody in the tests.
async fn cast(admin: &Client) -> Result<()> {
    let argocd = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
    apply::<Namespace>(&Api::all(admin.clone()), "argocd", &argocd).await?;
    let name = "argocd-application-controller";
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "argocd"}});
    apply::<ServiceAccount>(&Api::namespaced(admin.clone(), "argocd"), name, &account).await?;
    let subjects = [
        ("argocd", json!({"kind": "ServiceAccount", "name": name, "namespace": "argocd"})),
        ("platform", json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "platform-admins"})),
    ];
    for (name, subject) in subjects {
        let name = format!("test-{name}");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject],
        });
        apply::<ClusterRoleBinding>(&Api::all(admin.clone()), &name, &binding).await?;
    }
    Ok(())
}
