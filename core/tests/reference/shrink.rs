//! Makes a world that breaks a property smaller.

use serde_json::Value;

use crate::{json::text, run::Fault, world::World};

/// So many smaller worlds are tried.
const TRIES: usize = 3000;

/// The smallest world that was found to have the same fault, and the fault there.
pub fn shrink(world: &World, fault: &Fault, check: &dyn Fn(&World) -> Option<Fault>) -> (World, Fault) {
    let (mut best, mut found) = (world.clone(), fault.clone());
    let mut tries = 0;
    loop {
        let smaller = edits(&best).into_iter().find_map(|edit| {
            tries += 1;
            let mut world = best.clone();
            edit.apply(&mut world);
            let found = (tries < TRIES).then(|| check(&world)).flatten()?;
            (found.kind == fault.kind).then_some((world, found))
        });
        match smaller {
            Some(smaller) => (best, found) = smaller,
            None => return (best, found),
        }
    }
}

/// One thing less.
enum Edit {
    Object(usize),
    /// What stands at a JSON pointer of an object goes.
    Part(usize, String),
    Policy,
    Propagation,
    User,
}

impl Edit {
    fn apply(&self, world: &mut World) {
        match self {
            Self::Object(at) => {
                world.objects.remove(*at);
                world.target -= usize::from(world.target > *at);
            }
            Self::Part(at, path) => {
                let (parent, key) = path.rsplit_once('/').unwrap_or_default();
                match world.objects[*at].pointer_mut(parent) {
                    Some(Value::Object(map)) => {
                        map.remove(&key.replace("~1", "/").replace("~0", "~"));
                    }
                    Some(Value::Array(list)) => {
                        list.remove(key.parse().expect("a number"));
                    }
                    _ => {}
                }
            }
            Self::Policy => world.policy = Value::Object(serde_json::Map::new()),
            Self::Propagation => world.propagation.clear(),
            Self::User => "ops-user".clone_into(&mut world.user),
        }
    }
}

fn edits(world: &World) -> Vec<Edit> {
    // Without its settings and projects, the same markers and claims would mean something else.
    let means_something =
        |object: &Value| text(object, "/metadata/name") == "argocd-cm" || text(object, "/kind") == "AppProject";
    let may_go = |at: &usize| *at != world.target && !means_something(&world.objects[*at]);
    let mut edits: Vec<Edit> = (0..world.objects.len()).rev().filter(may_go).map(Edit::Object).collect();
    if world.user != "ops-user" {
        edits.push(Edit::User);
    }
    if !world.propagation.is_empty() {
        edits.push(Edit::Propagation);
    }
    if world.policy.as_object().is_some_and(|policy| !policy.is_empty()) {
        edits.push(Edit::Policy);
    }
    for (at, object) in world.objects.iter().enumerate() {
        let mut paths = Vec::new();
        parts(object, "", &mut paths);
        edits.extend(paths.into_iter().map(|path| Edit::Part(at, path)));
    }
    edits
}

/// Fields without which an object is none, or one that no cluster holds.
const NEEDED: [&str; 14] = [
    "apiVersion",
    "destination",
    "group",
    "kind",
    "metadata",
    "name",
    "namespace",
    "server",
    "source",
    "spec",
    "status",
    "sync",
    "uid",
    "version",
];

/// Pointers to whatever an object can do without.
fn parts(value: &Value, path: &str, found: &mut Vec<String>) {
    let mut part = |key: &str, value: &Value, needed: bool| {
        let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        if !needed {
            found.push(path.clone());
        }
        parts(value, &path, found);
    };
    match value {
        Value::Object(map) => {
            // What projects permit and settings say is not made less: everything would mean something else.
            let map =
                map.iter().filter(|(key, _)| !["destinations", "sourceNamespaces", "data"].contains(&key.as_str()));
            map.for_each(|(key, value)| part(key, value, NEEDED.contains(&key.as_str())));
        }
        Value::Array(list) => {
            list.iter().enumerate().rev().for_each(|(at, value)| part(&at.to_string(), value, false));
        }
        _ => {}
    }
}
