//! What the API server asks the guard about, and what it keeps to itself. Each test runs alone: it looks at the API
//! server's own counters before and after a request.

use std::{collections::BTreeMap, fmt::Debug};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, Role},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, applications, entry, gone},
        wait::eventually,
        world::{World, apply, dry_run},
    },
    tests,
};

tests!(
    alone: status_of_an_application_is_never_sent,
    application_is_sent_when_its_aim_or_prune_changes,
    application_set_is_sent_when_its_names_may_change,
    namespace_is_sent_for_power_labels_and_deletion,
    power_is_sent_whatever_carries_it,
    finalize_by_a_person_is_sent,
    rbac_is_sent_when_something_may_be_taken,
    hook_is_sent_and_what_is_none_is_not,
    definition_and_policy_are_sent,
);

/// How often each entry of the webhook configuration has been asked.
async fn counters(world: &World) -> Result<BTreeMap<String, u64>> {
    let metrics = world.plane.admin()?.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut counters = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("apiserver_admission_webhook_request_total{")) {
        let (name, count) = line
            .split_once("name=\"")
            .and_then(|(_, rest)| Some((rest.split_once(".cascade-guard.io\"")?.0, rest.rsplit(' ').next()?)))
            .with_context(|| format!("another format than it used to be: {line}"))?;
        *counters.entry(name.to_owned()).or_default() += count.parse::<u64>()?;
    }
    Ok(counters)
}

/// Which entries the API server asks while `request` runs, and what becomes of that.
async fn entries_asked<T>(world: &World, request: impl Future<Output = T>) -> Result<(Vec<String>, T)> {
    let before = counters(world).await?;
    let outcome = request.await;
    let asked = counters(world).await?.into_iter().filter(|(name, count)| before.get(name) != Some(count));
    Ok((asked.map(|(name, _)| name).collect(), outcome))
}

/// That `request`, whatever becomes of it, makes the API server ask exactly these entries.
async fn asks<T>(world: &World, entries: &[&str], request: impl Future<Output = kube::Result<T>>) -> Result<()> {
    let (asked, outcome) = entries_asked(world, request).await?;
    let outcome = outcome.map_or_else(|error| error.to_string(), |_| "admitted".to_owned());
    ensure!(asked == entries, "asked {asked:?} instead of {entries:?}; the request: {outcome}");
    Ok(())
}

/// The same of a request that has to come out right.
pub(crate) async fn comes_out<E: Into<anyhow::Error>>(
    world: &World,
    entries: &[&str],
    request: impl Future<Output = std::result::Result<(), E>>,
) -> Result<()> {
    let (asked, outcome) = entries_asked(world, request).await?;
    outcome.map_err(Into::into)?;
    ensure!(asked == entries, "asked {asked:?} instead of {entries:?}");
    Ok(())
}

pub(crate) async fn merge<K>(api: &Api<K>, name: &str, patch: Value) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

pub(crate) fn annotation(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {key: value.into()}}})
}

const GLASS: &str = "cascade-guard.io/break-glass";
const REASON: &str = "cascade-guard.io/deletion-reason";

async fn status_of_an_application_is_never_sent(world: &World) -> Result<()> {
    let reviews = world.guard.reviews().await?;
    let list = [entry("", "ConfigMap", "quiet", "settings")];
    let application = Application::create(world, "quiet", "quiet", &[CASCADE], &list).await?;
    application.compare(&list.map(Entry::out_of_sync)).await?;
    for patch in [
        annotation("argocd.argoproj.io/refresh", "normal"),
        json!({"operation": {"sync": {"revision": "main"}}}),
        json!({"status": {"operationState": {"phase": "Running", "operation": {"sync": {"prune": true}}}}}),
        json!({"operation": null}),
    ] {
        application.patch_as_argocd(patch).await?;
    }
    ensure!(world.guard.reviews().await? == reviews, "the guard was asked");
    Ok(())
}

