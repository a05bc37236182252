//! What Argo CD's own configuration objects say: AppProjects, `argocd-cm`, cluster Secrets.

use std::{collections::HashMap, str::from_utf8};

use k8s_openapi::ByteString;
use serde::Deserialize;

use super::tracking::{INSTANCE_LABEL, TrackingMethod, TrackingSettings};
use crate::object::{ObjectMeta, null_to_default};

/// Name of the ConfigMap with an installation's settings.
pub const SETTINGS_NAME: &str = "argocd-cm";
/// Name of the ConfigMap with what the processes of an installation are started with.
pub const PARAMETERS_NAME: &str = "argocd-cmd-params-cm";
/// Label of Secrets that Argo CD reads, and its value on those that describe a cluster.
pub const SECRET_TYPE: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");

/// Who syncs for an AppProject when impersonation is on (`destinationServiceAccounts`), as
/// `<namespace>:<service account>`. An AppProject that cannot be read names nobody.
pub fn sync_accounts(project: &str) -> Vec<String> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "null_to_default")]
        spec: Spec,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "null_to_default")]
        destination_service_accounts: Vec<Account>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Account {
        default_service_account: String,
        namespace: String,
    }
    let body: Body = serde_json::from_str(project).unwrap_or_default();
    let accounts = body.spec.destination_service_accounts.into_iter().map(|account| {
        // `namespace:name`, or a name in the destination's namespace, which the entry gives as a pattern.
        if account.default_service_account.contains(':') {
            account.default_service_account
        } else {
            format!("{}:{}", account.namespace, account.default_service_account)
        }
    });
    accounts.collect()
}

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
    data_of(config_map)?.remove("application.namespaces")
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

/// In which namespaces besides its own an application controller serves Applications, from the flags and the environment
/// of its Deployment or StatefulSet. The outer `None` where the workload is no application controller; the inner one
/// where it does not say, so that the ConfigMap decides or, without that, it serves its own namespace only.
pub fn controller_namespaces(meta: &ObjectMeta, workload: &str) -> Option<Option<String>> {
    const FLAG: &str = "--application-namespaces";
    if meta.label("app.kubernetes.io/component") != Some("application-controller") {
        return None;
    }
    let body: serde_json::Value = serde_json::from_str(workload).unwrap_or_default();
    let containers = body.pointer("/spec/template/spec/containers").and_then(serde_json::Value::as_array);
    let mut said = None;
    for container in containers.into_iter().flatten() {
        let words: Vec<&str> = ["command", "args"]
            .iter()
            .filter_map(|key| container[*key].as_array())
            .flatten()
            .filter_map(serde_json::Value::as_str)
            .collect();
        for (at, word) in words.iter().enumerate() {
            let value = match word.strip_prefix(FLAG) {
                Some("") => words.get(at + 1).copied(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            said = value.map(str::to_owned).or(said);
        }
        let environment = container["env"].as_array().into_iter().flatten();
        let set = environment.filter(|entry| entry["name"] == "ARGOCD_APPLICATION_NAMESPACES");
        said = said.or_else(|| set.filter_map(|entry| entry["value"].as_str()).map(str::to_owned).next());
    }
    Some(said)
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
