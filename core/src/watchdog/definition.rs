//! The CustomResourceDefinitions of the watchdog's objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube_core::CustomResourceExt;

use super::schema::{RolloutWatch, WatchedRepository};

/// Both definitions.
pub fn definitions() -> [CustomResourceDefinition; 2] {
    let mut definitions = [RolloutWatch::crd(), WatchedRepository::crd()];
    for definition in &mut definitions {
        for version in &mut definition.spec.versions {
            let root = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
            if let Some(conditions) = root.and_then(conditions) {
                // Conditions are merged by type.
                conditions.x_kubernetes_list_type = Some("map".to_owned());
                conditions.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
            }
        }
    }
    definitions
}

fn conditions(root: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    let status = root.properties.as_mut()?.get_mut("status")?;
    status.properties.as_mut()?.get_mut("conditions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_both_are_merged_by_type() {
        let json = serde_json::to_string(&definitions()).unwrap();
        assert_eq!(json.matches(r#""x-kubernetes-list-map-keys":["type"]"#).count(), 2);
    }
}
