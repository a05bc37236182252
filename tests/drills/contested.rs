//! An Application that lists thousands of objects which another one lists too: each of them is contested.

use anyhow::Result;
use serde_json::Value;

use crate::{
    Drill,
    harness::{
        attack,
        guard::Guard,
        world::{application, base, entry, namespace, policy, review},
    },
};

pub const DRILL: Drill =
    Drill { name: "contested", about: "deletes of Applications whose objects another one claims, four at a time", run };

fn run() -> Result<()> {
    for objects in [10_000, 20_000, 40_000] {
        let list: Vec<Value> =
            (0..objects).map(|number| entry("", "ConfigMap", "team", &format!("c{number}"))).collect();
        let mut world = base();
        let (one, other) = (application("one", &list), application("other", &list));
        world.extend([namespace("team"), one.clone(), other]);
        let guard = Guard::start(&world, &policy())?;
        let review = review("DELETE", "tenant", None, Some(&one));
        attack(&guard, &format!("{objects} contested objects"), "/validate/applications?timeout=10s", &review, 4)?;
    }
    Ok(())
}
