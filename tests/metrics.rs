//! Every label has a bounded set of values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

mod serving;

use std::{sync::Arc, time::Duration};

use cascade_guard::telemetry::metrics::{Fault, Lookup, label_values};
use cascade_guard_core::{admission::Operation, decision::Decision};
use jiff::{SignedDuration, Timestamp};
use serving::{guard, review};

/// Labels of one line in the text form: name and value.
fn labels(line: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let Some((inside, _)) = rest.rsplit_once('}') else { return Vec::new() };
    let mut labels = Vec::new();
    for part in inside.split("\",") {
        let (name, value) = part.split_once("=\"").unwrap();
        labels.push((name.to_owned(), value.trim_end_matches('"').to_owned()));
    }
    labels
}

/// Everything that can set a metric, so that every label shows.
async fn everything() -> String {
    let guard = Arc::new(guard("enforce"));
    for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT", "NONSENSE"] {
        let body = review("a-user-and-an-object-must-not-show", operation).to_string();
        let arrival = cascade_guard::server::guard::Arrival {
            path: "/validate".to_owned(),
            client: "".into(),
            at: std::time::Instant::now(),
            granted: Duration::from_secs(1),
        };
        let _ = guard.answer(body.into(), arrival).await;
    }
    let metrics = guard.metrics.clone();
    metrics.count_decision(Operation::Delete, true, &Decision::default());
    metrics.count_unjudged(None);
    metrics.count_policy_reload(true);
    metrics.count_policy_reload(false);
    for outcome in
        [Lookup::Found, Lookup::NotFound, Lookup::Forbidden, Lookup::UnknownKind, Lookup::Timeout, Lookup::Error]
    {
        metrics.count_lookup(outcome);
    }
    metrics.set_certificate_not_after(Timestamp::now());
    metrics.set_configuration_faults(&Fault::ALL);
    metrics.set_stale(true);
    metrics.set_last_event(Timestamp::now());
    metrics.observe_inventory(
        &Arc::clone(&guard.inventory).read(),
        true,
        Timestamp::now(),
        SignedDuration::from_mins(10),
    );
    metrics.encode()
}

#[tokio::test]
async fn every_label_value_is_one_of_a_known_few() {
    let text = everything().await;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        for (name, value) in labels(line) {
            // The bounds of a histogram are written into the source.
            if name == "le" {
                continue;
            }
            let known = label_values(&name).unwrap_or_else(|| panic!("label {name} has no list of values: {line}"));
            assert!(known.contains(&value.as_str()), "{name} may not be {value}: {line}");
        }
    }
}

#[tokio::test]
async fn metrics_have_the_names_that_alerts_and_dashboards_rely_on() {
    let text = everything().await;
    for name in [
        "cascade_guard_admission_requests_total{",
        "cascade_guard_admission_duration_seconds_bucket{",
        "cascade_guard_claim_index_applications ",
        "cascade_guard_claim_index_claims ",
        "cascade_guard_claim_index_last_event_timestamp_seconds ",
        "cascade_guard_claim_index_ready 1",
        "cascade_guard_live_lookups_total{outcome=\"not-found\"} 1",
        "cascade_guard_terminating_objects{kind=\"Namespace\"} 0",
        "cascade_guard_terminating_objects_oldest_age_seconds{kind=\"Application\"} 0",
        "cascade_guard_applicationset_deletes_last_minute 0",
        "cascade_guard_policy_reload_total{result=\"rejected\"} 1",
        "cascade_guard_certificate_not_after_timestamp_seconds ",
        "cascade_guard_build_info{version=",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is missing in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "the text is not OpenMetrics");
}
