//! The parts of a Kubernetes object that the guard reads: identity and metadata.
//!
//! Everything else stays undecoded until a rule asks for it. These types are partial on purpose: a whole
//! `k8s_openapi` `ObjectMeta` also decodes `managedFields`, which costs more than the rest of a review.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

/// API group of Argo CD's own resources.
pub const ARGO_GROUP: &str = "argoproj.io";

/// API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Group and kind of an object. The version is never part of an identity here: Argo CD lists the version of the
/// manifest and the API server sends the version of the webhook rule, and both mean the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, as in a manifest.
    pub kind: String,
}

impl GroupKind {
    /// A group and kind from borrowed parts.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned() }
    }

    /// Whether this is `group`/`kind`.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// Whether more than the object itself may go when one of this kind goes, so that it has to be followed.
    pub fn takes_others(&self) -> bool {
        self.is("", "Namespace")
            || self.is(ARGO_GROUP, "Application")
            || self.is(ARGO_GROUP, "ApplicationSet")
            || self.is("apiextensions.k8s.io", "CustomResourceDefinition")
    }
}

/// Short names that people type.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("app", "Application"),
    ("appset", "ApplicationSet"),
    ("appproj", "AppProject"),
    ("ns", "Namespace"),
    ("crd", "CustomResourceDefinition"),
    ("sa", "ServiceAccount"),
    ("cm", "ConfigMap"),
    ("deploy", "Deployment"),
    ("pvc", "PersistentVolumeClaim"),
];

impl GroupKind {
    /// Whether a person who types `word` means this kind: kind, plural, short name, alone or followed by `.group`.
    pub fn is_meant_by(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let word = match word.split_once('.') {
            Some((kind, group)) if group == self.group => kind,
            Some(_) => return false,
            None => &word,
        };
        let kind = self.kind.to_lowercase();
        let short = SHORT_NAMES.iter().any(|(short, long)| *short == word.trim_end_matches('s') && *long == self.kind)
            || SHORT_NAMES.iter().any(|(short, long)| *short == word && *long == self.kind);
        word == kind
            || word == format!("{kind}s")
            || word == format!("{kind}es")
            || kind.strip_suffix('y').is_some_and(|stem| word == format!("{stem}ies"))
            || short
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(&self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

/// Identity of one object: group, kind, namespace (empty for a cluster-scoped object) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Group and kind.
    #[serde(flatten)]
    pub kind: GroupKind,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name. May be empty: Argo CD lists objects that have only a `generateName`.
    pub name: String,
}

impl ObjectRef {
    /// An identity from borrowed parts.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: GroupKind::new(group, kind), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The Namespace called `name`.
    pub fn namespace(name: &str) -> Self {
        Self::new("", "Namespace", "", name)
    }

    /// The Argo CD Application `namespace`/`name`.
    pub fn application(namespace: &str, name: &str) -> Self {
        Self::new(ARGO_GROUP, "Application", namespace, name)
    }

    /// `namespace/name`, or the name alone where there is no namespace.
    pub fn path(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// The same with what messages call it as long as it has no name: its `generateName`, and a star for the rest.
    #[must_use]
    pub fn or_generated(mut self, meta: &ObjectMeta) -> Self {
        if self.name.is_empty() && !meta.generate_name.is_empty() {
            self.name = format!("{}*", meta.generate_name);
        }
        self
    }

    /// Whether this is a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.kind.is("", "Namespace")
    }

    /// Whether this is a Secret.
    pub fn is_secret(&self) -> bool {
        self.kind.is("", "Secret")
    }

    /// Whether this is an Argo CD Application.
    pub fn is_application(&self) -> bool {
        self.kind.is(ARGO_GROUP, "Application")
    }
}

impl fmt::Display for ObjectRef {
    /// `RoleBinding shop/api`: kind and path, as people say it. The group is left out, it is noise in a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.path())
    }
}

/// Built-in kinds without a namespace. Custom kinds are learnt from their definitions
/// ([`crate::inventory::Inventory::set_cluster_scoped`]).
const CLUSTER_SCOPED: &[(&str, &str)] = &[
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    (RBAC_GROUP, "ClusterRole"),
    (RBAC_GROUP, "ClusterRoleBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("policy", "PodSecurityPolicy"),
    ("cascade-guard.io", "GuardPolicy"),
];

/// Whether a built-in kind is cluster-scoped. Unknown kinds are taken to be namespaced.
pub fn is_builtin_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(g, k)| *g == group && *k == kind)
}

/// One owner of an object.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// API version of the owner, group included.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether this owner is the managing controller.
    #[serde(deserialize_with = "null_to_default")]
    pub controller: bool,
}

impl OwnerReference {
    /// API group of the owner.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// The metadata that rules read.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name; empty while only `generateName` is known.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix of a generated name.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// UID given by the API server.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Labels.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers, in order: Argo CD takes the first cascade finalizer it finds.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners.
    #[serde(deserialize_with = "null_to_default", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// When deletion began; absent while the object is not being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
}

/// An object, known by name and metadata.
#[derive(Clone, Debug)]
pub struct KnownObject {
    /// Which one.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: Arc<ObjectMeta>,
}

impl ObjectMeta {
    /// Decodes the metadata of an object in JSON, and nothing else of it. An object without metadata has empty ones.
    ///
    /// # Errors
    /// When the text is not an object, or its metadata does not have the shape that Kubernetes gives it.
    pub fn of(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct OnlyMeta {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let OnlyMeta { metadata } = serde_json::from_str(json)?;
        Ok(metadata)
    }

    /// Value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// Whether the object is already being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// What a CustomResourceDefinition defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The kind.
    pub kind: GroupKind,
    /// Whether its objects have no namespace.
    pub cluster_scoped: bool,
}

impl Definition {
    /// Reads a CustomResourceDefinition; `None` if it does not have the shape of one.
    pub fn read(raw: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            spec: Spec,
        }
        #[derive(Deserialize)]
        struct Spec {
            group: String,
            #[serde(default)]
            scope: String,
            names: Names,
        }
        #[derive(Deserialize)]
        struct Names {
            kind: String,
        }
        let Body { spec } = serde_json::from_str(raw).ok()?;
        let kind = GroupKind { group: spec.group, kind: spec.names.kind };
        Some(Self { kind, cluster_scoped: spec.scope == "Cluster" })
    }

    /// The kind, if its objects have no namespace.
    pub fn if_cluster_scoped(self) -> Option<GroupKind> {
        self.cluster_scoped.then_some(self.kind)
    }
}

/// Reads JSON `null` as the default value: Go writes `null` for nil slices and maps.
///
/// # Errors
/// When the value is there and does not fit.
pub fn null_to_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// The group of an `apiVersion` such as `apps/v1`; empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
