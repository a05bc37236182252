//! The Application that manifests belong to, as far as it matters to their order.

use serde::Deserialize;

use crate::{
    argo::{self, sync_options::in_list},
    object::null_to_default,
};

/// An Application, or the lack of one: the default says that nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// `namespace/name`; empty where none was named.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its name in markers: `namespace_name` outside of Argo CD's own namespace.
    pub instances: [String; 2],
    /// Where objects without a namespace go; empty if unknown.
    pub namespace: String,
    /// Whether a sync that is started with its sync options makes that Namespace.
    pub creates_namespace: bool,
    /// Whether its deletion removes its objects.
    pub cascades: bool,
    /// Whether that removal passes by what does not say otherwise.
    pub keeps_objects: bool,
    /// Where its manifests come from, inside their repositories.
    pub sources: Vec<String>,
}

impl Default for Application {
    fn default() -> Self {
        Self {
            path: String::new(),
            name: String::new(),
            instances: [String::new(), String::new()],
            namespace: String::new(),
            creates_namespace: false,
            cascades: true,
            keeps_objects: false,
            sources: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sources {
    #[serde(deserialize_with = "null_to_default")]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "null_to_default")]
    source: Source,
    #[serde(deserialize_with = "null_to_default")]
    sources: Vec<Source>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(deserialize_with = "null_to_default")]
    path: String,
}

impl Application {
    /// Reads an Application.
    ///
    /// # Errors
    /// When it does not have the shape of one.
    pub fn read(json: &str) -> Result<Self, serde_json::Error> {
        let application: argo::Application<'_> = serde_json::from_str(json)?;
        let Sources { spec } = serde_json::from_str(json)?;
        let meta = &application.metadata;
        let options = &application.spec.sync_policy.sync_options;
        let paths = [spec.source].into_iter().chain(spec.sources).map(|source| source.path);
        Ok(Self {
            path: format!("{}/{}", meta.namespace, meta.name).trim_start_matches('/').to_owned(),
            instances: [meta.name.clone(), format!("{}_{}", meta.namespace, meta.name)],
            name: meta.name.clone(),
            namespace: application.spec.destination.namespace.clone(),
            creates_namespace: in_list(options, "CreateNamespace") == Some("true"),
            cascades: application.cascades(),
            keeps_objects: in_list(options, "Delete") == Some("false"),
            sources: paths
                .map(|path| path.trim_matches(['.', '/']).to_owned())
                .filter(|path| !path.is_empty())
                .collect(),
        })
    }

    /// Whether a file holds its manifests, going by the file's path: its name or its source is a part of it.
    pub fn is_meant_by(&self, file: &str) -> bool {
        let parts: Vec<&str> = file.split(['/', '\\']).collect();
        let stem = parts.last().and_then(|name| name.rsplit_once('.')).map(|(stem, _)| stem);
        let folders = &parts[..parts.len().saturating_sub(1)];
        folders.iter().copied().chain(stem).any(|part| part == self.name)
            || self.sources.iter().any(|source| contains(folders, &source.split('/').collect::<Vec<_>>()))
    }
}

fn contains(parts: &[&str], wanted: &[&str]) -> bool {
    parts.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_name_or_source() {
        let app = |name: &str, path: &str| Application {
            name: name.to_owned(),
            sources: vec![path.to_owned()],
            ..Application::default()
        };
        let shop = app("shop", "apps/shop/prod");
        assert!(shop.is_meant_by("rendered/shop.yaml"));
        assert!(shop.is_meant_by("rendered/shop/all.yaml"));
        assert!(shop.is_meant_by("./repo/apps/shop/prod/job.yaml"));
        assert!(!app("pay", "apps/pay").is_meant_by("rendered/shop.yaml"));
        assert!(!app("shop", "a").is_meant_by("rendered/shop-2.yaml"));
    }

    #[test]
    fn options_and_destination_are_read() {
        let json = r#"{"metadata":{"name":"shop","namespace":"argocd","finalizers":["resources-finalizer.argocd.argoproj.io"]},
            "spec":{"destination":{"namespace":"web"},"sources":[{"path":"./a/"},{"chart":"x"}],
            "syncPolicy":{"syncOptions":["CreateNamespace=true","Delete=false"]}}}"#;
        let app = Application::read(json).unwrap();
        assert_eq!((app.path.as_str(), app.namespace.as_str()), ("argocd/shop", "web"));
        assert!(app.creates_namespace && app.cascades && app.keeps_objects);
        assert_eq!(app.sources, ["a"]);
    }
}
