//! Fields that the API server lets nobody change: a sync fails, or deletes the object and makes it anew.

use serde_json::Value;

use super::{Changes, Piece, finding, world::World};
use crate::{
    decision::Severity,
    inventory::{App, LOCAL},
    object::{ObjectRef, RBAC_GROUP},
    report::ReportFinding,
    text::some,
};

/// Fields by kind: group, kind, JSON pointers.
const IMMUTABLE: [(&str, &str, &[&str]); 11] = [
    (RBAC_GROUP, "RoleBinding", &["/roleRef"]),
    (RBAC_GROUP, "ClusterRoleBinding", &["/roleRef"]),
    ("apps", "Deployment", &["/spec/selector"]),
    ("apps", "ReplicaSet", &["/spec/selector"]),
    ("apps", "DaemonSet", &["/spec/selector"]),
    (
        "apps",
        "StatefulSet",
        &["/spec/selector", "/spec/serviceName", "/spec/podManagementPolicy", "/spec/volumeClaimTemplates"],
    ),
    ("batch", "Job", &["/spec/template", "/spec/selector", "/spec/completionMode"]),
    ("storage.k8s.io", "StorageClass", &["/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"]),
    (
        "",
        "PersistentVolumeClaim",
        &["/spec/storageClassName", "/spec/accessModes", "/spec/volumeMode", "/spec/selector"],
    ),
    ("scheduling.k8s.io", "PriorityClass", &["/value", "/preemptionPolicy"]),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &["/spec/scope", "/spec/group", "/spec/names/kind"]),
];

/// Finds changes that cannot be made in place.
pub fn find(changes: &Changes<'_>, world: &World<'_>, findings: &mut Vec<ReportFinding>) {
    for (folder, old, new) in &changes.changed {
        let Some(fields) = fields(old, new) else { continue };
        let application = world.path(folder);
        let key = world.inventory.key_of(LOCAL, &old.object);
        let claimants = world.inventory.claimants(key, world.policy).filter_map(|id| world.inventory.app(id));
        let mut others: Vec<String> = claimants.map(App::path).filter(|path| *path != application).collect();
        others.sort();
        let claimed = if others.is_empty() { String::new() } else { format!("; {} claims it too", some(&others, 3)) };
        let takes_others = old.object.kind.takes_others();
        let severity = if others.is_empty() && !takes_others { Severity::Warn } else { Severity::Deny };
        let mut found = finding(
            "replaced",
            severity,
            new,
            "a field changes that cannot be changed: the sync fails, or with Replace or Force deletes the object first",
            format!(
                "{} of {}, rendered by {application}, cannot be changed in place{claimed}",
                fields.join(", "),
                new.object
            ),
        );
        found.claimants = others;
        found
            .remedies
            .push("make an object of another name, move what uses the old one, then take the old one out".into());
        findings.push(found);
    }
}

/// The immutable fields that differ; `None` if none does.
fn fields(old: &Piece, new: &Piece) -> Option<Vec<String>> {
    let ObjectRef { kind, .. } = &old.object;
    let pointers = IMMUTABLE.iter().find(|(group, name, _)| kind.is(group, name))?.2;
    let value = |piece: &Piece, pointer: &str| piece.value.pointer(pointer).cloned().unwrap_or(Value::Null);
    let mut found: Vec<String> = pointers
        .iter()
        .filter(|pointer| {
            let (old, new) = (value(old, pointer), value(new, pointer));
            // A field that was not written had a default; nobody knows which.
            old != new && !old.is_null() && !new.is_null()
        })
        .map(|pointer| pointer.trim_start_matches('/').replace('/', "."))
        .collect();
    if kind.is("", "PersistentVolumeClaim") && shrinks(&old.value, &new.value) {
        found.push("spec.resources.requests.storage (smaller)".to_owned());
    }
    (!found.is_empty()).then_some(found)
}

/// Whether a claim asks for less than before, where both sizes can be read.
fn shrinks(old: &Value, new: &Value) -> bool {
    let size = |value: &Value| bytes(value.pointer("/spec/resources/requests/storage")?.as_str()?);
    matches!((size(old), size(new)), (Some(old), Some(new)) if new < old)
}

/// A quantity of Kubernetes in bytes.
fn bytes(quantity: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 11] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("", 1.0),
    ];
    let (unit, factor) = UNITS.iter().find(|(unit, _)| quantity.ends_with(unit))?;
    quantity.strip_suffix(unit)?.parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_that_shrink_are_known() {
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        for (old, new, wanted) in [
            ("10Gi", "5Gi", true),
            ("10Gi", "10G", true),
            ("1Ti", "1024Gi", false),
            ("1Gi", "2Gi", false),
            ("1000", "1k", false),
            ("1Gi", "lots", false),
        ] {
            assert_eq!(shrinks(&claim(old), &claim(new)), wanted, "{old} {new}");
        }
    }
}
