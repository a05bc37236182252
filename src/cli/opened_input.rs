//! What a command works on, opened: a snapshot, or the cluster as the current user sees it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::Client;

use super::{
    arguments::InputArgs,
    cluster_access::{self, ClusterArgs, NO_SNAPSHOT},
    cluster_reader::ClusterReader,
    target::Wanted,
};
use crate::judge::Source;
use cascade_guard_core::{
    facts::{Answer, Question, Reading},
    inventory::Inventory,
    object::{ARGO_GROUP, ObjectRef},
    policy::Policy,
    snapshot::Snapshot,
};

/// What a command works on: files, or the cluster as the current user sees it.
pub struct OpenedInput {
    /// The policy that applies there.
    pub policy: Policy,
    /// The objects that are known without asking.
    pub snapshot: Snapshot,
    /// What Applications claim.
    pub inventory: Inventory,
    live: Option<ClusterReader>,
}

impl OpenedInput {
    /// Opens the snapshot, if one is named, or else the cluster.
    pub async fn new(input: &InputArgs, cluster: &ClusterArgs) -> anyhow::Result<Self> {
        if let Some((snapshot, policy, inventory)) = input.open()? {
            return Ok(Self { policy, snapshot, inventory, live: None });
        }
        let client = cluster.connect().await.context(NO_SNAPSHOT)?;
        let policy = cluster_access::policy(&client, &input.policy).await?;
        Self::of_cluster(client, policy).await
    }

    /// Opens the cluster under this policy.
    pub async fn of_cluster(client: Client, policy: Policy) -> anyhow::Result<Self> {
        let live = ClusterReader::new(client).await?;
        let snapshot = live.whole().await?;
        let inventory = snapshot.inventory(&policy, (0, 0));
        Ok(Self { policy, snapshot, inventory, live: Some(live) })
    }

    /// The connection to the cluster, if it is one.
    pub fn client(&self) -> Option<&Client> {
        self.live.as_ref().map(ClusterReader::client)
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
        let Some(group_kind) = live.kinds().meant_by(kind) else { bail!("the API server serves no kind {kind}") };
        let namespaced = live.kinds().known(&group_kind).is_none_or(|served| served.namespaced);
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

impl Source for OpenedInput {
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
