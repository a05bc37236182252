//! What the tests of the server share: a guard without a cluster, reviews, certificates.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{sync::Arc, time::Duration};

use cascade_guard::judge::Source;
use cascade_guard::{
    server::{Guard, Lanes},
    state::{LiveInventory, LivePolicy},
    telemetry::{DecisionLog, Metrics},
};
use cascade_guard_core::{
    argo::Clusters,
    facts::{Answer, Question},
    inventory::Inventory,
    policy::{Mode, Policy},
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A source that knows nothing.
#[derive(Debug)]
pub struct Nothing;

impl Source for Nothing {
    async fn answer(&self, _: &[Question], _: Duration) -> Vec<(Question, Answer)> {
        Vec::new()
    }
}

/// A guard over an empty, ready inventory, with every rule in `mode`.
pub fn guard(mode: &str) -> Guard<Nothing> {
    let metrics = Arc::new(Metrics::new());
    let policy = Policy::every_rule(mode.parse().unwrap());
    let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
    inventory.set_ready(true);
    Guard {
        inventory: Arc::new(LiveInventory::new(inventory)),
        health: Arc::default(),
        policy: Arc::new(LivePolicy::new(policy, Mode::Enforce, metrics.clone())),
        source: Nothing,
        lanes: Lanes::default(),
        metrics,
        decisions: DecisionLog::default(),
        clock: Timestamp::now,
    }
}

/// A review of a ConfigMap, in which no rule is interested.
pub fn review(uid: &str, operation: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "settings",
            "namespace": "shop",
            "operation": operation,
            "userInfo": {"username": "alice"},
            "object": null,
            "oldObject": {"metadata": {"name": "settings", "namespace": "shop"}},
            "dryRun": false,
            "options": null,
        },
    })
}
