//! `audit` and `plan` say of a delete what a review says of it: there is no path that changes a verdict by looking more
//! closely. The random worlds are those that the core is compared with the reference model on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test that panics has failed")]

#[path = "../core/tests/reference/json.rs"]
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
mod json;
#[path = "../core/tests/reference/judged.rs"]
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
mod judged;
#[path = "../core/tests/reference/world.rs"]
#[allow(dead_code, reason = "the core's own tests use the rest of it")]
mod world;
#[path = "../core/tests/reference/worlds/mod.rs"]
mod worlds;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use cascade_guard::audit::{self, AuditInput, Options};
use serde_json::{Value, json};

use self::{
    json::{terminating, text},
    judged::Judged,
    world::World,
};

/// Who is foreseen to delete.
const USER: &str = "kubectl-user";

/// Rules that refuse, by what is deleted: kind, namespace, name.
type Refusals = BTreeMap<[String; 3], BTreeSet<String>>;

fn identity(object: &Value) -> [String; 3] {
    ["/kind", "/metadata/namespace", "/metadata/name"].map(|path| text(object, path).to_owned())
}

/// The worlds in which somebody deletes each of the objects whose deletes are foreseen.
fn deletes(world: &World) -> impl Iterator<Item = World> {
    let foreseen = |object: &Value| {
        ["Application", "ApplicationSet", "Namespace"].contains(&text(object, "/kind")) && !terminating(object)
    };
    let places = (0..world.objects.len()).filter(move |at| foreseen(&world.objects[*at]));
    places.map(|target| World { target, user: USER.to_owned(), propagation: String::new(), ..world.clone() })
}

fn reviewed(world: &World, judged: &Judged) -> Refusals {
    let refused = |delete: World| {
        let answer = judged.review(&delete).unwrap();
        let rules: BTreeSet<String> = answer.rules.into_iter().map(str::to_owned).collect();
        (!rules.is_empty()).then(|| (identity(delete.root()), rules))
    };
    deletes(world).filter_map(refused).collect()
}

fn audited(judged: &Judged) -> Refusals {
    let objects = judged.snapshot.subjects();
    let input = AuditInput {
        view: &judged.inventory,
        source: &judged.snapshot,
        policy: &judged.policy,
        now: judged.now,
        objects: &objects,
    };
    let found = futures::executor::block_on(audit::scan(&input, &Options::default(), &|_| {}));
    let mut refusals = Refusals::new();
    for refusal in found.refusals.into_iter().filter(|refusal| refusal.refused) {
        let object = [refusal.object.kind.kind, refusal.object.namespace, refusal.object.name];
        refusals.entry(object).or_default().insert(refusal.rule.into_owned());
    }
    refusals
}

#[test]
fn audit_foresees_what_reviews_refuse() {
    let mut refused = 0;
    for seed in 1..=400 {
        let world = worlds::world(seed);
        let judged = Judged::new(&world).unwrap();
        let reviewed = reviewed(&world, &judged);
        assert_eq!(audited(&judged), reviewed, "{world}");
        refused += reviewed.len();
    }
    assert!(refused > 400, "only {refused} deletes were refused");
}

#[test]
fn plan_of_the_command_says_what_a_review_says() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, policy) = (folder.path().join("cluster.json"), folder.path().join("policy.json"));
    let mut refused = 0;
    for seed in 1..=25 {
        let world = worlds::world(seed);
        let judged = Judged::new(&world).unwrap();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": world.objects});
        let spec = json!({"apiVersion": "cascade-guard.io/v1alpha1", "kind": "GuardPolicy",
            "metadata": {"name": "default"}, "spec": world.policy()});
        fs::write(&cluster, list.to_string()).unwrap();
        fs::write(&policy, spec.to_string()).unwrap();
        for delete in deletes(&world) {
            let [kind, namespace, name] = identity(delete.root());
            let mut plan = Command::new(env!("CARGO_BIN_EXE_cascade-guard"));
            plan.args(["plan", &kind, &name, "-o", "json", "--now", &world.now]);
            plan.arg("--snapshot").arg(&cluster).arg("--policy").arg(&policy);
            if !namespace.is_empty() {
                plan.args(["-n", &namespace]);
            }
            let output = plan.output().unwrap();
            let planned: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{delete}\n{}", String::from_utf8_lossy(&output.stderr)));
            let answer = judged.review(&delete).unwrap();
            assert_eq!(planned["allowed"], answer.allowed, "{delete}\n{planned}\n{}", answer.said);
            refused += usize::from(!answer.allowed);
        }
    }
    assert!(refused > 25, "only {refused} deletes were refused");
}
