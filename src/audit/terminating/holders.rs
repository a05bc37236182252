//! The controllers behind known finalizers: what each waits for, and how the wait ends.

use super::Holder;
use cascade_guard_core::{
    argo::{Marker, application::CASCADE_FINALIZERS, hook::HOOK_FINALIZER, tracking},
    body::Condition,
    inventory::{Inventory, LOCAL},
    object::{KnownObject, ObjectRef},
    remedy::{Command, Remedy, type_and_name},
};

/// Finalizers of other programs, by how they begin or end: who removes them and what they wait for.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "kubernetes.io/pvc-protection",
        "a Pod still uses the claim",
        "delete the Pods that mount it; it goes by itself then",
    ),
    ("kubernetes.io/pv-protection", "a claim is still bound to the volume", "delete the PersistentVolumeClaim first"),
    (
        "service.kubernetes.io/load-balancer-cleanup",
        "the cloud provider's controller has not removed the load balancer",
        "look at the log of the cloud-controller-manager; it must run until the load balancer is gone",
    ),
    (
        "foregroundDeletion",
        "objects that it owns and that block its deletion are still there",
        "look at the objects it owns; whatever holds those holds it",
    ),
    ("orphan", "the garbage collector has not let go of what it owns", "look at the log of kube-controller-manager"),
    (
        "ingress.k8s.aws/",
        "the AWS load balancer controller has not removed what it made",
        "look at the log of aws-load-balancer-controller; it and its rights must outlive the object",
    ),
    (
        "elbv2.k8s.aws/",
        "the AWS load balancer controller has not removed what it made",
        "look at the log of aws-load-balancer-controller; it and its rights must outlive the object",
    ),
    (
        "networking.gke.io/",
        "the GKE ingress controller has not removed what it made",
        "look at the events of the object; the controller must outlive it",
    ),
    (
        "finalizer.acme.cert-manager.io",
        "cert-manager has not cleaned up the challenge",
        "look at the log of cert-manager; its DNS or HTTP solver must still be reachable",
    ),
];

/// What a finalizer at `place` of the list waits for.
pub(super) fn hold(inventory: &Inventory, subject: &KnownObject, place: usize, finalizer: &str) -> Holder {
    let object = &subject.object;
    let (why, mend) = if finalizer == HOOK_FINALIZER {
        hook(inventory, subject, place)
    } else if CASCADE_FINALIZERS.contains(&finalizer) {
        cascade(inventory, subject, place)
    } else if finalizer.starts_with("post-delete-finalizer.argocd.argoproj.io") {
        delete_hooks(subject, place, "PostDelete", finalizer.ends_with("/cleanup"))
    } else if finalizer.starts_with("pre-delete-finalizer.argocd.argoproj.io") {
        delete_hooks(subject, place, "PreDelete", finalizer.ends_with("/cleanup"))
    } else if finalizer == "kubernetes" && object.is_namespace() {
        (
            "the namespace controller has not emptied it".to_owned(),
            Remedy::run(
                "its conditions say what is left and why",
                Command::new("kubectl get namespace").words([&object.name, "-o", "yaml"]),
            ),
        )
    } else if let Some((_, why, mend)) = KNOWN.iter().find(|(known, _, _)| finalizer.starts_with(known)) {
        ((*why).to_owned(), Remedy::advice(*mend))
    } else {
        let domain = finalizer.split('/').next().unwrap_or(finalizer);
        (
            format!("the controller behind {domain} has not finished"),
            Remedy::run(
                "make sure that controller runs; if it is gone for good, take the finalizer away",
                remove(object, place),
            ),
        )
    };
    Holder { what: finalizer.to_owned(), why, mend }
}

/// The command that takes a finalizer away. Always the last resort: what it stood for is then left behind.
fn remove(object: &ObjectRef, place: usize) -> Command {
    Command::new("kubectl patch").word(type_and_name(object)).namespace(&object.namespace).words([
        "--type=json",
        "-p",
        &format!("[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{place}\"}}]"),
    ])
}

fn get(app: &str) -> Command {
    Command::new("argocd app get").word(app)
}

