//! A second Argo CD on the cluster, with Applications in another namespace than its own and one of the same name as the
//! first has. It changes what every Application is to the guard, so this test runs alone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::{CASCADE, Entry, entry, gone},
        outcome::refused,
        wait::eventually,
        world::{World, apply, dry_run},
    },
    live::{condition, status, store, with_guard},
    tests,
};

const RBAC: &str = "rbac.authorization.k8s.io";
const CONTROLLER: &str = "gitops-argocd-application-controller";

tests!(alone: second_argo_cd_is_found_and_judged_by_its_own_names,);

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application"))
}

fn applications_in(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource())
}

/// An Application of any namespace, compared, which lists these objects.
async fn application(world: &World, namespace: &str, name: &str, into: &str, entries: &[Entry]) -> Result<()> {
    let source = json!({"repoURL": "https://git.example.com/deploy.git", "path": name, "targetRevision": "main"});
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": into});
    let resources: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({"group": entry.group, "version": "v1", "kind": entry.kind, "namespace": entry.namespace,
                "name": entry.name, "status": entry.status})
        })
        .collect();
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace, "finalizers": [CASCADE]},
        "spec": {"project": "default", "source": source, "destination": destination},
        "status": {"reconciledAt": jiff::Timestamp::now().to_string(), "resources": resources,
            "sync": {"status": "Synced", "comparedTo": {"source": source, "destination": destination}}},
    });
    apply::<DynamicObject>(&applications_in_with(world, namespace), name, &object).await?;
    Ok(())
}

fn applications_in_with(world: &World, namespace: &str) -> Api<DynamicObject> {
    applications_in(&world.ops, namespace)
}

/// An object with the marker of an Application on it.
async fn marked(world: &World, entry: &Entry, instance: &str) -> Result<()> {
    let object = json!({
        "apiVersion": if entry.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", entry.group) },
        "kind": entry.kind,
        "metadata": {"name": entry.name, "annotations": {"argocd.argoproj.io/tracking-id": entry.tracking_id(instance)}},
    });
    apply::<DynamicObject>(&entry.api(world), &entry.name, &object).await?;
    Ok(())
}

async fn settings(world: &World, home: &str, name: &str, data: Value) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    apply::<ConfigMap>(&Api::namespaced(world.ops.clone(), home), name, &map).await?;
    Ok(())
}

/// Sets up the second Argo CD, with a controller that may do anything; gives the client of that controller.
async fn install(world: &World) -> Result<Client> {
    for namespace in ["gitops", "gitops-apps", "gitops-target"] {
        world.namespace(namespace).await?;
    }
    settings(world, "argocd", "argocd-cm", json!({})).await?;
    settings(world, "gitops", "argocd-cm", json!({})).await?;
    settings(world, "gitops", "argocd-cmd-params-cm", json!({"application.namespaces": "gitops-apps"})).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": CONTROLLER}});
    apply::<ServiceAccount>(&Api::namespaced(world.ops.clone(), "gitops"), CONTROLLER, &account).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "test-gitops"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": "gitops"}],
    });
    apply::<ClusterRoleBinding>(&Api::all(world.ops.clone()), "test-gitops", &binding).await?;
    let labels =
        json!({"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"});
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "gitops-application-controller", "labels": labels},
        "spec": {"replicas": 0, "serviceName": "gitops", "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": CONTROLLER, "containers": [{"name": "controller", "image": "argocd"}]}}},
    });
    apply::<StatefulSet>(&Api::namespaced(world.ops.clone(), "gitops"), "gitops-application-controller", &workload)
        .await?;
    world.plane.client(world.plane.service_account("gitops", CONTROLLER).await?)
}

/// Takes everything away that makes a second Argo CD of it.
async fn uninstall(world: &World) -> Result<()> {
    for (namespace, name) in [("argocd", "twin"), ("gitops", "twin"), ("gitops-apps", "web"), ("gitops-apps", "other")]
    {
        let api = applications_in(&world.ops, namespace);
        if api.get_opt(name).await?.is_some() {
            let free = json!({"metadata": {"finalizers": null}});
            api.patch(name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(free)).await?;
            match api.delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                outcome => drop(outcome?),
            }
            gone(&api, name).await?;
        }
    }
    let workloads: Api<StatefulSet> = Api::namespaced(world.ops.clone(), "gitops");
    workloads.delete("gitops-application-controller", &DeleteParams::default()).await?;
    for (home, name) in [("gitops", "argocd-cmd-params-cm"), ("gitops", "argocd-cm"), ("argocd", "argocd-cm")] {
        let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), home);
        maps.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn second_argo_cd_is_found_and_judged_by_its_own_names(world: &World) -> Result<()> {
    let controller = install(world).await?;
    let outcome = life(world, &controller).await;
    uninstall(world).await?;
    outcome
}

