//! What takes protection away without a delete: that the API server asks the guard about it, and about nothing that Argo CD
//! and the cluster do every day. Each test runs alone, because it looks at the API server's own counters.

use anyhow::{Result, ensure};
use k8s_openapi::{
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration,
        core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::{Application, CASCADE, applications, applications_by, entry},
        outcome::refused,
        rights::gains,
        wait::eventually,
        world::{World, apply, dry_run},
    },
    matching::{annotation, comes_out, merge},
    tests,
};

tests!(
    alone: owner_that_is_named_is_sent,
    list_is_sent_when_somebody_else_than_argo_cd_writes_it,
    definition_is_sent_when_it_would_hide_its_objects,
    route_of_argo_cd_is_sent,
    cluster_secret_is_sent_by_its_label,
    label_of_the_guard_is_sent_to_an_entry_that_fails_closed,
    move_into_another_project_is_judged,
    account_of_the_guard_is_sent,
    weaker_configuration_is_seen,
);

const RBAC: &str = "rbac.authorization.k8s.io";

async fn owner_that_is_named_is_sent(world: &World) -> Result<()> {
    world.namespace("owned").await?;
    let list = [entry(RBAC, "Role", "owned", "claimed")];
    let application = Application::create(world, "owner-tests", "owned", &[], &list).await?;
    application.sync(&list).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "owned");
    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "owned");
    let map = serde_json::from_value(json!({"metadata": {"name": "living"}}))?;
    let living = maps.create(&PostParams::default(), &map).await?.uid().unwrap_or_default();
    let owners = |name: &str, uid: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}]}});
    comes_out(world, &["owners"], async {
        let outcome = merge(&roles, "claimed", owners("gone", "0a1b")).await;
        refused(outcome, "owners", &["Role owned/claimed", "owner-tests", "does not exist"])
    })
    .await?;
    comes_out(world, &["owners"], async {
        let outcome = merge(&roles, "claimed", owners("living", "0a1b")).await;
        refused(outcome, "owners", &["is another one now"])
    })
    .await?;
    comes_out(world, &["owners"], admitted(merge(&roles, "claimed", owners("living", &living)))).await?;
    // What stays as it is, what goes, and what names none is not sent.
    comes_out(world, &[], admitted(merge(&roles, "claimed", annotation("example.com/a", "b")))).await?;
    comes_out(world, &[], admitted(merge(&roles, "claimed", json!({"metadata": {"ownerReferences": null}})))).await?;
    // An ApplicationSet owns what it generates.
    let sets = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(world.ops.clone(), "argocd", &sets);
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "owning"}, "spec": {"generators": [], "template": {"metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}}}}});
    let set = sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
    let child = |uid: &str| {
        serde_json::from_value::<DynamicObject>(
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "generated",
            "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "owning", "uid": uid,
                "controller": true, "blockOwnerDeletion": true}]}, "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "owned"}}}),
        )
    };
    let (stale, fresh) = (child("0a1b")?, child(&set.uid().unwrap_or_default())?);
    let (api, params) = (applications(world), PostParams::default());
    comes_out(world, &["owners"], async {
        refused(api.create(&params, &stale).await, "owners", &["ApplicationSet argocd/owning"])
    })
    .await?;
    comes_out(world, &["owners"], admitted(api.create(&params, &fresh))).await
}

async fn list_is_sent_when_somebody_else_than_argo_cd_writes_it(world: &World) -> Result<()> {
    let list = [entry("", "ConfigMap", "listed", "one"), entry("", "ConfigMap", "listed", "two")];
    let listed = Application::create(world, "listed", "listed", &[], &list).await?;
    let result = json!({"status": {"operationState": {"phase": "Succeeded", "syncResult": {"resources": [
        {"kind": "ConfigMap", "namespace": "listed", "name": "one", "status": "Synced"}]}}}});
    comes_out(world, &[], listed.patch_as_argocd(result)).await?;
    let by_hand = applications(world);
    let hidden = [
        json!({"status": {"resources": []}}),
        json!({"status": {"resources": [{"kind": "ConfigMap", "namespace": "listed", "name": "one", "hook": true}]}}),
        json!({"status": {"operationState": {"syncResult": null}}}),
        json!({"status": null}),
    ];
    for patch in hidden {
        comes_out(world, &["claims"], async {
            refused(merge(&by_hand, "listed", patch.clone()).await, "claims", &["Application argocd/listed"])
        })
        .await?;
    }
    comes_out(world, &[], admitted(merge(&by_hand, "listed", annotation("argocd.argoproj.io/refresh", "hard"))))
        .await?;
    // Whoever begins a sync clears the result of the last one.
    let begun = json!({"operation": {"sync": {"revision": "main"}}, "status": {"operationState": null}});
    comes_out(world, &[], admitted(merge(&by_hand, "listed", begun))).await?;
    // The controller of another Argo CD is asked about, and found to be one where it is known.
    let stranger =
        world.plane.impersonate("system:serviceaccount:listed:argocd-application-controller", &["platform-admins"])?;
    let emptied = json!({"status": {"resources": []}});
    comes_out(world, &["claims"], async {
        refused(merge(&applications_by(stranger), "listed", emptied.clone()).await, "claims", &["2 objects"])
    })
    .await?;
    comes_out(world, &[], listed.patch_as_argocd(emptied)).await
}

