//! What can be said about the files that ship without a cluster.

#![allow(clippy::unwrap_used, reason = "a file of another shape fails the test, and the panic says where")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use cascade_guard::telemetry::Metrics;
use cascade_guard_core::{
    argo::config,
    kinds::{Deletes, KINDS, is_final},
    policy,
    watchdog::{Mode, Settings},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

fn webhooks() -> Vec<Value> {
    documents("manifests/webhooks.yaml")[0]["webhooks"].as_array().unwrap().clone()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = files.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn definition_that_ships_is_the_one_the_types_generate() {
    let shipped = &documents("manifests/guardpolicies.yaml")[0];
    let generated = serde_json::to_value(policy::definition()).unwrap();
    assert!(*shipped == generated, "manifests/guardpolicies.yaml is not up to date: run `make crds`");
}

#[test]
fn definitions_of_the_watchdog_are_those_that_the_types_generate() {
    let shipped = documents("manifests/components/watchdog/definitions.yaml");
    let generated: Vec<Value> =
        cascade_guard_core::watchdog::definitions().iter().map(|found| serde_json::to_value(found).unwrap()).collect();
    assert!(shipped == generated, "manifests/components/watchdog/definitions.yaml is not up to date: run `make crds`");
}

#[test]
fn component_of_the_watchdog_lists_every_file_and_its_configuration_can_be_used() {
    for folder in ["manifests/components/watchdog", "manifests/components/watchdog/alerts"] {
        let listed = documents(&format!("{folder}/kustomization.yaml"))[0]["resources"].clone();
        let listed: BTreeSet<String> = serde_json::from_value(listed).unwrap();
        let mut present = names(&root().join(folder));
        present.remove("kustomization.yaml");
        assert_eq!(listed, present, "{folder}");
    }
    let map = &documents("manifests/components/watchdog/configuration.yaml")[0];
    let settings = Settings::parse(map["data"]["watchdog.yaml"].as_str().unwrap()).unwrap();
    assert_eq!(settings.spec.mode_ceiling, Mode::Shadow, "nothing is reverted unless somebody says so");
    let guide = fs::read_to_string(root().join("docs/watchdog.md")).unwrap();
    let (_, example) = guide.split_once("   ```yaml\n   apiVersion: cascade-guard.io/v1alpha1\n").unwrap();
    let example = format!("   apiVersion: cascade-guard.io/v1alpha1\n{}", example.split_once("   ```").unwrap().0);
    Settings::parse(&example).unwrap();
}

#[test]
fn watchdog_writes_only_in_its_own_namespace_and_only_what_is_its_own() {
    let reading = ["get", "list", "watch"];
    for object in documents("manifests/components/watchdog/roles.yaml") {
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        for rule in object["rules"].as_array().into_iter().flatten() {
            let verbs: Vec<String> = serde_json::from_value(rule["verbs"].clone()).unwrap();
            if kind == "ClusterRole" {
                assert!(verbs.iter().all(|verb| reading.contains(&verb.as_str())), "{name}: {rule}");
            } else {
                assert_eq!(object["metadata"]["namespace"], "cascade-guard", "{name}");
                let groups = ["cascade-guard.io", "events.k8s.io", "coordination.k8s.io"];
                assert!(groups.contains(&rule["apiGroups"][0].as_str().unwrap()), "{name}: {rule}");
            }
        }
    }
}

#[test]
fn guard_has_no_credential_of_git() {
    let guard = fs::read_to_string(root().join("manifests/deployment.yaml")).unwrap();
    assert!(!guard.contains("git") && !guard.contains("watchdog"), "the guard answers reviews and nothing else");
    let pod = &documents("manifests/components/watchdog/deployment.yaml")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "cascade-guard-watchdog");
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["readOnlyRootFilesystem"], true);
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn base_lists_every_file() {
    let listed = documents("manifests/kustomization.yaml")[0]["resources"].clone();
    let listed: BTreeSet<String> = serde_json::from_value(listed).unwrap();
    let mut present = names(&root().join("manifests"));
    present.remove("kustomization.yaml");
    assert_eq!(listed, present);
}

#[test]
fn overlay_of_the_readme_renames_the_image_that_ships_and_names_folders_that_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, overlay) = readme.split_once("```yaml\n# overlay/kustomization.yaml\n").unwrap();
    let overlay: Value = serde_saphyr::from_str(overlay.split_once("```").unwrap().0).unwrap();
    let listed = |field: &str| overlay[field].as_array().unwrap().clone();
    for folder in listed("resources").iter().chain(&listed("components")) {
        let folder = root().join(folder.as_str().unwrap().strip_prefix("../").unwrap());
        assert!(folder.join("kustomization.yaml").is_file(), "{}", folder.display());
    }
    let shipped = &documents("manifests/deployment.yaml")[0]["spec"]["template"]["spec"]["containers"][0]["image"];
    let renamed = overlay["images"][0]["name"].as_str().unwrap();
    assert_eq!(shipped.as_str().unwrap().split_once(':').unwrap().0, renamed);
}

