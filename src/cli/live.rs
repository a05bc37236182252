//! The live cluster as the current user sees it: who that is, what the policy says, and what may be read.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
};
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::ApiResource,
    discovery::{Discovery, Scope},
};
use serde_json::{json, value::to_raw_value};
use tokio::time::{Instant, timeout_at};

use super::{output, world::PolicyArgs};
use crate::{
    admission::UserInfo,
    argo::Application,
    facts::{Answer, ListQuestion, Question, Reading},
    judge::Source,
    object::{GroupKind, ObjectMeta, ObjectRef},
    policy::{GuardPolicy, GuardPolicySpec, Mode, POLICY_NAME, Policy},
    rules::namespace_content::NotRead,
    snapshot::Snapshot,
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
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).with_context(|| format!("cannot use {}", path.display()))?;
                Config::from_custom_kubeconfig(read, &options)
                    .await
                    .with_context(|| format!("cannot use {}", path.display()))?
            }
            None if self.context.is_some() => {
                Config::from_kubeconfig(&options).await.context("the kubeconfig cannot be used")?
            }
            None => Config::infer().await.context("there is no cluster to work with; name one with --kubeconfig")?,
        };
        Client::try_from(config).context("no client can be made from the kubeconfig")
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
            Ok(policy) => return Ok(args.cap(policy)),
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
    Ok(args.cap(Policy::new(spec)?))
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
    discovery: Discovery,
}

impl Live {
    /// Finds out what the API server serves.
    pub async fn new(client: Client) -> anyhow::Result<Self> {
        let discovery = Discovery::new(client.clone()).run_aggregated().await;
        let discovery = discovery.map_err(in_words).context("the API server does not say which kinds it serves")?;
        Ok(Self { client, discovery })
    }

    /// All Namespaces and Applications.
    pub async fn world(&self) -> anyhow::Result<World> {
        let namespaces = self.everything(&GroupKind::new("", "Namespace")).await;
        self.around(namespaces.context("Namespaces cannot be listed")?).await
    }

    /// One Namespace and all Applications: who may approve one Namespace may not list the others.
    pub async fn world_of(&self, namespace: &str) -> anyhow::Result<World> {
        match self.get(&ObjectRef::namespace(namespace)).await {
            Reading::Found(found) => self.around(vec![found]).await,
            Reading::NotFound => bail!("there is no Namespace {namespace}"),
            Reading::Unreadable(why) | Reading::Forbidden(why) => bail!("Namespace {namespace} cannot be read: {why}"),
        }
    }

    /// Adds the Applications. Those that cannot be read are named and left out.
    async fn around(&self, mut items: Vec<serde_json::Value>) -> anyhow::Result<World> {
        let mut not_read = None;
        match self.everything(&GroupKind::new(crate::object::ARGO_GROUP, "Application")).await {
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

    fn served(&self, kind: &GroupKind) -> Result<(ApiResource, bool), String> {
        self.discovery
            .get(&kind.group)
            .and_then(|group| group.recommended_kind(&kind.kind))
            .map(|(resource, capabilities)| (resource, capabilities.scope == Scope::Namespaced))
            .ok_or_else(|| format!("the API server serves no kind {kind}"))
    }

    fn api(&self, kind: &GroupKind, namespace: &str) -> Result<(Api<DynamicObject>, ApiResource), String> {
        let (resource, namespaced) = self.served(kind)?;
        let api = if namespaced && !namespace.is_empty() {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        Ok((api, resource))
    }

    /// Every object of a kind, page by page.
    async fn everything(&self, kind: &GroupKind) -> anyhow::Result<Vec<serde_json::Value>> {
        let (api, resource) = self.api(kind, "").map_err(anyhow::Error::msg)?;
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

    async fn reply(&self, question: &Question) -> Answer {
        match question {
            Question::Metadata(object) => Answer::Metadata(match self.get(object).await {
                Reading::Found(value) => match serde_json::from_value::<ObjectMeta>(value["metadata"].clone()) {
                    Ok(meta) => Reading::Found(meta.into()),
                    Err(error) => Reading::Unreadable(error.to_string()),
                },
                Reading::NotFound => Reading::NotFound,
                Reading::Unreadable(why) => Reading::Unreadable(why),
                Reading::Forbidden(why) => Reading::Forbidden(why),
            }),
            Question::Object(object) => Answer::Object(match self.get(object).await {
                Reading::Found(value) => match to_raw_value(&value) {
                    Ok(raw) => Reading::Found(raw.into()),
                    Err(error) => Reading::Unreadable(error.to_string()),
                },
                Reading::NotFound => Reading::NotFound,
                Reading::Unreadable(why) => Reading::Unreadable(why),
                Reading::Forbidden(why) => Reading::Forbidden(why),
            }),
            Question::List(list) => Answer::List(self.list(list).await),
            Question::Access(access) => Answer::Access(Reading::Unreadable(format!(
                "whether {} may {} is for the guard to ask, not for the command line",
                access.user.username, access.verb
            ))),
        }
    }

    async fn get(&self, object: &ObjectRef) -> Reading<serde_json::Value> {
        let (api, resource) = match self.api(&object.kind, &object.namespace) {
            Ok(found) => found,
            Err(why) => return Reading::Forbidden(why),
        };
        match api.get_opt(&object.name).await {
            Ok(Some(found)) => match written(found, &resource) {
                Ok(value) => Reading::Found(value),
                Err(error) => Reading::Unreadable(error.to_string()),
            },
            Ok(None) => Reading::NotFound,
            Err(error) => unread(error),
        }
    }

    async fn list(&self, question: &ListQuestion) -> Reading<std::sync::Arc<[Box<serde_json::value::RawValue>]>> {
        let (api, resource) = match self.api(&question.kind, &question.namespace) {
            Ok(found) => found,
            Err(why) => return Reading::Forbidden(why),
        };
        let mut params = ListParams::default().limit(question.limit);
        if !question.field_selector.is_empty() {
            params = params.fields(&question.field_selector);
        }
        let items = match api.list(&params).await {
            Ok(list) => list.items,
            Err(error) => return unread(error),
        };
        let raw: Result<Vec<_>, anyhow::Error> =
            items.into_iter().map(|item| Ok(to_raw_value(&written(item, &resource)?)?)).collect();
        match raw {
            Ok(raw) => Reading::Found(raw.into()),
            Err(error) => Reading::Unreadable(error.to_string()),
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

fn unread<T>(error: kube::Error) -> Reading<T> {
    match error {
        kube::Error::Api(status) if status.code == 403 => Reading::Forbidden("you may not read them".to_owned()),
        other => Reading::Unreadable(format!("{:#}", in_words(other))),
    }
}

impl Source for Live {
    async fn answer(&self, questions: &[Question], time_left: Duration) -> Vec<(Question, Answer)> {
        let deadline = Instant::now() + time_left;
        let replies = questions.iter().map(|question| async move {
            let answer = timeout_at(deadline, self.reply(question)).await;
            Some((question.clone(), answer.ok()?))
        });
        futures::future::join_all(replies).await.into_iter().flatten().collect()
    }
}
