//! `control-plane`: definitions, projects and the Namespaces of Argo CD.

use serde_json::{Value, json};

use crate::world::*;

const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

fn crd(plural: &str, kind: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.argoproj.io"), "uid": "crd"},
        "spec": {"group": "argoproj.io", "scope": "Namespaced", "names": {"kind": kind, "plural": plural}}})
}

fn project(name: &str) -> Value {
    object(&format!("argoproj.io/AppProject argocd/{name}"), "")
}

fn in_project(app: Value, project: &str) -> Value {
    with(app, "/spec/project", project)
}

fn definition(plural: &str) -> String {
    format!("apiextensions.k8s.io/CustomResourceDefinition {plural}.argoproj.io")
}

#[test]
fn definition_of_applications_stays_while_one_exists() {
    let kept = with(app("kept", &["ConfigMap a/b"]), "/metadata/finalizers", json!([]));
    let apps = [app("one", &["ConfigMap a/one", "ConfigMap a/two"]), kept];
    let world = World::new(apps.into_iter().chain([crd("applications", "Application")]));
    refused(
        &world.delete(&definition("applications"), "alice"),
        &[
            "control-plane/definition",
            "takes 2 Applications; 1 of them with what it deployed (2 objects), 1 leaving it behind",
            "kubectl get applications.argoproj.io -A",
        ],
    );
    passes(&World::new([crd("applications", "Application")]).delete(&definition("applications"), "alice"));
}

#[test]
fn every_rule_that_refuses_names_a_way_out_and_the_object_itself_comes_first() {
    let namespaces: Vec<String> = (0..30).map(|number| format!("Namespace team-{number}")).collect();
    let lists: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    let live = namespaces.iter().map(|namespace| object(namespace, "one"));
    let world = World::new(live.chain([app("one", &lists), crd("applications", "Application")]));
    let answer = world.delete(&definition("applications"), "alice");
    refused(
        &answer,
        &["takes 1 Application", "kubectl get applications.argoproj.io -A", "    cascade-guard approve team-"],
    );
    let (own, below) = (answer.message.find("[control-plane/"), answer.message.find("[namespace-approval]"));
    assert!(own.is_some() && own < below, "{}", answer.message);
    assert!(answer.message.chars().count() <= 1000);
}

#[test]
fn definition_of_applicationsets_takes_what_they_generated() {
    let set = object("argoproj.io/ApplicationSet argocd/set", "");
    let owner =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "uid-set"}]);
    let generated = with(app("one", &["ConfigMap a/one"]), "/metadata/ownerReferences", owner);
    let world =
        World::new([set, generated, app("other", &["ConfigMap a/one"]), crd("applicationsets", "ApplicationSet")]);
    refused(
        &world.delete(&definition("applicationsets"), "alice"),
        &[
            "takes 1 ApplicationSet, then the 1 Application they generated",
            "ConfigMap a/one is claimed by argocd/other",
        ],
    );
}

#[test]
fn definition_of_projects_makes_applications_undeletable() {
    let world = World::new([project("default"), app("one", &[]), crd("appprojects", "AppProject")]);
    refused(
        &world.delete(&definition("appprojects"), "alice"),
        &["takes 1 AppProject; without them 1 Application can neither be synced nor deleted"],
    );
}

#[test]
fn definition_that_something_replaces_still_loses_its_instances() {
    let crd = crd("appprojects", "AppProject");
    let app = app("argo", &["apiextensions.k8s.io/CustomResourceDefinition appprojects.argoproj.io"]);
    let app = with(app, "/operation", json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}}));
    let app = with(
        app,
        "/status/operationState",
        json!({"phase": "Running", "operation": {"sync": {"syncOptions": ["Replace=true", "Force=true"]}}}),
    );
    let world = World::new([project("team"), app, crd]);
    refused(&world.delete(&definition("appprojects"), CONTROLLER), &["control-plane/definition"]);
}

#[test]
fn project_stays_while_an_application_uses_it() {
    let world = World::new([project("team"), in_project(app("one", &[]), "team"), app("two", &[])]);
    refused(
        &world.delete("argoproj.io/AppProject argocd/team", SERVER),
        &[
            "AppProject argocd/team is used by argocd/one; without it that Application can neither be synced nor deleted",
            "argocd app set argocd/one --project OTHER",
            FINALIZER,
        ],
    );
    passes(&World::new([project("team"), app("two", &[])]).delete("argoproj.io/AppProject argocd/team", SERVER));
    // An Application that names no project uses `default`.
    let world = World::new([project("default"), in_project(app("one", &[]), "")]);
    refused(&world.delete("argoproj.io/AppProject argocd/default", SERVER), &["argocd/one"]);
}

#[test]
fn project_with_its_own_finalizer_waits_and_passes() {
    let project = with(project("team"), "/metadata/finalizers", json!([FINALIZER]));
    let world = World::new([project, in_project(app("one", &[]), "team")]);
    passes(&world.delete("argoproj.io/AppProject argocd/team", SERVER));
}

