//! What holds under another policy, or while the guard lacks a right. Each test puts back what it changed, and runs alone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, rbac::v1::ClusterRole};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    approval_paths::{release, terminating},
    approvals::{approve, namespaces},
    harness::{
        argo::{Application, CASCADE, Entry, applications, applications_by, entry, gone},
        manifests,
        outcome::{refused, rejected},
        people::{APPROVER, BOTH, DELETER, ON_CALL, OUTSIDER},
        rights::may,
        wait::eventually,
        world::{World, dry_run},
    },
    hook_needs::{create, is_warned_of},
    hooks::{first_sync, migration},
    tests,
};

tests!(
    alone: approver_may_not_delete_under_four_eyes,
    finalizing_by_an_outsider_is_refused_where_the_policy_says_so,
    nobody_approves_while_rights_cannot_be_checked_and_the_rest_goes_on,
    only_a_member_of_the_group_breaks_the_glass_and_the_cascade_is_let_through,
    need_that_may_not_be_read_is_told_and_the_hook_created,
);

const TTL: &str = "maxTTL: 24h";

async fn approver_may_not_delete_under_four_eyes(world: &World) -> Result<()> {
    world.namespace("four-eyes").await?;
    world
        .with_policy((TTL, "maxTTL: 24h, fourEyes: true"), async || {
            approve(BOTH.client(world)?, "four-eyes", BOTH.name).await?;
            let both = namespaces(BOTH.client(world)?);
            let words = ["namespace-approval", "carol@example.com approved the deletion", "four eyes"];
            refused(both.delete("four-eyes", &DeleteParams::default()).await, "namespaces", &words)?;
            ensure!(both.get("four-eyes").await?.metadata.deletion_timestamp.is_none(), "the Namespace is going");
            let policy = world.policy().display().to_string();
            let said = BOTH.runs(world, &["approvals", "status", "four-eyes", "--policy", &policy])?;
            said.ended(0, &["Four eyes: somebody else than the approver has to delete it"])?;

            // Argo CD does not say who asked it to delete, so from it every approval counts but its own.
            namespaces(world.argocd.clone()).delete("four-eyes", &dry_run()).await?;
            namespaces(DELETER.client(world)?).delete("four-eyes", &DeleteParams::default()).await?;
            gone(&both, "four-eyes").await
        })
        .await
}

async fn finalizing_by_an_outsider_is_refused_where_the_policy_says_so(world: &World) -> Result<()> {
    let mut object = terminating(world, "protected").await?;
    object["spec"]["finalizers"] = json!([]);
    object["metadata"]["resourceVersion"] = Value::Null;
    let outcome = world
        .with_policy((TTL, "maxTTL: 24h, protectFinalize: enforce"), async || {
            let request =
                http::Request::put("/api/v1/namespaces/protected/finalize").body(serde_json::to_vec(&object)?)?;
            let outcome = OUTSIDER.client(world)?.request::<Value>(request).await;
            refused(outcome, "finalize", &["approval-integrity/finalize", "by hand orphans", "example.com/held"])?;
            namespaces(world.ops.clone()).get("protected").await.context("the Namespace is gone")?;
            Ok(())
        })
        .await;
    // The controller itself finishes the Namespace as ever.
    release(world, "protected").await?;
    outcome
}

/// Applies a role of the base, without its rules about a resource if one is named.
async fn apply_role(world: &World, name: &str, without: Option<&str>) -> Result<()> {
    let admin = world.plane.admin()?;
    let found = manifests::base()?.into_iter().find(|object| {
        object.metadata.name.as_deref() == Some(name)
            && object.types.as_ref().is_some_and(|types| types.kind == "ClusterRole")
    });
    let mut role: DynamicObject = found.with_context(|| format!("the base has no ClusterRole {name}"))?;
    if let Some(resource) = without {
        let rules = role.data["rules"].as_array_mut().context("no rules")?;
        let all = rules.len();
        rules.retain(|rule| rule["resources"] != json!([resource]));
        ensure!(rules.len() < all, "no rule is about {resource} alone");
    }
    manifests::apply(&admin, &role).await?;
    Ok(())
}

