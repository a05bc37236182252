//! `runtime-dependency`: who stays behind without a ServiceAccount or its rights.

use serde_json::{Value, json};

use crate::{support::policy, world::*};

const ACCOUNT: &str = "ServiceAccount flink/flink";
const ROLE: &str = "rbac.authorization.k8s.io/Role flink/lead";
const BINDING: &str = "rbac.authorization.k8s.io/RoleBinding flink/lead";
const DEPLOYMENT: &str = "apps/Deployment flink/jobs";
const ROOT: &str = "argoproj.io/Application argocd/rbac";

fn owned(object: Value, group: &str, kind: &str, name: &str) -> Value {
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    with(
        object,
        "/metadata/ownerReferences",
        json!([{"apiVersion": version, "kind": kind, "name": name, "uid": "o", "controller": true}]),
    )
}

fn pod(path: &str, account: &str) -> Value {
    let pod = with(object(&format!("Pod {path}"), ""), "/spec", json!({"serviceAccountName": account}));
    with(pod, "/status", json!({"phase": "Running"}))
}

/// A Deployment with its ReplicaSet and a Pod under the ServiceAccount `flink`.
fn workload() -> Vec<Value> {
    vec![
        object(DEPLOYMENT, ""),
        owned(object("apps/ReplicaSet flink/jobs-6d5f", ""), "apps", "Deployment", "jobs"),
        owned(pod("flink/jobs-6d5f-x2", "flink"), "apps", "ReplicaSet", "jobs-6d5f"),
    ]
}

fn binding(text: &str, role: (&str, &str), subjects: Value) -> Value {
    let binding = with(object(text, ""), "/roleRef", json!({"kind": role.0, "name": role.1}));
    with(binding, "/subjects", subjects)
}

fn flink() -> Value {
    json!([{"kind": "ServiceAccount", "namespace": "flink", "name": "flink"}])
}

/// ServiceAccount, Role and RoleBinding. Argo CD has marked those that the Application `rbac` lists.
fn rbac(listed: &[&str]) -> Vec<Value> {
    let marked = |text: &str, object: Value| {
        let key = "/metadata/annotations/argocd.argoproj.io~1tracking-id";
        if listed.contains(&text) { with(object, key, "rbac:g/Kind:flink/name") } else { object }
    };
    vec![
        marked(ACCOUNT, object(ACCOUNT, "")),
        marked(ROLE, object(ROLE, "")),
        marked(BINDING, binding(BINDING, ("Role", "lead"), flink())),
    ]
}

fn cluster(objects: impl IntoIterator<Item = Vec<Value>>) -> World {
    World::new(objects.into_iter().flatten())
}

#[test]
fn cascade_that_takes_the_account_of_pods_that_stay_is_told() {
    let world = cluster([vec![app("rbac", &[ACCOUNT, ROLE, BINDING])], rbac(&[ACCOUNT, ROLE, BINDING]), workload()]);
    let answer = world.delete(ROOT, "alice");
    warned(&answer, &["Deployment flink/jobs loses ServiceAccount flink: leader election"]);
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    let enforced = world.under(policy(json!({"rules": {"runtimeDependency": {"mode": "enforce"}}})));
    refused(
        &enforced.delete(ROOT, "alice"),
        &[
            "leader election through the API stops",
            "kubectl -n flink set serviceaccount deployment/jobs OTHER",
            "kubectl -n flink annotate serviceaccount/flink argocd.argoproj.io/sync-options=Delete=false",
        ],
    );
}

