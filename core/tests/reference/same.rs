//! The same world, told otherwise, or with something more in it.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::{json::list, world::World};

/// With every list in another order whose order means nothing.
pub fn shuffled(world: &World) -> World {
    let (mut other, mut random) = (world.clone(), Rng::with_seed(world.seed));
    for object in &mut other.objects {
        for path in [
            "/metadata/ownerReferences",
            "/metadata/finalizers",
            "/status/resources",
            "/status/conditions",
            "/status/operationState/syncResult/resources",
        ] {
            if let Some(list) = object.pointer_mut(path).and_then(Value::as_array_mut) {
                random.shuffle(list);
            }
        }
    }
    let root = &world.root()["metadata"]["uid"];
    random.shuffle(&mut other.objects);
    other.target = other.objects.iter().position(|object| object["metadata"]["uid"] == *root).expect("it is there");
    other
}

/// An Application that is in sync, runs nothing and lists these objects.
fn claimant(project: &str, target: &str, resources: &Value) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "golf", "namespace": "argocd", "uid": "u-golf"},
        "spec": {"project": project, "source": {"repoURL": "https://git.example.com/other.git", "path": "golf"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": target}},
        "status": {"reconciledAt": "2026-11-29T11:57:00Z", "sync": {"status": "Synced"}, "resources": resources}})
}

/// With one Application more that claims up to three objects which others list.
pub fn with_a_claimant(world: &World) -> World {
    let (mut other, mut random) = (world.clone(), Rng::with_seed(world.seed));
    let listed = world.objects.iter().flat_map(|object| list(object, "/status/resources"));
    let mut wanted: Vec<Value> = listed.cloned().collect();
    random.shuffle(&mut wanted);
    wanted.truncate(random.usize(1..=3));
    for entry in wanted.iter_mut().filter_map(Value::as_object_mut) {
        entry.insert("status".to_owned(), json!("Synced"));
        entry.remove("requiresPruning");
        entry.remove("hook");
    }
    let target = random.choice(["shop", "store", "elsewhere"]).expect("there are some");
    other.objects.push(claimant("default", target, &json!(wanted)));
    other
}

/// With an Application, a Namespace and an object that have nothing to do with the rest.
pub fn with_something_unrelated(world: &World) -> World {
    let mut other = world.clone();
    let entry =
        json!([{"kind": "ConfigMap", "version": "v1", "namespace": "golf", "name": "golf", "status": "Synced"}]);
    let marker = json!({"argocd.argoproj.io/tracking-id": "golf:/ConfigMap:golf/golf"});
    other.objects.push(claimant("golf", "golf", &entry));
    other.objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "golf", "uid": "u-n"}}));
    other.objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "golf", "namespace": "golf", "uid": "u-c", "annotations": marker}}));
    other
}

/// Every name, and another one that stands elsewhere in an alphabet.
const NAMES: [(&str, &str); 16] = [
    ("alpha", "zulu"),
    ("bravo", "yankee"),
    ("carol", "xray"),
    ("delta", "whisky"),
    ("eagle", "victor"),
    ("frank", "uniform"),
    ("shop", "market"),
    ("store", "archive"),
    ("teams", "groups"),
    ("api", "rest"),
    ("cfg", "settings"),
    ("sa", "account"),
    ("reader", "viewer"),
    ("foo", "bar"),
    ("team-a", "crew-b"),
    ("team-", "crew-"),
];

/// With other names, wherever they stand in a text.
pub fn renamed(world: &World) -> World {
    fn rename(value: &mut Value) {
        match value {
            Value::String(text) => *text = with_new_words(text),
            Value::Array(list) => list.iter_mut().for_each(rename),
            Value::Object(map) => map.values_mut().for_each(rename),
            _ => {}
        }
    }
    let mut other = world.clone();
    other.objects.iter_mut().for_each(rename);
    other
}

fn with_new_words(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let new =
        |word: &str| NAMES.iter().find(|(name, _)| *name == word).map_or(word.to_owned(), |(_, new)| (*new).into());
    let pieces = text.split_inclusive(|letter| !is_part(letter)).map(|piece| {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        new(word) + &piece[word.len()..]
    });
    pieces.collect()
}
