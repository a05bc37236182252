//! Two webhook configurations, and in what the second asks for less than the first. More is never wrong: an overlay may
//! add kinds, entries and a longer time.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::Faults;
use crate::telemetry::metrics::Fault;

/// Where `live` protects less than `shipped`. `chain` is the certificate that the guard serves.
pub(super) fn weaknesses(
    shipped: &ValidatingWebhookConfiguration,
    live: &ValidatingWebhookConfiguration,
    chain: &[CertificateDer<'static>],
) -> Faults {
    let mut faults = Faults::new();
    for wanted in shipped.webhooks.iter().flatten() {
        let found: Vec<&ValidatingWebhook> =
            live.webhooks.iter().flatten().filter(|entry| entry.name == wanted.name).collect();
        match found[..] {
            [] => faults.push((Fault::Rules, format!("entry {} is missing", short(wanted)))),
            [entry, ..] => compare(wanted, entry, chain, &mut faults),
        }
    }
    faults
}

fn short(entry: &ValidatingWebhook) -> &str {
    entry.name.split('.').next().unwrap_or_default()
}

fn compare(
    wanted: &ValidatingWebhook,
    entry: &ValidatingWebhook,
    chain: &[CertificateDer<'static>],
    faults: &mut Faults,
) {
    let name = short(wanted);
    let mut fault = |kind: Fault, said: String| faults.push((kind, format!("entry {name} {said}")));
    if entry.failure_policy.as_deref() == Some("Ignore") && wanted.failure_policy.as_deref() != Some("Ignore") {
        fault(Fault::FailsOpen, "fails open".to_owned());
    }
    if let Some(missing) = not_asked(wanted.rules.iter().flatten(), entry) {
        fault(Fault::Rules, format!("is not asked about {missing}"));
    }
    if entry.match_policy.as_deref() == Some("Exact") && wanted.match_policy.as_deref() != Some("Exact") {
        fault(Fault::Narrower, "passes other versions by (matchPolicy)".to_owned());
    }
    for (field, before, now) in [
        ("namespaceSelector", &wanted.namespace_selector, &entry.namespace_selector),
        ("objectSelector", &wanted.object_selector, &entry.object_selector),
    ] {
        if !selects_everything(now.as_ref()) && before != now {
            fault(Fault::Narrower, format!("has another {field}"));
        }
    }
    for condition in entry.match_conditions.iter().flatten() {
        if !wanted.match_conditions.iter().flatten().any(|known| is_as_wide(known, condition)) {
            fault(Fault::Narrower, format!("has another condition {}", condition.name));
        }
    }
    if let Some(said) = elsewhere(&wanted.client_config, &entry.client_config) {
        fault(Fault::Elsewhere, said);
    }
    if let Err(why) = trusts(&entry.client_config, chain) {
        fault(Fault::Authority, format!("does not trust the certificate that is served: {why}"));
    }
}

fn selects_everything(selector: Option<&LabelSelector>) -> bool {
    selector.is_none_or(|selector| {
        selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
    })
}

/// The first operation on a resource that the rules want asked about and the entry is not.
fn not_asked<'a>(wanted: impl Iterator<Item = &'a RuleWithOperations>, entry: &ValidatingWebhook) -> Option<String> {
    let each = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    for rule in wanted {
        for operation in each(&rule.operations) {
            for group in each(&rule.api_groups) {
                for version in each(&rule.api_versions) {
                    for resource in each(&rule.resources) {
                        let asked = entry.rules.iter().flatten().any(|live| {
                            holds(live.operations.as_ref(), &operation)
                                && holds(live.api_groups.as_ref(), &group)
                                && holds(live.api_versions.as_ref(), &version)
                                && holds_resource(live.resources.as_ref(), &resource)
                                && live
                                    .scope
                                    .as_deref()
                                    .is_none_or(|scope| scope == "*" || rule.scope.as_deref() == Some(scope))
                        });
                        if !asked {
                            return Some(format!("{operation} of {resource}"));
                        }
                    }
                }
            }
        }
    }
    None
}

fn holds(values: Option<&Vec<String>>, wanted: &str) -> bool {
    values.into_iter().flatten().any(|value| value == "*" || value == wanted)
}

/// A star alone leaves subresources out.
fn holds_resource(values: Option<&Vec<String>>, wanted: &str) -> bool {
    values.into_iter().flatten().any(|value| {
        value == wanted
            || value == "*/*"
            || match wanted.split_once('/') {
                None => value == "*",
                Some((resource, part)) => value == &format!("{resource}/*") || value == &format!("*/{part}"),
            }
    })
}

/// Whether a condition keeps no more away than one that ships. Written otherwise it may; but the names of Argo CD's own
/// accounts are for an overlay to give.
fn is_as_wide(known: &MatchCondition, live: &MatchCondition) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let (known_text, live_text) = (plain(&known.expression), plain(&live.expression));
    known_text == live_text || (known.name == "not-by-argo-cd" && live.name == known.name && names_argo_cd(&live_text))
}

