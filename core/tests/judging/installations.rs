//! Several Argo CDs on one cluster: who explains a delete, whose marker an object carries, and what counts for whom.

use serde_json::{Value, json};

use crate::{
    support::{fates, policy},
    world::*,
};

const ROLE: &str = "rbac.authorization.k8s.io/Role shop/api";
const APPLICATION: &str = "argoproj.io/Application";
const GITOPS: &str = "system:serviceaccount:gitops:gitops-argocd-application-controller";

/// The `argocd-cm` of an Argo CD.
fn settings(home: &str, data: Value) -> Value {
    with(argocd_cm(data), "/metadata/namespace", home)
}

/// What the processes of an Argo CD are told.
fn parameters(home: &str, namespaces: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm", "namespace": home},
        "data": {"application.namespaces": namespaces}})
}

/// The StatefulSet of the controller of an Argo CD, with its arguments.
fn controller(home: &str, account: &str, args: &[&str]) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "argocd-application-controller", "namespace": home,
            "labels": {"app.kubernetes.io/component": "application-controller", "app.kubernetes.io/part-of": "argocd"}},
        "spec": {"template": {"spec": {"serviceAccountName": account, "containers": [{"name": "c", "args": args}]}}}})
}

/// Two Argo CDs, of which the policy names the first.
fn two() -> Vec<Value> {
    vec![
        settings("argocd", json!({})),
        controller("argocd", "argocd-application-controller", &[]),
        settings("gitops", json!({})),
        controller("gitops", "gitops-argocd-application-controller", &[]),
    ]
}

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    World::new(two().into_iter().chain(objects))
}

fn going(app: Value) -> Value {
    with(app, "/metadata/deletionTimestamp", "2026-11-29T11:59:00Z")
}

fn replacing(app: Value) -> Value {
    with(app, "/operation", json!({"sync": {"syncOptions": ["Replace=true", "Force=true"]}}))
}

fn project(path: &str, spec: Value) -> Value {
    with(object(&format!("argoproj.io/AppProject {path}"), ""), "/spec", spec)
}

fn to(namespaces: &[&str]) -> Value {
    namespaces.iter().map(|namespace| json!({"server": "*", "namespace": namespace})).collect()
}

fn warns_nothing_of_claims(response: &cascade_guard_core::admission::Response) {
    assert!(response.allowed, "{}", response.message);
}

// ---- whose marker it is

#[test]
fn twins_without_ids_take_what_both_have_and_with_ids_they_do_not() {
    let twins = |lists: [&[&str]; 2]| [app("argocd/twin", lists[0]), app("gitops/twin", lists[1])];
    let both: [&[&str]; 2] =
        [&["ConfigMap a/one", "ConfigMap b/two Prune"], &["ConfigMap b/two", "ConfigMap a/one Prune"]];
    let objects = [object("ConfigMap a/one", "twin"), object("ConfigMap b/two", "twin")];
    for (name, other) in [("argocd/twin", "gitops/twin"), ("gitops/twin", "argocd/twin")] {
        let world = world(twins(both).into_iter().chain(objects.clone()));
        let response = world.delete(&format!("{APPLICATION} {name}"), "alice");
        refused(&response, &[other, "its marker cannot tell whether it is that of"]);
    }
    let ids =
        [settings("argocd", json!({"installationID": "one"})), settings("gitops", json!({"installationID": "two"}))];
    let mark = |object: Value, id: &str| with(object, "/metadata/annotations/argocd.argoproj.io~1installation-id", id);
    let objects = [mark(object("ConfigMap a/one", "twin"), "one"), mark(object("ConfigMap b/two", "twin"), "two")];
    let world = World::new(ids.into_iter().chain(twins(both)).chain(objects));
    for name in ["argocd/twin", "gitops/twin"] {
        passes(&world.delete(&format!("{APPLICATION} {name}"), "alice"));
    }
}

