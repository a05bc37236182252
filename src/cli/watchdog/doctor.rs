//! What `doctor --watchdog` looks at: does a replica lead, and can it reach its repositories.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt, api::ListParams};

use super::super::cluster_access::in_words;
use cascade_guard_core::watchdog::WatchedRepository;

/// The name of the Lease.
const LEASE: &str = "cascade-guard-watchdog";

/// What was found: about what, whether it is as it must be, and a sentence.
pub async fn examine(client: &Client, namespace: &str) -> Vec<(&'static str, bool, String)> {
    vec![leading(client, namespace).await, repositories(client, namespace).await]
}

async fn leading(client: &Client, namespace: &str) -> (&'static str, bool, String) {
    let what = "watchdog lease";
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let spec = match api.get_opt(LEASE).await {
        Ok(Some(lease)) => lease.spec.unwrap_or_default(),
        Ok(None) => return (what, false, format!("there is no Lease {namespace}/{LEASE}: no watchdog has run")),
        Err(error) => return (what, false, format!("it cannot be read: {:#}", in_words(error))),
    };
    let seconds = i64::from(spec.lease_duration_seconds.unwrap_or_default());
    let holder = spec.holder_identity.unwrap_or_default();
    match spec.renew_time {
        Some(renewed) if !holder.is_empty() => {
            let age = Timestamp::now().duration_since(renewed.0);
            let fresh = age < SignedDuration::from_secs(seconds);
            (what, fresh, format!("held by {holder}, renewed {} s ago", age.as_secs()))
        }
        _ => (what, false, "nobody holds it: no watchdog judges".to_owned()),
    }
}

async fn repositories(client: &Client, namespace: &str) -> (&'static str, bool, String) {
    let what = "watched repositories";
    let api: Api<WatchedRepository> = Api::namespaced(client.clone(), namespace);
    let found = match api.list(&ListParams::default()).await {
        Ok(found) => found.items,
        Err(error) => return (what, false, format!("they cannot be read: {:#}", in_words(error))),
    };
    let unreached = found.iter().find_map(|repository| {
        let status = repository.status.clone().unwrap_or_default();
        let reachable = status.conditions.iter().find(|condition| condition.kind == "Reachable");
        match reachable {
            Some(condition) if condition.status == "True" => None,
            Some(condition) => Some(format!("{} cannot be reached: {}", repository.spec.url, condition.message)),
            None => Some(format!("{} was never fetched", repository.name_any())),
        }
    });
    match unreached {
        Some(problem) => (what, false, problem),
        None if found.is_empty() => (what, false, "none is watched".to_owned()),
        None => (what, true, format!("{} reached", cascade_guard_core::text::count(found.len(), "repository"))),
    }
}
