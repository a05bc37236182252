//! Access to a cluster as the current user: the connection, who that user is, what that user may do, and which policy is in
//! force.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};

use super::{arguments::PolicyArgs, output};
use crate::cluster::connect;
use cascade_guard_core::{
    admission::UserInfo,
    policy::{GuardPolicy, GuardPolicySpec, Mode, POLICY_NAME, Policy},
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

/// The policy of a file, if one is named, or else of the cluster. Without a policy every rule is in audit. If the policy
/// cannot be read, the approval of Namespaces is taken to be enforced. Either way a note tells the user.
pub async fn policy(client: &Client, args: &PolicyArgs) -> anyhow::Result<Policy> {
    let (policy, unknown) = policy_or_why(client, args).await?;
    if let Some(why) = unknown {
        output::note(&format!("{why}; approvals are taken to be enforced, with maxTTL 24h"));
    }
    Ok(policy)
}

/// Does the same as [`policy`], and says why the policy of the cluster is not known, if it is not. Then the policy returned
/// is a guess.
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

/// Does the same for a command that is about the policy itself: a policy that cannot be read is an error, not guessed.
pub async fn certain_policy(client: &Client, args: &PolicyArgs) -> anyhow::Result<Policy> {
    if args.policy.is_some() {
        return args.load();
    }
    stored(client, args).await?.map_err(|why| anyhow::anyhow!("{why}; name a file with --policy"))
}

/// The policy of the cluster. The inner error says why the policy that is there cannot be used.
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