#[test]
fn only_what_kubectl_can_change_is_advised_to_be_changed_with_it() {
    let enforce = policy(json!({"rules": {"runtimeDependency": {"mode": "enforce"}}}));
    let advice = |workload: Value, group: &str, kind: &str| {
        let pod =
            if kind == "Pod" { pod("flink/x", "flink") } else { owned(pod("flink/x-1", "flink"), group, kind, "x") };
        let world = cluster([vec![app("rbac", &[ACCOUNT]), workload, pod], rbac(&[ACCOUNT])]).under(enforce.clone());
        let message = world.delete(ROOT, "alice").message;
        let mut lines = message.split_once("What to do:\n").unwrap().1.lines();
        let first = lines.next().unwrap().to_owned();
        // What is a command stands on the line below.
        lines.next().filter(|line| line.starts_with("    ")).map_or(first, str::to_owned)
    };
    for (group, kind) in
        [("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"), ("", "ReplicationController")]
    {
        let text = if group.is_empty() { format!("{kind} flink/x") } else { format!("{group}/{kind} flink/x") };
        let said = advice(object(&text, ""), group, kind);
        assert!(said.ends_with(&format!("set serviceaccount {}/x OTHER", kind.to_lowercase())), "{said}");
    }
    // The API server refuses it: "pod updates may not change fields other than …", "spec.template: field is immutable".
    for (group, kind, words) in [
        (
            "",
            "Pod",
            "make Pod flink/x anew under another ServiceAccount first (spec.serviceAccountName cannot be changed",
        ),
        (
            "batch",
            "Job",
            "make Job flink/x anew under another ServiceAccount first (spec.template.spec.serviceAccountName",
        ),
        ("flink.apache.org", "FlinkDeployment", "where the manifest of FlinkDeployment flink/x names it"),
    ] {
        let text = if group.is_empty() { format!("{kind} flink/x") } else { format!("{group}/{kind} flink/x") };
        let said = advice(object(&text, ""), group, kind);
        assert!(said.contains(words) && !said.contains("kubectl"), "{said}");
    }
}

#[test]
fn rights_are_followed_from_roles_and_bindings_to_pods() {
    for object in [ROLE, BINDING] {
        let world = cluster([vec![app("rbac", &[object])], rbac(&[object]), workload()]);
        let kind = object.split([' ', '/']).nth(1).unwrap();
        let lost = format!("Deployment flink/jobs loses {kind} lead of ServiceAccount flink");
        warned(&world.delete(ROOT, "alice"), &[&lost]);
        warned(&world.delete(object, "alice"), &[&lost]);
    }
}

#[test]
fn cluster_role_is_followed_through_bindings_of_both_kinds() {
    const ROLE: &str = "rbac.authorization.k8s.io/ClusterRole lead";
    for bound_by in ["rbac.authorization.k8s.io/RoleBinding flink/x", "rbac.authorization.k8s.io/ClusterRoleBinding x"]
    {
        let objects =
            vec![app("rbac", &[ROLE]), object(ROLE, "rbac"), binding(bound_by, ("ClusterRole", "lead"), flink())];
        warned(
            &cluster([objects, workload()]).delete(ROOT, "alice"),
            &["loses ClusterRole lead of ServiceAccount flink"],
        );
    }
    // A Role of the same name in another namespace is another role.
    let objects =
        vec![app("rbac", &["rbac.authorization.k8s.io/Role other/lead"]), binding(BINDING, ("Role", "lead"), flink())];
    passes(&cluster([objects, workload()]).delete(ROOT, "alice"));
}

#[test]
fn groups_and_user_names_of_accounts_count() {
    let subjects = [
        json!({"kind": "Group", "name": "system:serviceaccounts:flink"}),
        json!({"kind": "Group", "name": "system:serviceaccounts"}),
        json!({"kind": "Group", "name": "system:authenticated"}),
        json!({"kind": "User", "name": "system:serviceaccount:flink:flink"}),
    ];
    for subject in subjects {
        let objects = vec![app("rbac", &[BINDING]), binding(BINDING, ("Role", "lead"), json!([subject]))];
        warned(
            &cluster([objects, workload()]).delete(ROOT, "alice"),
            &["Deployment flink/jobs loses RoleBinding lead"],
        );
    }
    for subject in [
        json!({"kind": "Group", "name": "system:serviceaccounts:other"}),
        json!({"kind": "User", "name": "alice"}),
        json!({"kind": "Group", "name": "system:masters"}),
    ] {
        let objects = vec![app("rbac", &[BINDING]), binding(BINDING, ("Role", "lead"), json!([subject]))];
        passes(&cluster([objects, workload()]).delete(ROOT, "alice"));
    }
}

