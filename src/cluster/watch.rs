//! The kinds of objects that are watched, and the state of each watch.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
};
use tokio::sync::watch::Sender;

use super::watched_object::WatchedObject;
use cascade_guard_core::{
    argo::{
        config::{PARAMETERS_NAME, SECRET_TYPE, SETTINGS_NAME},
        controller::COMPONENT,
    },
    object::{ARGO_GROUP, GroupKind},
    policy::{POLICY_NAME, Policy},
};

/// What is watched.
///
/// The guard needs `list` and `watch` on: `applications`, `applicationsets` and `appprojects` of `argoproj.io`,
/// `namespaces`, `customresourcedefinitions`, `guardpolicies`, `deployments`, `statefulsets`, the ConfigMaps called
/// `argocd-cm` and `argocd-cmd-params-cm`, each in the whole cluster, and `secrets` in the namespace of Argo CD. Only
/// Applications and Namespaces are indispensable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Applications, whole: their lists are the claims.
    Applications,
    /// ApplicationSets, whole: their policies say whether their Applications go with them.
    ApplicationSets,
    /// AppProjects, for whom Argo CD impersonates.
    Projects,
    /// Namespaces, metadata alone.
    Namespaces,
    /// The tracking settings of every Argo CD.
    Settings,
    /// In which namespaces every Argo CD serves Applications.
    Parameters,
    /// Deployments that are application controllers: as whom they act, and which namespaces they are told to serve.
    Deployments,
    /// StatefulSets that are application controllers.
    StatefulSets,
    /// Which names and URLs mean one cluster.
    ClusterSecrets,
    /// Custom resource definitions, metadata alone: a change of them makes discovery look again.
    Definitions,
    /// The GuardPolicy that counts.
    Policy,
}

impl Watch {
    /// As people call it.
    pub fn what(self) -> &'static str {
        match self {
            Self::Applications => "Applications",
            Self::ApplicationSets => "ApplicationSets",
            Self::Projects => "AppProjects",
            Self::Namespaces => "Namespaces",
            Self::Settings => "ConfigMaps called argocd-cm",
            Self::Parameters => "ConfigMaps called argocd-cmd-params-cm",
            Self::Deployments => "Deployments of application controllers",
            Self::StatefulSets => "StatefulSets of application controllers",
            Self::ClusterSecrets => "cluster Secrets of Argo CD",
            Self::Definitions => "CustomResourceDefinitions",
            Self::Policy => "GuardPolicies",
        }
    }

    /// Whether nothing can be judged without it.
    pub(super) fn is_indispensable(self) -> bool {
        matches!(self, Self::Applications | Self::Namespaces)
    }

    /// Whether the right to it is given by a component that not everybody wants.
    pub(super) fn is_optional(self) -> bool {
        self == Self::ClusterSecrets
    }

    /// Whether only metadata is asked for.
    pub(super) fn only_metadata(self) -> bool {
        matches!(self, Self::Namespaces | Self::Definitions)
    }

    fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Applications => (ARGO_GROUP, "v1alpha1", "Application", "applications"),
            Self::ApplicationSets => (ARGO_GROUP, "v1alpha1", "ApplicationSet", "applicationsets"),
            Self::Projects => (ARGO_GROUP, "v1alpha1", "AppProject", "appprojects"),
            Self::Namespaces => ("", "v1", "Namespace", "namespaces"),
            Self::Settings | Self::Parameters => ("", "v1", "ConfigMap", "configmaps"),
            Self::Deployments => ("apps", "v1", "Deployment", "deployments"),
            Self::StatefulSets => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::ClusterSecrets => ("", "v1", "Secret", "secrets"),
            Self::Definitions => {
                ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
            }
            Self::Policy => ("cascade-guard.io", "v1alpha1", "GuardPolicy", "guardpolicies"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// The name of the definition without which the API server knows no such kind; `None` for kinds of its own.
    pub(super) fn definition(self) -> Option<String> {
        let resource = self.resource();
        let is_custom = matches!(self, Self::Applications | Self::ApplicationSets | Self::Projects | Self::Policy);
        is_custom.then(|| format!("{}.{}", resource.plural, resource.group))
    }

    /// Access to definitions.
    pub(super) fn definitions(client: Client) -> Api<DynamicObject> {
        Api::all_with(client, &Self::Definitions.resource())
    }

    /// What the API server is asked to leave out: by label, by field.
    pub(super) fn selectors(self) -> (Option<String>, Option<String>) {
        match self {
            Self::Settings => (None, Some(format!("metadata.name={SETTINGS_NAME}"))),
            Self::Parameters => (None, Some(format!("metadata.name={PARAMETERS_NAME}"))),
            Self::Policy => (None, Some(format!("metadata.name={POLICY_NAME}"))),
            Self::Deployments | Self::StatefulSets => (Some(format!("{}={}", COMPONENT.0, COMPONENT.1)), None),
            Self::ClusterSecrets => (Some(format!("{}={}", SECRET_TYPE.0, SECRET_TYPE.1)), None),
            _ => (None, None),
        }
    }

    /// The kind that is watched.
    pub(super) fn kind(self) -> GroupKind {
        let resource = self.resource();
        GroupKind::new(&resource.group, &resource.kind)
    }

    pub(super) fn api<const ONLY_METADATA: bool>(
        self,
        client: Client,
        scope: &WatchScope,
    ) -> Api<WatchedObject<ONLY_METADATA>> {
        match self {
            // The right to read Secrets everywhere would be far too much.
            Self::ClusterSecrets => Api::namespaced_with(client, &scope.argocd, &self.resource()),
            _ => Api::all_with(client, &self.resource()),
        }
    }

    /// The part of the scope that makes this watch begin anew when it changes.
    pub(super) fn part_of(self, scope: &WatchScope) -> WatchScope {
        match self {
            Self::Applications => scope.clone(),
            Self::ApplicationSets | Self::Projects | Self::Policy => {
                WatchScope { generation: scope.generation, ..WatchScope::default() }
            }
            Self::ClusterSecrets => WatchScope { argocd: scope.argocd.clone(), ..WatchScope::default() },
            Self::Namespaces
            | Self::Settings
            | Self::Parameters
            | Self::Deployments
            | Self::StatefulSets
            | Self::Definitions => WatchScope::default(),
        }
    }
}

/// What of the policy and of the cluster decides what the watches are to deliver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchScope {
    /// Namespace of the Argo CD whose cluster Secrets may be read.
    pub(super) argocd: String,
    /// Namespaces that may hold Applications.
    pub(super) applications: Vec<String>,
    /// Counts changes of the kinds that the API server serves.
    pub(super) generation: u64,
}

impl WatchScope {
    pub(super) fn of(policy: &Policy, generation: u64) -> Self {
        let argocd = &policy.spec.argocd;
        Self { argocd: argocd.namespace.clone(), applications: argocd.application_namespaces.clone(), generation }
    }
}

/// How far a watch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchState {
    /// It has not been tried yet.
    Pending,
    /// Everything was listed once.
    Synced,
    /// The API server serves no such kind: there is nothing to list.
    Absent,
    /// It was tried in vain, for this reason.
    Failed(String),
}

/// How far every watch has come.
pub(super) type WatchStates = Sender<BTreeMap<Watch, WatchState>>;
