//! From watches to inventory, policy and readiness, with an API server that misbehaves on demand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

#[path = "serving/api.rs"]
mod api;

use std::{io, sync::Arc, time::Duration};

use api::{FakeApi, Reply};
use cascade_guard::{
    cluster::{Cluster, Health, Kinds, SILENCE, STALE_AFTER},
    state::{LiveInventory, LivePolicy, Readiness, Requirement},
    telemetry::{Metrics, log},
};
use cascade_guard_core::{
    argo::Clusters,
    inventory::Inventory,
    object::ObjectRef,
    policy::{Mode, Policy, RuleKey},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/applications";
const NAMESPACES: &str = "/api/v1/namespaces";
const POLICIES: &str = "/apis/cascade-guard.io/v1alpha1/guardpolicies";
/// Nothing here takes long. What takes this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    api: FakeApi,
    inventory: Arc<LiveInventory>,
    policy: Arc<LivePolicy>,
    readiness: Arc<Readiness>,
    health: Arc<Health>,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl World {
    fn start(api: FakeApi) -> Self {
        Self::start_with(api, SILENCE)
    }

    fn start_with(api: FakeApi, silence: Duration) -> Self {
        Self::start_watched(api, silence, STALE_AFTER)
    }

    /// A cluster whose claims are stale after so long without a sign.
    fn start_watched(api: FakeApi, silence: Duration, stale_after: Duration) -> Self {
        let metrics = Arc::new(Metrics::new());
        let inventory = Arc::new(LiveInventory::new(Inventory::new((1, 2), "argocd", Clusters::default())));
        let policy = Arc::new(LivePolicy::new(Policy::default(), Mode::Enforce, metrics.clone()));
        let readiness = Arc::new(Readiness::default());
        let health = Arc::new(Health::new(stale_after));
        for condition in [Requirement::Policy, Requirement::Claims] {
            readiness.missing(condition, "the test has only just begun");
        }
        let cluster = Cluster {
            client: api.client(),
            kinds: Arc::new(Kinds::default()),
            inventory: inventory.clone(),
            policy: policy.clone(),
            watch_policy: true,
            readiness: readiness.clone(),
            metrics,
            health: health.clone(),
            silence,
        };
        let running = tokio::spawn(cluster.run());
        Self { api, inventory, policy, readiness, health, running }
    }

    async fn ready(api: FakeApi) -> Self {
        let world = Self::start(api);
        let ready = tokio::time::timeout(PATIENCE, world.readiness.wait_for(Requirement::Claims)).await;
        assert!(ready.is_ok(), "never ready: {:?}", world.readiness.report());
        assert!(world.readiness.is_ready() && world.inventory.read().is_ready());
        world
    }

    /// Waits until something is so.
    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !so(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
            "never so: {what}; {:?}",
            self.readiness.report()
        );
    }

    /// How often Applications were asked for: lists from the beginning, or watches.
    fn asked(&self, watch: bool) -> usize {
        let requests = self.api.requests();
        // ApplicationSets begin with the same letters.
        let of_applications = requests.iter().filter(|(path, _)| path.starts_with(&format!("{APPLICATIONS}?")));
        // A read of one object only asks whether anybody is there.
        let whole = of_applications.filter(|(path, _)| !path.ends_with("limit=1") && !path.contains("limit=1&"));
        whole.filter(|(path, _)| path.contains("watch=true") == watch && !path.contains("continue=")).count()
    }

    /// Why `/readyz` says that claims are not fresh, if it does.
    fn not_fresh(&self) -> Option<String> {
        let report = self.readiness.report();
        report.into_iter().find(|(condition, _)| *condition == Requirement::FreshClaims).map(|(_, why)| why)
    }

    fn has(&self, name: &str) -> bool {
        self.inventory.read().app_named("argocd", name).is_some()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

fn application(name: &str, resources: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "5"},
        "spec": {"destination": {"name": "in-cluster", "namespace": "shop"}},
        "status": {"sync": {"status": "Synced"}, "resources": resources},
    })
}

fn namespace(name: &str) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": name, "resourceVersion": "5"}})
}

