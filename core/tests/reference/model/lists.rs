//! What an Application lists, and what its list is worth.

use serde_json::Value;

use super::{Key, Model};
use crate::json::{annotation, group_of, list, something, terminating, text, truth};

/// "with one of the three cascade finalizers"
const CASCADE_FINALIZERS: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "resources-finalizer.argocd.argoproj.io/foreground",
    "resources-finalizer.argocd.argoproj.io/background",
];

const DISTRUSTED: [&str; 3] = ["ComparisonError", "InvalidSpecError", "UnknownError"];

/// What an entry means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Desired,
    Prune,
    Other,
}

pub(super) fn class(entry: &Value) -> Class {
    match (truth(entry, "/requiresPruning"), truth(entry, "/hook"), text(entry, "/status")) {
        (true, _, "OutOfSync") => Class::Prune,
        (false, false, "Synced" | "OutOfSync") => Class::Desired,
        _ => Class::Other,
    }
}

pub(super) fn entries(app: &Value) -> &[Value] {
    list(app, "/status/resources")
}

/// "Only the finalizers in `oldObject` decide whether an Application cascades"
pub(super) fn cascades(app: &Value) -> bool {
    let finalizers = list(app, "/metadata/finalizers");
    finalizers.iter().any(|one| CASCADE_FINALIZERS.iter().any(|known| one == known))
}

pub(super) fn self_heals(app: &Value) -> bool {
    let automated = app.pointer("/spec/syncPolicy/automated").filter(|automated| automated.is_object());
    automated.is_some_and(|automated| automated["enabled"] != Value::Bool(false) && truth(automated, "/selfHeal"))
}