async fn definition_is_sent_when_it_would_hide_its_objects(world: &World) -> Result<()> {
    Application::create(world, "defined", "defined", &[], &[]).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.ops.clone());
    let name = "applications.argoproj.io";
    let mut unserved = definitions.get(name).await?;
    unserved.spec.versions[0].served = false;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    comes_out(world, &["definition-changes"], async {
        let outcome = definitions.replace(name, &params, &unserved).await;
        refused(outcome, "definition-changes", &[name, "would no longer serve version v1alpha1"])
    })
    .await?;
    comes_out(world, &[], admitted(merge_dry(&definitions, name, json!({"metadata": {"labels": {"a": "b"}}})))).await?;
    let mut second = definitions.get(name).await?;
    let mut version = second.spec.versions[0].clone();
    (version.name, version.storage) = ("v1beta1".to_owned(), false);
    second.spec.versions.push(version);
    comes_out(world, &[], admitted(definitions.replace(name, &params, &second))).await
}

async fn route_of_argo_cd_is_sent(world: &World) -> Result<()> {
    let routes: Api<APIService> = Api::all(world.ops.clone());
    let route = |group: &str, version: &str| {
        serde_json::from_value::<APIService>(json!({"metadata": {"name": format!("{version}.{group}")},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": {"namespace": "evil", "name": "api"}}}))
    };
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let hijack = route("argoproj.io", "v9")?;
    comes_out(world, &["routes"], async {
        refused(routes.create(&params, &hijack).await, "routes", &["Service evil/api"])
    })
    .await?;
    let registered = json!({"spec": {"service": {"namespace": "evil", "name": "api"}, "insecureSkipTLSVerify": true}});
    comes_out(world, &["routes"], async {
        refused(merge_dry(&routes, "v1alpha1.argoproj.io", registered).await, "routes", &["argoproj.io"])
    })
    .await?;
    comes_out(world, &[], admitted(routes.create(&params, &route("metrics.example.com", "v1")?))).await
}

async fn cluster_secret_is_sent_by_its_label(world: &World) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.ops.clone(), "argocd");
    let secret = |name: &str, labels: Value| {
        serde_json::from_value::<Secret>(json!({"metadata": {"name": name, "labels": labels},
            "stringData": {"name": "east", "server": "https://east.example.com", "config": "{}"}}))
    };
    let params = PostParams::default();
    let label = "argocd.argoproj.io/secret-type";
    comes_out(world, &[], admitted(secrets.create(&params, &secret("cluster-east", json!({label: "cluster"}))?)))
        .await?;
    comes_out(world, &[], admitted(secrets.create(&params, &secret("plain", json!({label: "repository"}))?))).await?;
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "to-the-east"},
        "spec": {"project": "default", "destination": {"name": "east", "namespace": "shop"}}});
    applications(world).create(&params, &serde_json::from_value(app)?).await?;
    let words = ["Secret argocd/cluster-east", "to-the-east"];
    comes_out(world, &[], admitted(merge(&secrets, "cluster-east", json!({"stringData": {"config": "{\"a\":1}"}}))))
        .await?;
    eventually("the Application to be known", async || {
        refused(
            merge(&secrets, "cluster-east", json!({"metadata": {"labels": {label: null}}})).await,
            "cluster-secrets",
            &words,
        )
    })
    .await?;
    comes_out(world, &["cluster-secrets"], async {
        refused(secrets.delete("cluster-east", &dry_run()).await, "cluster-secrets", &words)
    })
    .await?;
    comes_out(world, &[], admitted(merge(&secrets, "plain", json!({"metadata": {"labels": {label: null}}})))).await?;
    comes_out(world, &[], admitted(secrets.delete("plain", &DeleteParams::default()))).await?;
    applications(world).delete("to-the-east", &DeleteParams::default()).await?;
    eventually("the Application to be forgotten", async || {
        secrets.delete("cluster-east", &DeleteParams::default()).await?;
        Ok(())
    })
    .await
}