async fn life(world: &World, controller: &Client) -> Result<()> {
    let (one, two) = (entry("", "ConfigMap", "gitops-target", "one"), entry("", "ConfigMap", "gitops-target", "two"));
    marked(world, &one, "twin").await?;
    marked(world, &two, "twin").await?;
    application(world, "argocd", "twin", "gitops-target", &[one]).await?;
    application(
        world,
        "gitops",
        "twin",
        "gitops-target",
        &[two.clone(), entry("", "ConfigMap", "gitops-target", "one")],
    )
    .await?;
    let (role, shared) = (entry(RBAC, "Role", "gitops-target", "web"), entry(RBAC, "Role", "gitops-target", "shared"));
    for object in [&role, &shared] {
        marked(world, object, "gitops-apps_web").await?;
    }
    application(world, "gitops-apps", "web", "gitops-target", &[role.clone(), shared.clone()]).await?;
    application(world, "gitops-apps", "other", "gitops-target", std::slice::from_ref(&shared)).await?;

    // Without ids each takes the other's objects for its own.
    for (namespace, other) in [("argocd", "gitops/twin"), ("gitops", "argocd/twin")] {
        eventually("the guard to tell the twins", async || {
            let words = ["shared-claim", other, "its marker cannot tell"];
            refused(applications_in(&world.ops, namespace).delete("twin", &dry_run()).await, "applications", &words)
        })
        .await?;
    }
    let applications = applications_in(&world.ops, "gitops-apps");
    refused(applications.delete("web", &DeleteParams::default()).await, "applications", &["gitops-apps/other"])?;

    // Its controller is known without a word in the policy: what it cascades is explained.
    let roles = |name: &str| -> Result<Api<DynamicObject>> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(RBAC, "v1", "Role"));
        ensure!(!name.is_empty(), "a Role has a name");
        Ok(Api::namespaced_with(controller.clone(), "gitops-target", &resource))
    };
    let alone = json!({"metadata": {"finalizers": [CASCADE]}});
    let parameters = kube::api::PatchParams::default();
    applications_in(controller, "gitops-apps").patch("web", &parameters, &kube::api::Patch::Merge(alone)).await?;
    let orphaned = json!({"metadata": {"finalizers": null}});
    let other = applications_in(&world.ops, "gitops-apps");
    other.patch("other", &parameters, &kube::api::Patch::Merge(orphaned)).await?;
    eventually("the guard to see that the other one leaves its Role", async || {
        other.delete("other", &dry_run()).await?;
        Ok(())
    })
    .await?;
    refused(roles("shared")?.delete("shared", &dry_run()).await, "rbac-deletes", &["gitops-apps/other"])?;
    other.delete("other", &DeleteParams::default()).await?;
    gone(&other, "other").await?;
    eventually("the guard to know that nobody else wants the Role", async || {
        applications.delete("web", &dry_run()).await?;
        Ok(())
    })
    .await?;
    applications.delete("web", &DeleteParams::default()).await?;
    for name in ["web", "shared"] {
        let api = roles(name)?;
        eventually("the cascade of the second Argo CD", async || {
            api.delete(name, &DeleteParams::foreground()).await?;
            Ok(())
        })
        .await?;
        gone(&api, name).await?;
    }

    // Its namespace is a home of Argo CD.
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    refused(namespaces.delete("gitops", &dry_run()).await, "namespaces", &["Argo CD lives in it"])?;

    with_guard(world, &["--no-reports"], async |_| {
        for (installations, holds) in [(json!([]), "False"), (json!(["gitops"]), "True")] {
            store(world, json!({"argocd": {"installations": installations}})).await?;
            eventually("the condition", async || {
                let status = status(world).await?;
                let (known, _, message) = condition(&status, "InstallationsKnown").context("not yet")?;
                ensure!(known == holds, "{message}");
                ensure!(holds == "True" || message.contains("add gitops to spec.argocd.installations"), "{message}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    })
    .await
}
