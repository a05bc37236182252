//! Which registered clusters the generators of an ApplicationSet look for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The Secrets that one `clusters` generator finds, by their labels. An empty one finds all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl ClusterSelector {
    /// Every `clusters` generator of an ApplicationSet, whatever it is nested in (`matrix` and `merge` take generators). One
    /// whose selector has another shape than Kubernetes gives it counts as one that finds every cluster.
    pub fn of_set(json: &str) -> Box<[Self]> {
        // Most sets have none, and a set can be large.
        if !json.contains("\"clusters\"") {
            return Box::default();
        }
        let set: Value = serde_json::from_str(json).unwrap_or_default();
        let mut found = Vec::new();
        let mut generators: Vec<&Value> = set.pointer("/spec/generators").into_iter().collect();
        while let Some(list) = generators.pop() {
            for generator in list.as_array().into_iter().flatten() {
                if let Some(clusters) = generator.get("clusters") {
                    found.push(Self::deserialize(&clusters["selector"]).unwrap_or_default());
                }
                let nested = ["matrix", "merge"].iter().filter_map(|kind| generator.get(kind)?.get("generators"));
                generators.extend(nested);
            }
        }
        found.into()
    }

    /// Whether it finds a Secret with these labels. An operator that is not known finds it.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| {
                let value = labels.get(&expression.key);
                match expression.operator.as_str() {
                    "In" => value.is_some_and(|value| expression.values.contains(value)),
                    "NotIn" => value.is_none_or(|value| !expression.values.contains(value)),
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => true,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finds(generators: &Value, labels: &[(&str, &str)]) -> bool {
        let set = json!({"spec": {"generators": generators}}).to_string();
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ClusterSelector::of_set(&set).iter().any(|selector| selector.selects(&labels))
    }

    #[test]
    fn generator_without_a_selector_finds_every_cluster() {
        for clusters in [json!({}), json!(null), json!({"selector": {}}), json!({"selector": null})] {
            assert!(finds(&json!([{"list": {"elements": []}}, {"clusters": clusters}]), &[]), "{clusters}");
        }
        assert!(!finds(&json!([{"list": {"elements": [{"clusters": "x"}]}}]), &[]));
    }

    #[test]
    fn selector_finds_by_labels_however_deep_it_stands() {
        let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}, {"key": "off", "operator": "DoesNotExist"}]}}});
        let nested = json!([{"matrix": {"generators": [{"git": {}}, {"merge": {"generators": [clusters]}}]}}]);
        assert!(finds(&nested, &[("env", "prod"), ("tier", "a")]));
        for labels in
            [&[("env", "test"), ("tier", "a")][..], &[("env", "prod")], &[("env", "prod"), ("tier", "a"), ("off", "")]]
        {
            assert!(!finds(&nested, labels), "{labels:?}");
        }
    }

    #[test]
    fn selector_that_makes_no_sense_finds_every_cluster() {
        assert!(finds(&json!([{"clusters": {"selector": 7}}]), &[]));
        let odd = json!([{"clusters": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}]);
        assert!(finds(&odd, &[]));
    }
}