/// A hook whose operation does not end. A person or the namespace controller deleted it, and only Argo CD's operation
/// that knows it takes the finalizer away.
fn hook(inventory: &Inventory, subject: &KnownObject, place: usize) -> (String, Remedy) {
    let writers = inventory.writers(&subject.meta, inventory.key_of(LOCAL, &subject.object));
    let known = writers.first().and_then(|id| inventory.app(*id));
    let marked = || {
        inventory.installations().homes().find_map(|home| {
            match tracking::marker(&subject.meta, inventory.settings(home)) {
                Marker::Instance(instance) => Some(instance.to_owned()),
                Marker::None | Marker::Unknown => None,
            }
        })
    };
    let app = known.map(|app| (app.path(), Some(app))).or_else(|| Some((marked()?, None)));
    match app {
        Some((_, Some(app))) if app.running.is_some() => (
            format!("it is a hook of {}, whose operation is still running", app.path()),
            Remedy::run(
                "end the operation; Argo CD takes the finalizer away then",
                Command::new("argocd app terminate-op").word(app.path()),
            ),
        ),
        Some((_, Some(app))) => (
            format!("it is a hook of {}, whose operation has ended without it", app.path()),
            Remedy::run(
                "the next sync takes the finalizer away; if it does not, the second command does",
                Command::new("argocd app sync").word(app.path()),
            )
            .then(remove(&subject.object, place)),
        ),
        Some((instance, None)) => (
            format!("it is a hook of {instance}, which does not exist any more, so its operation never ends"),
            Remedy::run("take the finalizer away", remove(&subject.object, place)),
        ),
        None => (
            "it is a hook, and no marker tells of which Application; its operation never ends".to_owned(),
            Remedy::run("take the finalizer away", remove(&subject.object, place)),
        ),
    }
}

fn cascade(inventory: &Inventory, subject: &KnownObject, place: usize) -> (String, Remedy) {
    let object = &subject.object;
    if !object.is_application() {
        return (
            "its Applications are not gone".to_owned(),
            Remedy::run(
                "look at its Applications; whatever holds those holds it",
                Command::new("kubectl get applications.argoproj.io").namespace(&object.namespace),
            ),
        );
    }
    let app = inventory.app_named(&object.namespace, &object.name).and_then(|id| inventory.app(id));
    let left = app.map_or(0, |app| app.claims.len());
    let cluster = app.map_or("its cluster", |app| inventory.cluster_name(app.cluster));
    (
        format!("its cascade has not removed what it lists ({left} objects on {cluster})"),
        Remedy::run(
            "see what is left and why; if that cluster is gone for good, the second command takes the finalizer away",
            get(&object.path()),
        )
        .then(remove(object, place)),
    )
}

fn delete_hooks(subject: &KnownObject, place: usize, which: &str, cleanup: bool) -> (String, Remedy) {
    let object = &subject.object;
    let why = if cleanup {
        format!("its {which} hooks have run and are not cleaned up")
    } else {
        format!("its {which} hooks have not completed")
    };
    (
        why,
        Remedy::run(
            "look at the hooks; if they can never run, or their cluster is gone, the second command takes the finalizer away",
            get(&object.path()),
        )
        .then(remove(object, place)),
    )
}

/// What a condition means that says why a deletion does not end (`NamespaceConditionType` in `core/v1`, and Argo CD's
/// own).
pub(super) fn condition(object: &ObjectRef, condition: &Condition) -> Option<Holder> {
    let mend = match condition.kind.as_str() {
        "NamespaceDeletionDiscoveryFailure" => Remedy::run(
            "mend or delete the one that is not Available; the Namespace goes by itself then",
            Command::new("kubectl get apiservices"),
        ),
        "NamespaceDeletionGroupVersionParsingFailure" => Remedy::run(
            "one of them has a name that is no group and version; delete it",
            Command::new("kubectl get apiservices"),
        ),
        "NamespaceDeletionContentFailure" => Remedy::advice(
            "read the message: something in the Namespace cannot be deleted, often because a webhook refuses it or a definition is broken",
        ),
        "NamespaceContentRemaining" | "NamespaceFinalizersRemaining" => Remedy::run(
            "see what is left",
            Command::new("kubectl api-resources --verbs=list --namespaced -o name")
                .pipe(&Command::new("xargs -n1 kubectl get --ignore-not-found --show-kind").namespace(&object.name)),
        ),
        "DeletionError" => {
            Remedy::run("Argo CD tries again at the next refresh", get(&object.path()).word("--refresh"))
        }
        _ => return None,
    };
    Some(Holder { what: condition.kind.clone(), why: condition.message.clone(), mend })
}
