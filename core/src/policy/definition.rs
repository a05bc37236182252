//! The CustomResourceDefinition of `GuardPolicy`: what the types of [`super::schema`] generate, and what the API server
//! can check of [`super::Policy::new`] while somebody types, so that a mistake is refused by `kubectl apply`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use kube_core::CustomResourceExt;

use super::{GuardPolicy, POLICY_NAME};

/// Bounds on lists and texts. They are far above what people write; without them the API server assumes the longest
/// object it could store, and finds the checks below too expensive.
const MAX_ENTRIES: i64 = 100;
const MAX_TEXT: i64 = 256;

/// The definition, with its checks.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = GuardPolicy::crd();
    for version in &mut definition.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            add_checks(root);
        }
    }
    definition
}

fn add_checks(root: &mut JSONSchemaProps) {
    root.description =
        Some("What the guard decides and how strictly. One object named `default` governs a cluster.".to_owned());
    check(
        root,
        &format!("self.metadata.name == '{POLICY_NAME}'"),
        "a cluster has one GuardPolicy, and it is named default",
    );

    within(root, &["spec", "argocd", "namespace"], |namespace| namespace.min_length = Some(1));
    within(root, &["spec", "argocd", "installations"], |installations| installations.max_items = Some(MAX_ENTRIES));
    within(root, &["spec", "argocd", "installations", ITEMS], |namespace| bounded(namespace, MAX_TEXT));
    within(root, &["spec", "argocd", "clusterAliases", ITEMS], |aliases| aliases.min_items = Some(1));
    within(root, &["spec", "rules", "namespaceApproval", "maxTTL"], |ttl| {
        ttl.max_length = Some(32);
        check(
            ttl,
            "self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.matches('[1-9]')",
            "write a duration longer than zero, such as 24h or 1h30m",
        );
    });
    for list in ["overrides", "exemptions"] {
        within(root, &["spec", list], |entries| entries.max_items = Some(MAX_ENTRIES));
        within(root, &["spec", list, ITEMS, "match"], check_match);
    }
    // The types let `match` be absent only to say in better words that it must not be.
    within(root, &["spec", "overrides", ITEMS], |entry| entry.required = Some(vec!["match".to_owned()]));
    within(root, &["spec", "overrides", ITEMS, "match"], |matches| matches.default = None);
    within(root, &["spec", "exemptions", ITEMS], |exemption| {
        check(
            exemption,
            "!has(self.match.namespaceSelector) || (has(self.match.namespaces) && size(self.match.namespaces) > 0)",
            "a label alone does not exempt: name the namespaces as well",
        );
    });
    within(root, &["spec", "exemptions", ITEMS, "rules"], |rules| rules.min_items = Some(1));
    within(root, &["spec", "exemptions", ITEMS, "name"], |name| bounded(name, MAX_TEXT));
    within(root, &["spec", "exemptions", ITEMS, "reason"], |reason| {
        bounded(reason, 4 * MAX_TEXT);
        check(reason, "self.trim() != ''", "say why this is exempt");
    });
    within(root, &["spec", "exemptions", ITEMS, "until"], |until| {
        bounded(until, 40);
        check(
            until,
            "self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$')",
            "write a time with its zone, such as 2027-01-01T00:00:00Z",
        );
    });
    // Conditions are merged by type when several writers apply them.
    within(root, &["status", "conditions"], |conditions| {
        conditions.x_kubernetes_list_type = Some("map".to_owned());
        conditions.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
    });
}

fn check_match(matches: &mut JSONSchemaProps) {
    let given = |list: &str| format!("(has(self.{list}) && size(self.{list}) > 0)");
    let rule = format!(
        "has(self.namespaceSelector) || {} || {} || {}",
        given("namespaces"),
        given("projects"),
        given("users")
    );
    check(matches, &rule, "it matches nothing in particular: write namespaces: [\"*\"] to mean everything");
    for list in ["namespaces", "projects", "users"] {
        within(matches, &[list], |entries| entries.max_items = Some(MAX_ENTRIES));
        within(matches, &[list, ITEMS], |entry| bounded(entry, MAX_TEXT));
    }
}

fn bounded(text: &mut JSONSchemaProps, max: i64) {
    text.min_length = Some(1);
    text.max_length = Some(max);
}

fn check(schema: &mut JSONSchemaProps, rule: &str, message: &str) {
    schema.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
        rule: rule.to_owned(),
        message: Some(message.to_owned()),
        ..ValidationRule::default()
    });
}

/// Step from a list to its items.
const ITEMS: &str = "[]";

/// Changes the schema at `path`. A path that leads nowhere changes nothing; the test below finds it.
fn within(schema: &mut JSONSchemaProps, path: &[&str], change: impl FnOnce(&mut JSONSchemaProps)) {
    let mut at = schema;
    for step in path {
        let next = if *step == ITEMS {
            match at.items.as_mut() {
                Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&mut **items),
                _ => None,
            }
        } else {
            at.properties.as_mut().and_then(|properties| properties.get_mut(*step))
        };
        let Some(next) = next else { return };
        at = next;
    }
    change(at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_finds_its_field() {
        let json = serde_json::to_string(&definition()).unwrap();
        for message in [
            "named default",
            "such as 24h or 1h30m",
            "a label alone does not exempt",
            "say why this is exempt",
            "such as 2027-01-01T00:00:00Z",
            "matches nothing in particular",
        ] {
            assert!(json.contains(message), "{message}");
        }
        assert_eq!(json.matches("matches nothing in particular").count(), 2, "overrides and exemptions");
        assert_eq!(json.matches("\"maxItems\":100").count(), 9, "three lists and three lists in each of two matches");
        assert_eq!(json.matches("\"minItems\":1").count(), 2, "aliases of a cluster, rules of an exemption");
        assert_eq!(json.matches("\"x-kubernetes-list-map-keys\":[\"type\"]").count(), 1);
    }
}
