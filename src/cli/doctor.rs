//! `doctor`: proves that the protection is live. The configuration can look right while nothing is refused, so the final
//! check is a dry-run delete of a Namespace that nobody approved: the server has to refuse it.

use std::process::ExitCode;

use k8s_openapi::api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject},
    discovery::ApiResource,
};
use serde::{Deserialize, Serialize};

use super::{
    arguments::PolicyArgs,
    cluster_access::{self, ClusterArgs, in_words},
    cluster_reader::ClusterReader,
    output::{self, Format},
};
use crate::audit::PROTECTING;
use cascade_guard_core::{
    kinds::is_final,
    policy::{
        GuardPolicy, Mode, POLICY_NAME, Policy, RuleKey, Subject, schema::GuardPolicyStatus,
        status::INSTALLATIONS_KNOWN,
    },
};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace whose delete is tried as a dry run; by default Argo CD's own
    #[arg(long, value_name = "NAMESPACE")]
    canary: Option<String>,
    /// Name of the webhook configuration
    #[arg(long, default_value = "cascade-guard", value_name = "NAME")]
    configuration: String,
    /// Look at the rollout watchdog as well, in this namespace
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, default_missing_value = "cascade-guard")]
    watchdog: Option<String>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    healthy: bool,
    detail: String,
}

/// Exit 0 everything is as it must be, 1 something is not.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checks = runtime.block_on(examine(args))?;
    match args.output {
        Format::Table => {
            for check in &checks {
                output::line(&format!(
                    "{}  {}: {}",
                    if check.healthy { "ok     " } else { "PROBLEM" },
                    check.what,
                    check.detail
                ))?;
            }
        }
        Format::Json | Format::Yaml => output::structured(args.output, &checks)?,
    }
    Ok(ExitCode::from(u8::from(checks.iter().any(|check| !check.healthy))))
}

async fn examine(args: &Args) -> anyhow::Result<Vec<Check>> {
    checks(args, &args.cluster.connect().await?).await
}

async fn checks(args: &Args, client: &Client) -> anyhow::Result<Vec<Check>> {
    let user = cluster_access::current_user(client).await?;
    let (policy, unknown) = cluster_access::policy_or_why(client, &args.policy).await?;
    let canary = args.canary.clone().unwrap_or_else(|| policy.spec.argocd.namespace.clone());
    let mut checks = vec![
        configuration(client, &args.configuration).await,
        match unknown {
            // What stands in for it is a guess, and no fact to report.
            Some(why) => not_known(&why),
            None => modes(&policy, &canary, &user.username),
        },
        installations(client, &args.policy, &policy).await,
        refusal(client, &canary).await,
    ];
    if let Some(namespace) = &args.watchdog {
        let found = super::watchdog::doctor::examine(client, namespace).await;
        checks.extend(found.into_iter().map(|(what, healthy, detail)| Check { what, healthy, detail }));
    }
    Ok(checks)
}

/// Whether the API server is told to ask, and whom to trust.
async fn configuration(client: &Client, name: &str) -> Check {
    let what = "webhook configuration";
    let found = Api::<ValidatingWebhookConfiguration>::all(client.clone()).get_opt(name).await;
    let webhooks = match found {
        Ok(Some(found)) => found.webhooks.unwrap_or_default(),
        Ok(None) => {
            let detail = format!("there is no ValidatingWebhookConfiguration {name}; nothing asks the guard");
            return Check { what, healthy: false, detail };
        }
        Err(error) => {
            return Check { what, healthy: false, detail: format!("it cannot be read: {:#}", in_words(error)) };
        }
    };
    let distrusted: Vec<&str> = webhooks
        .iter()
        .filter(|webhook| webhook.client_config.ca_bundle.as_ref().is_none_or(|bundle| bundle.0.is_empty()))
        .map(|webhook| webhook.name.as_str())
        .collect();
    let open: Vec<&str> = webhooks
        .iter()
        .filter(|webhook| webhook.failure_policy.as_deref() == Some("Ignore"))
        .filter(|webhook| {
            webhook.rules.iter().flatten().any(|rule| {
                rule.operations.iter().flatten().any(|operation| operation == "DELETE")
                    && rule.resources.iter().flatten().any(|resource| is_final(resource))
            })
        })
        .map(|webhook| webhook.name.as_str())
        .collect();
    if webhooks.is_empty() || !distrusted.is_empty() {
        let detail = format!("no caBundle for {}: the API server cannot trust the guard", distrusted.join(", "));
        return Check { what, healthy: false, detail };
    }
    if !open.is_empty() {
        let detail = format!("deletes pass while the guard does not answer: {} fails open", open.join(", "));
        return Check { what, healthy: false, detail };
    }
    Check { what, healthy: true, detail: format!("{} entries, deletes fail closed", webhooks.len()) }
}

