//! A guard that takes its policy from the cluster: edited live, refused, capped, and told in the status. The GuardPolicy is
//! one object, so these tests run alone.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::Namespace, events::v1::Event};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::gone,
        guard::Guard,
        outcome::refused,
        wait::eventually,
        world::{World, dry_run},
    },
    tests,
};

tests!(
    alone:
    policy_edited_live_takes_effect_and_its_status_says_so,
    bad_policy_is_refused_and_the_old_one_stays_in_force,
    bad_policy_that_was_stored_all_the_same_does_not_take_effect,
    ceiling_caps_the_policy_of_the_cluster,
    certificate_near_its_end_is_told_by_an_event_on_the_policy,
    stuck_namespace_is_seen_in_metrics_and_told_in_the_log,
);

fn policies(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cascade-guard.io", "v1alpha1", "GuardPolicy");
    Api::all_with(world.ops.clone(), &ApiResource::from_gvk_with_plural(&kind, "guardpolicies"))
}

/// Stores a policy; gives its generation.
pub(crate) async fn store(world: &World, spec: Value) -> kube::Result<Option<i64>> {
    let policy = json!({
        "apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "default"}, "spec": spec,
    });
    let parameters = PatchParams::apply("cascade-guard-tests").force();
    let stored = policies(world).patch("default", &parameters, &Patch::Apply(policy)).await?;
    Ok(stored.metadata.generation)
}

fn sync_wave(mode: &str) -> Value {
    json!({"rules": {"syncWave": {"mode": mode}}})
}

/// A policy that the schema takes and the guard cannot apply.
fn bad() -> Value {
    json!({"rules": {"syncWave": {"mode": "off"}},
        "overrides": [{"match": {"namespaces": ["team-[a"]}, "modes": {"syncWave": "off"}}]})
}

/// Whether the guard takes a hook whose wave is no number.
async fn takes_a_bad_wave(guard: &Guard) -> Result<bool> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "default",
            "annotations": {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "first"}},
        "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}},
    });
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "CREATE", "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "name": "migrate", "namespace": "default", "userInfo": {"username": "ops@example.com"}, "object": job}});
    guard.review(&review).await?["allowed"].as_bool().context("no answer")
}

/// What the status says: modes, and of each condition its status and reason.
pub(crate) async fn status(world: &World) -> Result<Value> {
    Ok(policies(world).get("default").await?.data["status"].take())
}

pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> Result<(&'a str, &'a str, &'a str)> {
    let conditions = status["conditions"].as_array().context("no conditions")?;
    let found = conditions.iter().find(|condition| condition["type"] == kind).context("no such condition")?;
    let word = |key: &str| found[key].as_str().unwrap_or_default();
    Ok((word("status"), word("reason"), word("message")))
}

/// Runs with a guard that takes its policy from the cluster, and takes both away whatever happens.
pub(crate) async fn with_guard(
    world: &World,
    flags: &[&str],
    test: impl AsyncFnOnce(&Guard) -> Result<()>,
) -> Result<()> {
    let guard = Guard::with(&world.plane, &world.folder, "live-guard", flags).await?;
    let outcome = test(&guard).await;
    guard.stop()?;
    let removed = policies(world).delete("default", &DeleteParams::default()).await;
    if !matches!(&removed, Err(kube::Error::Api(status)) if status.code == 404) {
        removed?;
        gone(&policies(world), "default").await?;
    }
    outcome
}