#[test]
fn every_entry_is_asked_at_a_path_of_its_own_name() {
    for entry in webhooks() {
        let name = entry["name"].as_str().unwrap().strip_suffix(".cascade-guard.io").unwrap();
        assert_eq!(entry["clientConfig"]["service"]["path"], format!("/validate/{name}"));
    }
}

#[test]
fn deletes_and_powers_fail_closed_and_nothing_else_does() {
    let closed: Vec<_> = webhooks()
        .into_iter()
        .filter(|entry| entry["failurePolicy"] == "Fail")
        .map(|entry| entry["name"].as_str().unwrap().split('.').next().unwrap().to_owned())
        .collect();
    let deletes = ["namespaces", "applications", "definitions", "cluster-secrets", "rbac-deletes"];
    let powers = ["approvals", "exempting-labels", "definition-changes", "routes"];
    assert_eq!(closed, [&deletes[..], &powers[..]].concat());
}

/// Group and plural of what the entry is asked about on one of these operations, subresources aside.
fn asked_about(entry: &Value, operations: &[&str]) -> BTreeSet<(String, String)> {
    let texts = |list: &Value| serde_json::from_value::<Vec<String>>(list.clone()).unwrap();
    let rules = entry["rules"].as_array().unwrap().iter();
    rules
        .filter(|rule| texts(&rule["operations"]).iter().any(|operation| operations.contains(&operation.as_str())))
        .flat_map(|rule| {
            let plurals = texts(&rule["resources"]).into_iter().filter(|plural| !plural.contains('/'));
            let plurals: Vec<String> = plurals.collect();
            texts(&rule["apiGroups"])
                .into_iter()
                .flat_map(move |group| plurals.clone().into_iter().map(move |plural| (group.clone(), plural)))
        })
        .collect()
}

#[test]
fn deletes_that_are_sent_are_those_that_the_core_knows_of() {
    let sent: BTreeSet<_> = webhooks().iter().flat_map(|entry| asked_about(entry, &["DELETE"])).collect();
    let known = KINDS.iter().filter(|kind| kind.deletes != Deletes::NotSent);
    let known: BTreeSet<_> = known.map(|kind| (kind.group.to_owned(), kind.plural.to_owned())).collect();
    assert_eq!(sent, known, "manifests/webhooks.yaml on the left, core/src/kinds.rs on the right");
    for entry in webhooks().iter().filter(|entry| entry["failurePolicy"] != "Fail") {
        assert!(!asked_about(entry, &["DELETE"]).iter().any(|(_, plural)| is_final(plural)), "{entry}");
    }
}

#[test]
fn deletes_of_secrets_are_sent_by_their_label_alone() {
    for entry in
        webhooks().iter().filter(|entry| asked_about(entry, &["DELETE"]).iter().any(|(_, plural)| plural == "secrets"))
    {
        assert_eq!(
            entry["objectSelector"],
            serde_json::json!({"matchLabels": {config::SECRET_TYPE.0: config::SECRET_TYPE.1}}),
            "any Secret would be sent, with what is in it: {entry}"
        );
    }
}

#[test]
fn power_to_delete_is_asked_about_on_whatever_is_asked_about_when_it_goes() {
    let entries = webhooks();
    let approvals = entries.iter().find(|entry| entry["name"] == "approvals.cascade-guard.io").unwrap();
    let mut sent: BTreeSet<_> = entries.iter().flat_map(|entry| asked_about(entry, &["DELETE"])).collect();
    // Nobody deletes a policy by an approval: no rule judges that.
    assert!(sent.remove(&("cascade-guard.io".to_owned(), "guardpolicies".to_owned())));
    for operation in ["CREATE", "UPDATE"] {
        assert_eq!(asked_about(approvals, &[operation]), sent, "{operation}");
    }
}

