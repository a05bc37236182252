use super::*;
use serde_json::json;

fn view(object: &Value) -> View {
    View::parse(&object.to_string()).unwrap()
}

fn commit(letter: char) -> String {
    letter.to_string().repeat(40)
}

#[test]
fn source_of_a_revision_is_the_one_that_was_compared() {
    let view = view(&json!({
        "metadata": {"name": "a", "namespace": "n", "uid": "u"},
        "spec": {"sources": [{"repoURL": "new", "path": "p"}]},
        "status": {"reconciledAt": "2026-01-01T00:00:00Z", "sync": {
            "status": "Synced", "revisions": [commit('a'), "65.5.0"],
            "comparedTo": {"sources": [{"repoURL": "git", "path": "p"}, {"repoURL": "charts", "chart": "c"}]},
        }},
    }));
    assert_eq!(view.comparison.sources[0].repository, "git");
    assert_eq!(view.comparison.revisions, [commit('a'), "65.5.0".to_owned()]);
    assert!(view.comparison.sources[1].is_chart);
    assert!(view.distrust.is_some(), "the spec was edited since");
}

#[test]
fn hydrated_commit_stands_for_its_dry_one() {
    let object = |deployed: &str| {
        json!({
            "metadata": {"name": "a"},
            "spec": {"sourceHydrator": {
                "drySource": {"repoURL": "r", "path": "dry", "targetRevision": "main"},
                "syncSource": {"targetBranch": "env/prod", "path": "out"},
            }},
            "status": {
                "sourceHydrator": {"lastSuccessfulOperation": {"drySHA": commit('d'), "hydratedSHA": commit('e')}},
                "history": [{"revision": deployed, "source": {"repoURL": "r", "targetRevision": "env/prod"}}],
            },
        })
    };
    let known = view(&object(&commit('e')));
    assert_eq!((known.history[0].revisions.as_slice(), known.sources[0].path.as_str()), (&[commit('d')][..], "dry"));
    assert_eq!(view(&object(&commit('f'))).history[0].revisions, [""], "which dry commit that was, nobody knows");
}

#[test]
fn partial_sync_and_dry_run_deploy_nothing() {
    let of = |sync: Value| {
        let state = json!({"phase": "Succeeded", "operation": {"sync": sync}, "syncResult": {"revision": commit('a')}});
        view(&json!({"metadata": {"name": "a"}, "status": {"operationState": state}})).operation.whole
    };
    assert!(of(json!({})) && of(json!({"resources": []})));
    assert!(!of(json!({"dryRun": true})));
    assert!(!of(json!({"resources": [{"kind": "Job"}]})));
    assert!(!of(json!({"manifests": ["x"]})));
}

#[test]
fn children_and_ill_resources_are_listed() {
    let view = view(&json!({"metadata": {"name": "root", "namespace": "argocd"}, "status": {"resources": [
        {"group": "argoproj.io", "kind": "Application", "name": "web"},
        {"group": "argoproj.io", "kind": "Application", "name": "api", "namespace": "team"},
        {"group": "apps", "kind": "Deployment", "name": "d", "namespace": "x", "health": {"status": "Degraded"}},
        {"kind": "Service", "name": "s", "namespace": "x", "health": {"status": "Healthy"}},
    ]}}));
    assert_eq!(*view.children, [AppRef::new("argocd", "web"), AppRef::new("team", "api")]);
    assert_eq!(view.ill, ["Deployment x/d: Degraded"]);
    assert!(!view.prunes());
}
