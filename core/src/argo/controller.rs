//! The workload of an application controller: as whom it acts, and which namespaces it is told to serve.

use serde_json::Value;

use super::config::{NAMESPACES_KEY, PARAMETERS_NAME};
use crate::object::ObjectMeta;

/// Label of the parts of an Argo CD, and its value on the part that syncs, prunes and cascades.
pub const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "application-controller");

/// What a workload says of the namespaces that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Setting {
    /// Nothing, so that `argocd-cmd-params-cm` decides.
    #[default]
    Unsaid,
    /// This list.
    Said(String),
    /// It is read from somewhere that the guard does not look at.
    Elsewhere,
}

/// A Deployment or StatefulSet of an application controller.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Controller {
    /// Name of the ServiceAccount under which it runs.
    pub account: String,
    /// In which namespaces besides its own it serves Applications.
    pub namespaces: Setting,
}

impl Controller {
    /// Reads a Deployment or StatefulSet; `None` if it is no application controller.
    pub fn read(meta: &ObjectMeta, workload: &str) -> Option<Self> {
        if meta.label(COMPONENT.0) != Some(COMPONENT.1) {
            return None;
        }
        let body: Value = serde_json::from_str(workload).unwrap_or_default();
        let pod = &body["spec"]["template"]["spec"];
        let account = ["serviceAccountName", "serviceAccount"].iter().find_map(|key| pod[*key].as_str());
        let mut namespaces = Setting::Unsaid;
        for container in pod["containers"].as_array().into_iter().flatten() {
            let said = flag(container);
            if said != Setting::Unsaid {
                namespaces = said;
            } else if namespaces == Setting::Unsaid {
                namespaces = variable(container);
            }
        }
        Some(Self { account: account.filter(|name| !name.is_empty()).unwrap_or("default").to_owned(), namespaces })
    }
}

/// The last of the flags counts, as Go's flags do it.
fn flag(container: &Value) -> Setting {
    const FLAG: &str = "--application-namespaces";
    let texts = |key: &str| container[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = texts("command").chain(texts("args")).collect();
    let mut said = Setting::Unsaid;
    for (at, word) in words.iter().enumerate() {
        let value = match word.strip_prefix(FLAG) {
            Some("") => words.get(at + 1).copied(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        match value {
            Some(value) if value.contains("$(") => said = Setting::Elsewhere,
            Some(value) => said = Setting::Said(value.to_owned()),
            None => {}
        }
    }
    said
}

fn variable(container: &Value) -> Setting {
    let mut environment = container["env"].as_array().into_iter().flatten();
    let Some(entry) = environment.find(|entry| entry["name"] == "ARGOCD_APPLICATION_NAMESPACES") else {
        return Setting::Unsaid;
    };
    let source = &entry["valueFrom"]["configMapKeyRef"];
    match entry["value"].as_str() {
        Some(value) if value.contains("$(") => Setting::Elsewhere,
        Some(value) => Setting::Said(value.to_owned()),
        // This is how it is installed; the ConfigMap is looked at anyway.
        None if source["name"] == PARAMETERS_NAME && source["key"] == NAMESPACES_KEY => Setting::Unsaid,
        None if entry["valueFrom"].is_null() => Setting::Unsaid,
        None => Setting::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(container: &Value) -> Controller {
        let meta =
            ObjectMeta { labels: [(COMPONENT.0.to_owned(), COMPONENT.1.to_owned())].into(), ..ObjectMeta::default() };
        let workload = json!({"spec": {"template": {"spec": {"serviceAccountName": "gitops-argocd-application-controller",
            "containers": [container]}}}});
        Controller::read(&meta, &workload.to_string()).unwrap()
    }

    #[test]
    fn account_and_namespaces_are_read_from_the_template_of_its_pods() {
        let said = |text: &str| Setting::Said(text.to_owned());
        let variable = |entry: Value| read(&json!({"env": [entry]})).namespaces;
        assert_eq!(read(&json!({})).account, "gitops-argocd-application-controller");
        assert_eq!(read(&json!({"args": ["x", "--application-namespaces", "a,b"]})).namespaces, said("a,b"));
        assert_eq!(read(&json!({"command": ["x", "--application-namespaces=team-*"]})).namespaces, said("team-*"));
        assert_eq!(read(&json!({"args": ["--other"]})).namespaces, Setting::Unsaid);
        let name = "ARGOCD_APPLICATION_NAMESPACES";
        assert_eq!(variable(json!({"name": name, "value": "c"})), said("c"));
        let from = |name: &str, key: &str| json!({"configMapKeyRef": {"name": name, "key": key, "optional": true}});
        let usual = from("argocd-cmd-params-cm", "application.namespaces");
        assert_eq!(variable(json!({"name": name, "valueFrom": usual})), Setting::Unsaid);
        assert_eq!(variable(json!({"name": name, "valueFrom": from("mine", "k")})), Setting::Elsewhere);
        let both = read(&json!({"args": ["--application-namespaces=a"], "env": [{"name": name, "value": "b"}]}));
        assert_eq!(both.namespaces, said("a"), "a flag counts before a variable");
    }

    #[test]
    fn other_workloads_are_no_controllers() {
        let server =
            ObjectMeta { labels: [(COMPONENT.0.to_owned(), "server".to_owned())].into(), ..ObjectMeta::default() };
        assert_eq!(Controller::read(&server, "{}"), None);
        assert_eq!(Controller::read(&ObjectMeta::default(), "{}"), None);
    }
}
