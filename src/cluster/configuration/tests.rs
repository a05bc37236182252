use std::time::Duration;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use rustls::pki_types::pem::PemObject as _;

use super::*;
use crate::certs::Authority;

struct Stage {
    bundle: String,
    chain: Vec<CertificateDer<'static>>,
}

impl Stage {
    fn new() -> Self {
        let authority = Authority::new(Duration::from_secs(3600)).unwrap();
        let names = vec!["cascade-guard.cascade-guard.svc".to_owned(), "localhost".to_owned()];
        let issued = authority.serving(&names, Duration::from_secs(3600)).unwrap();
        let chain = CertificateDer::pem_slice_iter(issued.cert_pem.as_bytes()).collect::<Result<_, _>>().unwrap();
        Self { bundle: authority.cert_pem, chain }
    }

    /// The configuration that ships, as the API server stores it with the bundle, and with `edit` made to it.
    fn faults(&self, edit: impl FnOnce(&mut Value)) -> Faults {
        let mut live = shipped().unwrap();
        for entry in live.webhooks.iter_mut().flatten() {
            entry.client_config.ca_bundle = Some(ByteString(self.bundle.clone().into_bytes()));
        }
        let mut value = serde_json::to_value(live).unwrap();
        edit(&mut value);
        weaknesses(&shipped().unwrap(), &serde_json::from_value(value).unwrap(), &self.chain)
    }

    fn only(&self, edit: impl FnOnce(&mut Value)) -> (Fault, String) {
        let faults = self.faults(edit);
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.into_iter().next().unwrap()
    }
}

fn entry<'v>(configuration: &'v mut Value, name: &str) -> &'v mut Value {
    let entries = configuration["webhooks"].as_array_mut().unwrap();
    entries.iter_mut().find(|entry| entry["name"] == format!("{name}.cascade-guard.io")).unwrap()
}

#[test]
fn what_ships_is_as_strong_as_itself() {
    assert_eq!(Stage::new().faults(|_| {}), []);
}

#[test]
fn what_asks_for_more_is_not_weaker() {
    let faults = Stage::new().faults(|live| {
        let hooks = entry(live, "hooks");
        hooks["rules"]
            .as_array_mut()
            .unwrap()
            .push(json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
            "resources": ["*/*"]}));
        hooks["failurePolicy"] = json!("Fail");
        hooks["namespaceSelector"] = json!({});
        hooks["matchConditions"] = json!([]);
        hooks["timeoutSeconds"] = json!(30);
        let wider = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "*/*"]}]);
        entry(live, "namespaces")["rules"] = wider;
        let more = entry(live, "definitions").clone();
        live["webhooks"].as_array_mut().unwrap().push(more);
    });
    assert_eq!(faults, []);
}

#[test]
fn what_is_missing_or_asked_about_less_is_found() {
    let stage = Stage::new();
    let (fault, said) = stage.only(|live| {
        live["webhooks"].as_array_mut().unwrap().retain(|entry| entry["name"] != "namespaces.cascade-guard.io");
    });
    assert_eq!((fault, said.as_str()), (Fault::Rules, "entry namespaces is missing"));
    let (fault, said) =
        stage.only(|live| entry(live, "applications")["rules"][0]["resources"] = json!(["applicationsets"]));
    assert_eq!((fault, said.as_str()), (Fault::Rules, "entry applications is not asked about DELETE of applications"));
    let (_, said) = stage.only(|live| entry(live, "approvals")["rules"][0]["resources"] = json!(["namespaces", "*"]));
    assert!(said.ends_with("of namespaces/status"), "{said}");
    let (_, said) = stage.only(|live| entry(live, "rbac-deletes")["rules"][1]["scope"] = json!("Namespaced"));
    assert!(said.contains("DELETE of clusterrolebindings"), "{said}");
    assert_eq!(stage.faults(|live| live["webhooks"] = json!([])).len(), shipped().unwrap().webhooks.unwrap().len());
}

