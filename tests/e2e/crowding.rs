//! Somebody keeps the guard busy: everybody else is answered all the same, and nothing fails open meanwhile.

use anyhow::{Context as _, Result, ensure};
use futures::future::{join, try_join_all};
use k8s_openapi::api::{batch::v1::Job, core::v1::Namespace};
use kube::Api;
use serde_json::json;

use crate::{
    harness::{
        outcome::refused,
        world::{World, dry_run},
    },
    hook_needs::create,
    hooks::migration,
    tests,
};

tests!(honest_deletes_are_answered_while_hooks_with_thousands_of_references_are_judged);

/// A hook that refers to so many ConfigMaps.
fn hook(references: usize) -> Result<Job> {
    let mut hook = migration("crowded", "configMapRef", &[("hook", "PreSync")])?;
    let spec = hook.spec.as_mut().and_then(|job| job.template.spec.as_mut()).context("a Job without a Pod")?;
    let sources: Vec<_> = (0..references).map(|n| json!({"configMapRef": {"name": format!("c{n}")}})).collect();
    spec.containers[0].env_from = Some(serde_json::from_value(json!(sources))?);
    Ok(hook)
}

async fn honest_deletes_are_answered_while_hooks_with_thousands_of_references_are_judged(world: &World) -> Result<()> {
    world.namespace("crowded").await?;
    world.namespace("crowded-bystander").await?;
    let hook = hook(8_000)?;
    let crowd = try_join_all((0..4).map(|_| create(&world.ops, &hook, "&dryRun=All")));
    let namespaces: Api<Namespace> = Api::all(world.ops.clone());
    let honest = async {
        for _ in 0..20 {
            let outcome = namespaces.delete("crowded-bystander", &dry_run()).await;
            refused(outcome, "namespaces", &["namespace-approval", "Namespace crowded-bystander"])?;
        }
        anyhow::Ok(())
    };
    let (crowd, honest) = join(crowd, honest).await;
    honest.context("an honest delete meanwhile")?;
    for said in crowd? {
        // An entry that fails open says nothing when nobody answered.
        ensure!(!said.is_empty(), "a hook passed without a word");
    }
    Ok(())
}