async fn policy_edited_live_takes_effect_and_its_status_says_so(world: &World) -> Result<()> {
    with_guard(world, &["--no-reports"], async |guard| {
        ensure!(takes_a_bad_wave(guard).await?, "without a GuardPolicy every rule is in audit");
        for (mode, taken) in [("enforce", false), ("warn", true), ("enforce", false)] {
            let generation = store(world, sync_wave(mode)).await?;
            eventually("the policy to be in force", async || {
                ensure!(takes_a_bad_wave(guard).await? == taken, "it is not");
                Ok(())
            })
            .await?;
            eventually("the status", async || {
                let status = status(world).await?;
                ensure!(status["observedGeneration"] == json!(generation), "{status}");
                ensure!(status["modes"]["syncWave"] == mode && status["modes"]["sharedClaim"] == "audit", "{status}");
                for kind in ["Ready", "ClaimsSynced", "PolicyAccepted"] {
                    ensure!(condition(&status, kind)?.0 == "True", "{kind}: {status}");
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    })
    .await
}

async fn bad_policy_is_refused_and_the_old_one_stays_in_force(world: &World) -> Result<()> {
    with_guard(world, &["--no-reports"], async |guard| {
        store(world, sync_wave("enforce")).await?;
        eventually("the policy to be in force", async || {
            ensure!(!takes_a_bad_wave(guard).await?, "it is not");
            Ok(())
        })
        .await?;
        refused(
            store(world, bad()).await,
            "policies",
            &["[policy]", "spec.overrides[0].match.namespaces[0]", "team-[a"],
        )?;
        ensure!(!takes_a_bad_wave(guard).await?, "the old policy is not in force any more");
        Ok(())
    })
    .await
}

/// Nobody judges the policy while no guard answers; the entry fails open, so that a guard can be helped up.
async fn bad_policy_that_was_stored_all_the_same_does_not_take_effect(world: &World) -> Result<()> {
    with_guard(world, &["--no-reports"], async |guard| {
        store(world, sync_wave("enforce")).await?;
        eventually("the policy to be in force", async || {
            ensure!(!takes_a_bad_wave(guard).await?, "it is not");
            Ok(())
        })
        .await?;
        world.guard.stop()?;
        let stored = store(world, bad()).await;
        world.guard.resume().await?;
        world.wait_for_protection().await?;
        let generation = stored?;
        eventually("the status", async || {
            let status = status(world).await?;
            ensure!(status["observedGeneration"] == json!(generation), "{status}");
            let (holds, reason, message) = condition(&status, "PolicyAccepted")?;
            ensure!((holds, reason) == ("False", "Invalid") && message.contains("team-[a"), "{status}");
            ensure!(condition(&status, "Ready")?.0 == "False", "{status}");
            ensure!(status["modes"]["syncWave"] == "enforce", "the mode in force is the old one: {status}");
            Ok(())
        })
        .await?;
        ensure!(!takes_a_bad_wave(guard).await?, "the old policy is not in force any more");
        Ok(())
    })
    .await
}

async fn ceiling_caps_the_policy_of_the_cluster(world: &World) -> Result<()> {
    with_guard(world, &["--no-reports", "--mode-ceiling=audit"], async |guard| {
        store(world, sync_wave("enforce")).await?;
        eventually("the status", async || {
            let status = status(world).await?;
            ensure!(condition(&status, "PolicyAccepted")?.0 == "True", "{status}");
            ensure!(status["modes"]["syncWave"] == "audit", "{status}");
            Ok(())
        })
        .await?;
        ensure!(takes_a_bad_wave(guard).await?, "it was refused in spite of the ceiling");
        Ok(())
    })
    .await
}

async fn certificate_near_its_end_is_told_by_an_event_on_the_policy(world: &World) -> Result<()> {
    with_guard(world, &["--no-reports"], async |guard| {
        store(world, sync_wave("audit")).await?;
        guard.stop()?;
        guard.shorten_certificate()?;
        guard.resume().await?;
        let events: Api<Event> = Api::namespaced(world.ops.clone(), "default");
        let uid = policies(world).get("default").await?.metadata.uid;
        eventually("the Event", async || {
            let all = events.list(&ListParams::default()).await?.items;
            let ours = all.iter().find(|event| event.reason.as_deref() == Some("CertificateEnding"));
            let regarding = ours.context("there is none")?.regarding.clone().context("about nothing")?;
            ensure!(regarding.kind.as_deref() == Some("GuardPolicy") && regarding.uid == uid, "{regarding:?}");
            Ok(())
        })
        .await
    })
    .await
}

async fn stuck_namespace_is_seen_in_metrics_and_told_in_the_log(world: &World) -> Result<()> {
    world.namespace("stuck").await?;
    // What Argo CD leaves behind when the operation of a hook never ends.
    let jobs: Api<Job> = Api::namespaced(world.argocd.clone(), "stuck");
    let hook = json!({
        "metadata": {"name": "migrate", "finalizers": ["argocd.argoproj.io/hook-finalizer"]},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}},
    });
    jobs.create(&PostParams::default(), &serde_json::from_value(hook)?).await?;
    world.approve("stuck").await?;
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    eventually("the deletion to be admitted", async || {
        namespaces.delete("stuck", &dry_run()).await?;
        Ok(namespaces.delete("stuck", &DeleteParams::default()).await?)
    })
    .await?;
    let outcome = with_guard(world, &["--no-reports", "--terminating-after=1s"], async |guard| {
        eventually("the metric", async || {
            let (_, metrics) = guard.admin("/metrics").await?;
            let line = "cascade_guard_terminating_objects{kind=\"Namespace\"} 1";
            ensure!(metrics.lines().any(|found| found == line), "{metrics}");
            Ok(())
        })
        .await?;
        eventually("the line in the log", async || {
            let log = guard.log()?;
            let told = log.lines().find(|line| line.contains("the deletion of an object does not end"));
            let told = told.context("it was not told")?;
            for word in ["Namespace stuck", "Job stuck/migrate", "hook-finalizer", "kubectl"] {
                ensure!(told.contains(word), "no {word} in {told}");
            }
            Ok(())
        })
        .await
    })
    .await;
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    jobs.patch("migrate", &PatchParams::default(), &released).await?;
    gone(&namespaces, "stuck").await?;
    outcome
}
