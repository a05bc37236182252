//! The live cluster as the current user sees it: who that is, what the policy says, and what may be read.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;

use super::{output, world::PolicyArgs};
use crate::{
    admission::UserInfo,
    argo::Application,
    cluster::{Kinds, LiveSource, connect},
    facts::{Answer, Question},
    judge::Source,
    object::{ARGO_GROUP, GroupKind},
    policy::{GuardPolicy, GuardPolicySpec, Mode, POLICY_NAME, Policy},
    rules::namespace_content::NotRead,
    snapshot::Snapshot,
    telemetry::Metrics,
};

/// Which cluster a command works with.
#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig to use instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A list is fetched in pages of this size.
const PAGE: u32 = 500;

impl ClusterArgs {
    /// Connects as the current user. Nothing is sent yet.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        connect(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

/// Who the API server takes the current user for.
pub async fn current_user(client: &Client) -> anyhow::Result<UserInfo> {
    let review = SelfSubjectReview::default();
    let answer = Api::<SelfSubjectReview>::all(client.clone()).create(&PostParams::default(), &review).await;
    let info = answer
        .map_err(in_words)
        .context("the API server does not say who you are (SelfSubjectReview)")?
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    match info.username.filter(|name| !name.is_empty()) {
        None => bail!("the API server does not know you by a name"),
        Some(username) => Ok(UserInfo {
            username,
            uid: info.uid.unwrap_or_default(),
            groups: info.groups.unwrap_or_default(),
            extra: info.extra.unwrap_or_default(),
        }),
    }
}

/// Whether the current user holds `verb` on a resource of this name.
pub async fn may(client: &Client, verb: &str, group: &str, resource: &str, name: &str) -> anyhow::Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                name: Some(name.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::<SelfSubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await;
    Ok(answer.map_err(in_words)?.status.is_some_and(|status| status.allowed))
}

/// The policy of a file, if one is named, or else of the cluster. Where there is none every rule is in audit; where it cannot
/// be read the approval of Namespaces is taken to be enforced. Both are said.
pub async fn policy(client: &Client, args: &PolicyArgs) -> anyhow::Result<Policy> {
    if args.policy.is_some() {
        return args.load();
    }
    let none = || {
        output::note(&format!("there is no GuardPolicy {POLICY_NAME}, so nothing is refused here; maxTTL is 24h"));
        args.load()
    };
    let why = match Api::<GuardPolicy>::all(client.clone()).get_opt(POLICY_NAME).await {
        Ok(Some(policy)) => match Policy::new(policy.spec) {
            Ok(policy) => return Ok(policy.with_ceiling(args.ceiling())),
            Err(error) => format!("is not valid ({error})"),
        },
        Ok(None) => return none(),
        // Without a definition there is no such path.
        Err(kube::Error::Api(status)) if status.code == 404 => return none(),
        Err(error) => format!("cannot be read ({:#})", in_words(error)),
    };
    output::note(&format!("GuardPolicy {POLICY_NAME} {why}; approvals are taken to be enforced, with maxTTL 24h"));
    let mut spec = GuardPolicySpec::default();
    spec.rules.namespace_approval.mode = Mode::Enforce;
    Ok(Policy::new(spec)?.with_ceiling(args.ceiling()))
}

/// An error of the API server, in its own words.
pub fn in_words(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => anyhow::anyhow!("{}", status.message),
        other => other.into(),
    }
}

/// Namespaces and Applications, as far as the current user may list them.
pub struct World {
    /// What there is.
    pub snapshot: Snapshot,
    /// Applications, if they could not be listed.
    pub not_read: Option<NotRead>,
}

/// Reads the cluster as the current user may.
pub struct Live {
    client: Client,
    kinds: Arc<Kinds>,
    source: LiveSource,
}

impl Live {
    /// Finds out what the API server serves.
    pub async fn new(client: Client) -> anyhow::Result<Self> {
        let kinds = Arc::new(Kinds::default());
        let served = kinds.refresh(&client).await.map_err(in_words);
        served.context("the API server does not say which kinds it serves")?;
        // Nobody scrapes a command; what it counts is thrown away.
        let source = LiveSource::new(client.clone(), kinds.clone(), Arc::new(Metrics::new()));
        Ok(Self { client, kinds, source })
    }

    /// All Namespaces and Applications.
    pub async fn world(&self) -> anyhow::Result<World> {
        let namespaces = self.everything(&GroupKind::new("", "Namespace")).await;
        self.around(namespaces.context("Namespaces cannot be listed")?).await
    }

    /// One Namespace and all Applications: who may approve one Namespace may not list the others.
    pub async fn world_of(&self, namespace: &str) -> anyhow::Result<World> {
        let (api, resource) = self.api(&GroupKind::new("", "Namespace"))?;
        match api.get_opt(namespace).await {
            Ok(Some(found)) => self.around(vec![written(found, &resource)?]).await,
            Ok(None) => bail!("there is no Namespace {namespace}"),
            Err(error) => Err(in_words(error)).with_context(|| format!("Namespace {namespace} cannot be read")),
        }
    }

    /// Adds the Applications. Those that cannot be read are named and left out.
    async fn around(&self, mut items: Vec<serde_json::Value>) -> anyhow::Result<World> {
        let mut not_read = None;
        match self.everything(&GroupKind::new(ARGO_GROUP, "Application")).await {
            Ok(applications) => items.extend(applications.into_iter().filter(|application| {
                let problem = serde_json::from_str::<Application<'_>>(&application.to_string()).err();
                if let Some(problem) = &problem {
                    output::note(&format!("Application {} is left out: {problem}", application["metadata"]["name"]));
                }
                problem.is_none()
            })),
            Err(error) => {
                not_read = Some(NotRead { what: "Applications".to_owned(), why: format!("{error:#}") });
            }
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        Ok(World { snapshot: Snapshot::parse("the cluster", list.to_string())?, not_read })
    }

    fn api(&self, kind: &GroupKind) -> anyhow::Result<(Api<DynamicObject>, ApiResource)> {
        let Some(served) = self.kinds.known(kind) else { bail!("the API server serves no kind {kind}") };
        let kind = GroupVersionKind::gvk(&kind.group, &served.version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &served.plural);
        Ok((Api::all_with(self.client.clone(), &resource), resource))
    }

    /// Every object of a kind, page by page.
    async fn everything(&self, kind: &GroupKind) -> anyhow::Result<Vec<serde_json::Value>> {
        let (api, resource) = self.api(kind)?;
        let mut params = ListParams::default().limit(PAGE);
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

/// An object as JSON, with its kind: the items of a list carry none.
fn written(mut object: DynamicObject, resource: &ApiResource) -> anyhow::Result<serde_json::Value> {
    object.metadata.managed_fields = None;
    let mut value = serde_json::to_value(object)?;
    value["apiVersion"] = json!(resource.api_version);
    value["kind"] = json!(resource.kind);
    Ok(value)
}

impl Source for Live {
    async fn answer(&self, questions: &[Question], time_left: Duration) -> Vec<(Question, Answer)> {
        self.source.answer(questions, time_left).await
    }
}