async fn label_of_the_guard_is_sent_to_an_entry_that_fails_closed(world: &World) -> Result<()> {
    world.namespace("labelled").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    let label = |key: &str, value: Value| json!({"metadata": {"labels": {key: value}}});
    let both = ["exempting-labels", "namespace-labels"];
    let own = "cascade-guard.io/tier";
    comes_out(world, &both, admitted(merge(&namespaces, "labelled", label(own, json!("a"))))).await?;
    comes_out(world, &both, admitted(merge(&namespaces, "labelled", label(own, json!("b"))))).await?;
    comes_out(world, &["namespace-labels"], admitted(merge(&namespaces, "labelled", label("team", json!("a")))))
        .await?;
    comes_out(world, &both, admitted(merge(&namespaces, "labelled", label(own, Value::Null)))).await?;
    comes_out(world, &[], admitted(merge(&namespaces, "labelled", annotation("example.com/a", "b")))).await
}

async fn move_into_another_project_is_judged(world: &World) -> Result<()> {
    let list = [entry(RBAC, "Role", "moved", "shared")];
    world.namespace("moved").await?;
    let old = Application::create(world, "moved-old", "moved", &[CASCADE], &list).await?;
    Application::create(world, "moved-new", "moved", &[CASCADE], &list).await?;
    old.sync(&list).await?;
    let group = "owners-of-applications";
    let rules =
        json!([{"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get", "patch", "update"]}]);
    let role =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": group}, "rules": rules});
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": group},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": group},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}]});
    apply::<ClusterRole>(&Api::all(world.ops.clone()), group, &role).await?;
    apply::<ClusterRoleBinding>(&Api::all(world.ops.clone()), group, &binding).await?;
    let owner = applications_by(world.plane.impersonate("erin@example.com", &[group])?);
    gains(&world.plane.impersonate("erin@example.com", &[group])?, "patch", "argoproj.io", "applications").await?;
    let to = |project: &str| json!({"spec": {"project": project}});
    let mild = "overrides: [{match: {projects: [sandbox]}, modes: {sharedClaim: audit}}]\n  rules:";
    world
        .with_policy(("rules:", mild), async || {
            let entry = "application-updates";
            comes_out(world, &[entry], async {
                let words =
                    ["Application argocd/moved-old", "from project default into sandbox", "erin@example.com lacks"];
                refused(merge_dry(&owner, "moved-old", to("sandbox")).await, entry, &words)
            })
            .await?;
            comes_out(world, &[entry], admitted(merge_dry(&owner, "moved-old", to("other")))).await?;
            // Who may approve, and Argo CD itself, may move it.
            comes_out(world, &[entry], admitted(merge_dry(&applications(world), "moved-old", to("sandbox")))).await?;
            comes_out(world, &[entry], old.patch_as_argocd(to("sandbox"))).await
        })
        .await
}

async fn account_of_the_guard_is_sent(world: &World) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(world.ops.clone(), "cascade-guard");
    comes_out(world, &["own-account"], admitted(accounts.delete("cascade-guard", &dry_run()))).await?;
    let other = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other"}});
    apply(&accounts, "other", &other).await?;
    comes_out(world, &[], admitted(accounts.delete("other", &DeleteParams::default()))).await
}

async fn weaker_configuration_is_seen(world: &World) -> Result<()> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(world.ops.clone());
    let name = "cascade-guard";
    let seen = async |fault: &str, number: u8| {
        let line = format!("cascade_guard_webhook_configuration_faults{{fault=\"{fault}\"}} {number}");
        eventually(&line, async || {
            let (_, metrics) = world.guard.admin("/metrics").await?;
            ensure!(metrics.lines().any(|found| found == line), "another number");
            Ok(())
        })
        .await
    };
    for fault in ["missing", "rules", "fails-open", "narrower", "elsewhere", "authority"] {
        seen(fault, 0).await?;
    }
    let set = async |policy: &str| {
        let entry = json!({"webhooks": [{"name": "namespaces.cascade-guard.io", "failurePolicy": policy}]});
        configurations.patch(name, &PatchParams::default(), &Patch::Strategic(entry)).await
    };
    set("Ignore").await?;
    let outcome = seen("fails-open", 1).await;
    set("Fail").await?;
    outcome?;
    seen("fails-open", 0).await
}

/// A request that has to be admitted.
async fn admitted<T>(request: impl Future<Output = kube::Result<T>>) -> Result<()> {
    request.await?;
    Ok(())
}

async fn merge_dry<K>(api: &Api<K>, name: &str, patch: Value) -> kube::Result<K>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default().dry_run(), &Patch::Merge(patch)).await
}
