//! The audit finds what is wrong, and judges as the webhook does.

use cascade_guard::{
    audit,
    audit::{ApprovalValidity, Document},
};
use cascade_guard_core::{
    admission,
    decision::{Decision, Effect},
    judge::{Case, judge_at_hand},
    object::KnownObject,
    policy::Mode,
    replay,
    report::Format,
    snapshot::Snapshot,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::audited;
use crate::support::{files, policy, snapshot};

const NOW: &str = "2026-11-29T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn app(name: &str, resources: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": "r", "path": name}, "destination": {"namespace": "shop", "server": "https://kubernetes.default.svc"}},
        "status": {"reconciledAt": "2026-11-29T11:00:00Z", "sync": {"status": "Synced"}, "resources": resources},
    })
}

fn role(name: &str) -> Value {
    json!({"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role", "namespace": "shop", "name": name, "status": "Synced"})
}

fn namespace(name: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": "u1", "annotations": annotations}})
}

fn live_role(name: &str, tracked_by: &str) -> Value {
    let id = format!("{tracked_by}:rbac.authorization.k8s.io/Role:shop/{name}");
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": "shop", "annotations": {"argocd.argoproj.io/tracking-id": id}}})
}

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {}})
}

/// Two Applications that share a Role which the first one tracks.
fn overlapping() -> Vec<Value> {
    vec![
        settings(),
        namespace("shop", json!({})),
        live_role("api", "old"),
        app("old", json!([role("api"), role("own")])),
        app("new", json!([role("api")])),
    ]
}

fn enforcing() -> cascade_guard_core::policy::Policy {
    policy(json!({"rules": {"sharedClaim": {"mode": "enforce"}, "namespaceApproval": {"mode": "enforce"}}}))
}

#[test]
fn object_claimed_twice_is_named_with_its_claimants_and_whose_cascade_deletes_it() {
    let document = audited(&snapshot(&overlapping()), &enforcing(), now());
    assert_eq!(document.audit.overlaps.len(), 1);
    let overlap = &document.audit.overlaps[0];
    assert_eq!(overlap.object.to_string(), "Role shop/api");
    assert_eq!(overlap.claimants, ["argocd/new", "argocd/old"]);
    assert_eq!(overlap.tracked_by.as_deref(), Some("old"));
}

#[test]
fn only_the_application_whose_cascade_takes_it_would_be_refused() {
    let document = audited(&snapshot(&overlapping()), &enforcing(), now());
    let refused: Vec<_> = document.audit.refusals.iter().filter(|refusal| !refusal.expected).collect();
    let applications: Vec<_> = refused.iter().map(|refusal| refusal.object.to_string()).collect();
    assert_eq!(applications, ["Application argocd/old"]);
    assert_eq!(document.audit.guarded(), 1, "the Namespace they live in is kept, as it should be");
    assert!(refused.iter().all(|refusal| refusal.refused && refusal.mode == Mode::Enforce));
    let finding = document.findings.iter().find(|finding| finding.object.name == "old").unwrap();
    assert_eq!(finding.effect, Some(Effect::Refused));
    assert!(finding.detail.contains("Role shop/api is claimed by argocd/new"), "{}", finding.detail);
}

#[test]
fn namespace_that_nobody_approved_is_guarded_and_no_finding() {
    let document = audited(&snapshot(&[namespace("shop", json!({}))]), &enforcing(), now());
    assert_eq!(document.audit.refusals.len(), 1);
    assert!(document.audit.refusals[0].expected);
    assert!(document.findings.is_empty(), "{:?}", document.findings);
}

#[test]
fn audit_mode_finds_the_same_and_refuses_nothing() {
    let world = snapshot(&overlapping());
    let (enforced, recorded) = (audited(&world, &enforcing(), now()), audited(&world, &policy(json!({})), now()));
    let what = |document: &Document| -> Vec<_> {
        document.audit.refusals.iter().map(|refusal| (refusal.object.clone(), refusal.rule.clone())).collect()
    };
    assert_eq!(what(&enforced), what(&recorded));
    assert!(recorded.audit.refusals.iter().all(|refusal| !refusal.refused));
}