async fn nobody_approves_while_rights_cannot_be_checked_and_the_rest_goes_on(world: &World) -> Result<()> {
    for name in ["unchecked", "checked-before"] {
        world.namespace(name).await?;
    }
    approve(APPROVER.client(world)?, "checked-before", APPROVER.name).await?;
    let guard = world.guard_account().await?;
    let asks = async |right: bool| {
        eventually("the change of rights to be known", async || {
            let has = may(&guard, "create", "authorization.k8s.io", "subjectaccessreviews").await?;
            ensure!(has == right, "it is not");
            Ok(())
        })
        .await
    };
    apply_role(world, "cascade-guard", Some("subjectaccessreviews")).await?;
    let outcome = async {
        asks(false).await?;
        let words = ["approval-integrity", "whether alice@example.com may approve its deletion could not be checked"];
        refused(approve(APPROVER.client(world)?, "unchecked", APPROVER.name).await, "approvals", &words)?;
        // What needs no such review is judged as ever.
        let outsider = namespaces(OUTSIDER.client(world)?);
        let team = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"example.com/owner": "a"}}});
        outsider.patch("unchecked", &PatchParams::default(), &Patch::Merge(team)).await?;
        let deleter = namespaces(DELETER.client(world)?);
        refused(deleter.delete("unchecked", &dry_run()).await, "namespaces", &["nobody approved its deletion"])?;
        deleter.delete("checked-before", &dry_run()).await?;
        APPROVER.runs(world, &["revoke", "checked-before"])?.ended(0, &["withdrawn"])
    }
    .await;
    apply_role(world, "cascade-guard", None).await?;
    asks(true).await?;
    outcome?;
    approve(APPROVER.client(world)?, "unchecked", APPROVER.name).await?;
    Ok(())
}

async fn only_a_member_of_the_group_breaks_the_glass_and_the_cascade_is_let_through(world: &World) -> Result<()> {
    let shared = [entry("", "Namespace", "", "glass"), entry("rbac.authorization.k8s.io", "Role", "glass", "job")];
    let old = Application::create(world, "glass-old", "glass", &[CASCADE], &shared).await?;
    old.sync(&shared).await?;
    Application::create(world, "glass-new", "glass", &[CASCADE], &shared.clone().map(Entry::out_of_sync)).await?;
    let reason = |client: Client| {
        let applications = applications_by(client);
        async move {
            let reason =
                json!({"metadata": {"annotations": {"cascade-guard.io/break-glass": "INC-1 moves the cluster"}}});
            applications.patch("glass-old", &PatchParams::default(), &Patch::Merge(reason)).await
        }
    };
    let policy = ("  rules:", "  breakGlass: {groups: [on-call], requireReason: true}\n  rules:");
    world
        .with_policy(policy, async || {
            let platform = applications(world);
            eventually("the guard to know the claims", async || {
                let words = ["shared-claim", "namespace-approval", "argocd/glass-new"];
                refused(platform.delete("glass-old", &DeleteParams::default()).await, "applications", &words)
            })
            .await?;
            let words = ["approval-integrity/break-glass", "ops@example.com is in none of its groups", "on-call"];
            refused(reason(world.ops.clone()).await, "approvals", &words)?;
            let on_call = ON_CALL.client(world)?;
            let applications = applications_by(on_call.clone());
            // Membership alone is not enough where the policy wants a reason.
            let outcome = applications.delete("glass-old", &DeleteParams::default()).await;
            refused(outcome, "applications", &["shared-claim", "namespace-approval"])?;

            reason(on_call).await?;
            // The reason is of use to those alone who may write it.
            refused(platform.delete("glass-old", &DeleteParams::default()).await, "applications", &["shared-claim"])?;
            applications.delete("glass-old", &DeleteParams::default()).await?;
            // Argo CD deletes what the cascade takes under its own name, and is let through.
            old.cascade(&[shared[1].clone(), shared[0].clone()]).await
        })
        .await?;
    rejected(applications(world).get("glass-old").await, "not found")
}

async fn need_that_may_not_be_read_is_told_and_the_hook_created(world: &World) -> Result<()> {
    let guard = world.guard_account().await?;
    let roles: Api<ClusterRole> = Api::all(world.plane.admin()?);
    // Another test may have given it the right, and gives it again if it comes later.
    if roles.get_opt("cascade-guard-read-secrets").await?.is_some() {
        roles.delete("cascade-guard-read-secrets", &DeleteParams::default()).await?;
    }
    eventually("the guard to lack the right to read Secrets", async || {
        ensure!(!may(&guard, "get", "", "secrets").await?, "it has it");
        Ok(())
    })
    .await?;

    let application = first_sync(world, "unread", "Secret").await?;
    // After a first sync the Secret may be there, whatever the list says.
    application.patch_as_argocd(json!({"status": {"history": [{"id": 0}]}})).await?;
    let hook = migration("unread", "secretRef", &[("hook", "PreSync"), ("sync-wave", "5")])?;
    let words = ["[sync-wave]", "Secret unread/database", "whether it exists could not be read"];
    is_warned_of(&world.argocd, &hook, &words).await?;
    create(&world.argocd, &hook, "").await?;
    let jobs: Api<Job> = Api::namespaced(world.argocd.clone(), "unread");
    jobs.get("migrate").await.context("it was not created")?;
    Ok(())
}
