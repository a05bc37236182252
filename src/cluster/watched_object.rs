//! What a watch delivers: an object as raw JSON, and the few fields that listing and watching themselves read.
//!
//! A list and a watch want a type that owns what it holds, while the guard's partial types borrow from the text. So the text is
//! handed on whole, is decoded once, into just what the inventory keeps, and is dropped. An object that cannot be
//! decoded is then one bad object and not a watch that never completes.

use std::{borrow::Cow, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta as KubeMeta;
use kube::{Resource, core::DynamicResourceScope, discovery::ApiResource};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// One object from a watch; with `ONLY_METADATA` the API server is asked to send no more than that.
#[derive(Clone)]
pub struct WatchedObject<const ONLY_METADATA: bool> {
    meta: KubeMeta,
    json: Box<RawValue>,
}

impl<const ONLY_METADATA: bool> WatchedObject<ONLY_METADATA> {
    /// Namespace, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// The object.
    pub fn json(&self) -> &str {
        self.json.get()
    }
}

/// Never shows the object itself: it may be a Secret.
impl<const ONLY_METADATA: bool> fmt::Debug for WatchedObject<ONLY_METADATA> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("namespace", &self.namespace()).field("name", &self.name()).finish()
    }
}

impl<'de, const ONLY_METADATA: bool> Deserialize<'de> for WatchedObject<ONLY_METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            metadata: Meta,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Meta {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        let Meta { name, namespace, resource_version } = metadata;
        Ok(Self { meta: KubeMeta { name, namespace, resource_version, ..KubeMeta::default() }, json })
    }
}

impl<const ONLY_METADATA: bool> Resource for WatchedObject<ONLY_METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        ONLY_METADATA
    }

    fn meta(&self) -> &KubeMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut KubeMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const OBJECT: &str = r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"spec":{"password":"x"}}"#;

    #[test]
    fn text_survives_lists_and_events() {
        let list: ObjectList<WatchedObject<false>> = serde_json::from_str(&format!(
            r#"{{"kind":"XList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{OBJECT}]}}"#
        ))
        .unwrap();
        assert_eq!(list.items[0].json(), OBJECT);
        let event: WatchEvent<WatchedObject<false>> =
            serde_json::from_str(&format!(r#"{{"type":"ADDED","object":{OBJECT}}}"#)).unwrap();
        let WatchEvent::Added(object) = event else { panic!("not an ADDED event") };
        assert_eq!((object.namespace(), object.name(), object.json()), ("b", "a", OBJECT));
        assert_eq!(object.meta().resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn body_is_not_shown() {
        let object: WatchedObject<false> = serde_json::from_str(OBJECT).unwrap();
        assert!(!format!("{object:?}").contains("password"));
    }
}
