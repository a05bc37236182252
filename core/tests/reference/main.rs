//! The core against a reference model of plan, claims and verdict, and properties that hold for every world.
//!
//! `make properties WORLDS=1000000` looks at so many worlds, and `FIRST=` begins with another one than the first.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that panics has failed, and says where"
)]

mod agreement;
mod json;
mod judged;
mod model;
mod properties;
mod run;
mod same;
mod shrink;
mod strand;
mod world;
mod worlds;

use self::run::{Check, check_worlds};

const CHECKS: [Check; 5] = [
    Check { name: "the core says what the model says", share: 100, run: agreement::agrees },
    Check { name: "review, plan and audit agree", share: 100, run: properties::agree },
    Check { name: "order, names and what is unrelated do not matter", share: 95, run: properties::stays_the_same },
    Check { name: "another claimant admits nothing", share: 15, run: properties::claimant_admits_nothing },
    Check { name: "what was admitted at the root strands nothing", share: 5, run: strand::strands_nothing },
];

#[test]
fn every_world_keeps_every_property() {
    check_worlds(&CHECKS);
}
