//! Many clients that send the largest reviews at once: how much memory does that take, and who waits?

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    Drill,
    harness::{
        attack,
        guard::Guard,
        world::{application, base, entry, policy, review},
    },
};

pub const DRILL: Drill = Drill { name: "large", about: "150 clients that send reviews of 7 MB at once", run };

const CLIENTS: usize = 150;
/// So much may be held at most, in bytes: what an empty guard holds, the budget of bodies, and what is decoded of them.
const MOST: u64 = 256 << 20;

fn run() -> Result<()> {
    let entries: Vec<Value> =
        (0..33_000).map(|number| entry("apps", "Deployment", "team", &format!("n{number}"))).collect();
    let listed = application("wide", &entries);
    let mut annotated = application("deep", &[]);
    annotated["metadata"]["annotations"] = (0..100_000).map(|number| (format!("k{number}"), json!("v"))).collect();
    for (label, object) in [("long lists", listed), ("many annotations", annotated)] {
        let guard = Guard::start(&base(), &policy())?;
        let review = review("UPDATE", "tenant", Some(&object), Some(&object));
        attack(&guard, label, "/validate/application-updates?timeout=30s", &review, CLIENTS)?;
        let peak = guard.peak_memory();
        ensure!(peak <= MOST, "{} MB were held, more than {} MB", peak >> 20, MOST >> 20);
    }
    Ok(())
}
