//! What a Pod's spec refers to.

use serde::Deserialize;

use super::{
    Force, Needs,
    shape::{ClaimSpec, EnvFromSource, EnvVarSource, Named, PodResourceClaim, Volume, VolumeProjection},
};
use crate::object::null_to_default;

pub(super) const SECRET: (&str, &str) = ("", "Secret");
pub(super) const CONFIG_MAP: (&str, &str) = ("", "ConfigMap");
pub(super) const SERVICE_ACCOUNT: (&str, &str) = ("", "ServiceAccount");
pub(super) const PRIORITY_CLASS: (&str, &str) = ("scheduling.k8s.io", "PriorityClass");
const CLAIM: (&str, &str) = ("", "PersistentVolumeClaim");
const STORAGE_CLASS: (&str, &str) = ("storage.k8s.io", "StorageClass");
const RUNTIME_CLASS: (&str, &str) = ("node.k8s.io", "RuntimeClass");
const RESOURCE_CLAIM: (&str, &str) = ("resource.k8s.io", "ResourceClaim");
const RESOURCE_CLAIM_TEMPLATE: (&str, &str) = ("resource.k8s.io", "ResourceClaimTemplate");
const TRUST_BUNDLE: (&str, &str) = ("certificates.k8s.io", "ClusterTrustBundle");
const SNAPSHOT: (&str, &str) = ("snapshot.storage.k8s.io", "VolumeSnapshot");
const SECRET_PROVIDER: (&str, &str) = ("secrets-store.csi.x-k8s.io", "SecretProviderClass");

/// Driver whose volumes name a SecretProviderClass, and the attribute that does.
const SECRETS_STORE: (&str, &str) = ("secrets-store.csi.k8s.io", "secretProviderClass");