async fn application_is_sent_when_its_aim_or_prune_changes(world: &World) -> Result<()> {
    let aimed = Application::create(world, "aimed", "aimed", &[], &[]).await?;
    let applications = applications(world);
    for patch in [
        json!({"spec": {"source": {"targetRevision": "v2"}}}),
        json!({"spec": {"destination": {"namespace": "elsewhere"}}}),
        json!({"spec": {"project": "other"}}),
        json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}}),
        json!({"operation": {"sync": {"prune": true}}}),
    ] {
        asks(world, &["application-updates"], merge(&applications, &aimed.name, patch)).await?;
    }
    asks(
        world,
        &[],
        merge(&applications, &aimed.name, json!({"spec": {"syncPolicy": {"automated": {"selfHeal": true}}}})),
    )
    .await?;
    asks(world, &["applications"], applications.delete("aimed", &dry_run())).await
}

async fn application_set_is_sent_when_its_names_may_change(world: &World) -> Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(world.ops.clone(), "argocd", &kind);
    let list = |names: &[&str]| json!([{"list": {"elements": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}}]);
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "named"},
        "spec": {"generators": list(&["a", "b"]), "template": {"metadata": {"name": "{{name}}"}, "spec": {"project": "default"}}}});
    asks(world, &[], sets.create(&PostParams::default(), &serde_json::from_value(set)?)).await?;
    for patch in [
        json!({"spec": {"generators": list(&["a"])}}),
        json!({"spec": {"goTemplate": true}}),
        json!({"spec": {"template": {"metadata": {"name": "web-{{.name}}"}}}}),
    ] {
        asks(world, &["applicationset-updates"], merge(&sets, "named", patch)).await?;
    }
    for patch in [
        json!({"spec": {"template": {"spec": {"project": "other"}}}}),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}}),
        json!({"status": {"conditions": []}}),
    ] {
        asks(world, &[], merge(&sets, "named", patch)).await?;
    }
    Ok(())
}

async fn namespace_is_sent_for_power_labels_and_deletion(world: &World) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "watched"}}))?;
    asks(world, &[], namespaces.create(&PostParams::default(), &namespace)).await?;
    asks(world, &["namespace-labels"], merge(&namespaces, "watched", json!({"metadata": {"labels": {"team": "a"}}})))
        .await?;
    asks(world, &[], merge(&namespaces, "watched", annotation("example.com/note", "b"))).await?;
    asks(world, &["approvals"], merge(&namespaces, "watched", annotation(REASON, "CHG-1"))).await?;
    asks(world, &[], merge(&namespaces, "watched", annotation(REASON, Value::Null))).await?;
    let (params, written) = (PatchParams::default(), Patch::Merge(annotation(REASON, "CHG-2")));
    let by_status = namespaces.patch_status("watched", &params, &written);
    asks(world, &["approvals"], by_status).await?;
    asks(world, &["namespaces"], namespaces.delete("watched", &dry_run())).await
}

async fn power_is_sent_whatever_carries_it(world: &World) -> Result<()> {
    world.namespace("powerful").await?;
    Application::create(world, "powerful", "powerful", &[], &[]).await?;
    asks(world, &["approvals"], merge(&applications(world), "powerful", annotation(GLASS, "fire"))).await?;
    asks(world, &[], merge(&applications(world), "powerful", annotation(GLASS, Value::Null))).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.ops.clone());
    let (params, written) = (PatchParams::default().dry_run(), Patch::Merge(annotation(GLASS, "fire")));
    let on_definition = definitions.patch("applications.argoproj.io", &params, &written);
    asks(world, &["approvals"], on_definition).await?;
    let roles: Api<Role> = Api::namespaced(world.ops.clone(), "powerful");
    let role = serde_json::from_value(json!({"metadata": {"name": "born-with-it", "annotations": {GLASS: "fire"}}}))?;
    asks(world, &["approvals"], roles.create(&PostParams::default(), &role)).await
}

async fn finalize_by_a_person_is_sent(world: &World) -> Result<()> {
    world.namespace("stuck").await?;
    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "stuck");
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    maps.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    world.approve("stuck").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    eventually("the deletion to be admitted", async || {
        Ok(namespaces.delete("stuck", &DeleteParams::default()).await?)
    })
    .await?;
    let namespace = namespaces.get("stuck").await?;
    let params = PostParams::default();
    let finalize = namespaces.replace_subresource("finalize", "stuck", &params, &namespace);
    asks(world, &["finalize"], finalize).await?;
    // The namespace controller's own status and finalize updates are not sent.
    asks(world, &[], async {
        merge(&maps, "held", json!({"metadata": {"finalizers": null}})).await?;
        gone(&namespaces, "stuck").await.map_err(|error| kube::Error::Service(error.into()))
    })
    .await
}

