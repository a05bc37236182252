//! Reads a cluster as the current user may: lists become a snapshot, and questions are answered by live reads.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{json, value::RawValue};

use super::{arguments::name_unreadable, cluster_access::in_words, output};
use crate::{
    cluster::{Kinds, LiveSource},
    judge::Source,
    telemetry::Metrics,
};
use cascade_guard_core::{
    argo::{
        config::{PARAMETERS_NAME, SETTINGS_NAME},
        controller::COMPONENT,
    },
    facts::{Answer, Question, Reading},
    namespace::content::NotRead,
    object::{ARGO_GROUP, GroupKind, ObjectRef, RBAC_GROUP},
    snapshot::Snapshot,
};

/// At most this long a command waits for one read.
const PATIENCE: Duration = Duration::from_secs(30);

/// A list is fetched in pages of this size.
const PAGE: u32 = 500;

/// What Pods of hooks and bindings commonly need.
const NEEDED: [(&str, &str); 10] = [
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "PersistentVolumeClaim"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    (RBAC_GROUP, "Role"),
    (RBAC_GROUP, "ClusterRole"),
    (RBAC_GROUP, "RoleBinding"),
    (RBAC_GROUP, "ClusterRoleBinding"),
];

/// Namespaces and Applications, as far as the current user may list them.
pub struct ListedCluster {
    /// The objects that were listed.
    pub snapshot: Snapshot,
    /// Why Applications are missing, if they could not be listed.
    pub not_read: Option<NotRead>,
}

/// Reads the cluster as the current user may.
pub struct ClusterReader {
    client: Client,
    kinds: Arc<Kinds>,
    source: LiveSource,
}

impl ClusterReader {
    /// Finds out what the API server serves.
    pub async fn new(client: Client) -> anyhow::Result<Self> {
        let kinds = Arc::new(Kinds::default());
        let served = kinds.refresh(&client).await.map_err(in_words);
        served.context("the API server does not say which kinds it serves")?;
        // Nobody scrapes a command; what it counts is thrown away.
        let source = LiveSource::new(client.clone(), kinds.clone(), Arc::new(Metrics::new()));
        Ok(Self { client, kinds, source })
    }

    /// Lists all Namespaces and Applications.
    pub async fn namespaces_and_applications(&self) -> anyhow::Result<ListedCluster> {
        let namespaces = self.everything(&GroupKind::new("", "Namespace")).await;
        self.with_applications(namespaces.context("Namespaces cannot be listed")?).await
    }

    /// Reads one Namespace and lists all Applications. Whoever may approve one Namespace may not list the others.
    pub async fn namespace_and_applications(&self, namespace: &str) -> anyhow::Result<ListedCluster> {
        let (api, resource) = self.api(&GroupKind::new("", "Namespace"))?;
        match api.get_opt(namespace).await {
            Ok(Some(found)) => self.with_applications(vec![written(found, &resource)?]).await,
            Ok(None) => bail!("there is no Namespace {namespace}"),
            Err(error) => Err(in_words(error)).with_context(|| format!("Namespace {namespace} cannot be read")),
        }
    }

    /// Lists Namespaces, Applications, and what else decides how they are read. A note names what the user may not list, and
    /// it is left out; but without Namespaces and Applications the whole fails.
    pub(super) async fn whole(&self) -> anyhow::Result<Snapshot> {
        let namespaces =
            self.everything(&GroupKind::new("", "Namespace")).await.context("Namespaces cannot be listed")?;
        let ListedCluster { mut snapshot, not_read } = self.with_applications(namespaces).await?;
        if let Some(NotRead { what, why }) = not_read {
            bail!("{what} cannot be listed: {why}");
        }
        self.add_neighbours(&mut snapshot).await?;
        Ok(snapshot)
    }

    /// Adds ApplicationSets, AppProjects, cluster Secrets and what tells of the Argo CDs of the cluster. A note names what the user may not
    /// list, and it is left out.
    pub async fn add_neighbours(&self, snapshot: &mut Snapshot) -> anyhow::Result<()> {
        let mut further = Vec::new();
        for kind in ["ApplicationSet", "AppProject"] {
            match self.everything(&GroupKind::new(ARGO_GROUP, kind)).await {
                Ok(found) => further.extend(found),
                Err(error) => output::note(&format!("{kind}s cannot be listed ({error:#}); none are known")),
            }
        }
        let (secrets, resource) = self.api(&GroupKind::new("", "Secret"))?;
        let clusters = ListParams::default().labels("argocd.argoproj.io/secret-type=cluster");
        match secrets.list(&clusters).await {
            Ok(found) => {
                for secret in found.items {
                    further.push(written(secret, &resource)?);
                }
            }
            Err(error) => output::note(&format!("names of clusters are not known: {:#}", in_words(error))),
        }
        for (what, kind, params) in [
            ("how Argo CD marks its objects", ("", "ConfigMap"), named(SETTINGS_NAME)),
            ("which namespaces Argo CD serves", ("", "ConfigMap"), named(PARAMETERS_NAME)),
            ("who the controllers of Argo CD are", ("apps", "StatefulSet"), controllers()),
            ("who the controllers of Argo CD are", ("apps", "Deployment"), controllers()),
        ] {
            match self.selected(&GroupKind::new(kind.0, kind.1), params).await {
                Ok(found) => further.extend(found),
                Err(error) => output::note(&format!("{what} is not known: {error:#}")),
            }
        }
        for object in further {
            snapshot.put("the cluster", object.to_string())?;
        }
        snapshot.set_cluster_scoped(self.kinds.cluster_scoped());
        Ok(())
    }