#[test]
fn binding_that_another_one_stands_in_for_may_go() {
    let second = |role: (&str, &str), subjects: Value| {
        let other = binding("rbac.authorization.k8s.io/RoleBinding flink/second", role, subjects);
        cluster([vec![app("rbac", &[BINDING]), other], rbac(&[BINDING]), workload()]).delete(ROOT, "alice")
    };
    passes(&second(("Role", "lead"), flink()));
    passes(&second(("Role", "lead"), json!([{"kind": "Group", "name": "system:serviceaccounts:flink"}])));
    warned(&second(("Role", "other"), flink()), &["loses RoleBinding lead"]);
    warned(
        &second(("Role", "lead"), json!([{"kind": "ServiceAccount", "namespace": "flink", "name": "other"}])),
        &["loses RoleBinding lead"],
    );
}

#[test]
fn workload_that_goes_too_loses_nothing() {
    let mut objects = workload();
    objects[0] = object(DEPLOYMENT, "rbac");
    let all = app("rbac", &[ACCOUNT, ROLE, BINDING, DEPLOYMENT]);
    passes(&cluster([vec![all], rbac(&[ACCOUNT, ROLE, BINDING]), objects]).delete(ROOT, "alice"));
    // A Deployment that the cascade passes by stays, and loses its account.
    let mut objects = workload();
    objects[0] =
        with(object(DEPLOYMENT, "rbac"), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false");
    let world = cluster([vec![app("rbac", &[ACCOUNT, DEPLOYMENT])], rbac(&[ACCOUNT, DEPLOYMENT]), objects]);
    warned(&world.delete(ROOT, "alice"), &["Deployment flink/jobs loses ServiceAccount flink"]);
}

#[test]
fn operator_that_owns_the_workload_is_named_and_counts() {
    const OPERATED: &str = "flink.apache.org/FlinkDeployment flink/main";
    let mut objects = workload();
    objects[0] = owned(object(DEPLOYMENT, ""), "flink.apache.org", "FlinkDeployment", "main");
    objects.push(object(OPERATED, ""));
    let world = cluster([vec![app("rbac", &[ACCOUNT])], rbac(&[ACCOUNT]), objects.clone()]);
    warned(&world.delete(ROOT, "alice"), &["FlinkDeployment flink/main loses ServiceAccount flink"]);
    passes(
        &cluster([vec![app("rbac", &[ACCOUNT, OPERATED])], rbac(&[ACCOUNT, OPERATED]), objects]).delete(ROOT, "alice"),
    );
}

#[test]
fn pods_that_are_over_or_have_no_token_lose_nothing() {
    let alone = |path: &str, value: Value| {
        let objects = vec![app("rbac", &[BINDING]), with(pod("flink/alone", "flink"), path, value)];
        cluster([objects, rbac(&[BINDING])]).delete(ROOT, "alice")
    };
    warned(&alone("/status/phase", json!("Pending")), &["Pod flink/alone loses RoleBinding lead"]);
    passes(&alone("/status/phase", json!("Succeeded")));
    passes(&alone("/metadata/deletionTimestamp", json!("2026-11-29T11:59:00Z")));
    passes(&alone("/spec/automountServiceAccountToken", json!(false)));
    let projected = json!({"serviceAccountName": "flink", "automountServiceAccountToken": false,
        "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]});
    warned(&alone("/spec", projected), &["Pod flink/alone loses"]);
    // Without the account itself no Pod can start again, token or not.
    let objects =
        vec![app("rbac", &[ACCOUNT]), with(pod("flink/alone", "flink"), "/spec/automountServiceAccountToken", false)];
    warned(
        &cluster([objects, rbac(&[ACCOUNT])]).delete(ROOT, "alice"),
        &["Pod flink/alone loses ServiceAccount flink"],
    );
}

#[test]
fn pods_whose_namespace_goes_too_lose_nothing() {
    let namespace = approved(&object("Namespace flink", "rbac"));
    let world = cluster([
        vec![app("rbac", &["Namespace flink", ACCOUNT, ROLE, BINDING]), namespace],
        rbac(&["Namespace flink", ACCOUNT, ROLE, BINDING]),
        workload(),
    ]);
    passes(&world.delete(ROOT, "alice"));
    // Whoever deletes it directly hears what goes with it, and nothing of what would be lost.
    warned(&world.delete("Namespace flink", "bob"), &["Namespace flink takes along 1 running Pod"]);
}

#[test]
fn what_is_kept_takes_nothing_away() {
    let mut objects = rbac(&[ACCOUNT]);
    objects[0] = with(objects[0].clone(), "/metadata/annotations/argocd.argoproj.io~1sync-options", "Delete=false");
    passes(&cluster([vec![app("rbac", &[ACCOUNT])], objects, workload()]).delete(ROOT, "alice"));
    let kept = with(app("rbac", &[ACCOUNT]), "/metadata/finalizers", json!([]));
    passes(&cluster([vec![kept], rbac(&[ACCOUNT]), workload()]).delete(ROOT, "alice"));
}

#[test]
fn prune_is_told_unless_it_takes_the_workload_too() {
    let prunes = |lists: &[&str]| {
        let running = json!({"sync": {"prune": true}});
        let app = with(app("rbac", lists), "/operation", running);
        cluster([vec![app], rbac(&[ACCOUNT]), workload()]).delete(ACCOUNT, CONTROLLER)
    };
    warned(&prunes(&["ServiceAccount flink/flink Prune"]), &["Deployment flink/jobs loses ServiceAccount flink"]);
    passes(&prunes(&["ServiceAccount flink/flink Prune", "apps/Deployment flink/jobs Prune"]));
}

#[test]
fn replacement_and_the_rest_of_an_admitted_cascade_are_not_told() {
    let running = json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}});
    let replacing = with(app("rbac", &[ACCOUNT]), "/operation", running.clone());
    let replacing = with(replacing, "/status/operationState", json!({"phase": "Running", "operation": running}));
    passes(&cluster([vec![replacing], rbac(&[ACCOUNT]), workload()]).delete(ACCOUNT, CONTROLLER));
    let going = with(app("rbac", &[ACCOUNT]), "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z");
    passes(&cluster([vec![going], rbac(&[ACCOUNT]), workload()]).delete(ACCOUNT, CONTROLLER));
}