#[test]
fn approvals_are_told_by_what_they_are_worth() {
    let approved = |name: &str, until: &str, uid: &str| {
        namespace(
            name,
            json!({"cascade-guard.io/deletion-approved-by": "alice", "cascade-guard.io/deletion-approved-until": until, "cascade-guard.io/deletion-approved-uid": uid}),
        )
    };
    let world = snapshot(&[
        approved("pending", "2026-11-29T20:00:00Z", "u1"),
        approved("ending", "2026-11-29T12:10:00Z", "u1"),
        approved("expired", "2026-11-29T10:00:00Z", "u1"),
        approved("other", "2026-11-29T20:00:00Z", "u0"),
        namespace("none", json!({})),
    ]);
    let document = audited(&world, &enforcing(), now());
    let states: Vec<_> =
        document.audit.approvals.iter().map(|approval| (approval.namespace.as_str(), approval.state)).collect();
    assert_eq!(
        states,
        [
            ("other", ApprovalValidity::Broken),
            ("expired", ApprovalValidity::Expired),
            ("ending", ApprovalValidity::Ending),
            ("pending", ApprovalValidity::Pending)
        ]
    );
    let found: Vec<_> = document.findings.iter().map(cascade_guard_core::report::ReportFinding::label).collect();
    assert_eq!(found, ["approval/broken", "approval/expired"]);
}

#[test]
fn exempt_and_overridden_namespaces_with_applications_are_told() {
    let policy = policy(json!({
        "rules": {"sharedClaim": {"mode": "enforce"}, "namespaceApproval": {"mode": "enforce"}},
        "overrides": [{"match": {"namespaces": ["shop"]}, "modes": {"sharedClaim": "warn"}}],
        "exemptions": [{"name": "x", "match": {"namespaces": ["shop", "empty"]}, "rules": ["namespaceApproval"], "until": "2027-01-01T00:00:00Z", "reason": "r"}],
    }));
    let world =
        snapshot(&[namespace("shop", json!({})), namespace("empty", json!({})), app("a", json!([role("api")]))]);
    let rows = audited(&world, &policy, now()).audit.unprotected;
    let rows: Vec<_> = rows.iter().map(|row| (row.namespace.as_str(), row.rule.as_str(), row.cause.as_str())).collect();
    assert_eq!(rows, [("shop", "namespaceApproval", "exemption"), ("shop", "sharedClaim", "override")]);
}

#[test]
fn ceiling_is_told_once_and_a_rule_in_audit_not_at_all() {
    let world = snapshot(&overlapping());
    let capped = audited(&world, &enforcing().with_ceiling(Mode::Audit), now()).audit.unprotected;
    assert!(capped.iter().all(|row| row.cause == "ceiling" && row.namespace.is_empty()));
    assert_eq!(capped.iter().map(|row| row.rule.as_str()).collect::<Vec<_>>(), ["namespaceApproval", "sharedClaim"]);
    assert!(audited(&world, &policy(json!({})), now()).audit.unprotected.is_empty());
}

#[test]
fn list_in_error_is_told_since_its_condition_began() {
    let mut broken = app("broken", json!([role("api")]));
    broken["status"]["conditions"] =
        json!([{"type": "ComparisonError", "message": "no such branch", "lastTransitionTime": "2026-11-20T00:00:00Z"}]);
    let mut stale = app("stale", json!([role("b")]));
    stale["status"]["sync"]["status"] = json!("Unknown");
    let rows = audited(&snapshot(&[broken, stale]), &enforcing(), now()).audit.untrusted;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.object.name.as_str(), row.since.unwrap().to_string(), row.message.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("broken", "2026-11-20T00:00:00Z".to_owned(), "no such branch"),
            ("stale", "2026-11-29T11:00:00Z".to_owned(), "")
        ]
    );
}

/// A Namespace on its way out, and in it the Job of a hook of `app`.
fn held_by_a_hook() -> Vec<Value> {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "shop",
        "deletionTimestamp": "2026-11-29T10:00:00Z", "finalizers": ["argocd.argoproj.io/hook-finalizer"],
        "annotations": {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/tracking-id": "web:batch/Job:shop/migrate"}}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u", "deletionTimestamp": "2026-11-29T10:00:00Z"},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating", "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain", "message": "Some resources are remaining: jobs.batch has 1 resource instances"},
            {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "reason": "ResourcesDiscovered", "message": "All resources successfully discovered"}]}});
    vec![settings(), namespace, job]
}