fn policy(generation: u64, mode: &str) -> Value {
    json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy",
        "metadata": {"name": "default", "uid": "p", "generation": generation, "resourceVersion": "5"},
        "spec": {"rules": {"syncWave": {"mode": mode}}}})
}

#[tokio::test]
async fn ready_once_applications_and_namespaces_are_listed_whatever_else_is_refused() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::list(&[application("shop", &json!([]))]));
    api.reply(NAMESPACES, Reply::list(&[namespace("shop")]));
    let forbidden = || Reply::failure(403, "Forbidden", "not for you");
    api.reply("/api/v1/namespaces/argocd/secrets", forbidden());
    api.reply("/api/v1/configmaps", forbidden());
    api.reply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", forbidden());
    api.reply("/apis/argoproj.io/v1alpha1/appprojects", Reply::Text(404, "404 page not found"));
    api.reply("/apis/argoproj.io/v1alpha1/applicationsets", Reply::failure(500, "InternalError", "broken"));
    let world = World::ready(api).await;
    assert!(world.has("shop"));
    assert!(world.inventory.read().namespace("shop").is_some());
}

#[tokio::test]
async fn optional_right_that_was_not_given_is_no_warning() {
    let lines = Lines::default();
    let writer = lines.clone();
    let (subscriber, _filter) = log::subscriber("info", move || writer.clone()).unwrap();
    let _logging = tracing::subscriber::set_default(subscriber);
    let api = FakeApi::new();
    let forbidden = || Reply::failure(403, "Forbidden", "not for you");
    api.reply("/api/v1/namespaces/argocd/secrets", forbidden());
    api.reply("/api/v1/configmaps", forbidden());
    let world = World::ready(api).await;
    world.until("both were said", |_| lines.text().matches("not for you").count() >= 2).await;
    let warned: Vec<String> = lines.text().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect();
    assert!(warned.iter().all(|line| !line.contains("cluster Secrets")), "{warned:?}");
    assert!(warned.iter().any(|line| line.contains("argocd-cm")), "the others are still warned of: {warned:?}");
}

#[tokio::test]
async fn cluster_without_argo_cd_is_ready_and_the_first_application_is_seen() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::Text(404, "404 page not found"));
    let world = World::ready(api).await;
    assert_eq!(world.inventory.read().applications().count(), 0);
    world.api.reply(APPLICATIONS, Reply::list(&[application("first", &json!([]))]));
    world.until("the first Application is known", |world| world.has("first")).await;
}

#[tokio::test]
async fn without_the_right_to_list_applications_it_is_not_ready_and_says_so() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::failure(403, "Forbidden", "applications is forbidden"));
    let world = World::start(api);
    world
        .until("the reason is reported", |world| {
            let report = world.readiness.report();
            report.len() == 1
                && report[0].1.contains("Applications: the list failed")
                && report[0].1.contains("forbidden")
        })
        .await;
    assert!(!world.inventory.read().is_ready());
    world.api.reply(APPLICATIONS, Reply::list(&[]));
    world.until("it is ready", |world| world.readiness.is_ready()).await;
}

#[tokio::test]
async fn application_that_cannot_be_decoded_counts_as_never_compared() {
    let api = FakeApi::new();
    let mut odd = application("odd", &json!([]));
    odd["status"] = json!("this is no status");
    api.reply(
        APPLICATIONS,
        Reply::list(&[odd, application("good", &json!([{"kind": "Secret", "name": "s", "status": "Synced"}]))]),
    );
    let world = World::ready(api).await;
    let inventory = world.inventory.read();
    let odd = inventory.app_named("argocd", "odd").and_then(|id| inventory.app(id)).unwrap();
    let good = inventory.app_named("argocd", "good").and_then(|id| inventory.app(id)).unwrap();
    assert!(odd.never_compared && !good.never_compared);
    // Where it deploys to is known all the same, so it can be asked after there.
    assert_eq!(odd.destination.namespace, good.destination.namespace);
}

