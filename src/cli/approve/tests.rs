use std::sync::{Arc, Mutex};

use clap::Parser;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;

use super::*;
use cascade_guard_core::policy::Policy;

const NOW: &str = "2026-11-29T12:00:00.7Z";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(line: &str) -> Args {
    Line::parse_from(std::iter::once("approve").chain(line.split(' '))).args
}

/// The query and the body of every PATCH.
type Patches = Arc<Mutex<Vec<(String, Value)>>>;

/// An API server that knows one Namespace and one user, and notes what is patched.
fn server(meta: Value, may: bool, refusal: Option<&'static str>) -> (Client, Patches) {
    let patches = Patches::default();
    let seen = patches.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, meta) = (seen.clone(), meta.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let namespace = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta});
            let (code, answer) = match (parts.method.as_str(), parts.uri.path()) {
                ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews") => {
                    (201, json!({"metadata": {}, "status": {"userInfo": {"username": "alice"}}}))
                }
                ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") => {
                    let review: Value = serde_json::from_slice(&body).unwrap();
                    assert_eq!(
                        review["spec"]["resourceAttributes"],
                        json!({"verb": "approve", "group": "cascade-guard.io", "resource": "namespacedeletions", "name": "shop"})
                    );
                    (201, json!({"metadata": {}, "spec": {}, "status": {"allowed": may}}))
                }
                ("GET", "/api/v1/namespaces/shop") => (200, namespace),
                ("PATCH", "/api/v1/namespaces/shop") => {
                    let query = parts.uri.query().unwrap_or_default().to_owned();
                    seen.lock().unwrap().push((query, serde_json::from_slice(&body).unwrap()));
                    match refusal {
                        None => (200, namespace),
                        Some(why) => (
                            403,
                            json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": why}),
                        ),
                    }
                }
                other => panic!("{other:?}"),
            };
            Ok::<_, std::convert::Infallible>(
                Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap(),
            )
        }
    });
    (Client::new(service, "default"), patches)
}

fn shop() -> Value {
    json!({"name": "shop", "uid": "u-1", "annotations": {"cascade-guard.io/deletion-reason": "an earlier one"}})
}

fn policy(options: &str) -> Policy {
    Policy::parse(&format!(
        "{{apiVersion: cascade-guard.io/v1alpha1, kind: GuardPolicy, spec: {{rules: {{namespaceApproval: {{{options}}}}}}}}}"
    ))
    .unwrap()
}

async fn run_against(line: &str, client: &Client, policy: &Policy) -> anyhow::Result<ExitCode> {
    approve(&args(line), client, policy, &Clock::new(NOW.parse().unwrap(), jiff::tz::TimeZone::UTC)).await
}

#[tokio::test]
async fn approval_is_written_whole_in_the_current_users_name() {
    let (client, patches) = server(shop(), true, None);
    let code = run_against("shop --yes --reason CHG-1", &client, &policy("")).await.unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
    let patches = patches.lock().unwrap();
    let (query, patch) = &patches[0];
    assert!(query.contains("fieldManager=cascade-guard-approvals"), "{query}");
    assert_eq!(
        *patch,
        json!({"metadata": {"uid": "u-1", "annotations": {
            "cascade-guard.io/deletion-approved-by": "alice",
            "cascade-guard.io/deletion-approved-until": "2026-11-29T14:00:00Z",
            "cascade-guard.io/deletion-approved-uid": "u-1",
            "cascade-guard.io/deletion-reason": "CHG-1"}}})
    );
}

#[tokio::test]
async fn earlier_reason_does_not_stand_for_a_new_approval() {
    let (client, patches) = server(shop(), true, None);
    run_against("shop --yes --for 30m", &client, &policy("")).await.unwrap();
    let annotations = patches.lock().unwrap()[0].1["metadata"]["annotations"].clone();
    assert!(annotations["cascade-guard.io/deletion-reason"].is_null());
    assert_eq!(annotations["cascade-guard.io/deletion-approved-until"], "2026-11-29T12:30:00Z");
}