#[test]
fn hook_whose_operation_never_ends_is_named_with_the_line_that_mends_it() {
    let mut objects = held_by_a_hook();
    let mut running = app("web", json!([]));
    running["operation"] = json!({"sync": {}});
    objects.push(running);
    let stuck = audited(&snapshot(&objects), &enforcing(), now()).audit.terminating;
    let namespace = stuck.iter().find(|stuck| stuck.object.is_namespace()).unwrap();
    let named: Vec<_> = namespace.holders.iter().map(|holder| holder.what.as_str()).collect();
    assert_eq!(
        named,
        ["NamespaceContentRemaining", "Job shop/migrate (argocd.argoproj.io/hook-finalizer)", "kubernetes"]
    );
    assert_eq!(namespace.holders[1].why, "it is a hook of argocd/web, whose operation is still running");
    assert!(namespace.holders[1].mend.commands[0].as_str().starts_with("argocd app terminate-op argocd/web"));
    assert_eq!(namespace.remaining["Job.batch"], 1);
    let gone = audited(&snapshot(&held_by_a_hook()), &enforcing(), now()).audit.terminating;
    let job = gone.iter().find(|stuck| stuck.object.kind.kind == "Job").unwrap();
    assert!(job.holders[0].why.contains("web, which does not exist any more"), "{}", job.holders[0].why);
    assert_eq!(
        job.holders[0].mend.commands[0].as_str(),
        r#"kubectl patch job/migrate -n shop --type=json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'"#
    );
}

#[test]
fn young_deletion_is_not_stuck() {
    let world = snapshot(&held_by_a_hook());
    let soon = "2026-11-29T10:05:00Z".parse().unwrap();
    assert!(audited(&world, &enforcing(), soon).audit.terminating.is_empty());
}

#[test]
fn second_audit_tells_what_is_new_and_what_is_gone() {
    let earlier = audited(&snapshot(&overlapping()), &enforcing(), now());
    let mut objects = overlapping();
    objects[4] = app("new", json!([role("other")]));
    objects.push(app("third", json!([role("other")])));
    let later = audited(&snapshot(&objects), &enforcing(), now());
    // As the command does it: the earlier one comes out of a file.
    let earlier: Document = serde_json::from_str(&serde_json::to_string(&earlier).unwrap()).unwrap();
    let since = Document::new(later.audit, now(), Some(&earlier)).since.unwrap();
    let about = |findings: &[cascade_guard_core::report::ReportFinding], what: &str| {
        findings.iter().any(|finding| finding.label() == "shared-claim/overlap" && finding.object.name == what)
    };
    assert!(about(&since.new, "other") && !about(&since.new, "api"));
    assert!(about(&since.gone, "api") && !about(&since.gone, "other"));
}

#[test]
fn audit_is_in_every_format() {
    let document = audited(&snapshot(&overlapping()), &enforcing(), now());
    for format in [Format::Table, Format::Json, Format::Yaml, Format::Sarif, Format::Junit, Format::Github] {
        let text = document.report().write(format).unwrap();
        assert!(text.contains("Role shop/api"), "{format:?}: {text}");
    }
}

#[test]
fn page_shows_the_overlap_and_loads_nothing() {
    let mut objects = overlapping();
    objects.push(app("<script>alert(1)</script>", json!([role("own")])));
    let page = audit::html::page(&audited(&snapshot(&objects), &enforcing(), now()));
    assert!(page.contains("<svg") && page.contains("argocd/new") && page.contains("Role shop/api"));
    assert!(!page.contains("<script"), "what a name holds must not become a part of the page");
    for outside in ["http://", "https://", "url(", "@import", "src="] {
        assert!(!page.contains(outside), "the page must not refer to {outside}");
    }
}

#[test]
fn delete_too_large_to_be_followed_is_refused_and_not_guessed_at() {
    let config = |number: usize| json!({"kind": "ConfigMap", "namespace": "shop", "name": format!("c{number}"), "status": "Synced"});
    let mut objects: Vec<Value> = (0..210)
        .map(|number| {
            app(
                &format!("a{number}"),
                (0..1000).map(|object| config(number * 1000 + object)).collect::<Vec<_>>().into(),
            )
        })
        .collect();
    objects.push(namespace("argocd", json!({})));
    let document = audited(&snapshot(&objects), &enforcing(), now());
    let refused = document.audit.refusals.iter().find(|refusal| refusal.check == "too-large").unwrap();
    assert_eq!(refused.object.to_string(), "Namespace argocd");
    assert!(refused.refused && refused.details[0].contains("more than 200000 objects"), "{refused:?}");
}

/// Judges a DELETE as the webhook does: from the stored object, decoded anew.
fn reviewed(
    world: &Snapshot,
    policy: &cascade_guard_core::policy::Policy,
    object: &cascade_guard_core::object::ObjectRef,
) -> Decision {
    let inventory = world.inventory(policy, (7, 8));
    let user = admission::UserInfo { username: "kubectl-user".to_owned(), ..admission::UserInfo::default() };
    let body = admission::delete_review(object, &world.json_of(object).unwrap(), &user).unwrap();
    let request = admission::decode(&body).unwrap();
    judge_at_hand(Case::new(&request, policy, now()), &inventory, world).decision
}

