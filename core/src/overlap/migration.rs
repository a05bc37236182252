//! The steps of a migration in their safe order: the first Application gives up an object only when the second holds it.

use serde::Serialize;

use super::{Comparison, SharedObject};
use crate::{
    argo::{Application, TrackingMethod},
    deletion::Inputs,
    inventory::App,
    object::ObjectRef,
    remedy::{Command, Remedy, type_and_name},
};

/// At most this many objects get a command of their own.
const MAX_OBJECTS: usize = 3;

/// One step of a migration.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationStep {
    /// What to do.
    pub title: String,
    /// The commands that do it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
    /// How to see that it worked. The next step waits for this.
    pub check: Vec<Remedy>,
    /// Whether there is nothing left to do.
    pub done: bool,
}

/// The steps of a migration from `from` to `to`, each with the check that it worked.
pub(super) fn steps(
    inputs: Inputs<'_>,
    comparison: &Comparison,
    from: &App,
    to: &App,
    whole: &Application<'_>,
) -> Vec<MigrationStep> {
    let (a, b) = (from.path(), to.path());
    let compare = || Command::new("cascade-guard overlap").words([&a, &b]);
    let get = |path: &str| {
        Command::new("kubectl").namespace(&from.namespace).words([
            "get",
            "application",
            &*from.name,
            "-o",
            &format!("jsonpath={{{path}}}"),
        ])
    };
    let automated = whole.spec.sync_policy.automated.as_ref().is_some_and(|automated| automated.enabled != Some(false));
    let held = !comparison.objects.is_empty() && comparison.objects.iter().all(|row| row.held_by == b);
    let spared = comparison.taken_along.is_empty() && comparison.objects.iter().all(|row| row.fate == "spared");
    let mut steps = vec![
        step(
            format!("Stop {a} from syncing by itself, or it takes the objects back"),
            vec![Command::new("argocd app set").words([&a, "--sync-policy", "none"])],
            vec![Remedy::run("this prints nothing", get(".spec.syncPolicy.automated"))],
            !automated,
        ),
        step(
            format!("Let the operation of {a} come to its end"),
            vec![Command::new("argocd app wait").words([&a, "--operation"])],
            vec![Remedy::run("this prints neither Running nor Terminating", get(".status.operationState.phase"))],
            from.running.is_none(),
        ),
    ];
    if comparison.objects.is_empty() {
        // There is nothing to take over. Some object of the first Application takes along objects of the second.
        let what = format!("Keep {a} from taking along what is of {b}: {}", comparison.taken_along.join("; "));
        steps.push(step(
            what,
            Vec::new(),
            vec![Remedy::advice(format!(
                "what holds it carries argocd.argoproj.io/sync-options: Delete=false,Prune=false in the manifests of {a} and in the cluster, or {b} has moved out of it"
            ))],
            spared,
        ));
    } else {
        steps.extend(take_over(inputs, comparison, to, held));
    }
    steps.push(step(
        format!("Prove that a deletion of {a} would pass them by"),
        vec![Command::new("cascade-guard plan application").word(&from.name).namespace(&from.namespace)],
        vec![Remedy::advice(proof(comparison))],
        spared,
    ));
    let kept = comparison
        .objects
        .iter()
        .take(MAX_OBJECTS)
        .map(|row| Remedy::run("this still finds it", get_object(&row.object)));
    steps.push(step(
        format!("If {a} stays: remove the objects from its manifests in Git, then sync it without pruning"),
        vec![Command::new("argocd app sync").words([&a, "--prune=false"])],
        vec![Remedy::run("this ends with exit code 0; only then switch its automated sync on again", compare())],
        false,
    ));
    steps.push(step(
        format!("If {a} goes: delete it, with --cascade=false if everything else it holds is to stay as well"),
        vec![Command::new("argocd app delete").word(&a)],
        kept.chain([Remedy::run("this says Synced and Healthy", Command::new("argocd app get").word(&b))]).collect(),
        false,
    ));
    steps
}

/// The steps by which `to` becomes the holder of the objects.
fn take_over(inputs: Inputs<'_>, comparison: &Comparison, to: &App, held: bool) -> [MigrationStep; 3] {
    let (a, b) = (&comparison.a, &comparison.b);
    let (key, end) = match inputs.inventory.settings_of(to) {
        Some(settings) if settings.method == TrackingMethod::Label => (format!("labels.{}", settings.label_key), ""),
        _ => ("annotations.argocd.argoproj.io/tracking-id".to_owned(), ":"),
    };
    [
        step(
            format!("See what the sync of {b} will change"),
            vec![Command::new("argocd app diff").word(b)],
            vec![Remedy::advice(format!(
                "nothing differs but Argo CD's own marker; whatever else differs changes for the users of {a} as well"
            ))],
            held,
        ),
        step(
            format!("Let {b} take the objects over, without pruning"),
            vec![Command::new("argocd app sync").words([b, "--prune=false"])],
            vec![Remedy::run(
                format!("this names {b} as holder of every object"),
                Command::new("cascade-guard overlap").words([a, b]),
            )],
            held,
        ),
        step(
            "See the marker on the objects themselves".to_owned(),
            comparison.objects.iter().take(MAX_OBJECTS).map(|row| marker(row, &key)).collect(),
            vec![Remedy::advice(format!("each line begins with {}{end}", inputs.inventory.instance_of(to)))],
            held,
        ),
    ]
}

fn step(title: String, commands: Vec<Command>, check: Vec<Remedy>, done: bool) -> MigrationStep {
    MigrationStep { title, commands, check, done }
}

fn proof(comparison: &Comparison) -> String {
    if comparison.taken_along.is_empty() {
        return "every object of this list is spared, nothing is contested".to_owned();
    }
    format!(
        "every object of this list is spared, nothing is contested: what goes along ({}) is out of the way only when {} takes over or releases what holds it",
        comparison.taken_along.join("; "),
        comparison.b
    )
}

/// The command that prints the marker of a live object. `key` is `labels` or `annotations`, a dot, and the key there, whose
/// own dots have to be escaped.
fn marker(row: &SharedObject, key: &str) -> Command {
    let (place, key) = key.split_once('.').unwrap_or((key, ""));
    let key = key.replace('.', "\\.");
    get_object(&row.object).word("-o").word(format!("jsonpath={{.metadata.{place}.{key}}}"))
}

/// The command that gets an object.
fn get_object(object: &ObjectRef) -> Command {
    Command::new("kubectl").namespace(&object.namespace).word("get").word(type_and_name(object))
}