#[test]
fn every_entry_says_what_the_server_would_otherwise_choose() {
    for entry in webhooks() {
        assert_eq!(entry["matchPolicy"], "Equivalent", "{entry}");
        assert_eq!(entry["sideEffects"], "None", "{entry}");
        assert_eq!(entry["admissionReviewVersions"], serde_json::json!(["v1"]), "{entry}");
        assert!(entry["timeoutSeconds"].as_u64().is_some_and(|seconds| seconds <= 10), "{entry}");
    }
}

#[test]
fn namespaces_are_left_out_by_the_name_that_the_api_server_writes() {
    for entry in webhooks() {
        let Some(selector) = entry.get("namespaceSelector") else { continue };
        let key = &selector["matchExpressions"][0]["key"];
        assert_eq!(key, "kubernetes.io/metadata.name", "any other label can be taken off first: {entry}");
    }
}

#[test]
fn service_pods_and_certificate_belong_together() {
    let service = &documents("manifests/service.yaml")[0];
    let deployment = &documents("manifests/deployment.yaml")[0];
    let pod = &deployment["spec"]["template"];
    assert_eq!(service["spec"]["selector"], pod["metadata"]["labels"]);
    let called = format!(
        "{}.{}.svc",
        service["metadata"]["name"].as_str().unwrap(),
        service["metadata"]["namespace"].as_str().unwrap()
    );
    for entry in webhooks() {
        let reference = &entry["clientConfig"]["service"];
        assert_eq!(
            called,
            format!("{}.{}.svc", reference["name"].as_str().unwrap(), reference["namespace"].as_str().unwrap())
        );
    }
    let certificates = documents("certs/cert-manager/certificates.yaml");
    let serving = certificates.iter().find(|object| object["metadata"]["name"] == "cascade-guard").unwrap();
    assert_eq!(serving["spec"]["dnsNames"][0], called);
    assert_eq!(serving["spec"]["secretName"], pod["spec"]["volumes"][0]["secret"]["secretName"]);
    let development = &documents("certs/kustomization.yaml")[0];
    assert_eq!(development["secretGenerator"][0]["name"], pod["spec"]["volumes"][0]["secret"]["secretName"]);
}

#[test]
fn alerts_ask_for_metrics_that_there_are() {
    let mut metrics = Metrics::new();
    metrics.add_watchdog();
    metrics.observe_terminating("Namespace", &[], Timestamp::now(), SignedDuration::ZERO);
    // A series with labels is there from its first request on.
    metrics.count_unjudged(None);
    let text = metrics.encode();
    let rules = ["alerts", "watchdog/alerts"].into_iter().flat_map(|component| {
        let rules = documents(&format!("manifests/components/{component}/rules.yaml"));
        rules[0]["spec"]["groups"][0]["rules"].as_array().unwrap().clone()
    });
    for rule in rules {
        let expression = rule["expr"].as_str().unwrap();
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        // What the API server counts is not the guard's to show.
        let known = ["cascade_guard_", "apiserver_admission_webhook_fail_open_count"];
        let counts = |word: &&str| known.iter().any(|metric| word.starts_with(metric));
        let named: Vec<&str> = expression.split(word).filter(counts).collect();
        assert!(!named.is_empty(), "{expression}");
        let named = named.into_iter().filter(|name| name.starts_with("cascade_guard_"));
        for name in named {
            let is_there = text.lines().any(|line| line.split(['{', ' ']).next() == Some(name));
            assert!(is_there, "there is no metric {name}");
        }
        assert!(rule["annotations"]["summary"].is_string() && rule["labels"]["severity"].is_string(), "{rule}");
    }
}

#[test]
fn pods_have_no_privileges() {
    let deployment = &documents("manifests/deployment.yaml")[0];
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["readOnlyRootFilesystem"], true);
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["capabilities"]["drop"], serde_json::json!(["ALL"]));
}

#[test]
fn no_private_key_is_in_the_repository() {
    let ignored = fs::read_to_string(root().join("certs/.gitignore")).unwrap();
    for pattern in ["*.key", "*.crt"] {
        assert!(ignored.lines().any(|line| line == pattern), "certs/.gitignore lets {pattern} through");
    }
}