#[tokio::test]
async fn application_that_can_no_longer_be_decoded_keeps_its_claims() {
    let world = World::ready(FakeApi::new()).await;
    let claim = json!([{"kind": "ConfigMap", "namespace": "shop", "name": "c", "status": "Synced"}]);
    world.api.event(APPLICATIONS, "ADDED", application("a", &claim)).await;
    world.until("its claim is known", |world| world.inventory.read().claims().len() == 1).await;
    let mut odd = application("a", &claim);
    odd["status"] = json!("this is no status");
    world.api.event(APPLICATIONS, "MODIFIED", odd).await;
    // A later event is proof that the one before was taken in.
    world.api.event(APPLICATIONS, "ADDED", application("b", &json!([]))).await;
    world.until("the next Application is known", |world| world.has("b")).await;
    assert_eq!(world.inventory.read().claims().len(), 1);
}

#[tokio::test]
async fn events_are_followed() {
    let world = World::ready(FakeApi::new()).await;
    world.api.event(APPLICATIONS, "ADDED", application("a", &json!([]))).await;
    world.until("the Application is known", |world| world.has("a")).await;
    let claim = json!([{"kind": "ConfigMap", "namespace": "shop", "name": "c", "status": "Synced"}]);
    world.api.event(APPLICATIONS, "MODIFIED", application("a", &claim)).await;
    world.until("its claim is known", |world| world.inventory.read().claims().len() == 1).await;
    world.api.event(APPLICATIONS, "DELETED", application("a", &claim)).await;
    world.until("it is gone", |world| !world.has("a") && world.inventory.read().claims().is_empty()).await;
}

#[tokio::test]
async fn what_a_fresh_list_leaves_out_is_gone() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::list(&[application("kept", &json!([])), application("gone", &json!([]))]));
    let world = World::ready(api).await;
    assert!(world.has("kept") && world.has("gone"));
    world.api.reply(APPLICATIONS, Reply::list(&[application("kept", &json!([]))]));
    let expired = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version"});
    world.api.event(APPLICATIONS, "ERROR", expired).await;
    world.until("the other one is gone", |world| !world.has("gone")).await;
    assert!(world.has("kept"));
}

#[tokio::test]
async fn watch_that_cannot_be_opened_because_its_version_is_too_old_leads_to_a_fresh_list() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::list(&[application("kept", &json!([])), application("gone", &json!([]))]));
    let world = World::ready(api).await;
    world.until("it is watched", |world| world.asked(true) == 1).await;
    world.api.reply(APPLICATIONS, Reply::list(&[application("kept", &json!([]))]));
    world.api.reply(&format!("{APPLICATIONS}?watch"), Reply::failure(410, "Expired", "too old resource version"));
    world.api.end(APPLICATIONS);
    world.until("the other one is gone", |world| !world.has("gone")).await;
    assert!(world.has("kept"));
}

#[tokio::test]
async fn list_that_fails_on_a_later_page_is_not_tried_again_at_once_and_said_once() {
    let lines = Lines::default();
    let writer = lines.clone();
    let (subscriber, _filter) = log::subscriber("warn", move || writer.clone()).unwrap();
    let _logging = tracing::subscriber::set_default(subscriber);
    let api = FakeApi::new();
    let page = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "10", "continue": "more"},
        "items": [application("first", &json!([]))]});
    api.reply(APPLICATIONS, Reply::Json(200, page));
    api.reply(&format!("{APPLICATIONS}?continue"), Reply::failure(410, "Expired", "the token is too old"));
    let world = World::start(api);
    world.until("it was tried again", |world| world.asked(false) >= 3).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(world.asked(false) <= 4, "{} lists", world.asked(false));
    assert!(!world.readiness.is_ready());
    assert_eq!(lines.text().matches("cannot watch").count(), 1, "{}", lines.text());
}

#[tokio::test]
async fn watch_that_ends_at_once_is_not_opened_again_at_once() {
    let api = FakeApi::new();
    api.reply(&format!("{APPLICATIONS}?watch"), Reply::Text(200, ""));
    let world = World::ready(api).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!((1..=3).contains(&world.asked(true)), "{} watches", world.asked(true));
    assert_eq!(world.asked(false), 1, "nothing was missed, so nothing is listed again");
}

