//! The manifests: that the API server takes them as they are, and what rights they give.

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    discovery::pinned_kind,
};

use crate::{
    harness::{manifests, world::World},
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

/// Whether the user behind `client` may do this to objects everywhere. `resource` may go on with `/` and a subresource, or
/// with `=` and the name of one object.
pub async fn may(client: &Client, verb: &str, group: &str, resource: &str) -> Result<bool> {
    let (resource, name) = resource.split_once('=').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let wanted = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: Some(subresource.to_owned()),
                name: Some(name.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::<SelfSubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &wanted).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn guard_may_read_what_it_judges_by_and_change_nothing(world: &World) -> Result<()> {
    let guard = world.plane.client(world.plane.service_account("cascade-guard", "cascade-guard").await?)?;
    let rbac = "rbac.authorization.k8s.io";
    for (verb, group, resource) in [
        ("watch", "argoproj.io", "applications"),
        ("watch", "argoproj.io", "applicationsets"),
        ("watch", "argoproj.io", "appprojects"),
        ("watch", "", "namespaces"),
        ("watch", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("watch", "cascade-guard.io", "guardpolicies"),
        ("watch", "", "configmaps=argocd-cm"),
        ("patch", "cascade-guard.io", "guardpolicies/status"),
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
    ensure!(may(&approver, "approve", "cascade-guard.io", "namespacedeletions").await?);
    ensure!(may(&approver, "patch", "", "namespaces").await?);
    ensure!(!may(&approver, "delete", "", "namespaces").await?);
    let stranger = world.plane.impersonate("mallory@example.com", &["system:authenticated"])?;
    ensure!(!may(&stranger, "approve", "cascade-guard.io", "namespacedeletions").await?);
    Ok(())
}
