//! "What was admitted at the root strands nothing below": an admitted delete is played to its end, in a random order of
//! what Argo CD and Kubernetes delete because of it.

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    json::{terminating, text},
    judged::{Answer, Judged},
    model::{Begun, Model},
    run::{Fault, Outcome},
    world::World,
    worlds::{COLLECTOR, CONTROLLER, NAMESPACE_CONTROLLER},
};

/// So many deletes are played.
const STEPS: usize = 40;

/// Plays the delete of a world. Says nothing of one that is refused, or that is itself a consequence.
pub fn strands_nothing(world: &World, _: &Judged, answer: &Answer) -> Outcome {
    let is_consequence = [CONTROLLER, COLLECTOR, NAMESPACE_CONTROLLER].contains(&world.user.as_str());
    let root = text(world.root(), "/kind");
    // With its Namespace the settings of the Argo CD go, and nobody knows any more what its markers mean.
    let is_home = root == "Namespace" && text(world.root(), "/metadata/name") == "argocd";
    // What lies in a Namespace that goes was judged with it.
    let namespace = world.place("Namespace", "", text(world.root(), "/metadata/namespace"));
    let is_swept = namespace.is_some_and(|at| terminating(&world.objects[at]));
    if is_swept
        || is_consequence
        || is_home
        || terminating(world.root())
        || world.propagation == "Orphan"
        || !answer.allowed
    {
        return Outcome::Silent;
    }
    let (mut world, mut random) = (world.clone(), Rng::with_seed(world.seed));
    let mut begun = Begun::new();
    let mut story = vec![begin(&mut world, &mut begun)];
    for _ in 0..STEPS {
        end(&mut world, &begun);
        let mut next = Model::new(&world).followers(&begun);
        if next.is_empty() {
            break;
        }
        let (key, user) = next.swap_remove(random.usize(..next.len()));
        let Some(place) = world.place(&key.kind, &key.namespace, &key.name) else { break };
        (world.target, world.user, world.propagation) = (place, user.to_owned(), String::new());
        let later = if user == COLLECTOR { 10 } else { 120 };
        let now: Timestamp = world.now.parse().expect("a time");
        world.now = (now + SignedDuration::from_secs(later)).to_string();
        let Some(answer) = Judged::new(&world).and_then(|judged| judged.review(&world)) else { break };
        if !answer.allowed {
            let rules: Vec<_> = answer.rules.iter().copied().collect();
            let kind = format!("after a {root} was admitted, a {} is refused ({})", key.kind, rules.join(" and "));
            story.push(format!("{} {user} deletes {} {}/{}: refused", world.now, key.kind, key.namespace, key.name));
            return Outcome::Broken(Fault { kind, story: format!("{}\n{}", story.join("\n"), answer.said) });
        }
        story.push(begin(&mut world, &mut begun));
    }
    if story.len() > 1 { Outcome::Holds } else { Outcome::Silent }
}

/// The delete of the world's target takes place.
fn begin(world: &mut World, begun: &mut Begun) -> String {
    let model = Model::new(world);
    let key = model.key_of(world.root());
    let lingers = model.lingers(&key);
    begun.insert(key.clone(), text(world.root(), "/metadata/uid").to_owned());
    let (now, target) = (world.now.clone(), world.target);
    if lingers {
        world.objects[target]["metadata"]["deletionTimestamp"] = json!(now);
    } else {
        world.objects.remove(target);
        world.target = 0;
    }
    format!("{now} {} deletes {} {}/{}", world.user, key.kind, key.namespace, key.name)
}

/// What waits for nothing any more goes, and operations of what is being deleted end.
fn end(world: &mut World, begun: &Begun) {
    for key in begun.keys() {
        let Some(place) = world.place(&key.kind, &key.namespace, &key.name) else { continue };
        if key.is_application()
            && let Some(app) = world.objects[place].as_object_mut()
        {
            app.remove("operation");
            if let Some(phase) = world.objects[place].pointer_mut("/status/operationState/phase") {
                *phase = json!("Succeeded");
            }
        }
        if Model::new(world).is_over(key, begun) {
            world.objects.remove(place);
            world.target = 0;
        }
    }
}