#[tokio::test]
async fn silent_watch_is_opened_anew_where_it_was() {
    let world = World::start_with(FakeApi::new(), Duration::from_millis(100));
    world.until("it is watched", |world| world.asked(true) == 1).await;
    let bookmark = json!({"kind": "Application", "apiVersion": "argoproj.io/v1alpha1",
        "metadata": {"resourceVersion": "77"}});
    world.api.event(APPLICATIONS, "BOOKMARK", bookmark).await;
    world.until("it is watched anew", |world| world.asked(true) >= 2).await;
    let requests = world.api.requests();
    let last = requests.iter().rfind(|(path, _)| path.starts_with(&format!("{APPLICATIONS}?"))).unwrap();
    assert!(last.0.contains("resourceVersion=77"), "{last:?}");
    assert_eq!(world.asked(false), 1);
}

#[tokio::test]
async fn list_that_never_comes_is_given_up_and_the_reason_is_reported() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::Silence);
    let world = World::start_with(api, Duration::from_millis(100));
    let said = "Applications: the list failed: the API server sent nothing for 0.1 s";
    world.until("the reason is reported", |world| world.readiness.report().iter().any(|(_, why)| why == said)).await;
    world.api.reply(APPLICATIONS, Reply::list(&[]));
    world.until("it is ready", |world| world.readiness.is_ready()).await;
}

#[tokio::test]
async fn list_of_a_kind_that_is_served_is_not_taken_for_empty_when_it_is_not_found() {
    let api = FakeApi::new();
    api.reply(
        "/apis",
        Reply::Json(
            200,
            json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": "argoproj.io"}, "versions": [{"version": "v1alpha1", "resources": [
            {"resource": "applications", "scope": "Namespaced", "verbs": ["get", "list", "watch"],
                "responseKind": {"group": "", "version": "", "kind": "Application"}}]}]}]}),
        ),
    );
    api.reply(APPLICATIONS, Reply::Text(404, "404 page not found"));
    let world = World::start(api);
    world
        .until("the reason is reported", |world| {
            let report = world.readiness.report();
            report.len() == 1 && report[0].1.contains("although it says that it serves this kind")
        })
        .await;
    assert!(!world.inventory.read().is_ready());
    world.api.reply(APPLICATIONS, Reply::list(&[application("first", &json!([]))]));
    world.until("it is ready", |world| world.readiness.is_ready() && world.has("first")).await;
}

/// The definition of Applications, as it is read by name.
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/applications.argoproj.io";

#[tokio::test]
async fn definition_that_is_not_served_may_hold_applications() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::Text(404, "404 page not found"));
    let definition = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "applications.argoproj.io"}});
    api.reply(DEFINITION, Reply::Json(200, definition));
    let world = World::start(api);
    world
        .until("the reason is reported", |world| {
            let report = world.readiness.report();
            report.len() == 1
                && report[0].1.contains("there is a definition applications.argoproj.io: it is not served")
        })
        .await;
    assert!(!world.inventory.read().is_ready(), "nobody knows what Applications there are");
    world.api.reply(APPLICATIONS, Reply::list(&[application("first", &json!([]))]));
    world.until("it is ready", |world| world.readiness.is_ready() && world.has("first")).await;
}

#[tokio::test]
async fn definition_that_may_not_be_read_is_not_taken_for_none() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::Text(404, "404 page not found"));
    api.reply(DEFINITION, Reply::failure(403, "Forbidden", "not for you"));
    let world = World::start(api);
    world
        .until("the reason is reported", |world| {
            world
                .readiness
                .report()
                .iter()
                .any(|(_, why)| why.contains("cannot be read") && why.contains("not for you"))
        })
        .await;
    assert!(!world.inventory.read().is_ready());
}

#[tokio::test]
async fn failing_relist_takes_nothing_away() {
    let api = FakeApi::new();
    api.reply(APPLICATIONS, Reply::list(&[application("kept", &json!([]))]));
    let world = World::ready(api).await;
    let before = world.asked(false);
    world.api.reply(APPLICATIONS, Reply::Text(404, "404 page not found"));
    let expired = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "message": "gone"});
    world.api.event(APPLICATIONS, "ERROR", expired).await;
    world.until("it was listed again in vain", |world| world.asked(false) >= before + 2).await;
    assert!(world.has("kept"));
    assert!(world.readiness.is_ready());
}

/// Short enough to wait for, long enough for a busy machine to answer in a quarter of it.
const SOON: Duration = Duration::from_secs(4);

