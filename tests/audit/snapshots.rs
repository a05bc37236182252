//! What the commands make of the file they are given: nothing in it, a policy in it, objects named in several ways.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::{NOW, application, file, guard, stdout, troubled};

const POLICY: &str = "
apiVersion: cascade-guard.io/v1alpha1
kind: GuardPolicy
metadata: {name: default}
spec:
  rules: {sharedClaim: {mode: enforce}, namespaceApproval: {mode: enforce}}
  breakGlass: {groups: [oncall], requireReason: false}
";

fn ended(arguments: &[&str]) -> (i32, String) {
    let output = guard(arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The program where no cluster can be found.
fn without_a_cluster(arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cascade-guard"));
    let nowhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("no-such-kubeconfig");
    command.env("KUBECONFIG", nowhere).env_remove("KUBERNETES_SERVICE_HOST").args(arguments);
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty(), "{}", stdout(&output));
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn request() -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "operation": "DELETE",
        "name": "a", "namespace": "shop", "userInfo": {"username": "bob"},
        "oldObject": {"metadata": {"name": "a", "namespace": "shop"}}}})
}

#[test]
fn empty_input_is_no_clean_result() {
    let folder = tempfile::tempdir().unwrap();
    let requests = file(folder.path(), "requests.json", &request().to_string());
    let rendered = file(folder.path(), "rendered.yaml", &application("a", &[]).to_string());
    let (requests, rendered) = (requests.to_str().unwrap(), rendered.to_str().unwrap());
    for (name, text) in [("empty.yaml", ""), ("list.json", r#"{"apiVersion":"v1","kind":"List","items":[]}"#)] {
        let empty = file(folder.path(), name, text);
        let empty = empty.to_str().unwrap();
        for arguments in [
            &["audit", "--snapshot", empty][..],
            &["approvals", "--snapshot", empty],
            &["replay", requests, "--snapshot", empty],
            &["lint", rendered, "--snapshot", empty],
        ] {
            let said = ended(arguments);
            assert_eq!(
                said,
                (2, format!("error: the snapshot cannot be used: {empty} holds no object at all\n")),
                "{arguments:?}"
            );
        }
        assert_eq!(ended(&["overlap", rendered, empty]), (2, format!("error: {empty} holds no manifest at all\n")));
        // Whoever names an empty file for one request means an empty cluster.
        assert_eq!(ended(&["review", requests, "--snapshot", empty]).0, 0);
    }
}

#[test]
fn snapshot_without_what_a_command_judges_is_no_clean_result() {
    let folder = tempfile::tempdir().unwrap();
    let requests = file(folder.path(), "requests.json", &request().to_string());
    let policy = file(folder.path(), "policy.yaml", POLICY);
    let policy = policy.to_str().unwrap();
    let (code, said) = ended(&["audit", "--snapshot", policy]);
    assert_eq!(code, 2);
    assert!(
        said.ends_with("holds no Application and no ApplicationSet and no Namespace, only 1 GuardPolicy\n"),
        "{said}"
    );
    let (code, said) = ended(&["approvals", "--snapshot", policy]);
    assert!(code == 2 && said.ends_with("holds no Namespace, only 1 GuardPolicy\n"), "{said}");
    assert_eq!(ended(&["review", requests.to_str().unwrap(), "--snapshot", policy]).0, 0);
}

#[test]
fn review_and_policy_explain_make_up_no_cluster_and_no_policy() {
    let folder = tempfile::tempdir().unwrap();
    let requests = file(folder.path(), "requests.json", &request().to_string());
    let (code, said) = ended(&["review", requests.to_str().unwrap()]);
    assert!(code == 2 && said.contains("review needs --snapshot"), "{said}");
    let (code, said) = without_a_cluster(&["policy", "explain", "namespace", "shop"]);
    assert!(code == 2 && said.contains("name a file with --policy"), "{said}");
}

#[test]
fn missing_kubeconfig_is_said_once_and_in_short() {
    for arguments in [&["approve", "shop"][..], &["revoke", "shop"], &["doctor"], &["plan", "ns", "shop"], &["audit"]] {
        let (code, said) = without_a_cluster(arguments);
        assert_eq!((code, said.lines().count()), (2, 1), "{said}");
        assert!(said.len() < 300 && said.matches("No such file").count() == 1, "{said}");
        let reads_files = matches!(arguments[0], "plan" | "audit");
        assert_eq!(said.contains("--snapshot"), reads_files, "{said}");
    }
}

#[test]
fn policy_in_a_snapshot_counts_as_that_of_a_cluster_and_a_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    let mut list: Value = serde_json::from_str(&troubled()).unwrap();
    list["items"].as_array_mut().unwrap().push(serde_saphyr::from_str(POLICY).unwrap());
    let snapshot = file(folder.path(), "cluster.json", &list.to_string());
    let audit = file(folder.path(), "audit.yaml", &POLICY.replace("enforce", "audit"));
    let (snapshot, audit) = (snapshot.to_str().unwrap(), audit.to_str().unwrap());
    let plan =
        |more: &[&str]| guard(&[&["plan", "ns", "streaming", "--snapshot", snapshot, "--now", NOW], more].concat());
    let refused = plan(&[]);
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    assert!(stdout(&refused).starts_with("Deleting Namespace streaming as kubectl-user would be refused."));
    assert_eq!(plan(&["--policy", audit]).status.code(), Some(0));
    // Who may break the glass is in one of its groups.
    let broken = plan(&["--user", "eve", "--group", "oncall"]);
    assert!(
        stdout(&broken).starts_with("Deleting Namespace streaming as eve would be admitted."),
        "{}",
        stdout(&broken)
    );
    let explained = guard(&["policy", "explain", "ns", "streaming", "--snapshot", snapshot]);
    assert!(stdout(&explained).contains("namespace-approval: enforce"), "{}", stdout(&explained));
    let bad = file(folder.path(), "bad.json", &list.to_string().replace(r#""breakGlass""#, r#""breakGlas""#));
    let (code, said) = ended(&["plan", "ns", "streaming", "--snapshot", bad.to_str().unwrap()]);
    assert!(code == 2 && said.contains("breakGlas") && said.contains("--policy"), "{said}");
}

#[test]
fn object_is_found_as_other_commands_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = file(folder.path(), "cluster.json", &troubled());
    let snapshot = snapshot.to_str().unwrap();
    for command in [&["plan"][..], &["policy", "explain"]] {
        for object in [
            &["application", "argocd/flink-old"][..],
            &["application", "flink-old"],
            &["application", "flink-old", "-n", "argocd"],
            &["ns", "streaming", "-n", "argocd"],
            &["role", "streaming/flink-leader-election"],
        ] {
            let arguments = [command, object, &["--snapshot", snapshot, "--now", NOW]].concat();
            assert_eq!(ended(&arguments), (0, String::new()), "{arguments:?}");
        }
        let arguments = [command, &["role", "flink-leader-election", "--snapshot", snapshot]].concat();
        let said = "error: say which role flink-leader-election is meant: streaming/flink-leader-election\n";
        assert_eq!(ended(&arguments), (2, said.to_owned()));
    }
}

#[test]
fn plan_names_the_finalizers_that_may_hang_and_those_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut parent = application("parent", &[]);
    parent["status"]["resources"] = json!([{"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
        "namespace": "argocd", "name": "child", "status": "Synced"}]);
    let mut child = application("child", &[("PersistentVolumeClaim", "data"), ("Namespace", "streaming")]);
    let ingress = json!({"group": "networking.k8s.io", "version": "v1", "kind": "Ingress", "namespace": "streaming",
        "name": "front", "status": "Synced"});
    child["status"]["resources"].as_array_mut().unwrap().push(ingress);
    child["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "parent:argoproj.io/Application:argocd/child"});
    let tracked = |api: &str, group: &str, kind: &str, name: &str, finalizer: &str| {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "streaming", "finalizers": [finalizer],
            "annotations": {"argocd.argoproj.io/tracking-id": format!("child:{group}/{kind}:streaming/{name}")}}})
    };
    let items = [
        parent,
        child,
        tracked("networking.k8s.io/v1", "networking.k8s.io", "Ingress", "front", "ingress.k8s.aws/resources"),
        tracked("v1", "", "PersistentVolumeClaim", "data", "kubernetes.io/pvc-protection"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "streaming", "uid": "u",
            "annotations": {"argocd.argoproj.io/tracking-id": "child:/Namespace:streaming/streaming"}}}),
        // In no list, and gone with the Namespace all the same.
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "by-hand",
            "namespace": "streaming", "finalizers": ["ingress.k8s.aws/resources"]}}),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let snapshot = file(folder.path(), "cluster.json", &list.to_string());
    let text = stdout(&guard(&["plan", "app", "parent", "--snapshot", snapshot.to_str().unwrap(), "--now", NOW]));
    let hanging = text.split_once("May hang").map(|(_, rest)| rest.split("\n\n").next().unwrap()).unwrap_or_default();
    assert!(
        hanging.contains("Ingress streaming/front: ingress.k8s.aws/resources, of the AWS Load Balancer Controller"),
        "{text}"
    );
    assert!(hanging.contains("Ingress streaming/by-hand: ") && hanging.matches("/front").count() == 1, "{text}");
    assert!(!hanging.contains("resources-finalizer") && !hanging.contains("pvc-protection"), "{text}");
}

