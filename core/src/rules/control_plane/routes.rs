//! APIServices. One that names a Service sends every request for its group there, and the API server's own webhooks are never
//! asked about what is read, written or deleted behind it.

use serde::Deserialize;

use crate::{
    admission::Object,
    catalog::control_plane::ROUTE,
    decision::{Finding, Severity},
    object::{ARGO_GROUP, ObjectRef, null_to_default},
    policy::POLICY_GROUP,
    remedy::{Command, Remedy},
    rules::Context,
};

/// The API server registers its own groups under this name, and those of definitions.
const API_SERVER: &str = "system:apiserver";

/// Whether this is an APIService.
pub(super) fn is_route(object: &ObjectRef) -> bool {
    object.kind.is("apiregistration.k8s.io", "APIService")
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "null_to_default")]
    group: String,
    service: Option<Service>,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
struct Service {
    #[serde(deserialize_with = "null_to_default")]
    namespace: String,
    #[serde(deserialize_with = "null_to_default")]
    name: String,
}

/// Refuses an APIService that takes Argo CD's group, or the guard's own, away from the API server.
pub(super) fn check(cx: &Context<'_>, findings: &mut Vec<Finding>) {
    let (object, Some(new)) = (&cx.request.target, &cx.request.object) else { return };
    if !is_route(object) || cx.request.user.username == API_SERVER {
        return;
    }
    let was = cx.request.old_object.as_ref().and_then(spec);
    let now = spec(new).unwrap_or_default();
    let Some(service) = now.service.as_ref().filter(|_| was.as_ref() != Some(&now)) else { return };
    if ![ARGO_GROUP, POLICY_GROUP].contains(&now.group.as_str()) {
        return;
    }
    findings.push(
        Finding::new(
            &ROUTE,
            Severity::Deny,
            object.clone(),
            "a Service would answer for a group that the API server serves from its own storage",
        )
        .detail(format!(
            "{object} would send every request for {} to Service {}/{}; no webhook is asked about what happens there",
            now.group, service.namespace, service.name
        ))
        .remedy(Remedy::run(
            format!("leave it out: the definitions of {} serve the group; this shows who answers now", now.group),
            Command::new("kubectl get apiservices --sort-by=.spec.group"),
        )),
    );
}

fn spec(object: &Object<'_>) -> Option<Spec> {
    #[derive(Deserialize)]
    struct Body {
        spec: Spec,
    }
    object.decode::<Body>().ok().map(|body| body.spec)
}