#[test]
fn project_of_another_argo_cd_with_that_name_is_another_project() {
    let settings = |namespace: &str| with(argocd_cm(json!({})), "/metadata/namespace", namespace);
    let one = in_project(app("other/one", &[]), "team");
    let world = World::new([project("team"), settings("argocd"), settings("other"), one]);
    passes(&world.delete("argoproj.io/AppProject argocd/team", SERVER));
}

#[test]
fn terminating_application_still_needs_its_project() {
    let one = with(in_project(app("one", &[]), "team"), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    let world = World::new([project("team"), one]);
    refused(&world.delete("argoproj.io/AppProject argocd/team", SERVER), &["argocd/one"]);
}

#[test]
fn cascade_that_takes_a_project_others_use_is_refused_at_the_root() {
    let root = app("root", &["argoproj.io/AppProject argocd/team"]);
    let one = in_project(app("one", &[]), "team");
    let world = World::new([root.clone(), project("team"), one.clone()]);
    refused(&world.delete("argoproj.io/Application argocd/root", "alice"), &["control-plane/project", "argocd/one"]);
    // The cascade passes by what is marked to be kept.
    let kept = with(project("team"), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false");
    passes(&World::new([root, kept, one]).delete("argoproj.io/Application argocd/root", "alice"));
}

#[test]
fn cascade_that_takes_a_project_before_its_applications_warns() {
    let lists = ["argoproj.io/AppProject argocd/team", "argoproj.io/Application argocd/one"];
    let waves = |project: i64, child: i64| {
        let mut root = app("root", &lists);
        root["status"]["resources"][0]["syncWave"] = json!(project);
        root["status"]["resources"][1]["syncWave"] = json!(child);
        World::new([root, self::project("team"), in_project(app("one", &["ConfigMap a/b"]), "team")])
            .delete("argoproj.io/Application argocd/root", "alice")
    };
    for (project, child) in [(0, 0), (1, 0)] {
        warned(&waves(project, child), &["AppProject argocd/team is gone before argocd/one"]);
    }
    // Higher waves are deleted first.
    passes(&waves(-1, 0));
}

#[test]
fn home_of_argo_cd_goes_only_with_an_approval_that_says_what_follows() {
    let home = object("Namespace argocd", "");
    let tenant = with(app("team/one", &[]), "/status/controllerNamespace", "argocd");
    let apps = [app("one", &["ConfigMap a/b"]), tenant];
    let world = World::new(apps.iter().cloned().chain([home.clone()]));
    refused(
        &world.delete("Namespace argocd", "alice"),
        &[
            "control-plane/namespace",
            "Namespace argocd: Argo CD lives in it; 1 Application in it: what they deployed goes too (1 object)",
            "1 Application elsewhere would have no controller and hang",
            "cascade-guard approve argocd",
        ],
    );
    let world = World::new([apps[0].clone(), approved(&home)]);
    warned(&world.delete("Namespace argocd", "bob"), &["[control-plane] Namespace argocd: Argo CD lives in it"]);
}

#[test]
fn namespace_of_applications_goes_only_with_an_approval() {
    let tenant = object("Namespace team", "");
    let one = app("team/one", &["ConfigMap a/b"]);
    let world = World::new([tenant.clone(), one.clone()]);
    refused(&world.delete("Namespace team", "alice"), &["control-plane/namespace", "1 Application in it"]);
    warned(&World::new([approved(&tenant), one]).delete("Namespace team", "bob"), &["1 Application in it"]);
    let set = object("argoproj.io/ApplicationSet team/set", "");
    refused(&World::new([tenant, set]).delete("Namespace team", "alice"), &["1 ApplicationSet in it"]);
}

#[test]
fn cascade_that_takes_the_home_of_argo_cd_is_refused_at_the_root() {
    let world = World::new([app("argo", &["Namespace argocd"]), object("Namespace argocd", "argo")]);
    refused(&world.delete("argoproj.io/Application argocd/argo", "alice"), &["control-plane/namespace"]);
}

#[test]
fn what_is_half_gone_is_not_held_up_by_the_control_plane() {
    let gone = "2026-11-29T11:00:00Z";
    let home = with(object("Namespace argocd", ""), "/metadata/deletionTimestamp", gone);
    let world = World::new([home, project("team"), in_project(app("one", &[]), "team")]);
    passes(&world.delete("Namespace argocd", "alice"));
    passes(&world.delete("argoproj.io/AppProject argocd/team", NAMESPACE_CONTROLLER));
}

#[test]
fn cluster_that_applications_deploy_to_is_not_forgotten() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster-east", "namespace": "argocd", "uid": "s",
        "labels": {"argocd.argoproj.io/secret-type": "cluster"}}, "stringData": {"name": "east", "server": "https://east.example.com"}});
    let east = |name: &str, destination: Value| with(app(name, &[]), "/spec/destination", destination);
    let by_name = east("one", json!({"name": "east"}));
    let by_server = east("two", json!({"server": "https://east.example.com/"}));
    let world = World::new([secret.clone(), by_name.clone(), by_server, app("local", &[])]);
    refused(
        &world.delete("Secret argocd/cluster-east", "alice"),
        &["control-plane/cluster-secret", "Secret argocd/cluster-east: 2 Applications deploy to east"],
    );
    passes(&World::new([secret.clone(), app("local", &[])]).delete("Secret argocd/cluster-east", "alice"));
    // Inside a plan it counts as well, and what goes with the plan does not need it.
    let clusters = app("clusters", &["Secret argocd/cluster-east"]);
    let world = World::new([secret.clone(), by_name.clone(), clusters]);
    refused(&world.delete("argoproj.io/Application argocd/clusters", "alice"), &["1 Application deploys to east"]);
    let all = app("clusters", &["Secret argocd/cluster-east", "argoproj.io/Application argocd/one"]);
    let world = World::new([secret.clone(), by_name.clone(), all]);
    passes(&world.delete("argoproj.io/Application argocd/clusters", "alice"));
    // What was admitted at the root is not refused below it.
    let leaving = with(app("clusters", &["Secret argocd/cluster-east"]), "/metadata/deletionTimestamp", NOW);
    let marked =
        with(secret, "/metadata/annotations/argocd.argoproj.io~1tracking-id", "clusters:/Secret:argocd/cluster-east");
    passes(&World::new([marked, by_name, leaving]).delete("Secret argocd/cluster-east", CONTROLLER));
}

