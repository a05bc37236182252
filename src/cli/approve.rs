//! `approve`: writes an approval on a Namespace, as the current user and in that user's name.

use std::{io::IsTerminal, process::ExitCode};

use anyhow::{Context as _, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    approvals::{Clock, status},
    arguments::{PolicyArgs, duration},
    cluster_access::{self, ClusterArgs},
    cluster_reader::ClusterReader,
    output, thorough,
};
use cascade_guard_core::{
    namespace::approval::{
        APPROVAL_KEYS, APPROVE_GROUP, APPROVE_RESOURCE, APPROVE_VERB, APPROVED_BY, APPROVED_UID, APPROVED_UNTIL,
        Approval, REASON, how_to_check_the_right,
    },
    object::ObjectMeta,
    policy::{POLICY_NAME, Policy},
    remedy::Command,
};

/// Under this name the API server keeps what `approve` and `revoke` write.
const FIELD_MANAGER: &str = "cascade-guard-approvals";
/// So long an approval lasts where nobody says otherwise and the policy allows it.
const USUAL: SignedDuration = SignedDuration::from_hours(2);

/// Arguments of `approve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the Namespace
    namespace: String,
    /// How long the approval lasts, such as 2h or 90m; 2h, or what the policy allows if that is less
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    lasts: Option<SignedDuration>,
    /// Why it may go, such as a change number
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do not ask for the name of the Namespace
    #[arg(short, long)]
    yes: bool,
    /// Print the patch and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Exit 0 approved, 1 refused.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = args.cluster.connect().await?;
        let policy = cluster_access::policy(&client, &args.policy).await?;
        let clock = Clock::system(Timestamp::now());
        approve(args, &client, &policy, &clock).await
    })
}