fn not_known(why: &str) -> Check {
    let detail = format!("{why}, so which rules enforce is not known; name the file with --policy");
    Check { what: "policy", healthy: false, detail }
}

/// Whether the policy would refuse the canary at all.
fn modes(policy: &Policy, canary: &str, user: &str) -> Check {
    let subject = Subject { namespace: canary, labels: None, project: None, user };
    let modes: Vec<String> =
        RuleKey::ALL.iter().map(|rule| format!("{} {}", rule.as_str(), policy.base_mode(*rule).as_str())).collect();
    let now = jiff::Timestamp::now();
    let resolved: Vec<_> = PROTECTING.iter().map(|rule| (rule, policy.resolve(*rule, &subject, now))).collect();
    // Any one of them refuses a Namespace by itself, where it has a reason.
    let healthy = resolved.iter().any(|(_, resolved)| resolved.mode == Mode::Enforce);
    let why = if healthy {
        String::new()
    } else {
        let each: Vec<String> = resolved
            .iter()
            .map(|(rule, resolved)| {
                format!("{} is {} by {}", rule.as_str(), resolved.mode.as_str(), resolved.decided_by)
            })
            .collect();
        format!("; nothing refuses the delete of Namespace {canary}: {}", each.join(", "))
    };
    Check { what: "policy", healthy, detail: format!("{}{why}", modes.join(", ")) }
}

/// Whether the policy says all that cannot be seen of the Argo CDs of the cluster. What the guard itself sees stands in the
/// status of its policy; where a file takes the place of that, or no guard has written it yet, what the current user sees.
async fn installations(client: &Client, args: &PolicyArgs, policy: &Policy) -> Check {
    let what = "Argo CDs";
    let kind = ApiResource::erase::<GuardPolicy>(&());
    let policies: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let stored = match args.policy {
        None => policies.get_opt(POLICY_NAME).await.ok().flatten(),
        Some(_) => None,
    };
    let status = stored.and_then(|stored| GuardPolicyStatus::deserialize(&stored.data["status"]).ok());
    let said =
        status.and_then(|status| status.conditions.into_iter().find(|condition| condition.kind == INSTALLATIONS_KNOWN));
    if let Some(condition) = said {
        return Check { what, healthy: condition.status == "True", detail: condition.message };
    }
    match gaps_as_read(client, policy).await {
        Ok(gaps) if gaps.is_empty() => Check {
            what,
            healthy: true,
            detail: "every Argo CD is named and every cluster name is resolved".to_owned(),
        },
        Ok(gaps) => Check { what, healthy: false, detail: gaps.join("; ") },
        Err(error) => Check { what, healthy: false, detail: format!("they cannot be read: {error:#}") },
    }
}

async fn gaps_as_read(client: &Client, policy: &Policy) -> anyhow::Result<Vec<String>> {
    let snapshot = ClusterReader::new(client.clone()).await?.whole().await?;
    Ok(snapshot.inventory(policy, (0, 0)).gaps_in_words())
}

/// Whether a delete that must not pass is refused, by the guard and by nobody else.
async fn refusal(client: &Client, canary: &str) -> Check {
    let what = "canary";
    let tried = format!("a dry run of deleting Namespace {canary}");
    let parameters = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let (healthy, detail) = match Api::<Namespace>::all(client.clone()).delete(canary, &parameters).await {
        Ok(_) => (false, format!("{tried} was admitted: the guard was not asked, or its policy lets it pass")),
        Err(kube::Error::Api(status)) if status.message.contains("cascade-guard denied") => {
            (true, format!("{tried} was refused by the guard"))
        }
        Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => {
            (false, format!("{tried} failed because the guard does not answer: {}", status.message))
        }
        Err(error) => (false, format!("{tried} says nothing about the guard: {:#}", in_words(error))),
    };
    Check { what, healthy, detail }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// An API server that lets the user read nothing but who they are.
    fn server() -> Client {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let (code, answer) = match request.uri().path() {
                "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                    (201, json!({"metadata": {}, "status": {"userInfo": {"username": "alice"}}}))
                }
                path => (
                    403,
                    json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
                        "message": format!("{path} is forbidden")}),
                ),
            };
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn policy_that_cannot_be_read_is_no_fact() {
        let checks = checks(&Line::parse_from(["doctor"]).args, &server()).await.unwrap();
        let policy = checks.iter().find(|check| check.what == "policy").unwrap();
        assert!(!policy.healthy, "{policy:?}");
        assert!(policy.detail.contains("forbidden") && policy.detail.contains("is not known"), "{policy:?}");
        assert!(!policy.detail.contains("sharedClaim"), "a guess is reported as the policy: {policy:?}");
    }
}
