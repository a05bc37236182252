//! The Application that manifests belong to, as far as it matters to their order.

use std::collections::BTreeSet;

use serde::{Deserialize, de::IgnoredAny};

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
    /// Its AppProject; empty for `default`.
    pub project: String,
    /// Its sync options, as they are written.
    pub options: Vec<String>,
    /// Where its manifests come from.
    pub sources: Vec<Folder>,
}

/// Where manifests come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// The repository; empty where it is not known.
    pub repository: String,
    /// The folder in it.
    pub path: String,
    /// Whether folders in it count as well. Argo CD looks into them only if told to, or if a tool renders the folder.
    pub recurses: bool,
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
            project: String::new(),
            options: Vec::new(),
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
#[serde(rename_all = "camelCase", default)]
struct Source {
    #[serde(rename = "repoURL", deserialize_with = "null_to_default")]
    repo_url: String,
    #[serde(deserialize_with = "null_to_default")]
    path: String,
    #[serde(deserialize_with = "null_to_default")]
    directory: Directory,
    helm: Option<IgnoredAny>,
    kustomize: Option<IgnoredAny>,
    plugin: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Directory {
    #[serde(deserialize_with = "null_to_default")]
    recurse: bool,
}

impl Source {
    fn folder(self) -> Folder {
        let is_rendered = self.helm.is_some() || self.kustomize.is_some() || self.plugin.is_some();
        Folder {
            repository: self.repo_url,
            path: self.path.trim_matches(['.', '/']).to_owned(),
            recurses: self.directory.recurse || is_rendered,
        }
    }
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
        let sources = [spec.source].into_iter().chain(spec.sources).map(Source::folder);
        Ok(Self {
            path: format!("{}/{}", meta.namespace, meta.name).trim_start_matches('/').to_owned(),
            instances: [meta.name.clone(), format!("{}_{}", meta.namespace, meta.name)],
            name: meta.name.clone(),
            namespace: application.spec.destination.namespace.clone(),
            creates_namespace: in_list(options, "CreateNamespace") == Some("true"),
            cascades: application.cascades(),
            keeps_objects: in_list(options, "Delete") == Some("false"),
            project: application.spec.project.clone(),
            options: options.clone(),
            sources: sources.filter(|source| !source.path.is_empty()).collect(),
        })
    }

    /// Whether a file holds its manifests, going by the file's path: its name or its source is a part of it.
    pub fn is_meant_by(&self, file: &str) -> bool {
        let parts: Vec<&str> = file.split(['/', '\\']).collect();
        let stem = parts.last().and_then(|name| name.rsplit_once('.')).map(|(stem, _)| stem);
        let folders = &parts[..parts.len().saturating_sub(1)];
        folders.iter().copied().chain(stem).any(|part| part == self.name)
            || self.sources.iter().any(|source| source.at(folders).is_some())
    }

    /// How long the path is by which a file of its repository is one of its manifests; `None` if it is none of them.
    /// `remotes` are the URLs of that repository, empty where they are not known; `rendered` are folders with something
    /// that a tool renders.
    pub fn reads(&self, file: &str, remotes: &[String], rendered: &BTreeSet<&str>) -> Option<usize> {
        let (folder, _) = file.rsplit_once('/').unwrap_or(("", file));
        let folders: Vec<&str> = folder.split('/').collect();
        let same = |source: &&Folder| {
            remotes.is_empty() || remotes.iter().any(|remote| bare(remote) == bare(&source.repository))
        };
        let reads = |source: &Folder| {
            let below = source.at(&folders)?;
            let own = folders[..folders.len() - below].join("/");
            (below == 0 || source.recurses || rendered.contains(own.as_str())).then(|| source.path.split('/').count())
        };
        self.sources.iter().filter(same).filter_map(reads).max()
    }

    /// What decides how it is applied, for people.
    pub fn title(&self) -> String {
        let mut said = Vec::new();
        said.extend((!self.project.is_empty()).then(|| format!("project {}", self.project)));
        said.extend((!self.namespace.is_empty()).then(|| format!("namespace {}", self.namespace)));
        said.extend(self.options.iter().cloned());
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
        format!("Application {}{said}", self.path)
    }
}

impl Folder {
    /// How many folders lie between this one and the last of a path; `None` if it is no part of the path.
    fn at(&self, folders: &[&str]) -> Option<usize> {
        let wanted: Vec<&str> = self.path.split('/').collect();
        let start = folders.windows(wanted.len()).rposition(|window| window == wanted)?;
        Some(folders.len() - start - wanted.len())
    }
}

/// A URL of a repository without what may be written in several ways: `https://git.example.com/a/b.git` and
/// `git@git.example.com:a/b` are one.
fn bare(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest).to_lowercase().replacen(':', "/", 1);
    rest.trim_end_matches('/').trim_end_matches(".git").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_name_or_source() {
        let app = |name: &str, path: &str| Application {
            name: name.to_owned(),
            sources: vec![Folder { path: path.to_owned(), ..Folder::default() }],
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
        assert_eq!(app.sources, [Folder { path: "a".to_owned(), ..Folder::default() }]);
        assert_eq!(app.title(), "Application argocd/shop (namespace web, CreateNamespace=true, Delete=false)");
    }

    #[test]
    fn files_of_the_repository_are_read_as_argo_cd_reads_a_folder() {
        let read = |spec: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"x"}},"spec":{{"source":{{"repoURL":"https://git.example.com/Org/repo.git","path":"apps/web",{spec}}}}}}}"#
            );
            Application::read(&json.replace(",}", "}")).unwrap()
        };
        let none = BTreeSet::new();
        let app = read("");
        assert_eq!(app.reads("apps/web/a.yaml", &[], &none), Some(2));
        assert_eq!(app.reads("./repo/apps/web/a.yaml", &[], &none), Some(2));
        assert_eq!(app.reads("apps/web/sub/a.yaml", &[], &none), None);
        assert_eq!(app.reads("apps/web/sub/a.yaml", &[], &BTreeSet::from(["apps/web"])), Some(2));
        assert_eq!(read(r#""directory":{"recurse":true}"#).reads("apps/web/sub/a.yaml", &[], &none), Some(2));
        assert_eq!(app.reads("apps/api/a.yaml", &[], &none), None);
        assert_eq!(app.reads("a.yaml", &[], &none), None);
        let at = |remote: &str| app.reads("apps/web/a.yaml", &[remote.to_owned()], &none).is_some();
        assert!(at("git@git.example.com:org/repo") && at("ssh://git@git.example.com/org/repo.git"));
        assert!(!at("https://git.example.com/org/other"));
    }
}