#[test]
fn what_lets_pass_more_is_found() {
    let stage = Stage::new();
    let (fault, said) = stage.only(|live| entry(live, "namespaces")["failurePolicy"] = json!("Ignore"));
    assert_eq!((fault, said.as_str()), (Fault::FailsOpen, "entry namespaces fails open"));
    let (fault, said) = stage.only(|live| {
        let condition = json!({"name": "not-ours", "expression": "request.userInfo.username != 'mallory'"});
        entry(live, "namespaces")["matchConditions"].as_array_mut().unwrap().push(condition);
    });
    assert_eq!((fault, said.as_str()), (Fault::Narrower, "entry namespaces has another condition not-ours"));
    let (fault, _) = stage.only(|live| entry(live, "namespaces")["matchConditions"][0]["expression"] = json!("false"));
    assert_eq!(fault, Fault::Narrower);
    for field in ["namespaceSelector", "objectSelector"] {
        let (fault, said) =
            stage.only(|live| entry(live, "namespaces")[field] = json!({"matchLabels": {"guarded": "true"}}));
        assert_eq!((fault, said), (Fault::Narrower, format!("entry namespaces has another {field}")));
    }
    let (fault, _) = stage.only(|live| entry(live, "namespaces")["matchPolicy"] = json!("Exact"));
    assert_eq!(fault, Fault::Narrower);
}

#[test]
fn names_of_other_argo_cds_are_for_an_overlay_to_give() {
    let stage = Stage::new();
    let users = |names: &str| format!("!(request.userInfo.username in [{names}])");
    let set = |live: &mut Value, names: &str| {
        let conditions = entry(live, "claims")["matchConditions"].as_array_mut().unwrap();
        let condition = conditions.iter_mut().find(|condition| condition["name"] == "not-by-argo-cd").unwrap();
        condition["expression"] = json!(users(names));
    };
    let gitops = "'system:serviceaccount:openshift-gitops:openshift-gitops-argocd-application-controller'";
    assert_eq!(stage.faults(|live| set(live, gitops)), []);
    for other in [
        "'mallory'",
        "'system:serviceaccount:evil:x'",
        "'system:serviceaccount:a:argocd-application-controller', 'bob'",
    ] {
        assert_eq!(stage.only(|live| set(live, other)).0, Fault::Narrower, "{other}");
    }
}

#[test]
fn who_is_asked_and_trusted_is_looked_at() {
    let stage = Stage::new();
    let (fault, said) =
        stage.only(|live| entry(live, "namespaces")["clientConfig"]["service"]["path"] = json!("/healthz"));
    assert_eq!((fault, said.as_str()), (Fault::Elsewhere, "entry namespaces asks at /healthz"));
    let faults = stage.faults(|live| entry(live, "namespaces")["clientConfig"]["service"]["name"] = json!("yes"));
    assert!(faults.iter().any(|(fault, _)| *fault == Fault::Elsewhere), "{faults:?}");
    let url = |url: &str| {
        let bundle = ByteString(stage.bundle.clone().into_bytes());
        json!({"url": url, "caBundle": bundle})
    };
    let here = url("https://localhost:9443/validate/namespaces");
    assert_eq!(stage.faults(|live| entry(live, "namespaces")["clientConfig"] = here), []);
    let (fault, _) = stage.only(|live| entry(live, "namespaces")["clientConfig"] = url("https://localhost/yes"));
    assert_eq!(fault, Fault::Elsewhere);
    let (fault, said) = stage.only(|live| entry(live, "namespaces")["clientConfig"]["caBundle"] = json!(""));
    assert_eq!(fault, Fault::Authority);
    assert!(said.ends_with("it has no caBundle"), "{said}");
    let other = Stage::new();
    let (fault, said) = stage.only(|live| {
        entry(live, "namespaces")["clientConfig"]["caBundle"] = json!(ByteString(other.bundle.into_bytes()));
    });
    assert!(fault == Fault::Authority && said.contains("does not trust"), "{said}");
}

#[test]
fn faults_are_said_in_one_note() {
    let faults =
        vec![(Fault::FailsOpen, "entry a fails open".to_owned()), (Fault::FailsOpen, "entry b fails open".to_owned())];
    let told = degradation(&faults).unwrap();
    assert_eq!(told.reason, "WebhookConfigurationWeaker");
    assert!(told.note.contains("entry a fails open and entry b fails open"), "{}", told.note);
    assert_eq!(degradation(&Faults::new()), None);
    let missing = vec![(Fault::Missing, "there is none".to_owned())];
    assert_eq!(degradation(&missing).unwrap().reason, "WebhookConfigurationMissing");
}
