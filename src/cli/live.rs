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
use serde_json::{json, value::RawValue};

use super::{
    output,
    target::Wanted,
    world::{PolicyArgs, WorldArgs},
};
use crate::judge::Source;
use crate::{
    cluster::{Kinds, LiveSource, connect},
    telemetry::Metrics,
};
use cascade_guard_core::{
    admission::UserInfo,
    argo::Application,
    facts::{Answer, Question, Reading},
    inventory::Inventory,
    namespace::content::NotRead,
    object::{ARGO_GROUP, GroupKind, ObjectRef, RBAC_GROUP},
    policy::{GuardPolicy, GuardPolicySpec, Mode, POLICY_NAME, Policy},
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

/// Why a command that can also read files needs a cluster.
pub const NO_SNAPSHOT: &str = "without --snapshot a cluster is asked";

/// So long a command waits for one read.
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

impl ClusterArgs {
    /// Whether a cluster was asked for.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

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
    let (policy, unknown) = policy_or_why(client, args).await?;
    if let Some(why) = unknown {
        output::note(&format!("{why}; approvals are taken to be enforced, with maxTTL 24h"));
    }
    Ok(policy)
}

/// The same, and why the policy of the cluster is not known, if it is not: then the one returned is a guess.
pub async fn policy_or_why(client: &Client, args: &PolicyArgs) -> anyhow::Result<(Policy, Option<String>)> {
    if args.policy.is_some() {
        return Ok((args.load()?, None));
    }
    match stored(client, args).await? {
        Ok(policy) => Ok((policy, None)),
        Err(why) => {
            let mut spec = GuardPolicySpec::default();
            spec.rules.namespace_approval.mode = Mode::Enforce;
            Ok((Policy::new(spec)?.with_ceiling(args.ceiling()), Some(why)))
        }
    }
}

/// The same for a command that speaks of nothing but the policy: one that cannot be read is not made up.
pub async fn certain_policy(client: &Client, args: &PolicyArgs) -> anyhow::Result<Policy> {
    if args.policy.is_some() {
        return args.load();
    }
    stored(client, args).await?.map_err(|why| anyhow::anyhow!("{why}; name a file with --policy"))
}

/// The policy of the cluster; the inner error says why there is one that cannot be used.
async fn stored(client: &Client, args: &PolicyArgs) -> anyhow::Result<Result<Policy, String>> {
    let none = || {
        output::note(&format!("there is no GuardPolicy {POLICY_NAME}, so nothing is refused here; maxTTL is 24h"));
        args.load().map(Ok)
    };
    let why = match Api::<GuardPolicy>::all(client.clone()).get_opt(POLICY_NAME).await {
        Ok(Some(policy)) => match Policy::new(policy.spec) {
            Ok(policy) => return Ok(Ok(policy.with_ceiling(args.ceiling()))),
            Err(error) => format!("is not valid ({error})"),
        },
        Ok(None) => return none(),
        // Without a definition there is no such path.
        Err(kube::Error::Api(status)) if status.code == 404 => return none(),
        Err(error) => format!("cannot be read ({:#})", in_words(error)),
    };
    Ok(Err(format!("GuardPolicy {POLICY_NAME} {why}")))
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

    /// Everything that Applications, their neighbours and the settings of Argo CD say. What the user may not list is named
    /// and left out, Namespaces and Applications excepted: without them nothing can be said.
    async fn whole(&self, argocd: &str) -> anyhow::Result<Snapshot> {
        let namespaces =
            self.everything(&GroupKind::new("", "Namespace")).await.context("Namespaces cannot be listed")?;
        let World { mut snapshot, not_read } = self.around(namespaces).await?;
        if let Some(NotRead { what, why }) = not_read {
            bail!("{what} cannot be listed: {why}");
        }
        self.add_neighbours(&mut snapshot, argocd).await?;
        Ok(snapshot)
    }

    /// Adds what stands around Applications and decides how they are read. What the user may not list is named and left out.
    pub async fn add_neighbours(&self, snapshot: &mut Snapshot, argocd: &str) -> anyhow::Result<()> {
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
        let settings = ObjectRef::new("", "ConfigMap", argocd, "argocd-cm");
        match self.object(&settings).await {
            Reading::Found(raw) => further.push(serde_json::from_str(raw.get())?),
            Reading::NotFound => {}
            Reading::Unreadable(why) | Reading::Forbidden(why) => {
                output::note(&format!("how Argo CD marks its objects is not known: {why}"));
            }
        }
        for object in further {
            snapshot.put("the cluster", object.to_string())?;
        }
        snapshot.set_cluster_scoped(self.kinds.cluster_scoped());
        Ok(())
    }

    /// One object, whole.
    async fn object(&self, object: &ObjectRef) -> Reading<Arc<RawValue>> {
        let question = Question::Object(object.clone());
        match self.source.answer(&[question], PATIENCE).await.pop() {
            Some((_, Answer::Object(reading))) => reading,
            _ => Reading::Unreadable("it was not read in time".to_owned()),
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

    /// The cluster as `lint` needs it: Applications and Namespaces, and that the objects a hook can need exist. Of those no
    /// more than metadata is asked for, because some are Secrets. What the user may not list is named and left out.
    pub async fn existing(&self, argocd: &str) -> anyhow::Result<Snapshot> {
        let mut snapshot = self.whole(argocd).await?;
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

/// What a command looks at: files, or the cluster as the current user sees it.
pub struct Opened {
    /// The policy that applies there.
    pub policy: Policy,
    /// What is known without asking.
    pub snapshot: Snapshot,
    /// What Applications claim.
    pub inventory: Inventory,
    live: Option<Live>,
}

impl Opened {
    /// Opens the snapshot, if one is named, or else the cluster.
    pub async fn new(world: &WorldArgs, cluster: &ClusterArgs) -> anyhow::Result<Self> {
        if let Some((snapshot, policy, inventory)) = world.open()? {
            return Ok(Self { policy, snapshot, inventory, live: None });
        }
        let client = cluster.connect().await.context(NO_SNAPSHOT)?;
        let policy = policy(&client, &world.policy).await?;
        Self::live(client, policy).await
    }

    /// Opens the cluster.
    pub async fn live(client: Client, policy: Policy) -> anyhow::Result<Self> {
        let live = Live::new(client).await?;
        let snapshot = live.whole(&policy.spec.argocd.namespace).await?;
        let inventory = snapshot.inventory(&policy, (0, 0));
        Ok(Self { policy, snapshot, inventory, live: Some(live) })
    }

    /// The connection to the cluster, if it is one.
    pub fn client(&self) -> Option<&Client> {
        self.live.as_ref().map(|live| &live.client)
    }

    /// The object that a person means, and its JSON.
    pub async fn find(&self, wanted: Wanted<'_>) -> anyhow::Result<(ObjectRef, String)> {
        let Wanted { kind, namespace, name } = wanted;
        let argocd = self.policy.spec.argocd.namespace.as_str();
        let place = if self.live.is_some() { "" } else { " in the snapshot" };
        let missing = || wanted.missing(&self.snapshot, place);
        if let Some(object) = wanted.find(&self.snapshot, argocd) {
            let json = self.snapshot.json_of(&object).with_context(missing)?;
            return Ok((object, json));
        }
        let Some(live) = &self.live else { bail!("{}", missing()) };
        let Some(group_kind) = live.kinds.meant_by(kind) else { bail!("the API server serves no kind {kind}") };
        let namespaced = live.kinds.known(&group_kind).is_none_or(|served| served.namespaced);
        let namespace = match (namespaced, namespace) {
            (false, _) => "",
            (true, "") if group_kind.group == ARGO_GROUP => argocd,
            (true, "") => bail!("{kind} {name} needs its namespace: write NAMESPACE/{name}, or pass -n"),
            (true, named) => named,
        };
        let object = ObjectRef { kind: group_kind, namespace: namespace.to_owned(), name: name.to_owned() };
        match live.object(&object).await {
            Reading::Found(raw) => Ok((object, raw.get().to_owned())),
            Reading::NotFound => bail!("{}", missing()),
            // Most reasons name the object themselves.
            Reading::Unreadable(why) | Reading::Forbidden(why) if why.contains(&object.to_string()) => bail!("{why}"),
            Reading::Unreadable(why) | Reading::Forbidden(why) => bail!("{object} cannot be read: {why}"),
        }
    }
}

impl Source for Opened {
    async fn answer(&self, questions: &[Question], time_left: Duration) -> Vec<(Question, Answer)> {
        match &self.live {
            Some(live) => live.answer(questions, time_left).await,
            None => self.snapshot.answer(questions, time_left).await,
        }
    }

    fn is_at_hand(&self) -> bool {
        self.live.is_none()
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