#[test]
fn plan_tells_what_goes_without_being_listed_and_what_is_listed_without_being_there() {
    let folder = tempfile::tempdir().unwrap();
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "backups.example.com", "uid": "d"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Backup", "plural": "backups"}, "versions": [{"name": "v1", "served": true, "storage": true}]}});
    let object = |api: &str, kind: &str, name: &str, more: serde_json::Value| {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "streaming"}});
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let items = json!([
        application("shop", &[("ConfigMap", "gone")]),
        definition,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "streaming", "uid": "u"}},
        object("example.com/v1", "Backup", "nightly", json!({})),
        object("v1", "PersistentVolumeClaim", "data", json!({"status": {"phase": "Bound"}})),
        object("v1", "PersistentVolumeClaim", "waiting", json!({"status": {"phase": "Pending"}})),
        object("v1", "Service", "front", json!({"spec": {"type": "LoadBalancer"}})),
        object("v1", "Service", "inside", json!({"spec": {"type": "ClusterIP"}})),
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let snapshot = file(folder.path(), "cluster.json", &list.to_string());
    let plan = |kind: &str, name: &str| {
        stdout(&guard(&["plan", kind, name, "--snapshot", snapshot.to_str().unwrap(), "--now", NOW]))
    };
    let goes = "although no Application lists it:\n";
    let text = plan("ns", "streaming");
    assert!(
        text.contains(&format!("{goes}  PersistentVolumeClaim streaming/data\n  Service streaming/front\n\n")),
        "{text}"
    );
    let text = plan("crd", "backups.example.com");
    assert!(text.contains(&format!("{goes}  Backup streaming/nightly\n")), "{text}");
    let text = plan("app", "shop");
    assert!(text.contains("1 deleted, 0 contested, 0 spared, 1 absent\n"), "{text}");
    assert!(text.contains("ConfigMap streaming/gone  absent  (it was not found, "), "{text}");
}

