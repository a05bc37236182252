//! Commands at a cluster: whose user and whose policy they judge by. The API server is a list of answers.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use serde_json::{Value, json};

use super::{NOW, file, guard, stdout};

type Answers = HashMap<&'static str, (u16, Value)>;

/// Answers until the test ends, and writes a kubeconfig that leads there.
fn serve(folder: &Path, answers: Answers) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::new(answers);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answers = answers.clone();
            thread::spawn(move || answer(stream.unwrap(), &answers));
        }
    });
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "c", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    file(folder, "kubeconfig", &kubeconfig.to_string())
}

fn answer(stream: TcpStream, answers: &Answers) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let target = first.split_whitespace().nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": format!("{path} was not found")});
    let (code, body) = answers.get(path).cloned().unwrap_or((404, missing));
    let body = body.to_string();
    let _ = write!(
        reader.into_inner(),
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

const POLICY: &str = "/apis/cascade-guard.io/v1alpha1/guardpolicies/default";

/// A cluster with one Namespace, whose deletion alice approved; she is also the current user.
fn cluster() -> Answers {
    let group = |name: &str, version: &str, kinds: &[(&str, &str, &str)]| {
        let resource = |(plural, kind, scope): &(&str, &str, &str)| {
            json!({"resource": plural, "responseKind": {"group": name, "version": version, "kind": kind}, "scope": scope,
                "verbs": ["get", "list"]})
        };
        let resources: Vec<Value> = kinds.iter().map(resource).collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
            "items": [{"metadata": {"name": name}, "versions": [{"version": version, "resources": resources}]}]})
    };
    let list = |items: Value| json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u", "annotations": {
        "cascade-guard.io/deletion-approved-by": "alice",
        "cascade-guard.io/deletion-approved-until": "2026-11-29T14:00:00Z",
        "cascade-guard.io/deletion-approved-uid": "u"}}});
    let argo = [
        ("applications", "Application", "Namespaced"),
        ("applicationsets", "ApplicationSet", "Namespaced"),
        ("appprojects", "AppProject", "Namespaced"),
    ];
    let core = [("namespaces", "Namespace", "Cluster"), ("secrets", "Secret", "Namespaced")];
    let policy = json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "default"},
        "spec": {"rules": {"namespaceApproval": {"mode": "enforce", "fourEyes": true}}}});
    let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
        "status": {"userInfo": {"username": "alice", "groups": ["shop-owners"]}}});
    HashMap::from([
        ("/api", (200, group("", "v1", &core))),
        ("/apis", (200, group("argoproj.io", "v1alpha1", &argo))),
        ("/apis/authentication.k8s.io/v1/selfsubjectreviews", (201, me)),
        (POLICY, (200, policy)),
        ("/api/v1/namespaces", (200, list(json!([shop])))),
        ("/api/v1/namespaces/shop", (200, shop)),
        ("/api/v1/secrets", (200, list(json!([])))),
        ("/apis/argoproj.io/v1alpha1/applications", (200, list(json!([])))),
        ("/apis/argoproj.io/v1alpha1/applicationsets", (200, list(json!([])))),
        ("/apis/argoproj.io/v1alpha1/appprojects", (200, list(json!([])))),
    ])
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = guard(&[arguments, &["--kubeconfig", kubeconfig.to_str().unwrap(), "--now", NOW]].concat());
    (output.status.code().unwrap(), stdout(&output), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn plan_judges_the_current_user_unless_another_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serve(folder.path(), cluster());
    let (code, out, err) = run(&kubeconfig, &["plan", "ns", "shop", "-n", "argocd"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(
        out.starts_with("Deleting Namespace shop as alice would be refused.") && out.contains("four eyes"),
        "{out}"
    );
    let (code, out, err) = run(&kubeconfig, &["plan", "ns", "shop", "--user", "bob"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.starts_with("Deleting Namespace shop as bob would be admitted."), "{out}");
}

#[test]
fn policy_explain_reads_the_policy_of_the_cluster_and_makes_none_up() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serve(folder.path(), cluster());
    let (code, out, err) = run(&kubeconfig, &["policy", "explain", "namespace", "shop"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("Namespace shop for alice\n"), "{out}");
    assert!(out.contains("\nnamespace-approval: enforce, by rules.namespaceApproval"), "{out}");

    let mut closed = cluster();
    let forbidden = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "guardpolicies is forbidden"});
    closed.insert(POLICY, (403, forbidden));
    let kubeconfig = serve(folder.path(), closed);
    let (code, out, err) = run(&kubeconfig, &["policy", "explain", "namespace", "shop"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("guardpolicies is forbidden") && err.contains("name a file with --policy"), "{err}");
}

#[test]
fn object_that_is_not_there_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serve(folder.path(), cluster());
    let said = |arguments: &[&str]| {
        let (code, _, err) = run(&kubeconfig, arguments);
        assert_eq!(code, 2, "{err}");
        err.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(said(&["plan", "application", "team/a"]), "error: there is no application team/a");
    assert_eq!(said(&["plan", "application", "a"]), "error: there is no application a");
    let needs = "error: secret a needs its namespace: write NAMESPACE/a, or pass -n";
    assert_eq!(said(&["plan", "secret", "a"]), needs);
}
