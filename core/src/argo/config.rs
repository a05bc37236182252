//! What Argo CD's own configuration objects say: `argocd-cm`, `argocd-cmd-params-cm`, cluster Secrets.

use std::{collections::HashMap, str::from_utf8};

use k8s_openapi::ByteString;
use serde::Deserialize;

use super::tracking::{INSTANCE_LABEL, TrackingMethod, TrackingSettings};
use crate::object::{ObjectMeta, null_to_default};

/// Name of the ConfigMap with an installation's settings.
pub const SETTINGS_NAME: &str = "argocd-cm";
/// Name of the ConfigMap with what the processes of an installation are started with.
pub const PARAMETERS_NAME: &str = "argocd-cmd-params-cm";
/// Its key for the namespaces besides its own in which an installation serves Applications.
pub const NAMESPACES_KEY: &str = "application.namespaces";
/// Label of Secrets that Argo CD reads, and its value on those that describe a cluster.
pub const SECRET_TYPE: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");

/// How an installation marks its objects, from its `argocd-cm`; `None` if the ConfigMap cannot be read.
pub fn tracking_settings(config_map: &str) -> Option<TrackingSettings> {
    let data = data_of(config_map)?;
    let get = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
    Some(TrackingSettings {
        method: TrackingMethod::parse(get("application.resourceTrackingMethod")),
        label_key: match get("application.instanceLabelKey") {
            "" => INSTANCE_LABEL.to_owned(),
            key => key.to_owned(),
        },
        installation_id: get("installationID").to_owned(),
    })
}

/// In which namespaces besides its own an installation serves Applications, from its `argocd-cmd-params-cm`, as it is
/// written there; `None` where it does not say.
pub fn application_namespaces(config_map: &str) -> Option<String> {
    data_of(config_map)?.remove(NAMESPACES_KEY)
}

fn data_of(config_map: &str) -> Option<HashMap<String, String>> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        data: HashMap<String, String>,
    }
    Some(serde_json::from_str::<Body>(config_map).ok()?.data)
}

/// Name and server that a cluster Secret declares to be one cluster; `None` for any other Secret.
pub fn cluster_secret(meta: &ObjectMeta, secret: &str) -> Option<(String, String)> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        data: Wanted<ByteString>,
        #[serde(deserialize_with = "null_to_default")]
        string_data: Wanted<String>,
    }
    // The other keys of the Secret are credentials: they are not even decoded.
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    struct Wanted<T> {
        name: Option<T>,
        server: Option<T>,
    }
    impl<T> Default for Wanted<T> {
        fn default() -> Self {
            Self { name: None, server: None }
        }
    }
    if meta.label(SECRET_TYPE.0) != Some(SECRET_TYPE.1) {
        return None;
    }
    let body: Body = serde_json::from_str(secret).ok()?;
    let read = |plain: Option<String>, encoded: Option<ByteString>| {
        plain.or_else(|| Some(from_utf8(&encoded?.0).ok()?.to_owned())).filter(|value| !value.is_empty())
    };
    let server = read(body.string_data.server, body.data.server)?;
    let name = read(body.string_data.name, body.data.name).unwrap_or_else(|| server.clone());
    Some((name, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cluster_secrets_name_a_cluster() {
        let secret = r#"{"data":{"name":"ZWFzdA==","server":"aHR0cHM6Ly9lYXN0","config":"e30="}}"#;
        let labelled = |value: &str| ObjectMeta {
            labels: [(SECRET_TYPE.0.to_owned(), value.to_owned())].into(),
            ..ObjectMeta::default()
        };
        let found = Some(("east".to_owned(), "https://east".to_owned()));
        assert_eq!(cluster_secret(&labelled("cluster"), secret), found);
        assert_eq!(cluster_secret(&labelled("repository"), secret), None);
        assert_eq!(cluster_secret(&ObjectMeta::default(), secret), None);
    }

    #[test]
    fn cluster_without_a_name_is_called_by_its_server() {
        let meta = ObjectMeta {
            labels: [(SECRET_TYPE.0.to_owned(), SECRET_TYPE.1.to_owned())].into(),
            ..ObjectMeta::default()
        };
        let found = Some(("https://a".to_owned(), "https://a".to_owned()));
        assert_eq!(cluster_secret(&meta, r#"{"stringData":{"server":"https://a"}}"#), found);
        assert_eq!(cluster_secret(&meta, r#"{"data":null}"#), None);
    }

    #[test]
    fn settings_without_data_are_the_defaults() {
        assert_eq!(tracking_settings("{}"), Some(TrackingSettings::default()));
        assert_eq!(tracking_settings("[1"), None);
    }
}