fn foreseen(world: &Snapshot, policy: &cascade_guard_core::policy::Policy, subject: &KnownObject) -> Decision {
    let inventory = world.inventory(policy, (7, 8));
    let request = audit::deletion(&subject.object, "kubectl-user");
    let case = Case { known: Some(&subject.meta), ..Case::new(&request, policy, now()) };
    judge_at_hand(case, &inventory, world).decision
}

/// What was found, in any order, without the wording of objects whose names only a review carries.
fn essence(decision: &Decision) -> Vec<String> {
    let mut found: Vec<String> = decision
        .outcomes
        .iter()
        .map(|outcome| {
            let finding = &outcome.finding;
            let about = format!("{}/{} {:?}", finding.rule.id, finding.check, finding.severity);
            format!("{about} {} {} {:?} {:?}", finding.object, finding.detail, finding.claimants, outcome.effect)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn audit_judges_every_delete_as_the_webhook_does() {
    let policy = enforcing();
    let mut compared = 0;
    for file in files("cases", ".yaml") {
        let case: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let world = snapshot(case["cluster"].as_array().unwrap());
        for subject in world.subjects() {
            let is_root = ["Application", "ApplicationSet", "Namespace"].contains(&subject.object.kind.kind.as_str());
            if is_root && !subject.meta.is_terminating() {
                let (reviewed, foreseen) =
                    (reviewed(&world, &policy, &subject.object), foreseen(&world, &policy, &subject));
                assert_eq!(essence(&reviewed), essence(&foreseen), "{}: {}", file.display(), subject.object);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "only {compared} deletes were compared");
}

/// A view that may change at any moment gets no help from an earlier answer and no second thread.
#[test]
fn many_deletes_judged_together_are_judged_as_one_by_one() {
    let mut objects = overlapping();
    objects.extend((0..600).map(|number| namespace(&format!("team-{number}"), json!({}))));
    let lists = json!([role("api"), {"kind": "Namespace", "name": "shop", "version": "v1", "status": "Synced"}]);
    objects.push(app("third", lists));
    let (world, policy) = (snapshot(&objects), enforcing());
    let together = audited(&world, &policy, now()).audit.refusals;
    let changing = cascade_guard::state::LiveInventory::new(world.inventory(&policy, (7, 8)));
    let subjects = world.subjects();
    let around = audit::AuditInput { view: &changing, source: &world, policy: &policy, now: now(), objects: &subjects };
    let one_by_one = futures::executor::block_on(audit::scan(&around, &audit::Options::default(), &|_| {})).refusals;
    assert!(together.len() > 600 && together.iter().any(|refusal| refusal.object.name == "old"));
    assert_eq!(together, one_by_one);
}

fn event(annotation: bool, object: Value, code: u16) -> String {
    let annotations = if annotation {
        json!({"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "delete.cascade-guard.io"})
    } else {
        json!({})
    };
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "a1", "stage": "ResponseComplete",
        "verb": "delete", "requestURI": "/x", "user": {"username": "bob"}, "objectRef": object,
        "responseStatus": {"code": code}, "requestReceivedTimestamp": "2026-11-29T11:30:00.000000Z", "annotations": annotations,
    })
    .to_string()
}

#[test]
fn delete_that_was_let_through_is_judged_after_the_fact() {
    let old = json!({"resource": "applications", "apiGroup": "argoproj.io", "apiVersion": "v1alpha1", "namespace": "argocd", "name": "old"});
    let mut new = old.clone();
    new["name"] = json!("new");
    let mut missing = old.clone();
    missing["name"] = json!("gone");
    let log = [
        event(true, old.clone(), 200),
        event(true, new, 200),
        event(true, missing, 200),
        event(false, old.clone(), 200),
        event(true, old, 403),
    ]
    .join("\n");
    let events = replay::read("audit.log", &log).unwrap().events;
    let (world, policy) = (snapshot(&overlapping()), enforcing());
    let inventory = world.inventory(&policy, (1, 2));
    let found = futures::executor::block_on(audit::failed_open::find(&events, &inventory, &world, &policy, now()));
    let said: Vec<_> = found.iter().map(|one| (one.object.name.as_str(), one.known, one.refusals.len())).collect();
    assert_eq!(said, [("old", true, 1), ("new", true, 0), ("gone", false, 0)]);
    assert_eq!(
        found[0].sentence(),
        "bob deleted Application argocd/old at 2026-11-29T11:30:00Z, while delete.cascade-guard.io did not answer"
    );
    let document = Document::new(audit::Audit { failed_open: found, ..audit::Audit::default() }, now(), None);
    let labels: Vec<_> = document.findings.iter().map(cascade_guard_core::report::ReportFinding::label).collect();
    assert_eq!(labels, ["failed-open", "failed-open/not-judged"]);
}
