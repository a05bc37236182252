//! What a producer makes, and whether that goes when the producer goes.

use serde_json::{Value, value::RawValue};

use super::producers::OF_SECRETS;
use crate::object::ObjectRef;

/// Something that a controller makes because of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// What.
    pub object: ObjectRef,
    /// When it goes with its producer, as an addition to a sentence; empty where it always does.
    pub condition: &'static str,
}

/// Where kinds name the Secret that they make, if not by their own name.
const NAMES: [(&str, &str); 8] = [
    ("ExternalSecret.external-secrets.io", "/spec/target/name"),
    ("Certificate.cert-manager.io", "/spec/secretName"),
    ("VaultStaticSecret.secrets.hashicorp.com", "/spec/destination/name"),
    ("VaultDynamicSecret.secrets.hashicorp.com", "/spec/destination/name"),
    ("VaultPKISecret.secrets.hashicorp.com", "/spec/destination/name"),
    ("DopplerSecret.secrets.doppler.com", "/spec/managedSecret/name"),
    ("InfisicalSecret.secrets.infisical.com", "/spec/managedSecretReference/secretName"),
    ("AzureKeyVaultSecret.spv.no", "/spec/output/secret/name"),
];

/// The Secret that an object makes; `None` if it is no producer, or makes what outlives it.
pub fn of(object: &ObjectRef, raw: &RawValue) -> Option<Product> {
    let (kind, group) = (object.kind.kind.as_str(), object.kind.group.as_str());
    // Its Secrets belong to the ExternalSecrets that it makes in other namespaces.
    if kind == "ClusterExternalSecret" || !OF_SECRETS.contains(&(kind, group)) {
        return None;
    }
    let body: Value = serde_json::from_str(raw.get()).ok()?;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let full = object.kind.to_string();
    let condition = match full.as_str() {
        // Any other policy leaves the Secret behind.
        "ExternalSecret.external-secrets.io" => match text("/spec/target/creationPolicy") {
            None | Some("Owner") => "",
            Some(_) => return None,
        },
        "SealedSecret.bitnami.com" => {
            let annotation = "/spec/template/metadata/annotations/sealedsecrets.bitnami.com~1skip-set-owner-references";
            if text(annotation) == Some("true") {
                return None;
            }
            ""
        }
        "InfisicalSecret.secrets.infisical.com" => {
            if text("/spec/managedSecretReference/creationPolicy") != Some("Owner") {
                return None;
            }
            ""
        }
        "Certificate.cert-manager.io" => " where cert-manager runs with --enable-certificate-owner-ref",
        _ => "",
    };
    let pointer = NAMES.iter().find(|(kind, _)| *kind == full).map(|(_, pointer)| *pointer);
    let name = pointer.and_then(text).filter(|name| !name.is_empty()).unwrap_or(&object.name);
    Some(Product { object: ObjectRef::new("", "Secret", &object.namespace, name), condition })
}

/// Entries of a store outside the cluster: what an object puts there, and takes away again when it goes, and what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Keys that a PushSecret deletes with itself.
    pub pushed: Vec<String>,
    /// Keys that an ExternalSecret reads.
    pub read: Vec<String>,
}

/// What an object of the External Secrets Operator has to do with stores outside the cluster.
pub fn remote(object: &ObjectRef, body: &Value) -> Remote {
    let list = |value: &Value, pointers: &[&str]| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        let keys = items.flat_map(|item| pointers.iter().filter_map(|pointer| item.pointer(pointer)?.as_str()));
        keys.map(str::to_owned).collect()
    };
    let spec = &body["spec"];
    match (object.kind.group.as_str(), object.kind.kind.as_str()) {
        ("external-secrets.io", "PushSecret") if spec["deletionPolicy"] == "Delete" => {
            Remote { pushed: list(&spec["data"], &["/match/remoteRef/remoteKey"]), read: Vec::new() }
        }
        ("external-secrets.io", "ExternalSecret") => {
            let mut read = list(&spec["data"], &["/remoteRef/key"]);
            read.extend(list(&spec["dataFrom"], &["/extract/key"]));
            Remote { pushed: Vec::new(), read }
        }
        _ => Remote::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn product(group: &str, kind: &str, spec: &Value) -> Option<(String, bool)> {
        let raw = RawValue::from_string(json!({"spec": spec}).to_string()).unwrap();
        of(&ObjectRef::new(group, kind, "shop", "own"), &raw)
            .map(|product| (product.object.to_string(), product.condition.is_empty()))
    }

    #[test]
    fn product_has_the_name_that_its_kind_gives_it() {
        let secret = |name: &str| Some((format!("Secret shop/{name}"), true));
        assert_eq!(product("external-secrets.io", "ExternalSecret", &json!({})), secret("own"));
        assert_eq!(product("external-secrets.io", "ExternalSecret", &json!({"target": {"name": "a"}})), secret("a"));
        assert_eq!(product("bitnami.com", "SealedSecret", &json!({})), secret("own"));
        assert_eq!(product("kafka.strimzi.io", "KafkaUser", &json!({})), secret("own"));
        assert_eq!(
            product("secrets.hashicorp.com", "VaultStaticSecret", &json!({"destination": {"name": "a"}})),
            secret("a")
        );
        let certificate = product("cert-manager.io", "Certificate", &json!({"secretName": "tls"}));
        assert_eq!(certificate, Some(("Secret shop/tls".to_owned(), false)));
    }

    #[test]
    fn what_outlives_its_producer_is_no_product() {
        for policy in ["Orphan", "Merge", "None"] {
            let spec = json!({"target": {"creationPolicy": policy}});
            assert_eq!(product("external-secrets.io", "ExternalSecret", &spec), None, "{policy}");
        }
        let loose = json!({"template": {"metadata": {"annotations": {"sealedsecrets.bitnami.com/skip-set-owner-references": "true"}}}});
        assert_eq!(product("bitnami.com", "SealedSecret", &loose), None);
        assert_eq!(product("apps", "Deployment", &json!({})), None);
        assert_eq!(product("external-secrets.io", "ClusterExternalSecret", &json!({})), None);
    }

    #[test]
    fn keys_of_a_store_are_pushed_and_read() {
        let of = |kind: &str, spec: Value| {
            remote(&ObjectRef::new("external-secrets.io", kind, "shop", "x"), &json!({"spec": spec}))
        };
        let pushed = json!([{"match": {"secretKey": "a", "remoteRef": {"remoteKey": "shop/db"}}}]);
        assert_eq!(of("PushSecret", json!({"deletionPolicy": "Delete", "data": pushed})).pushed, ["shop/db"]);
        assert!(of("PushSecret", json!({"data": pushed})).pushed.is_empty());
        let read = json!({"data": [{"remoteRef": {"key": "a"}}], "dataFrom": [{"extract": {"key": "b"}}]});
        assert_eq!(of("ExternalSecret", read).read, ["a", "b"]);
    }
}