    /// Reads one object whole.
    pub(super) async fn object(&self, object: &ObjectRef) -> Reading<Arc<RawValue>> {
        let question = Question::Object(object.clone());
        match self.source.answer(&[question], PATIENCE).await.pop() {
            Some((_, Answer::Object(reading))) => reading,
            _ => Reading::Unreadable("it was not read in time".to_owned()),
        }
    }

    /// Lists Applications and adds them to `items`. A note names those that cannot be decoded.
    async fn with_applications(&self, mut items: Vec<serde_json::Value>) -> anyhow::Result<ListedCluster> {
        let mut not_read = None;
        match self.everything(&GroupKind::new(ARGO_GROUP, "Application")).await {
            Ok(applications) => items.extend(applications),
            Err(error) => {
                not_read = Some(NotRead { what: "Applications".to_owned(), why: format!("{error:#}") });
            }
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let snapshot = Snapshot::parse("the cluster", list.to_string())?;
        name_unreadable(&snapshot, snapshot.objects().map(|(object, _)| object.clone()));
        Ok(ListedCluster { snapshot, not_read })
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The kinds that the API server serves.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    fn api(&self, kind: &GroupKind) -> anyhow::Result<(Api<DynamicObject>, ApiResource)> {
        let Some(served) = self.kinds.known(kind) else { bail!("the API server serves no kind {kind}") };
        let kind = GroupVersionKind::gvk(&kind.group, &served.version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &served.plural);
        Ok((Api::all_with(self.client.clone(), &resource), resource))
    }

    /// The cluster as `lint` needs it: Applications and Namespaces, and that the objects a hook can need exist. Of those no
    /// more than metadata is asked for, because some are Secrets. What the user may not list is named and left out.
    pub async fn existing(&self) -> anyhow::Result<Snapshot> {
        let mut snapshot = self.whole().await?;
        for (group, kind) in NEEDED {
            let kind = GroupKind::new(group, kind);
            let (api, resource) = self.api(&kind)?;
            let mut params = ListParams::default().limit(PAGE);
            loop {
                let page = match api.list_metadata(&params).await {
                    Ok(page) => page,
                    Err(error) => {
                        output::note(&format!("{kind}: what exists is not known: {:#}", in_words(error)));
                        break;
                    }
                };
                for object in page.items {
                    let mut metadata = object.metadata;
                    metadata.managed_fields = None;
                    let object =
                        json!({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata});
                    snapshot.put("the cluster", object.to_string())?;
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(snapshot)
    }

    /// Lists every object of a kind, page by page.
    async fn everything(&self, kind: &GroupKind) -> anyhow::Result<Vec<serde_json::Value>> {
        self.selected(kind, ListParams::default()).await
    }

    /// Lists some objects of a kind, page by page.
    async fn selected(&self, kind: &GroupKind, params: ListParams) -> anyhow::Result<Vec<serde_json::Value>> {
        let (api, resource) = self.api(kind)?;
        let mut params = params.limit(PAGE);
        let mut found = Vec::new();
        loop {
            let page = api.list(&params).await.map_err(in_words)?;
            for object in page.items {
                found.push(written(object, &resource)?);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }
}

fn named(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

fn controllers() -> ListParams {
    ListParams::default().labels(&format!("{}={}", COMPONENT.0, COMPONENT.1))
}

/// An object as JSON, with its kind: the items of a list carry none.
fn written(mut object: DynamicObject, resource: &ApiResource) -> anyhow::Result<serde_json::Value> {
    object.metadata.managed_fields = None;
    let mut value = serde_json::to_value(object)?;
    value["apiVersion"] = json!(resource.api_version);
    value["kind"] = json!(resource.kind);
    Ok(value)
}

impl Source for ClusterReader {
    async fn answer(&self, questions: &[Question], time_left: Duration) -> Vec<(Question, Answer)> {
        self.source.answer(questions, time_left).await
    }
}
