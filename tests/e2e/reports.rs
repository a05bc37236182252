//! Reports in the cluster: written in the form that is installed, cleaned when what they said is no longer so.

use anyhow::{Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

use crate::{
    harness::{
        argo::{Application, CASCADE, applications_by, entry, gone},
        guard::Guard,
        manifests,
        wait::eventually,
        world::World,
    },
    tests,
};

tests!(alone: reports_are_written_and_cleaned_in_either_form,);

/// Group, version, and kind and plural of the reports of Namespaces and of the cluster.
struct Form {
    definitions: &'static str,
    group: &'static str,
    version: &'static str,
    namespaced: (&'static str, &'static str),
    cluster: (&'static str, &'static str),
}

const OLDER: Form = Form {
    definitions: "tests/crds/policyreports.yaml",
    group: "wgpolicyk8s.io",
    version: "v1alpha2",
    namespaced: ("PolicyReport", "policyreports"),
    cluster: ("ClusterPolicyReport", "clusterpolicyreports"),
};

const PREFERRED: Form = Form {
    definitions: "tests/crds/openreports.yaml",
    group: "openreports.io",
    version: "v1alpha1",
    namespaced: ("Report", "reports"),
    cluster: ("ClusterReport", "clusterreports"),
};

impl Form {
    fn api(&self, world: &World, (kind, plural): (&str, &str), namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, self.version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(world.ops.clone(), namespace, &resource),
            None => Api::all_with(world.ops.clone(), &resource),
        }
    }

    async fn install(&self, world: &World) -> Result<()> {
        let admin = world.plane.admin()?;
        for definition in manifests::read(self.definitions)? {
            manifests::apply(&admin, &definition).await?;
        }
        Ok(())
    }

    async fn remove(&self, world: &World) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(world.plane.admin()?);
        for (_, plural) in [self.namespaced, self.cluster] {
            let name = format!("{plural}.{}", self.group);
            if definitions.get_opt(&name).await?.is_some() {
                definitions.delete(&name, &DeleteParams::default()).await?;
                gone(&definitions, &name).await?;
            }
        }
        Ok(())
    }

    /// Waits for a report that says the Role is shared.
    async fn tells(&self, world: &World, namespace: &str) -> Result<()> {
        let reports = self.api(world, self.namespaced, Some(namespace));
        eventually("the report", async || {
            let report = reports.get("cascade-guard").await?;
            let results = report.data["results"].as_array().cloned().unwrap_or_default();
            let shared =
                |result: &&Value| result["policy"] == "shared-claim" && result["resources"][0]["name"] == "shared";
            let result = results.iter().find(shared);
            ensure!(
                result.is_some_and(|result| result["result"] == "warn" || result["result"] == "fail"),
                "{results:?}"
            );
            ensure!(report.data["summary"]["warn"].as_u64() > Some(0), "{}", report.data["summary"]);
            ensure!(report.data["scope"]["name"] == namespace, "{}", report.data["scope"]);
            // A field that the definition does not know would have been dropped without a word.
            let claimants = result.map(|result| result["properties"]["claimed-by"].clone());
            ensure!(claimants == Some(Value::from("argocd/reported-a,argocd/reported-b")), "{claimants:?}");
            Ok(())
        })
        .await
    }
}

async fn reports_are_written_and_cleaned_in_either_form(world: &World) -> Result<()> {
    world.namespace("reported").await?;
    let role = entry("rbac.authorization.k8s.io", "Role", "reported", "shared");
    let listed = [role.clone()];
    let first = Application::create(world, "reported-a", "reported", &[CASCADE], &listed).await?;
    Application::create(world, "reported-b", "reported", &[CASCADE], &listed).await?;
    first.sync(&listed).await?;
    OLDER.install(world).await?;
    let policy = world.folder.join("policy.yaml").display().to_string();
    let flags = [format!("--policy={policy}"), "--report-interval=1s".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let guard = Guard::with(&world.plane, &world.folder, "reporting-guard", &flags).await?;
    let outcome = life_of_reports(world).await;
    guard.stop()?;
    for form in [PREFERRED, OLDER] {
        form.remove(world).await?;
    }
    outcome
}

async fn life_of_reports(world: &World) -> Result<()> {
    OLDER.tells(world, "reported").await?;
    // Where the other form is installed, it takes the place of this one.
    PREFERRED.install(world).await?;
    PREFERRED.tells(world, "reported").await?;
    gone(&OLDER.api(world, OLDER.namespaced, Some("reported")), "cascade-guard").await?;
    gone(&OLDER.api(world, OLDER.cluster, None), "cascade-guard").await?;
    // Somebody else's report is none of ours to remove.
    let theirs = PREFERRED.api(world, PREFERRED.namespaced, Some("reported"));
    let foreign = serde_json::json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report",
        "metadata": {"name": "theirs"}, "source": "other"});
    theirs.create(&kube::api::PostParams::default(), &serde_json::from_value(foreign)?).await?;
    // One Application lets go of the Role: nothing is left to report in that Namespace.
    for name in ["reported-a", "reported-b"] {
        let patch = serde_json::json!({"status": {"resources": []}, "metadata": {"finalizers": null}});
        let argocd = applications_by(world.argocd.clone());
        argocd.patch(name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch)).await?;
    }
    gone(&theirs, "cascade-guard").await?;
    ensure!(theirs.get_opt("theirs").await?.is_some(), "the report of another was removed");
    Ok(())
}