/// A plan with long lists says how many it leaves out, the contested last of all, and shows every line where all are wanted.
#[test]
fn plan_folds_long_lists_and_draws_each_object_once() {
    let folder = tempfile::tempdir().unwrap();
    let maps: Vec<String> = (0..60).map(|number| format!("map-{number:02}")).collect();
    let list: Vec<(&str, &str)> = maps.iter().map(|name| ("ConfigMap", name.as_str())).collect();
    let items = json!([application("shop", &list), application("other", &list[55..])]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let snapshot = file(folder.path(), "cluster.json", &list.to_string());
    let plan = |more: &[&str]| {
        let arguments = ["plan", "app", "shop", "--snapshot", snapshot.to_str().unwrap(), "--now", NOW];
        stdout(&guard(&[&arguments, more].concat()))
    };
    let tree = |text: &str| text.lines().filter(|line| line.contains("─ ")).map(str::to_owned).collect::<Vec<_>>();
    let (brief, whole) = (plan(&[]), plan(&["--all"]));
    let (short, long) = (tree(&brief), tree(&whole));
    assert_eq!((short.len(), long.len()), (21, 60), "{brief}");
    assert_eq!(short[20], "└─ … 40 more, --all shows them");
    for name in &maps {
        assert_eq!(long.iter().filter(|line| line.contains(name.as_str())).count(), 1, "{name}");
    }
    for name in &maps[55..] {
        assert!(short.iter().any(|line| line.contains(name.as_str())), "{name} is contested and not shown: {brief}");
    }
}

/// Thousands of Applications below a definition, and a chain of them as deep: every one is drawn once.
#[test]
fn plan_draws_large_and_deep_trees() {
    let folder = tempfile::tempdir().unwrap();
    let number = 3000;
    let chain = |number: usize| format!("app-{number:04}");
    let items: Vec<serde_json::Value> = (0..number)
        .map(|at| {
            let next = chain(at + 1);
            let mut app = application(&chain(at), &[]);
            app["status"]["resources"] = json!([{"group": "argoproj.io", "kind": "Application", "namespace": "argocd",
                "name": next, "version": "v1alpha1", "status": "Synced"}]);
            app["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id":
                format!("app-{:04}:argoproj.io/Application:argocd/{}", at.saturating_sub(1), chain(at))});
            app
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let snapshot = file(folder.path(), "cluster.json", &list.to_string());
    let plan = |more: &[&str]| {
        let arguments = ["plan", "app", "app-0000", "--snapshot", snapshot.to_str().unwrap(), "--now", NOW];
        stdout(&guard(&[&arguments, more].concat()))
    };
    let (brief, whole) = (plan(&[]), plan(&["--all"]));
    assert!(brief.contains("… 1 below, --all shows them"), "{}", &brief[..brief.len().min(4000)]);
    assert!(whole.lines().filter(|line| line.contains("Application argocd/app-")).count() >= number);
    assert!(whole.lines().all(|line| line.chars().count() < 400), "a line runs out of sight");
}