#[tokio::test]
async fn usual_time_is_no_longer_than_the_policy_allows() {
    let (client, patches) = server(shop(), true, None);
    run_against("shop --yes", &client, &policy("maxTTL: 45m")).await.unwrap();
    let annotations = patches.lock().unwrap()[0].1["metadata"]["annotations"].clone();
    assert_eq!(annotations["cascade-guard.io/deletion-approved-until"], "2026-11-29T12:45:00Z");
}

#[tokio::test]
async fn what_the_policy_forbids_is_not_even_sent() {
    let (client, patches) = server(shop(), true, None);
    for (line, options, said) in [
        ("shop --yes --for 3h", "maxTTL: 2h", "--for 3h is longer than the policy allows, 2h"),
        ("shop --yes", "requireReason: true", "pass --reason"),
    ] {
        let error = run_against(line, &client, &policy(options)).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let (client, _) =
        server(json!({"name": "shop", "uid": "u-1", "deletionTimestamp": "2026-11-29T11:00:00Z"}), true, None);
    let error = run_against("shop --yes", &client, &policy("")).await.unwrap_err().to_string();
    assert!(error.contains("already being deleted"), "{error}");
    assert!(patches.lock().unwrap().is_empty());
}

#[tokio::test]
async fn who_lacks_the_right_is_told_and_nothing_is_sent() {
    let (client, patches) = server(shop(), false, None);
    assert_eq!(run_against("shop --yes", &client, &policy("")).await.unwrap(), ExitCode::from(1));
    assert!(patches.lock().unwrap().is_empty());
    let said = lacks_right("bob", "shop");
    assert!(said.contains(how_to_check_the_right("shop").as_str()), "{said}");
}

#[test]
fn grant_for_one_namespace_reaches_no_other() {
    let said = lacks_right("bob", "shop");
    let (_, applied) = said.split_once("    printf %s ").unwrap();
    let (applied, wider) = applied.split_once(" | kubectl apply -f -\n").unwrap();
    let words = shlex::split(applied).unwrap();
    let grant: Value = serde_json::from_str(&words[0]).unwrap();
    let [role, binding] = grant["items"].as_array().unwrap().as_slice() else { panic!("{grant}") };
    assert_eq!(
        role["rules"][0],
        json!({"apiGroups": ["cascade-guard.io"], "resources": ["namespacedeletions"], "resourceNames": ["shop"], "verbs": ["approve"]})
    );
    assert!(role["rules"].as_array().unwrap().iter().all(|rule| rule["resourceNames"].is_array()), "{role}");
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], "bob");
    // What covers every Namespace says so, and is not called after one.
    assert!(wider.starts_with("or for every Namespace:") && !wider.contains("shop"), "{wider}");
}

#[tokio::test]
async fn refusal_of_the_api_server_is_exit_code_one() {
    let (client, patches) = server(shop(), true, Some("admission webhook denied the request"));
    assert_eq!(run_against("shop --yes", &client, &policy("")).await.unwrap(), ExitCode::from(1));
    assert_eq!(patches.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn dry_run_writes_nothing() {
    let (client, patches) = server(shop(), false, None);
    assert_eq!(run_against("shop --dry-run", &client, &policy("")).await.unwrap(), ExitCode::SUCCESS);
    assert!(patches.lock().unwrap().is_empty());
}

#[test]
fn durations_are_read_as_the_policy_reads_them() {
    for (text, minutes) in [("2h", 120), ("90m", 90), ("1h30m", 90), ("PT45M", 45)] {
        assert_eq!(duration(text), Ok(SignedDuration::from_mins(minutes)), "{text}");
    }
    for text in ["", "2", "tomorrow", "-1h", "0s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn withdrawal_takes_all_four_annotations_of_this_very_namespace() {
    let meta: ObjectMeta = serde_json::from_value(shop()).unwrap();
    let patch = withdrawal(&meta);
    assert_eq!(patch["metadata"]["uid"], "u-1");
    for key in APPROVAL_KEYS {
        assert_eq!(patch["metadata"]["annotations"].get(key), Some(&Value::Null), "{key}");
    }
}
