//! What an Application is told to sync, and whether that prunes. Its long status is not read.

use serde::Deserialize;

use super::{Entry, application::Spec, sync_options::in_list};
use crate::object::null_to_default;

/// The spec of an Application, and the operation that somebody asks for.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SyncIntent {
    /// What is synced, from where and how.
    #[serde(deserialize_with = "null_to_default")]
    pub spec: Spec,
    #[serde(deserialize_with = "null_to_default")]
    operation: RequestedOperation,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RequestedOperation {
    sync: Option<RequestedSync>,
}

/// A sync that somebody asks for.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestedSync {
    #[serde(deserialize_with = "null_to_default")]
    prune: bool,
    #[serde(deserialize_with = "null_to_default")]
    dry_run: bool,
    #[serde(deserialize_with = "null_to_default")]
    sync_options: Vec<String>,
    /// The objects to sync; all of them where this is empty.
    #[serde(deserialize_with = "null_to_default")]
    resources: Vec<SelectedResource>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SelectedResource {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl SyncIntent {
    /// Whether automated syncs prune.
    pub fn prunes_by_itself(&self) -> bool {
        let policy = &self.spec.sync_policy;
        policy.automated.as_ref().is_some_and(|automated| automated.enabled != Some(false) && automated.prune)
            && in_list(&policy.sync_options, "Prune") != Some("false")
    }

    /// The sync that somebody asks for, if it prunes.
    pub fn pruning_sync(&self) -> Option<&RequestedSync> {
        self.operation
            .sync
            .as_ref()
            .filter(|sync| sync.prune && !sync.dry_run && in_list(&sync.sync_options, "Prune") != Some("false"))
    }
}

impl RequestedSync {
    /// Whether it syncs the object of this entry.
    pub fn selects(&self, entry: &Entry<'_>) -> bool {
        self.resources.is_empty() || self.resources.iter().any(|selected| selected.is(entry))
    }
}

impl SelectedResource {
    /// Mirrors `HasIdentity` of `types.go`: a selection without a namespace means any.
    fn is(&self, entry: &Entry<'_>) -> bool {
        self.group == entry.group
            && self.kind == entry.kind
            && self.name == entry.name
            && (self.namespace.is_empty() || self.namespace == entry.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(text: &str) -> SyncIntent {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn automated_sync_prunes_unless_an_option_or_a_switch_says_no() {
        let automated = |policy: &str| intent(&format!(r#"{{"spec":{{"syncPolicy":{policy}}}}}"#)).prunes_by_itself();
        assert!(automated(r#"{"automated":{"prune":true}}"#));
        assert!(!automated(r#"{"automated":{"prune":true,"enabled":false}}"#));
        assert!(!automated(r#"{"automated":{"prune":true},"syncOptions":["Prune=false"]}"#));
        assert!(!automated("null"));
    }

    #[test]
    fn requested_sync_selects_what_it_names_or_everything() {
        let sync = |more: &str| intent(&format!(r#"{{"operation":{{"sync":{{"prune":true{more}}}}}}}"#));
        let entry: Entry<'_> =
            serde_json::from_str(r#"{"kind":"ConfigMap","namespace":"shop","name":"a","requiresPruning":true}"#)
                .unwrap();
        assert!(sync("").pruning_sync().unwrap().selects(&entry));
        assert!(sync(r#","resources":[{"kind":"ConfigMap","name":"a"}]"#).pruning_sync().unwrap().selects(&entry));
        assert!(!sync(r#","resources":[{"kind":"Secret","name":"a"}]"#).pruning_sync().unwrap().selects(&entry));
        assert!(sync(r#","dryRun":true"#).pruning_sync().is_none());
    }
}
