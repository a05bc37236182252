//! Argo CD Image Updater: whether image tags of an Application live in the cluster instead of in Git.

use globset::Glob;
use serde_json::Value;

use super::{looks::Applications, view::View};

/// An `ImageUpdater` resource (1.0 and later) that writes into Applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageUpdater {
    /// Where it is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// The namespace of the Applications it is for; empty for its own.
    pub applications_in: String,
    /// Patterns for the names of Applications, each with whether it writes back into Git.
    pub patterns: Vec<(String, bool)>,
    /// Why it is not known what it writes into; empty if it is.
    pub unknown: String,
}

impl ImageUpdater {
    /// Reads the object. The method of a single reference counts before that of the whole; without one it is `argocd`.
    pub fn read(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let git = |holder: &Value| {
            holder
                .pointer("/writeBackConfig/method")
                .and_then(Value::as_str)
                .map(|method| method.trim().starts_with("git"))
        };
        let whole = git(&object["spec"]).unwrap_or(false);
        let references = object["spec"]["applicationRefs"].as_array().into_iter().flatten();
        let patterns = references.map(|reference| {
            (reference["namePattern"].as_str().unwrap_or("*").to_owned(), git(reference).unwrap_or(whole))
        });
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            applications_in: text("/spec/namespace"),
            patterns: patterns.collect(),
            unknown: String::new(),
        }
    }

    /// Stands for all of them where they cannot be listed.
    pub fn unreadable(why: &str) -> Self {
        Self {
            namespace: String::new(),
            name: String::new(),
            applications_in: String::new(),
            patterns: Vec::new(),
            unknown: why.to_owned(),
        }
    }

    /// Whether it writes into this Application. Selectors by label only narrow this, so they are not read.
    fn writes_into(&self, view: &View) -> bool {
        let namespace = if self.applications_in.is_empty() { &self.namespace } else { &self.applications_in };
        *namespace == view.app.namespace
            && self.patterns.iter().any(|(pattern, git)| {
                !git && Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(&view.app.name))
            })
    }
}

/// Why Git is not the truth about an Application; `None` if it is.
pub fn lives_in_cluster(view: &View, applications: &Applications, updaters: &[ImageUpdater]) -> Option<String> {
    if view.updated_in_place {
        return Some(
            "Argo CD Image Updater writes image tags into the Application, not into Git (write-back method argocd)"
                .to_owned(),
        );
    }
    if let Some(updater) = updaters.iter().find(|updater| !updater.unknown.is_empty()) {
        return Some(format!("it is not known whether an ImageUpdater writes into it: {}", updater.unknown));
    }
    if let Some(updater) = updaters.iter().find(|updater| updater.writes_into(view)) {
        let path = format!("{}/{}", updater.namespace, updater.name);
        return Some(format!("ImageUpdater {path} writes image tags into the Application, not into Git"));
    }
    let is_child = || applications.iter().any(|parent| parent.view.children.contains(&view.app));
    if let Some(what) = view.only_live.first() {
        return Some(format!("its spec carries {what} that no manifest defines"));
    }
    match view.overrides.first() {
        Some(what) if !is_child() => Some(format!("its spec carries {what}, and no Application deploys it from Git")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "`json!` is written in place")]
    fn view(annotations: Value, source: Value) -> View {
        let object = json!({
            "metadata": {"name": "web", "namespace": "argocd", "annotations": annotations},
            "spec": {"source": source},
        });
        View::parse(&object.to_string()).unwrap()
    }

    fn why(view: &View, updaters: &[ImageUpdater]) -> Option<String> {
        lives_in_cluster(view, &Applications::default(), updaters)
    }

    #[test]
    fn default_of_the_older_updater_is_to_write_in_place() {
        let list = "argocd-image-updater.argoproj.io/image-list";
        let method = "argocd-image-updater.argoproj.io/write-back-method";
        assert!(why(&view(json!({list: "web=example.com/web"}), json!({})), &[]).is_some());
        assert!(why(&view(json!({list: "web=x", method: "argocd"}), json!({})), &[]).is_some());
        assert!(why(&view(json!({list: "web=x", method: "git:secret:argocd/creds"}), json!({})), &[]).is_none());
        assert!(why(&view(json!({method: "argocd"}), json!({})), &[]).is_none());
    }

    #[test]
    fn newer_updater_names_applications_by_pattern() {
        let of =
            |spec: Value| ImageUpdater::read(&json!({"metadata": {"name": "u", "namespace": "argocd"}, "spec": spec}));
        let plain = view(json!({}), json!({}));
        assert!(why(&plain, &[of(json!({"applicationRefs": [{"namePattern": "w*"}]}))]).is_some());
        assert!(why(&plain, &[of(json!({"applicationRefs": [{"namePattern": "api"}]}))]).is_none());
        let git = json!({"method": "git"});
        assert!(
            why(&plain, &[of(json!({"writeBackConfig": git, "applicationRefs": [{"namePattern": "*"}]}))]).is_none()
        );
        let mixed = json!({"writeBackConfig": git, "applicationRefs": [{"namePattern": "*", "writeBackConfig": {"method": "argocd"}}]});
        assert!(why(&plain, &[of(mixed)]).is_some());
        assert!(why(&plain, &[of(json!({"namespace": "other", "applicationRefs": [{"namePattern": "*"}]}))]).is_none());
    }

    #[test]
    fn parameters_count_unless_git_defines_them() {
        let source = json!({"helm": {"parameters": [{"name": "tag", "value": "2"}]}});
        assert!(why(&view(json!({}), source.clone()), &[]).unwrap().contains("helm.parameters"));
        let applied = json!({"spec": {"source": source}}).to_string();
        let child = view(json!({"kubectl.kubernetes.io/last-applied-configuration": applied}), source);
        assert!(why(&child, &[]).unwrap().contains("no Application deploys it"));
        let parent = json!({
            "metadata": {"name": "root", "namespace": "argocd"},
            "status": {"resources": [{"group": "argoproj.io", "kind": "Application", "name": "web", "namespace": "argocd"}]},
        });
        let mut applications = Applications::default();
        applications.observe(View::parse(&parent.to_string()).unwrap(), jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(lives_in_cluster(&child, &applications, &[]), None);
        let other = json!({"spec": {"source": {"helm": {"parameters": []}}}}).to_string();
        let changed = view(
            json!({"kubectl.kubernetes.io/last-applied-configuration": other}),
            json!({"helm": {"parameters": [{"name": "tag", "value": "3"}]}}),
        );
        assert!(lives_in_cluster(&changed, &applications, &[]).is_some());
        assert!(why(&view(json!({}), json!({"kustomize": {"images": ["web=web:2"]}})), &[]).is_some());
    }
}
