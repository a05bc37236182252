//! What somebody may do, asked of the API server as they would ask it.

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

use super::wait::eventually;

/// Whether the user behind `client` may do this to objects everywhere. `resource` may go on with `/` and a subresource, or
/// with `=` and the name of one object.
pub async fn may(client: &Client, verb: &str, group: &str, resource: &str) -> Result<bool> {
    let (resource, name) = resource.split_once('=').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let wanted = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: Some(subresource.to_owned()),
                name: Some(name.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::<SelfSubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &wanted).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Waits until the user behind `client` may do this: the API server learns of a role or a binding some time after it was
/// written, and of an aggregated role when the controller manager has filled it.
pub async fn gains(client: &Client, verb: &str, group: &str, resource: &str) -> Result<()> {
    eventually("a right to be known", async || {
        ensure!(may(client, verb, group, resource).await?, "no right to {verb} {group}/{resource}");
        Ok(())
    })
    .await
}