#[test]
fn child_applications_are_followed_by_name() {
    let root = app("rbac", &["argoproj.io/Application argocd/child"]);
    let account = object(ACCOUNT, "child");
    let world = cluster([vec![root, app("child", &[ACCOUNT]), account], workload()]);
    warned(&world.delete(ROOT, "alice"), &["Deployment flink/jobs loses ServiceAccount flink"]);
}

#[test]
fn what_was_not_read_is_said_and_never_refused() {
    let accounts: Vec<String> = (0..60).map(|number| format!("ServiceAccount flink/account-{number}")).collect();
    let lists: Vec<&str> = accounts.iter().map(String::as_str).collect();
    let world =
        World::new([app("rbac", &lists)]).under(policy(json!({"rules": {"runtimeDependency": {"mode": "enforce"}}})));
    warned(&world.delete(ROOT, "alice"), &["not read, so Pods that stay may lose their rights"]);
}

#[test]
fn rule_that_is_off_everywhere_says_nothing() {
    let world = cluster([vec![app("rbac", &[ACCOUNT])], rbac(&[ACCOUNT]), workload()]);
    let world = world.under(policy(json!({"rules": {"runtimeDependency": {"mode": "off"}}})));
    passes(&world.delete(ROOT, "alice"));
}

/// The Role of the binding with these rules, and a Role that another binding gives.
fn role_with(text: &str, verbs: Value) -> Value {
    with(object(text, ""), "/rules", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]))
}

const KEPT: &str = "/metadata/annotations/argocd.argoproj.io~1sync-options";

#[test]
fn account_that_is_kept_does_not_hide_the_rights_that_go() {
    let lists = [ACCOUNT, ROLE, BINDING];
    let mut objects = rbac(&lists);
    objects[0] = with(objects[0].clone(), KEPT, "Delete=false");
    let answer = cluster([vec![app("rbac", &lists)], objects.clone(), workload()]).delete(ROOT, "alice");
    warned(&answer, &["Deployment flink/jobs loses RoleBinding lead of ServiceAccount flink"]);
    // A Pod without a token needs the account, and the account stays.
    let tokenless = with(pod("flink/alone", "flink"), "/spec/automountServiceAccountToken", false);
    passes(&cluster([vec![app("rbac", &lists), tokenless], objects]).delete(ROOT, "alice"));
}