/// The first value of a sync option, on the object and then in the options of the Application.
pub(super) fn sync_option<'v>(name: &str, live: &'v Value, app: Option<&'v Value>) -> &'v str {
    let own = annotation(live, "argocd.argoproj.io/sync-options").split(',').map(str::trim);
    let of_app = app.map_or(&[][..], |app| list(app, "/spec/syncPolicy/syncOptions"));
    let mut all = own.chain(of_app.iter().filter_map(Value::as_str));
    all.find_map(|option| option.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

/// "Never compared: neither `reconciledAt` nor any entry."
pub(super) fn never_compared(app: &Value) -> bool {
    text(app, "/status/reconciledAt").is_empty() && entries(app).is_empty()
}

fn has_condition(app: &Value, types: &[&str]) -> bool {
    list(app, "/status/conditions").iter().any(|condition| types.contains(&text(condition, "/type")))
}

/// `list_valid`: "Entries without `reconciledAt` or `comparedTo` are taken as they are."
pub(super) fn list_valid(app: &Value) -> bool {
    let same = |key: &str| {
        something(app, &format!("/status/sync/comparedTo/{key}")) == something(app, &format!("/spec/{key}"))
    };
    let compared = something(app, "/status/sync/comparedTo").is_none()
        || ["source", "sources", "destination", "ignoreDifferences"].into_iter().all(same);
    !never_compared(app)
        && !has_condition(app, &DISTRUSTED)
        && ["Synced", "OutOfSync"].contains(&text(app, "/status/sync/status"))
        && compared
        && something(app, "/status/operationState/operation/sync/manifests").is_none()
        && annotation(app, "argocd.argoproj.io/skip-reconcile") != "true"
}

/// "a running operation"
pub(super) fn is_running(app: &Value) -> bool {
    ["Running", "Terminating"].contains(&text(app, "/status/operationState/phase")) || app.get("operation").is_some()
}

/// The sync of the running operation.
pub(super) fn operation(app: &Value) -> &Value {
    let running = ["Running", "Terminating"].contains(&text(app, "/status/operationState/phase"));
    let started = app.pointer("/status/operationState/operation/sync").filter(|_| running);
    started.or_else(|| app.pointer("/operation/sync")).unwrap_or(&Value::Null)
}

/// "the operation or the object says Replace or Force"
pub(super) fn forces_or_replaces(app: &Value, live: &Value) -> bool {
    let operation = operation(app);
    let forced = ["apply", "hook"].iter().any(|how| truth(operation, &format!("/syncStrategy/{how}/force")));
    let option = |option: &Value| option == "Replace=true" || option == "Force=true";
    forced
        || list(operation, "/syncOptions").iter().any(option)
        || ["Replace", "Force"].iter().any(|name| sync_option(name, live, None) == "true")
}

/// "Same source (unknown claimants): the whole source equal, `targetRevision` aside."
pub(super) fn same_source(a: &Value, b: &Value) -> bool {
    let source = |app: &Value| {
        let mut source = app["spec"]["source"].clone();
        if let Some(fields) = source.as_object_mut() {
            fields.remove("targetRevision");
        }
        source
    };
    // A source that names nothing renders nothing.
    source(a).as_object().is_some_and(|source| !source.is_empty()) && source(a) == source(b)
}

/// "A comparison that fails [...] empties `status.resources`"; `reconciledAt` stays.
pub(super) fn comparison_failed(app: &Value) -> bool {
    !text(app, "/status/reconciledAt").is_empty()
        && (!["Synced", "OutOfSync"].contains(&text(app, "/status/sync/status")) || has_condition(app, &DISTRUSTED))
}

/// What the last sync says is there: "entries Synced that still exist; not Pruned ones, dry runs, selective or failed
/// syncs".
pub(super) fn last_sync(app: &Value) -> Vec<&Value> {
    let sync = app.pointer("/status/operationState/operation/sync").unwrap_or(&Value::Null);
    let whole = text(app, "/status/operationState/phase") == "Succeeded";
    if truth(sync, "/dryRun") || !list(sync, "/resources").is_empty() || !whole {
        return Vec::new();
    }
    let rows = list(app, "/status/operationState/syncResult/resources").iter();
    rows.filter(|row| text(row, "/status") == "Synced").collect()
}

impl Model<'_> {
    pub(super) fn listed(&self, app: &Value) -> Vec<Key> {
        entries(app).iter().filter_map(|entry| self.entry_key(entry)).collect()
    }

    pub(super) fn lists(&self, app: &Value, key: &Key, wanted: impl Fn(Class) -> bool) -> bool {
        entries(app).iter().any(|entry| wanted(class(entry)) && self.entry_key(entry).as_ref() == Some(key))
    }

    /// "lists an object in its desired state". "A claimant whose list is stale or in error still claims what it lists"; and
    /// while its comparison fails, which empties the list, what its last sync made.
    pub(super) fn wants(&self, app: &Value, key: &Key) -> bool {
        let valid = list_valid(app);
        let counts = |entry: &Value| if valid { class(entry) == Class::Desired } else { !truth(entry, "/hook") };
        let is_it = |entry: &Value| self.entry_key(entry).as_ref() == Some(key);
        entries(app).iter().any(|entry| counts(entry) && is_it(entry)) || Self::synced_last(app).any(is_it)
    }

    /// What an Application's last sync made, where that is all that is known because its comparison fails.
    fn synced_last(app: &Value) -> impl Iterator<Item = &Value> {
        let rows = if comparison_failed(app) { last_sync(app) } else { Vec::new() };
        rows.into_iter().filter(|row| text(row, "/hookType").is_empty())
    }

    /// Whether nothing is known of what an Application wants.
    pub(super) fn is_unknown(&self, app: &Value) -> bool {
        if terminating(app) {
            return false;
        }
        if never_compared(app) {
            // "Never compared and not served: no unknown claimant."
            return self.is_served(app);
        }
        let listed = entries(app).iter().any(|entry| !truth(entry, "/hook") && self.entry_key(entry).is_some());
        comparison_failed(app) && !listed && Self::synced_last(app).next().is_none()
    }

    /// "Both empty with a sync history: unknown". "(All this for lists that are not valid.)"
    pub(super) fn own_list_is_unknown(app: &Value) -> bool {
        let nothing = entries(app).is_empty() && last_sync(app).is_empty();
        !list_valid(app) && nothing && !list(app, "/status/history").is_empty()
    }

    /// Whether an Application lists the object as Synced.
    pub(super) fn is_listed_synced(&self, item: &super::Item) -> bool {
        let says =
            |entry: &Value| text(entry, "/status") == "Synced" && self.entry_key(entry).as_ref() == Some(&item.1);
        self.apps().any(|app| self.cluster_of(app) == item.0 && entries(app).iter().any(says))
    }

    pub(super) fn exists(&self, item: &super::Item) -> bool {
        self.live(item).is_some() || self.is_listed_synced(item)
    }
}

/// The owners of an object: group, kind, name and uid.
pub(super) fn owners(object: &Value) -> Vec<(&str, &str, &str, &str)> {
    let references = list(object, "/metadata/ownerReferences").iter();
    let parts = |one| (group_of(text(one, "/apiVersion")), text(one, "/kind"), text(one, "/name"), text(one, "/uid"));
    references.map(parts).collect()
}
