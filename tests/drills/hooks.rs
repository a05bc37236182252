//! Hooks with thousands of references, as a tenant may create them in his own Namespace, dry run or not.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    Drill,
    harness::{
        attack,
        guard::Guard,
        world::{base, namespace, policy, review},
    },
};

pub const DRILL: Drill =
    Drill { name: "hooks", about: "hooks that refer to thousands of ConfigMaps, four at a time", run };

fn run() -> Result<()> {
    let mut world = base();
    world.push(namespace("team"));
    let guard = Guard::start(&world, &policy())?;
    for references in [2_000, 4_000, 8_000, 16_000] {
        let hook = job(references);
        let review = review("CREATE", "tenant", Some(&hook), None);
        attack(&guard, &format!("{references} references"), "/validate/hooks?timeout=5s", &review, 4)?;
    }
    Ok(())
}

fn job(references: usize) -> Value {
    let sources: Vec<Value> =
        (0..references).map(|number| json!({"configMapRef": {"name": format!("c{number}")}})).collect();
    json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "m", "namespace": "team", "annotations": {
            "argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/tracking-id": "shop:batch/Job:team/m"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "envFrom": sources}]}}}})
}