async fn watched_closely(api: FakeApi) -> World {
    let world = World::start_watched(api, SILENCE, SOON);
    world.until("it is ready", |world| world.readiness.is_ready() && world.inventory.read().is_ready()).await;
    world.until("it is watched", |world| world.asked(true) == 1).await;
    world
}

#[tokio::test]
async fn quiet_cluster_is_asked_after_and_stays_fresh() {
    let world = watched_closely(FakeApi::new()).await;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < SOON * 2 {
        assert_eq!(world.health.stale_claims(), None);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(world.readiness.is_ready());
    assert_eq!((world.asked(false), world.asked(true)), (1, 1), "nothing is listed or watched anew for that");
}

#[tokio::test]
async fn api_server_that_is_silent_makes_claims_stale_until_it_is_heard_of() {
    let world = watched_closely(FakeApi::new()).await;
    for path in [APPLICATIONS, NAMESPACES] {
        world.api.reply(path, Reply::Silence);
        world.api.reply(&format!("{path}?watch"), Reply::Silence);
    }
    world.until("claims are stale", |world| world.health.stale_claims().is_some()).await;
    world.until("readiness says so", |world| world.not_fresh().is_some()).await;
    let why = world.not_fresh().unwrap();
    assert!(why.contains("nothing heard of Applications since") && why.contains("not answered"), "{why}");
    assert!(world.inventory.read().is_ready(), "what was known stays known");
    for path in [APPLICATIONS, NAMESPACES] {
        world.api.reply(path, Reply::list(&[]));
        world.api.forget(&format!("{path}?watch"));
    }
    world.until("it is fresh again", |world| world.health.stale_claims().is_none() && world.readiness.is_ready()).await;
}

#[tokio::test]
async fn one_kind_that_may_no_longer_be_read_makes_claims_stale() {
    for path in [APPLICATIONS, NAMESPACES] {
        let world = watched_closely(FakeApi::new()).await;
        let forbidden = || Reply::failure(403, "Forbidden", "not any more");
        world.api.reply(path, forbidden());
        world.api.reply(&format!("{path}?watch"), forbidden());
        world
            .until("readiness says so", |world| world.not_fresh().is_some_and(|why| why.contains("not any more")))
            .await;
        world.api.reply(path, Reply::list(&[]));
        world.api.forget(&format!("{path}?watch"));
        world.until("it is fresh again", |world| world.readiness.is_ready()).await;
    }
}

#[tokio::test]
async fn reads_do_not_stand_in_for_a_watch_that_cannot_be_opened() {
    let world = watched_closely(FakeApi::new()).await;
    world.api.reply(&format!("{APPLICATIONS}?watch"), Reply::failure(403, "Forbidden", "no watching"));
    world.api.end(APPLICATIONS);
    world.until("readiness says so", |world| world.not_fresh().is_some_and(|why| why.contains("no watching"))).await;
    world.api.forget(&format!("{APPLICATIONS}?watch"));
    world.until("it is fresh again", |world| world.readiness.is_ready()).await;
}

#[tokio::test]
async fn cluster_scoped_custom_kinds_are_known_before_claims_are_indexed() {
    let api = FakeApi::new();
    let claim =
        json!([{"group": "example.com", "kind": "Gateway", "namespace": "shop", "name": "edge", "status": "Synced"}]);
    api.reply(APPLICATIONS, Reply::list(&[application("a", &claim)]));
    let world = World::ready(api).await;
    let inventory = world.inventory.read();
    let key =
        inventory.key_of(cascade_guard_core::inventory::LOCAL, &ObjectRef::new("example.com", "Gateway", "", "edge"));
    assert_eq!(inventory.claims().owners(key).len(), 1);
}

#[tokio::test]
async fn guard_policy_is_followed_and_a_bad_one_is_refused() {
    let api = FakeApi::new();
    api.reply(POLICIES, Reply::list(&[policy(1, "enforce")]));
    let world = World::ready(api).await;
    let mode = |world: &World| world.policy.load().base_mode(RuleKey::SyncWave);
    assert_eq!(mode(&world), Mode::Enforce);
    world.api.event(POLICIES, "MODIFIED", policy(2, "strictly")).await;
    world.api.event(POLICIES, "MODIFIED", policy(3, "warn")).await;
    world.until("the good one is in force", |world| mode(world) == Mode::Warn).await;
    world.api.event(POLICIES, "DELETED", policy(3, "warn")).await;
    world.until("every rule is in audit", |world| mode(world) == Mode::Audit).await;
}

#[tokio::test]
async fn what_became_of_the_stored_policy_is_known() {
    let api = FakeApi::new();
    api.reply(POLICIES, Reply::list(&[policy(1, "strictly")]));
    let world = World::ready(api).await;
    let observed = world.policy.observed().borrow().clone().unwrap();
    assert_eq!((observed.uid.as_str(), observed.generation), ("p", 1));
    assert!(observed.rejected.unwrap().contains("spec.rules.syncWave.mode"));
    world.api.event(POLICIES, "MODIFIED", policy(2, "warn")).await;
    let known = |world: &World| world.policy.observed().borrow().as_ref().is_some_and(|o| o.rejected.is_none());
    world.until("the good one is accepted", known).await;
    world.api.event(POLICIES, "DELETED", policy(2, "warn")).await;
    world.until("there is none", |world| world.policy.observed().borrow().is_none()).await;
}

#[tokio::test]
async fn without_a_guard_policy_kind_every_rule_is_in_audit() {
    let api = FakeApi::new();
    api.reply(POLICIES, Reply::Text(404, "404 page not found"));
    let world = World::ready(api).await;
    assert_eq!(world.policy.load().base_mode(RuleKey::SharedClaim), Mode::Audit);
}

#[tokio::test]
async fn guard_policy_that_may_not_be_read_is_not_taken_for_none() {
    let api = FakeApi::new();
    api.reply(POLICIES, Reply::failure(403, "Forbidden", "guardpolicies is forbidden"));
    let world = World::start(api);
    world
        .until("the reason is reported", |world| {
            world.readiness.report().iter().any(|(condition, why)| {
                *condition == Requirement::Policy
                    && why.contains("guardpolicies is forbidden")
                    && why.contains("--policy")
            })
        })
        .await;
    world.api.reply(POLICIES, Reply::list(&[policy(1, "enforce")]));
    world.until("it is ready", |world| world.readiness.is_ready()).await;
    assert_eq!(world.policy.load().base_mode(RuleKey::SyncWave), Mode::Enforce);
}

#[tokio::test]
async fn policy_decides_which_applications_count() {
    let api = FakeApi::new();
    let mut elsewhere = application("elsewhere", &json!([]));
    elsewhere["metadata"]["namespace"] = json!("team-a");
    api.reply(APPLICATIONS, Reply::list(&[elsewhere]));
    let world = World::ready(api).await;
    let known = |world: &World| world.inventory.read().app_named("team-a", "elsewhere").is_some();
    assert!(known(&world));
    let mut narrow = policy(1, "audit");
    narrow["spec"]["argocd"] = json!({"applicationNamespaces": ["team-b"]});
    world.api.event(POLICIES, "ADDED", narrow).await;
    world.until("it does not count any more", |world| !known(world)).await;
    world.api.event(POLICIES, "MODIFIED", policy(2, "audit")).await;
    world.until("it counts again", known).await;
}

#[tokio::test]
async fn cluster_secret_says_which_names_mean_one_cluster() {
    let api = FakeApi::new();
    let secret = json!({"metadata": {"name": "c", "namespace": "argocd", "resourceVersion": "5",
            "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {"name": "ZWFzdA==", "server": "aHR0cHM6Ly9lYXN0", "config": "c2VjcmV0"}});
    api.reply("/api/v1/namespaces/argocd/secrets", Reply::list(&[secret]));
    let mut by_name = application("by-name", &json!([]));
    by_name["spec"]["destination"] = json!({"name": "east"});
    let mut by_url = application("by-url", &json!([]));
    by_url["spec"]["destination"] = json!({"server": "https://east/"});
    api.reply(APPLICATIONS, Reply::list(&[by_name, by_url]));
    let world = World::ready(api).await;
    let inventory = world.inventory.read();
    let cluster = |name: &str| inventory.app_named("argocd", name).and_then(|id| inventory.app(id)).unwrap().cluster;
    assert_eq!(cluster("by-name"), cluster("by-url"));
}