#[test]
fn binding_that_is_kept_is_worth_nothing_without_its_role() {
    let lists = [ROLE, BINDING];
    let mut objects = rbac(&lists);
    objects[2] = with(objects[2].clone(), KEPT, "Delete=false");
    let answer = cluster([vec![app("rbac", &lists)], objects, workload()]).delete(ROOT, "alice");
    warned(&answer, &["Deployment flink/jobs loses Role lead of ServiceAccount flink"]);
    // And the other way round: the role stays, and nothing gives it any more.
    let mut objects = rbac(&lists);
    objects[1] = with(objects[1].clone(), KEPT, "Delete=false");
    let answer = cluster([vec![app("rbac", &lists)], objects, workload()]).delete(ROOT, "alice");
    warned(&answer, &["Deployment flink/jobs loses RoleBinding lead of ServiceAccount flink"]);
    // All that is kept is kept.
    let all = [ACCOUNT, ROLE, BINDING];
    let objects = rbac(&all).into_iter().map(|object| with(object, KEPT, "Delete=false")).collect();
    passes(&cluster([vec![app("rbac", &all)], objects, workload()]).delete(ROOT, "alice"));
}

#[test]
fn right_that_a_binding_gives_which_the_cascade_passes_by_is_not_lost() {
    const SECOND: &str = "rbac.authorization.k8s.io/RoleBinding flink/second";
    let second = |marker: &str| {
        let other = with(
            binding(SECOND, ("Role", "lead"), flink()),
            "/metadata/annotations/argocd.argoproj.io~1tracking-id",
            format!("{marker}:g/Kind:flink/second"),
        );
        let objects = vec![app("rbac", &[BINDING, SECOND]), argocd_cm(json!({})), other];
        cluster([objects, rbac(&[BINDING]), workload()]).delete(ROOT, "alice")
    };
    passes(&second("other"));
    warned(&second("rbac"), &["Deployment flink/jobs loses RoleBinding lead and RoleBinding second"]);
}

#[test]
fn rights_are_compared_and_not_names_of_roles() {
    const OTHER: &str = "rbac.authorization.k8s.io/ClusterRole leader";
    let delete = |verbs: Value, bound_by: &str, subjects: Value| {
        let mut objects = rbac(&[ROLE, BINDING]);
        objects[1] = with(
            objects[1].clone(),
            "/rules",
            json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]}]),
        );
        let others = vec![role_with(OTHER, verbs), binding(bound_by, ("ClusterRole", "leader"), subjects)];
        cluster([vec![app("rbac", &[ROLE, BINDING])], objects, others, workload()]).delete(ROOT, "alice")
    };
    let (here, everywhere) =
        ("rbac.authorization.k8s.io/RoleBinding flink/leader", "rbac.authorization.k8s.io/ClusterRoleBinding leader");
    for bound_by in [here, everywhere] {
        passes(&delete(json!(["get", "update"]), bound_by, flink()));
        passes(&delete(json!(["*"]), bound_by, flink()));
        passes(&delete(json!(["*"]), bound_by, json!([{"kind": "Group", "name": "system:serviceaccounts:flink"}])));
        warned(&delete(json!(["get"]), bound_by, flink()), &["loses RoleBinding lead"]);
        let stranger = json!([{"kind": "ServiceAccount", "namespace": "flink", "name": "other"}]);
        warned(&delete(json!(["*"]), bound_by, stranger), &["loses RoleBinding lead"]);
    }
    // A right in another namespace is another right.
    let elsewhere = "rbac.authorization.k8s.io/RoleBinding other/leader";
    warned(&delete(json!(["*"]), elsewhere, flink()), &["loses RoleBinding lead"]);
}

#[test]
fn right_for_the_whole_cluster_is_not_given_by_a_binding_of_one_namespace() {
    const WIDE: &str = "rbac.authorization.k8s.io/ClusterRoleBinding lead";
    let delete = |other: &str| {
        let objects = vec![
            app("rbac", &[WIDE]),
            role_with("rbac.authorization.k8s.io/ClusterRole lead", json!(["get"])),
            role_with("rbac.authorization.k8s.io/ClusterRole same", json!(["get"])),
            with(
                binding(WIDE, ("ClusterRole", "lead"), flink()),
                "/metadata/annotations/argocd.argoproj.io~1tracking-id",
                "rbac:g/Kind:flink/name",
            ),
            binding(other, ("ClusterRole", "same"), flink()),
        ];
        cluster([objects, workload()]).delete(ROOT, "alice")
    };
    warned(&delete("rbac.authorization.k8s.io/RoleBinding flink/same"), &["loses ClusterRoleBinding lead"]);
    passes(&delete("rbac.authorization.k8s.io/ClusterRoleBinding same"));
}

