//! Kinds whose controllers create a Secret or a ConfigMap, by default of their own name. Git holds the producer and not
//! the product, so the list of an Application does not hold the product either.

use crate::object::{GroupKind, ObjectRef};

/// `(kind, group)` of what produces a Secret.
pub(super) const OF_SECRETS: [(&str, &str); 17] = [
    ("ExternalSecret", "external-secrets.io"),
    ("ClusterExternalSecret", "external-secrets.io"),
    ("ExternalSecret", "kubernetes-client.io"),
    ("SealedSecret", "bitnami.com"),
    ("Certificate", "cert-manager.io"),
    ("SopsSecret", "isindir.github.com"),
    ("VaultStaticSecret", "secrets.hashicorp.com"),
    ("VaultDynamicSecret", "secrets.hashicorp.com"),
    ("VaultPKISecret", "secrets.hashicorp.com"),
    ("VaultSecret", "ricoberger.de"),
    ("AzureKeyVaultSecret", "spv.no"),
    ("OnePasswordItem", "onepassword.com"),
    ("DopplerSecret", "secrets.doppler.com"),
    ("InfisicalSecret", "secrets.infisical.com"),
    ("BitwardenSecret", "k8s.bitwarden.com"),
    ("KafkaUser", "kafka.strimzi.io"),
    ("ObjectBucketClaim", "objectbucket.io"),
];

/// `(kind, group)` of what produces a ConfigMap.
const OF_CONFIG_MAPS: [(&str, &str); 2] =
    [("Bundle", "trust.cert-manager.io"), ("ObjectBucketClaim", "objectbucket.io")];

/// Objects that could produce `product`, going by name. `further` are the kinds that the policy adds for Secrets.
pub fn candidates(product: &ObjectRef, further: &[String]) -> Vec<ObjectRef> {
    let known: &[(&str, &str)] = match (product.kind.group.as_str(), product.kind.kind.as_str()) {
        ("", "Secret") => &OF_SECRETS,
        ("", "ConfigMap") => &OF_CONFIG_MAPS,
        _ => return Vec::new(),
    };
    let mut kinds: Vec<GroupKind> = known.iter().map(|(kind, group)| GroupKind::new(group, kind)).collect();
    if product.kind.kind == "Secret" {
        kinds.extend(further.iter().map(|name| parse(name)));
    }
    let at = |kind| ObjectRef { kind, namespace: product.namespace.clone(), name: product.name.clone() };
    kinds.into_iter().map(at).collect()
}

/// `Kind.group`, as `kubectl` writes it; a kind of the core group has no point.
fn parse(name: &str) -> GroupKind {
    let (kind, group) = name.split_once('.').unwrap_or((name, ""));
    GroupKind::new(group, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_adds_kinds_for_secrets() {
        let further = ["Password.example.com".to_owned()];
        let of = |kind: &str| {
            candidates(&ObjectRef::new("", kind, "shop", "db"), &further)
                .iter()
                .any(|candidate| *candidate == ObjectRef::new("example.com", "Password", "shop", "db"))
        };
        assert!(of("Secret"));
        assert!(!of("ConfigMap"));
        assert!(!of("ServiceAccount"));
    }
}