async fn approve(args: &Args, client: &Client, policy: &Policy, clock: &Clock) -> anyhow::Result<ExitCode> {
    let meta = namespace(client, &args.namespace).await?;
    ensure!(!meta.is_terminating(), "Namespace {} is already being deleted; an approval changes nothing", meta.name);
    let user = cluster_access::current_user(client).await?;
    let lasts = args.lasts.unwrap_or_else(|| USUAL.min(policy.max_ttl));
    let approval = Approved::new(&meta, &user.username, lasts, &args.reason, policy, clock.now)?;
    let patch = approval.patch(&meta);
    if args.dry_run {
        output::line(&serde_json::to_string_pretty(&patch)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !cluster_access::may(client, APPROVE_VERB, APPROVE_GROUP, APPROVE_RESOURCE, &meta.name).await? {
        output::refusal(&lacks_right(&user.username, &meta.name));
        return Ok(ExitCode::from(1));
    }
    if !args.yes && !confirmed(&meta, client, policy).await? {
        output::refusal(&format!("that is not the name of the Namespace; {} was not approved", meta.name));
        return Ok(ExitCode::from(1));
    }
    if let Err(refusal) = write(client, &meta.name, &patch).await? {
        output::refusal(&refusal);
        return Ok(ExitCode::from(1));
    }
    output::line(&format!(
        "Namespace {} may be deleted until {}, approved by {}.",
        meta.name,
        clock.local_and_left(approval.until),
        approval.by
    ))?;
    let who = if policy.spec.rules.namespace_approval.four_eyes { "Somebody else deletes it" } else { "Delete it" };
    output::line(&format!("{who} before then: {}", Command::new("kubectl delete namespace").word(&meta.name)))?;
    Ok(ExitCode::SUCCESS)
}

/// An approval that this user may write by the policy, as far as can be told here.
struct Approved {
    by: String,
    until: Timestamp,
    reason: String,
}

impl Approved {
    fn new(
        meta: &ObjectMeta,
        user: &str,
        lasts: SignedDuration,
        reason: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        ensure!(
            lasts <= policy.max_ttl,
            "--for {lasts:#} is longer than the policy allows, {:#} (rules.namespaceApproval.maxTTL)",
            policy.max_ttl
        );
        ensure!(
            !policy.spec.rules.namespace_approval.require_reason || !reason.trim().is_empty(),
            "the policy wants a reason (rules.namespaceApproval.requireReason); pass --reason"
        );
        // Whole seconds, rounded down: nobody types fractions, and an end just beyond what is allowed would be refused.
        let end = now.checked_add(lasts).and_then(|end| Timestamp::from_second(end.as_second()));
        let until = end.context("--for leads beyond the end of time")?;
        let approval = Self { by: user.to_owned(), until, reason: reason.trim().to_owned() };
        let mut written = meta.clone();
        for (key, value) in APPROVAL_KEYS.into_iter().zip(approval.values(meta)) {
            match value {
                Some(value) => written.annotations.insert(key.to_owned(), value),
                None => written.annotations.remove(key),
            };
        }
        let problems = Approval::read(&written).problems(meta, now, policy);
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if !problems.is_empty() {
            bail!("Namespace {} cannot be approved like this: {}", meta.name, problems.join("; "));
        }
        Ok(approval)
    }

    /// What the four annotations are to be, in their order.
    fn values(&self, meta: &ObjectMeta) -> [Option<String>; 4] {
        let reason = Some(self.reason.clone()).filter(|reason| !reason.is_empty());
        [Some(self.by.clone()), Some(self.until.to_string()), Some(meta.uid.clone()), reason]
    }

    /// A merge patch of the annotations alone. The UID makes it fail on a Namespace that was made anew meanwhile; a reason
    /// that somebody gave earlier does not stand for this approval.
    fn patch(&self, meta: &ObjectMeta) -> Value {
        let [by, until, uid, reason] = self.values(meta);
        json!({"metadata": {"uid": meta.uid, "annotations": {
            APPROVED_BY: by, APPROVED_UNTIL: until, APPROVED_UID: uid, REASON: reason}}})
    }
}

/// Takes all four annotations away, whoever wrote them.
pub(super) fn withdrawal(meta: &ObjectMeta) -> Value {
    json!({"metadata": {"uid": meta.uid, "annotations": {
        APPROVED_BY: null, APPROVED_UNTIL: null, APPROVED_UID: null, REASON: null}}})
}

/// Metadata of a Namespace.
pub(super) async fn namespace(client: &Client, name: &str) -> anyhow::Result<ObjectMeta> {
    let found = Api::<Namespace>::all(client.clone()).get_metadata_opt(name).await;
    let found = found.map_err(cluster_access::in_words)?.with_context(|| format!("there is no Namespace {name}"))?;
    Ok(serde_json::from_value(serde_json::to_value(found.metadata)?)?)
}

/// Sends a patch. The inner error is the API server's refusal, in its own words.
pub(super) async fn write(client: &Client, namespace: &str, patch: &Value) -> anyhow::Result<Result<(), String>> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let api = Api::<Namespace>::all(client.clone());
    match api.patch_metadata(namespace, &params, &Patch::Merge(patch)).await {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => Ok(Err(status.message.clone())),
        Err(error) => Err(cluster_access::in_words(error)).context("the approval could not be written"),
    }
}

/// Shows what would go and asks for the name.
async fn confirmed(meta: &ObjectMeta, client: &Client, policy: &Policy) -> anyhow::Result<bool> {
    ensure!(std::io::stdin().is_terminal(), "nobody is there to confirm the name of the Namespace; pass --yes");
    let reader = ClusterReader::new(client.clone()).await?;
    let listed = reader.namespace_and_applications(&meta.name).await?;
    let inventory = listed.snapshot.inventory(policy, (0, 0));
    let mut content = thorough::namespace_content(meta, &inventory, &reader).await?;
    content.not_read.extend(listed.not_read);
    output::aside(&format!("Namespace {} (UID {})\n{}", meta.name, meta.uid, status::checklist(&content, false)));
    let answer = output::ask(&format!("Type the name of the Namespace to approve its deletion ({}): ", meta.name))?;
    Ok(answer == meta.name)
}

fn lacks_right(user: &str, namespace: &str) -> String {
    format!(
        "{user} may not approve: it takes the verb {APPROVE_VERB} on {APPROVE_RESOURCE}.{APPROVE_GROUP} with the name \
         {namespace}.\n\
         Let somebody approve to whom this says true:\n    {}\n\
         Or let a cluster administrator grant you the right, for this Namespace alone:\n{}\n\
         or for every Namespace:\n    {}",
        how_to_check_the_right(namespace),
        how_to_grant(user, namespace),
        Command::new("kubectl create clusterrolebinding namespace-approver")
            .word("--clusterrole=cascade-guard-namespace-approver")
            .word(format!("--user={user}")),
    )
}

/// The right to approve one Namespace, as it is applied. `kubectl create clusterrole` refuses a resource that the API server
/// does not serve.
fn how_to_grant(user: &str, namespace: &str) -> String {
    let role = format!("approve-{namespace}");
    let group = "rbac.authorization.k8s.io";
    let api = format!("{group}/v1");
    let grant = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": role}, "rules": [
            {"apiGroups": [APPROVE_GROUP], "resources": [APPROVE_RESOURCE], "resourceNames": [namespace], "verbs": [APPROVE_VERB]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [namespace], "verbs": ["get", "patch"]},
            {"apiGroups": [APPROVE_GROUP], "resources": ["guardpolicies"], "resourceNames": [POLICY_NAME], "verbs": ["get"]},
        ]},
        {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}]},
    ]});
    let apply = Command::new("printf %s").word(grant.to_string()).pipe(&Command::new("kubectl apply -f -"));
    format!("    {apply}")
}

#[cfg(test)]
mod tests;
