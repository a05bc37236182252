//! The definition of GuardPolicy: what the API server takes and what it refuses while somebody types.

use anyhow::{Context as _, Result};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{outcome::rejected, world::World},
    tests,
};

tests!(whole_policy_is_taken, policy_of_another_name_is_refused, mistakes_are_refused_with_what_would_be_right,);

/// Applies a policy as a dry run: the guard under test goes by another one.
async fn applied(world: &World, name: &str, spec: &Value) -> kube::Result<DynamicObject> {
    let kind = GroupVersionKind::gvk("cascade-guard.io", "v1alpha1", "GuardPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "guardpolicies");
    let policies: Api<DynamicObject> = Api::all_with(world.ops.clone(), &resource);
    let policy = json!({
        "apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": name}, "spec": spec,
    });
    let parameters = PatchParams::apply("cascade-guard-tests").force().dry_run().validation_strict();
    policies.patch(name, &parameters, &Patch::Apply(policy)).await
}

fn exemption() -> Value {
    json!({
        "name": "previews", "match": {"namespaces": ["pr-*"]}, "rules": ["namespaceApproval"],
        "until": "2027-01-01T00:00:00Z", "reason": "they come and go",
    })
}

async fn whole_policy_is_taken(world: &World) -> Result<()> {
    let spec = json!({
        "argocd": {"namespace": "argocd", "applicationNamespaces": ["*"], "clusterAliases": [["in-cluster", "https://10.0.0.1"]]},
        "rules": {
            "sharedClaim": {"mode": "enforce", "onUnknown": "deny"},
            "sharedUpdate": {"mode": "warn"},
            "namespaceApproval": {"mode": "enforce", "maxTTL": "1h30m", "requireReason": true, "fourEyes": true, "protectFinalize": "warn"},
            "syncWave": {"mode": "off"},
            "runtimeDependency": {"mode": "warn"},
            "controlPlane": {"mode": "enforce"},
        },
        "overrides": [{"match": {"namespaces": ["team-a-*"], "projects": ["payments"]}, "modes": {"sharedClaim": "audit"}}],
        "exemptions": [exemption()],
        "identities": {"argocd": ["system:serviceaccount:argocd:argocd-application-controller"]},
        "breakGlass": {"groups": ["on-call"], "requireReason": true},
    });
    applied(world, "default", &spec).await.context("the policy of the documentation")?;
    applied(world, "default", &json!({})).await.context("an empty policy")?;
    Ok(())
}

async fn policy_of_another_name_is_refused(world: &World) -> Result<()> {
    rejected(applied(world, "strict", &json!({})).await, "a cluster has one GuardPolicy, and it is named default")
}

async fn mistakes_are_refused_with_what_would_be_right(world: &World) -> Result<()> {
    let wrong_exemption = |field: &str, value: Value| {
        let mut exemption = exemption();
        exemption[field] = value;
        json!({"exemptions": [exemption]})
    };
    for (spec, words) in [
        (json!({"rules": {"namespaceApproval": {"maxTTL": "soon"}}}), "such as 24h or 1h30m"),
        (json!({"rules": {"namespaceApproval": {"maxTTL": "0h"}}}), "such as 24h or 1h30m"),
        (json!({"rules": {"namespaceApproval": {"maxTTL": ""}}}), "such as 24h or 1h30m"),
        (json!({"rules": {"sharedClaim": {"mode": "strict"}}}), "\"off\", \"audit\", \"warn\", \"enforce\""),
        (json!({"rules": {"sharedClaims": {"mode": "enforce"}}}), "spec.rules.sharedClaims"),
        (json!({"argocd": {"namespace": ""}}), "spec.argocd.namespace"),
        (json!({"argocd": {"clusterAliases": [[]]}}), "spec.argocd.clusterAliases[0]"),
        (json!({"overrides": [{"match": {}, "modes": {}}]}), "matches nothing in particular"),
        (json!({"overrides": [{"modes": {"syncWave": "warn"}}]}), "spec.overrides[0].match: Required"),
        (wrong_exemption("until", json!("2027-01-01")), "such as 2027-01-01T00:00:00Z"),
        (wrong_exemption("until", json!("2027-01-01T00:00:00")), "such as 2027-01-01T00:00:00Z"),
        (wrong_exemption("rules", json!([])), "spec.exemptions[0].rules"),
        (wrong_exemption("reason", json!("  ")), "say why this is exempt"),
        (
            wrong_exemption("match", json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})),
            "a label alone does not exempt",
        ),
    ] {
        rejected(applied(world, "default", &spec).await, words).with_context(|| spec.to_string())?;
    }
    Ok(())
}
