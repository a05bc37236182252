//! The manifests: that the API server takes them as they are, and what rights they give.

use anyhow::{Result, ensure};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    discovery::pinned_kind,
};

use crate::{
    harness::{
        manifests,
        rights::{gains, may},
        world::World,
    },
    tests,
};

tests!(
    webhook_configuration_is_taken_as_it_ships,
    guard_may_read_what_it_judges_by_and_change_nothing,
    approver_role_gives_the_right_to_approve_and_no_other,
);

async fn webhook_configuration_is_taken_as_it_ships(world: &World) -> Result<()> {
    let client = world.plane.admin()?;
    for object in manifests::base()?.iter().filter(|object| manifests::is_webhook_configuration(object)) {
        let types = object.types.clone().unwrap_or_default();
        let (resource, _) = pinned_kind(&client, &(&types).try_into()?).await?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        // A dry run: stored, it would point to a Service that has no Pods here.
        let parameters = PatchParams::apply("cascade-guard-tests").force().dry_run().validation_strict();
        api.patch(&object.name_any(), &parameters, &Patch::Apply(object)).await?;
    }
    Ok(())
}

async fn guard_may_read_what_it_judges_by_and_change_nothing(world: &World) -> Result<()> {
    let guard = world.guard_account().await?;
    let rbac = "rbac.authorization.k8s.io";
    for (verb, group, resource) in [
        ("watch", "argoproj.io", "applications"),
        ("watch", "argoproj.io", "applicationsets"),
        ("watch", "argoproj.io", "appprojects"),
        ("watch", "", "namespaces"),
        ("watch", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("watch", "cascade-guard.io", "guardpolicies"),
        ("watch", "", "configmaps=argocd-cm"),
        ("watch", "", "configmaps=argocd-cmd-params-cm"),
        ("watch", "apps", "statefulsets"),
        ("watch", "apps", "deployments"),
        ("patch", "cascade-guard.io", "guardpolicies/status=default"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
        ("list", "", "pods"),
        ("list", rbac, "rolebindings"),
        ("get", rbac, "roles"),
        ("get", "", "configmaps"),
        ("get", "apps", "deployments"),
    ] {
        ensure!(may(&guard, verb, group, resource).await?, "it may not {verb} {group}/{resource}");
    }
    for (verb, group, resource) in [
        ("list", "", "secrets"),
        ("list", "", "configmaps"),
        ("update", "cascade-guard.io", "guardpolicies"),
        ("patch", "argoproj.io", "applications"),
        ("delete", "", "namespaces"),
        ("create", "", "pods"),
        ("approve", "cascade-guard.io", "namespacedeletions"),
        ("patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ] {
        ensure!(!may(&guard, verb, group, resource).await?, "it may {verb} {group}/{resource}");
    }
    Ok(())
}

async fn approver_role_gives_the_right_to_approve_and_no_other(world: &World) -> Result<()> {
    let group = "namespace-approvers";
    let binding = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "test-approver-role"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cascade-guard-namespace-approver"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    });
    manifests::apply(&world.plane.admin()?, &serde_json::from_value(binding)?).await?;
    let approver = world.plane.impersonate("alice@example.com", &[group])?;
    gains(&approver, "approve", "cascade-guard.io", "namespacedeletions").await?;
    ensure!(may(&approver, "patch", "", "namespaces").await?);
    ensure!(!may(&approver, "delete", "", "namespaces").await?);
    let stranger = world.plane.impersonate("mallory@example.com", &["system:authenticated"])?;
    ensure!(!may(&stranger, "approve", "cascade-guard.io", "namespacedeletions").await?);
    Ok(())
}