/// Without the named Secret an image may not be pulled; the Pod is made all the same, and public images need none.
const PULL: Force = Force::Bearable("private images cannot be pulled until then");

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Template {
    #[serde(deserialize_with = "null_to_default")]
    pub spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    #[serde(deserialize_with = "null_to_default")]
    pub restart_policy: String,
    #[serde(deserialize_with = "null_to_default")]
    service_account_name: String,
    /// Older spelling.
    #[serde(deserialize_with = "null_to_default")]
    service_account: String,
    #[serde(deserialize_with = "null_to_default")]
    priority_class_name: String,
    #[serde(deserialize_with = "null_to_default")]
    runtime_class_name: String,
    #[serde(deserialize_with = "null_to_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_to_default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "null_to_default")]
    ephemeral_containers: Vec<Container>,
    #[serde(deserialize_with = "null_to_default")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "null_to_default")]
    image_pull_secrets: Vec<Named>,
    #[serde(deserialize_with = "null_to_default")]
    resource_claims: Vec<PodResourceClaim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    #[serde(deserialize_with = "null_to_default")]
    env: Vec<EnvVar>,
    #[serde(deserialize_with = "null_to_default")]
    env_from: Vec<EnvFromSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EnvVar {
    value_from: Option<EnvVarSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct VolumeClaim {
    #[serde(deserialize_with = "null_to_default")]
    spec: ClaimSpec,
}

impl Needs<'_> {
    /// Everything a Pod refers to.
    pub(super) fn pod(&mut self, spec: &PodSpec) {
        let account =
            if spec.service_account_name.is_empty() { &spec.service_account } else { &spec.service_account_name };
        self.add(SERVICE_ACCOUNT, account, Force::Creation, "serviceAccountName", false);
        self.add_cluster(PRIORITY_CLASS, &spec.priority_class_name, Force::Creation, "priorityClassName");
        self.add_cluster(RUNTIME_CLASS, &spec.runtime_class_name, Force::Creation, "runtimeClassName");
        for container in spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers) {
            self.container(container);
        }
        self.volumes(&spec.volumes);
        for claim in &spec.resource_claims {
            let names = [
                (RESOURCE_CLAIM, &claim.resource_claim_name),
                (RESOURCE_CLAIM_TEMPLATE, &claim.resource_claim_template_name),
            ];
            for (kind, name) in names {
                self.add(kind, name.as_deref().unwrap_or_default(), Force::Start, "resourceClaims", false);
            }
        }
        self.pull_secrets(&spec.image_pull_secrets);
    }

    pub(super) fn pull_secrets(&mut self, secrets: &[Named]) {
        for secret in secrets {
            self.add(SECRET, &secret.name, PULL, "imagePullSecrets", false);
        }
    }

    pub(super) fn container(&mut self, container: &Container) {
        for source in &container.env_from {
            if let Some(secret) = &source.secret_ref {
                self.start(SECRET, &secret.name, "envFrom", secret.optional);
            }
            if let Some(map) = &source.config_map_ref {
                self.start(CONFIG_MAP, &map.name, "envFrom", map.optional);
            }
        }
        for source in container.env.iter().filter_map(|env| env.value_from.as_ref()) {
            if let Some(key) = &source.secret_key_ref {
                self.start(SECRET, &key.name, "env", key.optional);
            }
            if let Some(key) = &source.config_map_key_ref {
                self.start(CONFIG_MAP, &key.name, "env", key.optional);
            }
        }
    }

    fn start(&mut self, kind: (&str, &str), name: &str, via: &'static str, optional: Option<bool>) {
        self.add(kind, name, Force::Start, via, optional == Some(true));
    }

    /// A volume keeps a Pod from starting whether or not a container mounts it.
    pub(super) fn volumes(&mut self, volumes: &[Volume]) {
        for volume in volumes {
            if let Some(secret) = &volume.secret {
                self.start(SECRET, secret.secret_name.as_deref().unwrap_or_default(), "volumes", secret.optional);
            }
            if let Some(map) = &volume.config_map {
                self.start(CONFIG_MAP, &map.name, "volumes", map.optional);
            }
            for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
                self.projection(source);
            }
            if let Some(claim) = &volume.persistent_volume_claim {
                self.start(CLAIM, &claim.claim_name, "volumes", None);
            }
            if let Some(template) = volume.ephemeral.as_ref().and_then(|it| it.volume_claim_template.as_ref()) {
                self.claim_spec(&template.spec);
            }
            if let Some(csi) = &volume.csi {
                let secret = csi.node_publish_secret_ref.as_ref().map_or("", |secret| &secret.name);
                self.start(SECRET, secret, "csi", None);
                let attribute = |key| csi.volume_attributes.as_ref().and_then(|attributes| attributes.get(key));
                if let Some(class) = attribute(SECRETS_STORE.1).filter(|_| csi.driver == SECRETS_STORE.0) {
                    self.start(SECRET_PROVIDER, class, "csi", None);
                }
            }
            self.start(SECRET, legacy_secret(volume).unwrap_or_default(), "volumes", None);
        }
    }

    fn projection(&mut self, source: &VolumeProjection) {
        if let Some(secret) = &source.secret {
            self.start(SECRET, &secret.name, "projected volumes", secret.optional);
        }
        if let Some(map) = &source.config_map {
            self.start(CONFIG_MAP, &map.name, "projected volumes", map.optional);
        }
        if let Some(bundle) = source.cluster_trust_bundle.as_ref().filter(|bundle| bundle.optional != Some(true)) {
            let name = bundle.name.as_deref().unwrap_or_default();
            self.add_cluster(TRUST_BUNDLE, name, Force::Start, "projected volumes");
        }
    }

    /// A claim that is made together with the Pod.
    pub(super) fn claim(&mut self, claim: &VolumeClaim) {
        self.claim_spec(&claim.spec);
    }

    fn claim_spec(&mut self, spec: &ClaimSpec) {
        let class = spec.storage_class_name.as_deref().unwrap_or_default();
        self.add_cluster(STORAGE_CLASS, class, Force::Start, "volume claim");
        let source = spec.data_source.as_ref().map(|source| (source.kind.as_str(), source.name.as_str()));
        let source = source.or_else(|| {
            // A source in another namespace is granted access by that namespace, not by this Application.
            let source = spec.data_source_ref.as_ref().filter(|source| source.namespace.is_none())?;
            Some((source.kind.as_str(), source.name.as_str()))
        });
        match source {
            Some(("PersistentVolumeClaim", name)) => self.start(CLAIM, name, "volume claim", None),
            Some(("VolumeSnapshot", name)) => self.start(SNAPSHOT, name, "volume claim", None),
            _ => {}
        }
    }
}

/// The Secret of a volume of one of the kinds that came before CSI.
fn legacy_secret(volume: &Volume) -> Option<&str> {
    if let Some(azure) = &volume.azure_file {
        return Some(&azure.secret_name);
    }
    let secret = None
        .or_else(|| volume.cephfs.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.cinder.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.flex_volume.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.iscsi.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.rbd.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.scale_io.as_ref().and_then(|it| it.secret_ref.as_ref()))
        .or_else(|| volume.storageos.as_ref().and_then(|it| it.secret_ref.as_ref()));
    secret.map(|secret| secret.name.as_str())
}
