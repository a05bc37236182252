//! A parent whose children are passed by one after another: each list hangs on whether the child before it goes.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    Drill,
    harness::{
        attack,
        guard::Guard,
        world::{application, base, entry, namespace, policy, review},
    },
};

pub const DRILL: Drill =
    Drill { name: "children", about: "deletes of a parent whose children are all passed by, two at a time", run };

fn run() -> Result<()> {
    for children in [1_000, 2_000, 4_000] {
        let list: Vec<Value> = (0..children)
            .map(|number| entry("argoproj.io", "Application", "argocd", &format!("child-{number}")))
            .collect();
        let parent = application("parent", &list);
        let mut world = base();
        world.extend([namespace("team"), parent.clone()]);
        world.extend((0..children).map(child));
        let guard = Guard::start(&world, &policy())?;
        let review = review("DELETE", "tenant", None, Some(&parent));
        attack(&guard, &format!("{children} children"), "/validate/applications?timeout=10s", &review, 2)?;
    }
    Ok(())
}

/// A child of another parent, which the cascade passes by, and which lists its neighbour.
fn child(number: usize) -> Value {
    let next = format!("child-{}", number + 1);
    let mut child = application(&format!("child-{number}"), &[entry("argoproj.io", "Application", "argocd", &next)]);
    child["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id":
        format!("elsewhere:argoproj.io/Application:argocd/child-{number}")});
    child
}
