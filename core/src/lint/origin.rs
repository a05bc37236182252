//! Files that manifests are made from and that are none themselves, known by their names and their content.

use serde_json::Value;

use super::document::{Document, Fault, Problem};

/// What to lint instead.
pub const KUSTOMIZE: &str = "lint what kustomize build prints";

/// Fields that only a kustomization has at its top, as far as one of them is a list.
const OF_KUSTOMIZATIONS: [&str; 10] = [
    "resources",
    "bases",
    "components",
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "configMapGenerator",
    "secretGenerator",
    "generators",
    "transformers",
];

/// What a file is, going by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `kustomization.yaml`.
    Kustomization,
    /// Values of a chart.
    Values,
    /// `Chart.yaml`.
    Chart,
    /// A template of the chart in this folder.
    Template(String),
    /// Anything else.
    Other,
}

impl Origin {
    /// Goes by a path.
    pub fn of(path: &str) -> Self {
        let path = path.replace('\\', "/");
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let words = |of: char| stem.split(of).any(|word| word == "values");
        match file {
            "kustomization.yaml" | "kustomization.yml" | "Kustomization" => Self::Kustomization,
            "Chart.yaml" | "Chart.lock" | "requirements.yaml" => Self::Chart,
            _ if words('-') || words('.') || words('_') => Self::Values,
            _ => {
                let mut chart = Vec::new();
                for part in folder.split('/') {
                    if part == "templates" {
                        return Self::Template(chart.join("/"));
                    }
                    chart.push(part);
                }
                Self::Other
            }
        }
    }

    /// What to say of a document that is no Kubernetes object, if it is known what it is instead.
    pub fn knows(&self, value: &Value) -> Option<String> {
        match self {
            Self::Kustomization => Some(format!("a kustomization is no manifest; {KUSTOMIZE}")),
            Self::Values => Some("values of a chart are no manifest; lint what helm template prints".to_owned()),
            Self::Chart => Some("the head of a chart is no manifest; lint what helm template prints".to_owned()),
            Self::Template(_) | Self::Other => {
                let is_list = |field: &str| value.get(field).is_some_and(Value::is_array);
                let looks_so =
                    value.get("apiVersion").is_none() && OF_KUSTOMIZATIONS.iter().any(|field| is_list(field));
                looks_so.then(|| format!("this looks like a kustomization, which is no manifest; {KUSTOMIZE}"))
            }
        }
    }

    /// Says of a template of a chart which chart it is.
    pub fn explain(&self, document: &Document<'_>, problem: Problem) -> Problem {
        let braces = || document.text.contains("{{") && document.text.contains("}}");
        match self {
            Self::Template(chart)
                if problem.check == Fault::Template || problem.check == Fault::BadYaml && braces() =>
            {
                let chart = if chart.is_empty() { "." } else { chart };
                let text = format!(
                    "a template of the chart {chart} that was not rendered; lint what helm template {chart} prints instead"
                );
                Problem { check: Fault::Template, text, ..problem }
            }
            _ => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_known_by_their_paths() {
        let template = |chart: &str| Origin::Template(chart.to_owned());
        for (path, wanted) in [
            ("a/kustomization.yaml", Origin::Kustomization),
            ("kustomization.yml", Origin::Kustomization),
            ("values.yaml", Origin::Values),
            ("chart/values-prod.yaml", Origin::Values),
            ("chart/prod.values.yaml", Origin::Values),
            ("chart/prod_values.yml", Origin::Values),
            ("chart/Chart.yaml", Origin::Chart),
            ("chart/templates/job.yaml", template("chart")),
            ("a/chart/templates/tests/job.yaml", template("a/chart")),
            ("templates/job.yaml", template("")),
            ("evalues.yaml", Origin::Other),
            ("stdin", Origin::Other),
            ("a/b.yaml", Origin::Other),
        ] {
            assert_eq!(Origin::of(path), wanted, "{path}");
        }
    }

    #[test]
    fn kustomization_is_known_without_its_name() {
        assert!(Origin::Other.knows(&json!({"resources": ["a.yaml"]})).is_some());
        assert!(Origin::Other.knows(&json!({"resources": {"limits": {}}})).is_none());
        assert!(Origin::Other.knows(&json!({"replicaCount": 1})).is_none());
    }
}