#[test]
fn plan_of_a_twin_holds_what_carries_the_name_although_its_list_does_not() {
    let objects: Vec<Value> = two()
        .into_iter()
        .chain([app("argocd/twin", &["ConfigMap a/one"]), app("gitops/twin", &["ConfigMap b/two"])])
        .chain([object("ConfigMap a/one", "twin"), object("ConfigMap b/two", "twin")])
        .collect();
    let snapshot = crate::support::snapshot(&objects);
    let policy = strict();
    let inventory = snapshot.inventory(&policy, (5, 6));
    let request = json!({"uid": "1", "kind": {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application"},
        "operation": "DELETE", "name": "twin", "namespace": "gitops", "userInfo": {"username": "alice"},
        "oldObject": app("gitops/twin", &["ConfigMap b/two"])});
    let fates = fates(&request, &snapshot, &inventory, &policy, NOW.parse().unwrap());
    assert!(fates.contains(&("core/ConfigMap/a/one".to_owned(), "contested")), "{fates:?}");
    assert!(fates.contains(&("core/ConfigMap/b/two".to_owned(), "deleted")), "{fates:?}");
}

#[test]
fn marker_with_the_name_of_another_installation_spares() {
    // `new` lives in the second installation and has taken the Role over.
    let world = world([app("argocd/old", &[ROLE]), app("gitops/new", &[ROLE]), object(ROLE, "new")]);
    passes(&world.delete(&format!("{APPLICATION} argocd/old"), "alice"));
    refused(&world.delete(&format!("{APPLICATION} gitops/new"), "alice"), &["argocd/old"]);
}

#[test]
fn object_of_one_of_two_namesakes_goes_by_hand_if_only_that_one_wants_it() {
    let other = app("gitops/twin", &["ConfigMap b/two"]);
    let mine = || app("argocd/twin", &[ROLE]);
    passes(&world([mine(), other.clone(), object(ROLE, "twin")]).delete(ROLE, "alice"));
    let both = world([mine(), app("gitops/twin", &[ROLE]), object(ROLE, "twin")]);
    refused(&both.delete(ROLE, "alice"), &["argocd/twin, gitops/twin"]);
}

#[test]
fn application_that_nobody_serves_takes_what_carries_either_of_its_names() {
    let unserved = || app("team/web", &[ROLE]);
    let both = |marker: &str| world([unserved(), app("argocd/new", &[ROLE]), object(ROLE, marker)]);
    for marker in ["web", "team_web"] {
        refused(&both(marker).delete(&format!("{APPLICATION} team/web"), "alice"), &["argocd/new"]);
    }
    passes(&both("new").delete(&format!("{APPLICATION} team/web"), "alice"));
    let served = World::new(
        [settings("argocd", json!({})), parameters("argocd", "team"), unserved(), app("argocd/new", &[ROLE])]
            .into_iter()
            .chain([object(ROLE, "web")]),
    );
    passes(&served.delete(&format!("{APPLICATION} team/web"), "alice"));
}

#[test]
fn config_map_in_a_tenants_namespace_takes_no_name_away() {
    let objects = |fake: bool| {
        let base = [settings("argocd", json!({})), parameters("argocd", "tenant"), app("tenant/web", &[ROLE])];
        let rest = [app("argocd/new", &[ROLE]), object(ROLE, "tenant_web")];
        let fake = fake.then(|| settings("tenant", json!({"application.resourceTrackingMethod": "label"})));
        World::new(base.into_iter().chain(rest).chain(fake))
    };
    for fake in [false, true] {
        refused(&objects(fake).delete(&format!("{APPLICATION} tenant/web"), "alice"), &["argocd/new"]);
    }
}

// ---- who is Argo CD

#[test]
fn found_controller_prunes_and_cascades_for_its_own_applications_and_no_others() {
    let prune = format!("{ROLE} Prune");
    let own = world([app("gitops/old", &[&prune]), app("gitops/new", &[ROLE]), object(ROLE, "old")]);
    refused(&own.delete(ROLE, GITOPS), &["this prune", "gitops/new"]);
    let foreign = world([app("argocd/old", &[&prune]), app("argocd/new", &[ROLE]), object(ROLE, "old")]);
    let response = foreign.delete(ROLE, GITOPS);
    refused(&response, &["argocd/new"]);
    assert!(!response.message.contains("this prune"), "{}", response.message);
    passes(&world([going(app("gitops/old", &[ROLE])), object(ROLE, "old")]).delete(ROLE, GITOPS));
    // The controller of the one Argo CD takes what only the other wants.
    let taken = world([going(app("gitops/old", &[])), app("argocd/new", &[ROLE]), object(ROLE, "")]);
    refused(&taken.delete(ROLE, GITOPS), &["argocd/new"]);
}

#[test]
fn replacement_by_a_controller_that_the_policy_does_not_name_is_judged_like_a_delete() {
    let objects = || [replacing(app("gitops/old", &[ROLE])), app("gitops/new", &[ROLE]), object(ROLE, "old")];
    refused(&world(objects()).delete(ROLE, GITOPS), &["gitops/new"]);
    let alone = || [replacing(app("gitops/old", &[ROLE])), object(ROLE, "old")];
    passes(&world(alone()).delete(ROLE, GITOPS));
    let mut spec = serde_json::to_value(&strict().spec).unwrap();
    spec["argocd"]["installations"] = json!(["gitops"]);
    warned(&world(objects()).under(policy(spec)).delete(ROLE, GITOPS), &["comes back in one Application's version"]);
}

#[test]
fn what_was_waived_holds_below_only_where_the_policy_names_the_argo_cd() {
    let objects = || {
        let old = with(going(app("gitops/old", &[ROLE])), "/spec/project", "sandbox");
        [old, app("gitops/new", &[ROLE]), object(ROLE, "old")]
    };
    let mut spec = serde_json::to_value(&strict().spec).unwrap();
    spec["overrides"] = json!([{"match": {"projects": ["sandbox"]}, "modes": {"sharedClaim": "warn"}}]);
    refused(&world(objects()).under(policy(spec.clone())).delete(ROLE, GITOPS), &["gitops/new"]);
    spec["argocd"]["installations"] = json!(["gitops"]);
    warned(&world(objects()).under(policy(spec)).delete(ROLE, GITOPS), &["gitops/new"]);
}

#[test]
fn waiver_from_above_reaches_what_its_project_permits_and_no_further() {
    let tenant = |destinations: Value| {
        let old = with(going(app("tenant/old", &[ROLE])), "/spec/project", "sandbox");
        let old = with(old, "/spec/destination/namespace", "tenant");
        let project = project("argocd/sandbox", json!({"destinations": destinations, "sourceNamespaces": ["tenant"]}));
        let mut spec = serde_json::to_value(&strict().spec).unwrap();
        spec["overrides"] = json!([{"match": {"projects": ["sandbox"]}, "modes": {"sharedClaim": "warn"}}]);
        let home = [settings("argocd", json!({})), parameters("argocd", "tenant")];
        World::new(home.into_iter().chain([old, project, app("argocd/new", &[ROLE]), object(ROLE, "tenant_old")]))
            .under(policy(spec))
    };
    warned(&tenant(to(&["tenant", "shop"])).delete(ROLE, CONTROLLER), &["argocd/new"]);
    warned(&tenant(to(&["*"])).delete(ROLE, CONTROLLER), &["argocd/new"]);
    refused(&tenant(to(&["tenant"])).delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn project_of_a_tenant_makes_nobody_argo_cd() {
    let mine = |home: &str| {
        project(
            &format!("{home}/mine"),
            json!({"destinations": to(&["*"]), "destinationServiceAccounts": [
            {"server": "*", "namespace": "*", "defaultServiceAccount": "evil:my-sa"}]}),
        )
    };
    let account = "system:serviceaccount:evil:my-sa";
    let x = || with(replacing(app("evil/x", &[ROLE])), "/spec/project", "mine");
    let rest = || [app("argocd/old", &[ROLE]), app("argocd/new", &[ROLE]), object(ROLE, "old")];
    let plain = World::new([settings("argocd", json!({})), mine("evil"), x()].into_iter().chain(rest()));
    refused(&plain.delete(ROLE, account), &["argocd/new"]);
    // Not even with an Argo CD of his own.
    let own = World::new(
        [settings("argocd", json!({})), settings("evil", json!({})), mine("evil"), x()].into_iter().chain(rest()),
    );
    refused(&own.delete(ROLE, account), &["argocd/new"]);
    let controller = controller("evil", "my-sa", &["--application-namespaces=*"]);
    let all = World::new(
        [settings("argocd", json!({})), settings("evil", json!({})), controller, x()].into_iter().chain(rest()),
    );
    refused(&all.delete(ROLE, account), &["argocd/new"]);
}

#[test]
fn argo_cd_that_says_it_serves_everything_has_no_say_in_what_a_named_one_serves() {
    let prune = format!("{ROLE} Prune");
    let evil = [
        settings("evil", json!({})),
        controller("evil", "my-sa", &["--application-namespaces=*"]),
        app("argocd/old", &[&prune]),
        app("argocd/new", &[ROLE]),
        object(ROLE, "old"),
    ];
    let response = world(evil).delete(ROLE, "system:serviceaccount:evil:my-sa");
    refused(&response, &["argocd/new"]);
    assert!(!response.message.contains("this prune"), "{}", response.message);
}

#[test]
fn application_that_the_controller_does_not_serve_explains_nothing() {
    let objects = |namespaces: &str| {
        let x = going(app("evil/x", &[ROLE]));
        World::new(
            [settings("argocd", json!({})), parameters("argocd", namespaces), x, app("argocd/new", &[ROLE])]
                .into_iter()
                .chain([app("argocd/other", &[ROLE]), object(ROLE, "evil_x")]),
        )
    };
    refused(&objects("evil").delete(ROLE, CONTROLLER), &["this cascade"]);
    let response = objects("team-*").delete(ROLE, CONTROLLER);
    refused(&response, &["argocd/new"]);
    assert!(!response.message.contains("this cascade"), "{}", response.message);
}

// ---- what counts

#[test]
fn claims_count_where_the_project_permits_them() {
    let tenant = |project: Value| {
        let x = with(app("tenant/x", &[ROLE]), "/spec/project", "p");
        let x = with(x, "/spec/destination/namespace", "shop");
        let home = [settings("argocd", json!({})), parameters("argocd", "*")];
        World::new(home.into_iter().chain([x, project, app("argocd/old", &[ROLE]), object(ROLE, "old")]))
            .delete(&format!("{APPLICATION} argocd/old"), "alice")
    };
    let p = |destinations: Value, sources: Value| {
        tenant(project("argocd/p", json!({"destinations": destinations, "sourceNamespaces": sources})))
    };
    refused(&p(to(&["shop"]), json!(["tenant"])), &["tenant/x"]);
    refused(&p(to(&["*"]), json!(["ten*"])), &["tenant/x"]);
    passes(&p(to(&["shop"]), json!([])));
    passes(&p(to(&["other"]), json!(["tenant"])));
    passes(&p(json!([{"server": "https://elsewhere", "namespace": "*"}]), json!(["tenant"])));
    passes(&tenant(project("argocd/default", json!({"destinations": to(&["*"])}))));
    // Nothing is known of projects.
    refused(&tenant(object("ConfigMap shop/c", "")), &["tenant/x"]);
    // A project of that name anywhere else is another one.
    refused(&tenant(project("tenant/p", json!({"destinations": to(&["none"])}))), &["tenant/x"]);
}

#[test]
fn application_at_home_claims_without_a_project() {
    let world = world([
        project("argocd/default", json!({"destinations": to(&["*"])})),
        with(app("argocd/new", &[ROLE]), "/spec/project", "gone"),
        app("argocd/old", &[ROLE]),
        object(ROLE, "old"),
    ]);
    refused(&world.delete(&format!("{APPLICATION} argocd/old"), "alice"), &["argocd/new"]);
}

#[test]
fn unknown_claimant_is_one_that_is_served_and_permitted() {
    let never = |project: &str| {
        let mut app = with(app("tenant/x", &[]), "/spec/project", project);
        app = with(app, "/spec/destination/namespace", "shop");
        app["status"] = json!({});
        app
    };
    let judge = |namespaces: &str, extra: Vec<Value>| {
        let home = [settings("argocd", json!({})), parameters("argocd", namespaces)];
        let rest = [never("p"), app("argocd/old", &[ROLE]), object(ROLE, "old")];
        World::new(home.into_iter().chain(rest).chain(extra)).delete(&format!("{APPLICATION} argocd/old"), "alice")
    };
    let p =
        |sources: Value| vec![project("argocd/p", json!({"destinations": to(&["*"]), "sourceNamespaces": sources}))];
    refused(&judge("tenant", p(json!(["tenant"]))), &["tenant/x was never compared"]);
    refused(&judge("/^ten.*$/", p(json!(["/tenant/"]))), &["tenant/x was never compared"]);
    passes(&judge("other", p(json!(["tenant"]))));
    passes(&judge("tenant", p(json!(["other"]))));
}

#[test]
fn what_an_unserved_application_lists_counts_all_the_same() {
    let world = World::new(
        [settings("argocd", json!({})), parameters("argocd", "other"), app("tenant/x", &[ROLE])]
            .into_iter()
            .chain([app("argocd/old", &[ROLE]), object(ROLE, "old")]),
    );
    refused(&world.delete(&format!("{APPLICATION} argocd/old"), "alice"), &["tenant/x"]);
}

// ---- clusters

fn named(app: Value, cluster: &str) -> Value {
    with(app, "/spec/destination", json!({"name": cluster, "namespace": "shop"}))
}

#[test]
fn claim_across_a_cluster_that_nobody_can_resolve_is_said_and_not_refused() {
    let objects = || [app("argocd/old", &[ROLE]), named(app("argocd/new", &[ROLE]), "prod"), object(ROLE, "old")];
    let old = format!("{APPLICATION} argocd/old");
    let new = format!("{APPLICATION} argocd/new");
    warned(
        &world(objects()).delete(&old, "alice"),
        &["argocd/new claims Role shop/api if prod, where it deploys to, is this"],
    );
    warned(
        &world(objects()).delete(&new, "alice"),
        &["argocd/old claims Role shop/api if prod, where this deploys to, is"],
    );
    warned(&world(objects()).delete(ROLE, "alice"), &["argocd/new"]);
    let aliased = |aliases: Value| {
        let mut spec = serde_json::to_value(&strict().spec).unwrap();
        spec["argocd"]["clusterAliases"] = aliases;
        world(objects()).under(policy(spec)).delete(&old, "alice")
    };
    refused(&aliased(json!([["prod", "in-cluster"]])), &["argocd/new"]);
    passes(&aliased(json!([["prod"]])));
    passes(&aliased(json!([["prod", "https://east.example.com"]])));
    let going = [app("argocd/old", &[ROLE]), named(going(app("argocd/new", &[ROLE])), "prod"), object(ROLE, "old")];
    passes(&world(going).delete(&old, "alice"));
}

#[test]
fn namespace_that_may_hold_claims_from_such_a_cluster_is_said_to() {
    let objects = [
        with(
            app("argocd/new", &[ROLE, "ConfigMap shop/c"]),
            "/spec/destination",
            json!({"name": "prod", "namespace": "shop"}),
        ),
        approved(&object("Namespace shop", "")),
    ];
    warned(&world(objects).delete("Namespace shop", "alice"), &["argocd/new claims Namespace shop and 1 more if prod"]);
}

#[test]
fn below_such_a_root_it_is_said_again() {
    let new = || named(going(app("argocd/new", &[ROLE])), "prod");
    let objects = [new(), app("argocd/old", &[ROLE]), object(ROLE, "new")];
    warned(&world(objects).delete(ROLE, CONTROLLER), &["argocd/old", "prod may be this cluster"]);
    // A tenant who names a cluster at random waives nothing.
    let tenant = with(named(going(app("tenant/x", &[ROLE])), "nonsense"), "/spec/project", "p");
    let p = project("argocd/p", json!({"destinations": to(&["tenant"]), "sourceNamespaces": ["tenant"]}));
    let home = [settings("argocd", json!({})), parameters("argocd", "tenant"), p];
    let rest = [app("argocd/old", &[ROLE]), app("argocd/new", &[ROLE]), object(ROLE, "tenant_x")];
    let world = World::new(home.into_iter().chain([tenant]).chain(rest));
    refused(&world.delete(ROLE, CONTROLLER), &["argocd/new"]);
}

#[test]
fn urls_of_one_cluster_are_the_same_however_they_are_written() {
    let at = |url: &str, name: &str| with(app(name, &[ROLE]), "/spec/destination/server", url);
    let delete = |a: &str, b: &str| {
        world([at(a, "argocd/old"), at(b, "argocd/new")]).delete(&format!("{APPLICATION} argocd/old"), "alice")
    };
    let rancher = "https://rancher.example.com/k8s/clusters/c-1";
    refused(&delete(rancher, "https://RANCHER.example.com:443/k8s/clusters/c-1/"), &["argocd/new"]);
    passes(&delete(rancher, "https://rancher.example.com/k8s/clusters/c-2"));
    passes(&delete(rancher, "https://rancher.example.com:8443/k8s/clusters/c-1"));
}

#[test]
fn second_argo_cd_lives_a_whole_life_without_a_refusal() {
    let web = || app("gitops/web", &[ROLE, "ConfigMap shop/c"]);
    let mine = || [object(ROLE, "web"), object("ConfigMap shop/c", "web")];
    passes(&world([web()].into_iter().chain(mine())).delete(&format!("{APPLICATION} gitops/web"), "alice"));
    for object in [ROLE, "ConfigMap shop/c"] {
        warns_nothing_of_claims(&world([going(web())].into_iter().chain(mine())).delete(object, GITOPS));
        warns_nothing_of_claims(&world([replacing(web())].into_iter().chain(mine())).delete(object, GITOPS));
        let pruning = app("gitops/web", &[&format!("{object} Prune")]);
        warns_nothing_of_claims(&world([pruning].into_iter().chain(mine())).delete(object, GITOPS));
    }
}