async fn rbac_is_sent_when_something_may_be_taken(world: &World) -> Result<()> {
    world.namespace("rights").await?;
    let granting = |verb: &str| json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}]);
    for (namespace, updates, deletes) in [
        ("rights", &["rbac-updates"][..], &["rbac-deletes"][..]),
        ("kube-system", &[], &[]),
        ("cascade-guard", &[], &[]),
    ] {
        let roles: Api<Role> = Api::namespaced(world.ops.clone(), namespace);
        let role = serde_json::from_value(json!({"metadata": {"name": "matching"}, "rules": granting("get")}))?;
        asks(world, &[], roles.create(&PostParams::default(), &role)).await?;
        asks(world, &[], merge(&roles, "matching", annotation("argocd.argoproj.io/tracking-id", "a:b/c:d/e"))).await?;
        asks(world, updates, merge(&roles, "matching", json!({"rules": granting("list")}))).await?;
        asks(world, deletes, roles.delete("matching", &DeleteParams::default())).await?;
    }
    let cluster_roles: Api<ClusterRole> = Api::all(world.ops.clone());
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-aggregated", "labels": {"cascade-guard.io/aggregate-to-reader": "true"}}, "rules": granting("get")});
    // The controller that aggregates it into the guard's own role is not asked about either.
    asks(world, &[], async {
        apply(&cluster_roles, "test-aggregated", &role).await.map_err(|error| kube::Error::Service(error.into()))
    })
    .await?;
    asks(world, &["rbac-deletes"], cluster_roles.delete("test-aggregated", &DeleteParams::default())).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.ops.clone(), "rights");
    asks(world, &["rbac-deletes"], accounts.delete("default", &dry_run())).await
}

async fn hook_is_sent_and_what_is_none_is_not(world: &World) -> Result<()> {
    world.namespace("hooks").await?;
    let maps: Api<ConfigMap> = Api::namespaced(world.ops.clone(), "hooks");
    for (name, annotations, entries) in [
        ("plain", json!({}), &[][..]),
        ("in-a-wave", json!({"argocd.argoproj.io/sync-wave": "-3"}), &[]),
        ("in-no-wave", json!({"argocd.argoproj.io/sync-wave": "three"}), &["hooks"]),
        ("in-a-wave-too-far", json!({"argocd.argoproj.io/sync-wave": "9999999999999999999"}), &["hooks"]),
        ("hook", json!({"argocd.argoproj.io/hook": "PreSync"}), &["hooks"]),
        ("helm-hook", json!({"helm.sh/hook": "pre-install"}), &["hooks"]),
    ] {
        let map = serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}}))?;
        asks(world, entries, maps.create(&PostParams::default(), &map)).await?;
    }
    let jobs: Api<Job> = Api::namespaced(world.ops.clone(), "hooks");
    let job = json!({
        "metadata": {"name": "hook", "annotations": {"argocd.argoproj.io/hook": "PostSync"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.com/c:1"}]}}},
    });
    asks(world, &["hooks"], jobs.create(&PostParams::default(), &serde_json::from_value(job)?)).await?;
    let status = Patch::Merge(json!({"status": {"active": 1}}));
    asks(world, &[], jobs.patch_status("hook", &PatchParams::default(), &status)).await?;
    asks(world, &[], merge(&jobs, "hook", json!({"metadata": {"labels": {"a": "b"}}}))).await?;
    asks(world, &["hooks"], merge(&jobs, "hook", json!({"spec": {"suspend": true}}))).await
}

async fn definition_and_policy_are_sent(world: &World) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.ops.clone());
    asks(world, &["definitions"], definitions.delete("appprojects.argoproj.io", &dry_run())).await?;
    let policies: Api<cascade_guard_core::policy::GuardPolicy> = Api::all(world.ops.clone());
    let policy = serde_json::from_value(json!({"metadata": {"name": "default"}, "spec": {}}))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    asks(world, &["policies"], policies.create(&dry_run, &policy)).await
}