#[test]
fn several_bindings_together_may_give_what_one_gave() {
    let delete = |verbs: [&str; 2]| {
        let mut objects = rbac(&[ROLE, BINDING]);
        objects[1] = with(
            objects[1].clone(),
            "/rules",
            json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]}]),
        );
        for (name, verb) in ["a", "b"].into_iter().zip(verbs) {
            objects.push(role_with(&format!("rbac.authorization.k8s.io/Role flink/{name}"), json!([verb])));
            let text = format!("rbac.authorization.k8s.io/RoleBinding flink/{name}");
            objects.push(binding(&text, ("Role", name), flink()));
        }
        cluster([vec![app("rbac", &[ROLE, BINDING])], objects, workload()]).delete(ROOT, "alice")
    };
    passes(&delete(["get", "update"]));
    warned(&delete(["get", "list"]), &["loses RoleBinding lead"]);
}

#[test]
fn binding_that_is_pruned_as_well_gives_nothing() {
    const NEW: &str = "rbac.authorization.k8s.io/RoleBinding flink/new";
    let delete = |new: &str| {
        let lists = [format!("{BINDING} Prune"), new.to_owned()];
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        let objects = vec![app("rbac", &lists), binding(NEW, ("Role", "lead"), flink())];
        cluster([objects, rbac(&[BINDING]), workload()]).delete(BINDING, CONTROLLER)
    };
    passes(&delete(NEW));
    warned(&delete(&format!("{NEW} Prune")), &["loses RoleBinding lead"]);
}

/// A prune of the ServiceAccount by an Application with this list, under a policy that enforces.
fn renamed(lists: &[&str], more: Vec<Value>) -> cascade_guard_core::admission::Response {
    let app = with(app("rbac", lists), "/operation", json!({"sync": {"prune": true}}));
    let world = cluster([vec![app], rbac(&[ACCOUNT]), workload(), more]);
    world.under(policy(json!({"rules": {"runtimeDependency": {"mode": "enforce"}}}))).delete(ACCOUNT, CONTROLLER)
}

#[test]
fn prune_by_the_application_that_lists_the_workloads_is_warned_of_at_most() {
    let gone = "ServiceAccount flink/flink Prune";
    warned(
        &renamed(&[gone, "ServiceAccount flink/flink2 OutOfSync", "apps/Deployment flink/jobs OutOfSync"], vec![]),
        &["without PruneLast=true on argocd/rbac Deployment flink/jobs loses ServiceAccount flink"],
    );
    refused(&renamed(&[gone], vec![]), &["Deployment flink/jobs loses ServiceAccount flink"]);
    // A workload outside the list is refused, and named alone.
    let stranger = owned(pod("flink/stranger-x2", "flink"), "apps", "StatefulSet", "stranger");
    let strangers = vec![object("apps/StatefulSet flink/stranger", ""), stranger];
    let answer = renamed(&[gone, "apps/Deployment flink/jobs OutOfSync"], strangers);
    refused(&answer, &["StatefulSet flink/stranger loses ServiceAccount flink"]);
    assert!(!answer.message.contains("Deployment flink/jobs"), "{}", answer.message);
}

#[test]
fn prune_of_a_binding_by_the_application_that_lists_the_workloads_is_warned_of_at_most() {
    let lists = [format!("{BINDING} Prune"), "apps/Deployment flink/jobs OutOfSync".to_owned()];
    let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
    let world = cluster([vec![app("rbac", &lists)], rbac(&[BINDING]), workload()]);
    let world = world.under(policy(json!({"rules": {"runtimeDependency": {"mode": "enforce"}}})));
    warned(&world.delete(BINDING, CONTROLLER), &["without PruneLast=true on argocd/rbac"]);
    // By hand it is refused.
    refused(&world.delete(BINDING, "alice"), &["Deployment flink/jobs loses RoleBinding lead"]);
}
