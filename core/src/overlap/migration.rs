//! The steps of a migration in their safe order: the first Application gives up an object only when the second holds it.

use serde::Serialize;

use super::{Comparison, SharedObject};
use crate::{
    argo::{Application, TrackingMethod},
    deletion::Inputs,
    inventory::App,
    object::{ObjectRef, RBAC_GROUP},
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
    pub commands: Vec<String>,
    /// How to see that it worked. The next step waits for this.
    pub check: Vec<String>,
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
    let compare = format!("cascade-guard overlap {a} {b}");
    let get =
        |path: &str| format!("kubectl -n {} get application {} -o jsonpath='{{{path}}}'", from.namespace, from.name);
    let automated = whole.spec.sync_policy.automated.as_ref().is_some_and(|automated| automated.enabled != Some(false));
    let held = !comparison.objects.is_empty() && comparison.objects.iter().all(|row| row.held_by == b);
    let spared = comparison.taken_along.is_empty() && comparison.objects.iter().all(|row| row.fate == "spared");
    let mut steps = vec![
        step(
            format!("Stop {a} from syncing by itself, or it takes the objects back"),
            vec![format!("argocd app set {a} --sync-policy none")],
            vec![format!("{}   # prints nothing", get(".spec.syncPolicy.automated"))],
            !automated,
        ),
        step(
            format!("Let the operation of {a} come to its end"),
            vec![format!("argocd app wait {a} --operation")],
            vec![format!("{}   # prints neither Running nor Terminating", get(".status.operationState.phase"))],
            from.running.is_none(),
        ),
    ];
    if comparison.objects.is_empty() {
        // There is nothing to take over. Some object of the first Application takes along objects of the second.
        let what = format!("Keep {a} from taking along what is of {b}: {}", comparison.taken_along.join("; "));
        steps.push(step(
            what,
            Vec::new(),
            vec![format!(
                "what holds it carries argocd.argoproj.io/sync-options: Delete=false,Prune=false in the manifests of {a} and in the cluster, or {b} has moved out of it"
            )],
            spared,
        ));
    } else {
        steps.extend(take_over(inputs, comparison, to, held));
    }
    steps.push(step(
        format!("Prove that a deletion of {a} would pass them by"),
        vec![format!("cascade-guard plan application {} -n {}", from.name, from.namespace)],
        vec![proof(comparison)],
        spared,
    ));
    let kept = comparison
        .objects
        .iter()
        .take(MAX_OBJECTS)
        .map(|row| format!("kubectl {}   # still finds it", get_object(&row.object)));
    steps.push(step(
        format!("If {a} stays: remove the objects from its manifests in Git, then sync it without pruning"),
        vec![format!("argocd app sync {a} --prune=false")],
        vec![format!("{compare}   # ends with exit code 0; only then switch its automated sync on again")],
        false,
    ));
    steps.push(step(
        format!("If {a} goes: delete it, without a cascade if everything else it holds is to stay as well"),
        vec![format!("argocd app delete {a}"), format!("argocd app delete {a} --cascade=false   # leaves everything")],
        kept.chain([format!("argocd app get {b}   # says Synced and Healthy")]).collect(),
        false,
    ));
    steps
}

/// The steps by which `to` becomes the holder of the objects.
fn take_over(inputs: Inputs<'_>, comparison: &Comparison, to: &App, held: bool) -> [MigrationStep; 3] {
    let (a, b) = (&comparison.a, &comparison.b);
    let (key, end) = match inputs.inventory.settings(&to.controller_namespace) {
        Some(settings) if settings.method == TrackingMethod::Label => (format!("labels.{}", settings.label_key), ""),
        _ => ("annotations.argocd.argoproj.io/tracking-id".to_owned(), ":"),
    };
    [
        step(
            format!("See what the sync of {b} will change"),
            vec![format!("argocd app diff {b}")],
            vec![format!(
                "nothing differs but Argo CD's own marker; whatever else differs changes for the users of {a} as well"
            )],
            held,
        ),
        step(
            format!("Let {b} take the objects over, without pruning"),
            vec![format!("argocd app sync {b} --prune=false")],
            vec![format!("cascade-guard overlap {a} {b}   # names {b} as holder of every object")],
            held,
        ),
        step(
            "See the marker on the objects themselves".to_owned(),
            comparison.objects.iter().take(MAX_OBJECTS).map(|row| marker(row, &key)).collect(),
            vec![format!("each line begins with {}{end}", to.instance)],
            held,
        ),
    ]
}

fn step(title: String, commands: Vec<String>, check: Vec<String>, done: bool) -> MigrationStep {
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
fn marker(row: &SharedObject, key: &str) -> String {
    let (place, key) = key.split_once('.').unwrap_or((key, ""));
    let key = key.replace('.', "\\.");
    format!("kubectl {} -o jsonpath='{{.metadata.{place}.{key}}}'", get_object(&row.object))
}

/// The arguments of kubectl that get an object, such as `-n shop get role/api`.
fn get_object(object: &ObjectRef) -> String {
    let namespace = if object.namespace.is_empty() { String::new() } else { format!("-n {} ", object.namespace) };
    let kind = object.kind.kind.to_lowercase();
    let kind = match object.kind.group.as_str() {
        "" | "apps" | "batch" | RBAC_GROUP => kind,
        group => format!("{kind}.{group}"),
    };
    format!("{namespace}get {kind}/{}", object.name)
}