#[test]
fn project_pruned_by_the_application_that_lists_its_users_is_warned_of_at_most() {
    const TEAM: &str = "argoproj.io/AppProject argocd/team";
    let prune = format!("{TEAM} Prune");
    let child = || in_project(app("one", &[]), "team");
    let world = |lists: &[&str], more: Vec<Value>| {
        let root = with(app("root", lists), "/operation", json!({"sync": {"prune": true}}));
        let marked = with(project("team"), "/metadata/annotations/argocd.argoproj.io~1tracking-id", "root:g/K:a/b");
        World::new([vec![root, marked, child()], more].concat())
    };
    let listed = ["argoproj.io/AppProject argocd/new OutOfSync", "argoproj.io/Application argocd/one OutOfSync"];
    let lists = [&prune, listed[0], listed[1]];
    warned(&world(&lists, vec![]).delete(TEAM, CONTROLLER), &["without PruneLast=true on argocd/root", "argocd/one"]);
    // A user outside the list is refused as ever, and named alone.
    let two = in_project(app("two", &[]), "team");
    let answer = world(&lists, vec![two]).delete(TEAM, CONTROLLER);
    refused(&answer, &["AppProject argocd/team is used by argocd/two;"]);
    refused(&world(&[&prune], vec![]).delete(TEAM, CONTROLLER), &["is used by argocd/one"]);
    // Nobody but the sync itself is let through.
    refused(&world(&lists, vec![]).delete(TEAM, "alice"), &["is used by argocd/one"]);
}

#[test]
fn message_about_the_namespace_of_argo_cd_keeps_what_it_costs() {
    let names: Vec<String> = (0..40).map(|number| format!("team-{number}")).collect();
    let mut objects: Vec<Value> = Vec::new();
    for name in &names {
        let namespace = format!("Namespace {name}");
        objects.push(app(name, &[&namespace, &format!("ConfigMap {name}/settings")]));
        objects.push(object(&namespace, name));
    }
    objects.extend([object("Namespace argocd", ""), argocd_cm(json!({}))]);
    let answer = World::new(objects).delete("Namespace argocd", "alice");
    refused(
        &answer,
        &[
            "Argo CD lives in it; 40 Applications in it: what they deployed goes too (80 objects)",
            "each of Namespaces argocd, team-0, team-1, team-2, team-3 and 36 more: it lacks",
            "cascade-guard plan namespace argocd",
        ],
    );
    let first = answer.message.lines().next().unwrap();
    assert!(
        first.starts_with("cascade-guard denied the delete of Namespace argocd. [control-plane/namespace] "),
        "{first}"
    );
    assert!(answer.message.chars().count() <= 1000 && !answer.message.contains('…'), "{}", answer.message);
    // The same is not said twice.
    let said_again = answer
        .warnings
        .iter()
        .filter_map(|warning| warning.split_once("] "))
        .any(|(_, text)| answer.message.contains(text));
    assert!(!said_again, "{answer:?}");
}

#[test]
fn instance_that_nobody_lists_may_be_wanted_by_an_application_that_was_never_compared() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com", "uid": "crd"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}}});
    let foos = "apiextensions.k8s.io/CustomResourceDefinition foos.example.com";
    let never_compared = |into: &str| {
        let app = with(app("new", &[]), "/status", json!({}));
        with(app, "/spec/destination/namespace", into)
    };
    let world = |into: &str, instance: &str| {
        World::new([definition.clone(), never_compared(into), object(&format!("example.com/Foo {instance}"), "")])
    };
    refused(&world("shop", "shop/a").delete(foos, "alice"), &["shared-claim/unknown", "argocd/new"]);
    warned(&world("elsewhere", "shop/a").delete(foos, "alice"), &["takes 1 Foo nobody claims: shop/a"]);
}
