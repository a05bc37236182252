//! Whose object is this? Argo CD's markers (tracking id, instance label, installation id).

use crate::object::{ObjectMeta, ObjectRef};

/// Annotation that names the Application an object was last synced by, and the object's own coordinates.
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Annotation that tells several Argo CD installations apart.
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
/// Label that marks objects under label tracking, unless `application.instanceLabelKey` names another.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// How an installation marks its objects (`application.resourceTrackingMethod`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TrackingMethod {
    /// The tracking id alone. Any unknown setting behaves like this.
    #[default]
    Annotation,
    /// The tracking id; the label is only informative.
    AnnotationAndLabel,
    /// The label alone; the installation id is ignored.
    Label,
}

impl TrackingMethod {
    /// Reads the setting as Argo CD does: unset or unknown means annotation.
    pub fn parse(setting: &str) -> Self {
        match setting {
            "label" => Self::Label,
            "annotation+label" => Self::AnnotationAndLabel,
            _ => Self::Annotation,
        }
    }
}

/// The settings of one Argo CD installation (its ConfigMap `argocd-cm`) that decide who owns an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackingSettings {
    /// How objects are marked.
    pub method: TrackingMethod,
    /// Key of the instance label.
    pub label_key: String,
    /// Installation id, empty if none is set.
    pub installation_id: String,
}

impl Default for TrackingSettings {
    fn default() -> Self {
        Self {
            method: TrackingMethod::Annotation,
            label_key: INSTANCE_LABEL.to_owned(),
            installation_id: String::new(),
        }
    }
}

/// A parsed tracking id: `<instance>:<group>/<kind>:<namespace>/<name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackingId<'a> {
    /// Instance name of the Application: `name`, or `<namespace>_<name>` outside the controller's own namespace.
    pub instance: &'a str,
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace of the manifest or of the Application's destination, for cluster-scoped objects too.
    pub namespace: &'a str,
    /// Name; empty for hooks with a `generateName`.
    pub name: &'a str,
}

impl<'a> TrackingId<'a> {
    /// Parses as `util/argo/resource_tracking.go` does: three parts at `:`, the last two of exactly two parts at `/`,
    /// nothing trimmed, nothing unescaped. `None` means "no owner", never an error.
    pub fn parse(value: &'a str) -> Option<Self> {
        let mut parts = value.splitn(3, ':');
        let (instance, kind, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (group, kind) = exactly_two(kind)?;
        let (namespace, name) = exactly_two(path)?;
        Some(Self { instance, group, kind, namespace, name })
    }

    /// Whether it was written for this object, not copied from another one. A hook with a generated name carries a tracking
    /// id without a name, or with an earlier name. For a cluster-scoped object the namespace is that of the destination.
    pub fn names(&self, object: &ObjectRef, meta: &ObjectMeta) -> bool {
        self.kind == object.kind.kind
            && self.group == object.kind.group
            && (self.name == object.name || !meta.generate_name.is_empty())
            && (object.namespace.is_empty() || self.namespace == object.namespace)
    }
}

fn exactly_two(value: &str) -> Option<(&str, &str)> {
    let (first, second) = value.split_once('/')?;
    (!second.contains('/')).then_some((first, second))
}

/// What an object's metadata says of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker<'a> {
    /// This instance name.
    Instance(&'a str),
    /// No marker that this installation would read.
    None,
    /// The installation's settings are not known and nothing on the object names an owner.
    Unknown,
}

/// Reads the marker of an object. `settings` is `None` where `argocd-cm` cannot be read; then the tracking id counts
/// and, without one, the usual label.
///
/// Mirrors `GetAppName` in `util/argo/resource_tracking.go`. Whether the object is a root (no owner references) is a
/// separate question.
pub fn marker<'a>(meta: &'a ObjectMeta, settings: Option<&TrackingSettings>) -> Marker<'a> {
    let tracking_id = meta
        .annotation(TRACKING_ID)
        .and_then(TrackingId::parse)
        .map(|id| id.instance)
        .filter(|instance| !instance.is_empty());
    let Some(settings) = settings else {
        return tracking_id
            .or_else(|| meta.label(INSTANCE_LABEL).filter(|label| !label.is_empty()))
            .map_or(Marker::Unknown, Marker::Instance);
    };
    let found = match settings.method {
        TrackingMethod::Label => meta.label(&settings.label_key).filter(|label| !label.is_empty()),
        TrackingMethod::Annotation | TrackingMethod::AnnotationAndLabel => {
            let foreign = !settings.installation_id.is_empty()
                && meta.annotation(INSTALLATION_ID) != Some(settings.installation_id.as_str());
            tracking_id.filter(|_| !foreign)
        }
    };
    found.map_or(Marker::None, Marker::Instance)
}

/// The name Argo CD gives an Application in markers (`InstanceName` in `types.go`).
pub fn instance_name(namespace: &str, name: &str, controller_namespace: &str) -> String {
    if namespace.is_empty() || namespace == controller_namespace {
        name.to_owned()
    } else {
        format!("{namespace}_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_argo_cd_parses() {
        let id = TrackingId::parse("app:rbac.authorization.k8s.io/ClusterRole:team-a/system:reader").unwrap();
        assert_eq!((id.instance, id.group, id.kind), ("app", "rbac.authorization.k8s.io", "ClusterRole"));
        assert_eq!((id.namespace, id.name), ("team-a", "system:reader"));
        assert_eq!(TrackingId::parse("a:/:/").unwrap().instance, "a");
        assert_eq!(TrackingId::parse("team_app:batch/Job:ns/").unwrap().name, "");
        for junk in ["", "app", "a:b:c", "a:b/c", "a:b/c/d:e/f", "a:b/c:d/e/f", "a:b/c:d"] {
            assert_eq!(TrackingId::parse(junk), None, "{junk}");
        }
    }

    #[test]
    fn method_decides_which_marker_counts() {
        let meta = ObjectMeta {
            labels: [(INSTANCE_LABEL.to_owned(), "by-label".to_owned())].into(),
            annotations: [(TRACKING_ID.to_owned(), "by-id:/Secret:a/b".to_owned())].into(),
            ..ObjectMeta::default()
        };
        let of = |method| TrackingSettings { method, ..TrackingSettings::default() };
        assert_eq!(marker(&meta, Some(&of(TrackingMethod::Label))), Marker::Instance("by-label"));
        assert_eq!(marker(&meta, Some(&of(TrackingMethod::Annotation))), Marker::Instance("by-id"));
        assert_eq!(marker(&meta, None), Marker::Instance("by-id"));
        let foreign = TrackingSettings { installation_id: "other".to_owned(), ..TrackingSettings::default() };
        assert_eq!(marker(&meta, Some(&foreign)), Marker::None);
        assert_eq!(marker(&ObjectMeta::default(), None), Marker::Unknown);
    }
}