/// `!(request.userInfo.usernamein['…','…'])` without its blanks, of accounts of Argo CD alone.
fn names_argo_cd(expression: &str) -> bool {
    let list = expression.strip_prefix("!(request.userInfo.usernamein[").and_then(|rest| rest.strip_suffix("])"));
    list.is_some_and(|list| {
        list.split(',').all(|name| {
            let name = name.trim_matches('\'');
            name.starts_with("system:serviceaccount:")
                && ["argocd-application-controller", "argocd-agent-principal", "argocd-agent-agent"]
                    .iter()
                    .any(|account| name.ends_with(account))
                && name.chars().all(|c| c.is_ascii_alphanumeric() || ":-.".contains(c))
        })
    })
}

/// Whom the entry asks, where that is not the guard's Service. A URL can only be compared by its path.
fn elsewhere(wanted: &WebhookClientConfig, live: &WebhookClientConfig) -> Option<String> {
    let wanted = wanted.service.as_ref()?;
    let path = wanted.path.as_deref().unwrap_or_default();
    match (&live.service, &live.url) {
        (Some(service), _) if (&service.namespace, &service.name) != (&wanted.namespace, &wanted.name) => {
            Some(format!("asks Service {}/{}", service.namespace, service.name))
        }
        (Some(service), _) if service.path.as_deref() != Some(path) => {
            Some(format!("asks at {}", service.path.as_deref().unwrap_or("/")))
        }
        (None, Some(url)) if !url.ends_with(path) => Some(format!("asks {url}")),
        (None, None) => Some("asks nobody".to_owned()),
        _ => None,
    }
}

/// Whether the API server accepts the certificate of the guard by what stands in the entry. Without a `caBundle` it goes by
/// the authorities of its own machine, which nobody can see from here.
fn trusts(entry: &WebhookClientConfig, chain: &[CertificateDer<'static>]) -> Result<(), String> {
    let bundle = entry.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
    if bundle.is_empty() {
        return Err("it has no caBundle".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let name = match (&entry.service, &entry.url) {
        (Some(service), _) => format!("{}.{}.svc", service.name, service.namespace),
        (None, Some(url)) => host(url).to_owned(),
        (None, None) => return Ok(()),
    };
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let Some((own, between)) = chain.split_first() else { return Err("none is served".to_owned()) };
    let provider = rustls::crypto::ring::default_provider();
    let judge = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.into())
        .build()
        .map_err(|error| error.to_string())?;
    let verified = judge.verify_server_cert(own, between, &name, &[], UnixTime::now());
    verified.map(drop).map_err(|error| error.to_string())
}

fn host(url: &str) -> &str {
    let authority = url.strip_prefix("https://").unwrap_or(url).split('/').next().unwrap_or_default();
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}
