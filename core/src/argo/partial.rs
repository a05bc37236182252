//! An Application of which a part has another shape than Argo CD gives it.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    Application,
    application::{Spec, Status},
    destination::Destination,
};
use crate::object::ObjectMeta;

/// Decodes whatever part of an Application can be decoded, so that one odd field does not take the claims of all others
/// away. `namespace` and `name` are known from elsewhere.
///
/// Without a status the rules take it for one that was never compared; without a destination it is taken to deploy to the
/// guard's own cluster, where what it lists may be.
pub fn partial<'a>(namespace: &str, name: &str, json: &'a str) -> Application<'a> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Parts<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
        #[serde(borrow)]
        status: Option<&'a RawValue>,
    }
    let parts: Parts<'a> = serde_json::from_str(json).unwrap_or_default();
    let mut metadata: ObjectMeta = parts.metadata.and_then(decode).unwrap_or_else(|| ObjectMeta {
        finalizers: field(parts.metadata, "/finalizers").unwrap_or_default(),
        uid: field(parts.metadata, "/uid").unwrap_or_default(),
        owner_references: field(parts.metadata, "/ownerReferences").unwrap_or_default(),
        ..ObjectMeta::default()
    });
    namespace.clone_into(&mut metadata.namespace);
    name.clone_into(&mut metadata.name);
    let spec: Spec = parts.spec.and_then(decode).unwrap_or_else(|| Spec {
        project: field(parts.spec, "/project").unwrap_or_default(),
        destination: field(parts.spec, "/destination").unwrap_or_else(|| Destination {
            server: field(parts.spec, "/destination/server").unwrap_or_default(),
            name: field(parts.spec, "/destination/name").unwrap_or_default(),
            namespace: field(parts.spec, "/destination/namespace").unwrap_or_default(),
        }),
        ..Spec::default()
    });
    let status: Status<'a> = parts.status.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    Application { metadata, spec, status, ..Application::default() }
}

fn decode<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// One value below `raw`, if it has the shape that is expected.
fn field<T: DeserializeOwned>(raw: Option<&RawValue>, pointer: &str) -> Option<T> {
    let value: serde_json::Value = decode(raw?)?;
    T::deserialize(value.pointer(pointer)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_odd_field_takes_away_no_more_than_itself() {
        let whole = json!({
            "metadata": {"name": "b", "namespace": "argocd", "uid": "u", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"project": "p", "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
                "source": {"repoURL": "r", "path": "p"}},
            "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"},
                "resources": [{"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "c", "status": "Synced"}]},
        });
        for (pointer, odd) in [
            ("/spec", json!(7)),
            ("/spec/destination/server", json!(5)),
            ("/spec/destination/namespace", json!(5)),
            ("/spec/source", json!(5)),
            ("/spec/project", json!(5)),
            ("/metadata/finalizers", json!("x")),
            ("/metadata/uid", json!(5)),
        ] {
            let mut object = whole.clone();
            *object.pointer_mut(pointer).unwrap() = odd;
            let text = object.to_string();
            assert!(serde_json::from_str::<Application<'_>>(&text).is_err(), "{pointer}");
            let read = partial("argocd", "b", &text);
            assert_eq!((read.metadata.name.as_str(), read.status.resources.len()), ("b", 1), "{pointer}");
            assert_eq!(
                read.spec.destination.namespace.is_empty(),
                matches!(pointer, "/spec" | "/spec/destination/namespace")
            );
        }
        for text in ["7", "", r#"{"metadata": []}"#] {
            assert_eq!(partial("argocd", "b", text).metadata.name, "b");
        }
        let without_status = json!({"spec": whole["spec"], "status": 7}).to_string();
        let read = partial("argocd", "b", &without_status);
        assert_eq!((read.spec.destination.namespace.as_str(), read.status.resources.len()), ("shop", 0));
    }
}
