//! Finalizers that are known by name: which controller removes them, and what to do when it does not.
//!
//! A Namespace stays Terminating until every finalizer in it has been removed. A finalizer whose controller was
//! uninstalled, lost its rights or went with the same Namespace keeps the Namespace Terminating for ever.

use serde::Serialize;

/// One entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownFinalizer {
    /// The finalizer, or what it begins or ends with.
    #[serde(skip)]
    pub pattern: Pattern,
    /// The controller that must remove it.
    pub removed_by: &'static str,
    /// Whether it is known to hang. The others are removed by Kubernetes itself as soon as nothing needs the object.
    pub hangs: bool,
    /// What to do about it.
    pub advice: &'static str,
}

/// How a finalizer is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// By its whole name.
    Exact(&'static str),
    /// By what it begins with.
    Prefix(&'static str),
    /// By what it ends with.
    Suffix(&'static str),
}

impl Pattern {
    fn matches(self, finalizer: &str) -> bool {
        match self {
            Self::Exact(text) => finalizer == text,
            Self::Prefix(text) => finalizer.starts_with(text),
            Self::Suffix(text) => finalizer.ends_with(text),
        }
    }

    /// As it is written for people, with an asterisk for what may stand there.
    pub fn written(self) -> String {
        match self {
            Self::Exact(text) => text.to_owned(),
            Self::Prefix(text) => format!("{text}*"),
            Self::Suffix(text) => format!("*{text}"),
        }
    }
}

const fn hangs(pattern: Pattern, removed_by: &'static str, advice: &'static str) -> KnownFinalizer {
    KnownFinalizer { pattern, removed_by, hangs: true, advice }
}

const fn waits(pattern: Pattern, removed_by: &'static str, advice: &'static str) -> KnownFinalizer {
    KnownFinalizer { pattern, removed_by, hangs: false, advice }
}

use Pattern::{Exact, Prefix, Suffix};

const CLOUD: &str = "see that it runs and may delete the load balancer; only then delete the Namespace";
const OPERATOR: &str = "delete the object while its operator still runs, before the Namespace";

/// Every finalizer that is known by name. The page of `namespace-approval` holds the same table for people.
pub static KNOWN: &[KnownFinalizer] = &[
    // Kubernetes itself
    hangs(Exact("service.kubernetes.io/load-balancer-cleanup"), "the cloud controller manager", CLOUD),
    waits(Exact("kubernetes.io/pvc-protection"), "Kubernetes", "it goes with the last Pod that uses the volume"),
    waits(
        Exact("batch.kubernetes.io/job-tracking"),
        "Kubernetes",
        "it goes when the Job controller has counted the Pod",
    ),
    waits(Exact("foregroundDeletion"), "Kubernetes", "it goes with the last object that it owns"),
    waits(Exact("orphan"), "Kubernetes", "it goes when what it owned is let go"),
    hangs(
        Prefix("snapshot.storage.kubernetes.io/"),
        "the snapshot controller",
        "delete the VolumeSnapshots first and see that the snapshot controller and its CSI driver run",
    ),
    // Argo CD
    hangs(
        Exact("argocd.argoproj.io/hook-finalizer"),
        "Argo CD",
        "let the sync that runs the hook end, or terminate it, before the Application goes",
    ),
    hangs(
        Prefix("resources-finalizer.argocd.argoproj.io"),
        "Argo CD",
        "delete the Application first, while its controller runs and its project and cluster exist",
    ),
    hangs(
        Prefix("post-delete-finalizer.argocd.argoproj.io"),
        "Argo CD",
        "delete the Application first and see that its PostDelete hooks end",
    ),
    hangs(
        Prefix("pre-delete-finalizer.argocd.argoproj.io"),
        "Argo CD",
        "delete the Application first and see that its PreDelete hooks end",
    ),
    // Load balancers and ingress
    hangs(Exact("service.k8s.aws/resources"), "the AWS Load Balancer Controller", CLOUD),
    hangs(Exact("ingress.k8s.aws/resources"), "the AWS Load Balancer Controller", CLOUD),
    hangs(Prefix("group.ingress.k8s.aws/"), "the AWS Load Balancer Controller", CLOUD),
    hangs(Exact("elbv2.k8s.aws/resources"), "the AWS Load Balancer Controller", CLOUD),
    hangs(Prefix("gke.networking.io/l4-"), "the GKE load balancer controller", CLOUD),
    hangs(Prefix("networking.gke.io/"), "the GKE ingress controller", CLOUD),
    // Operators
    hangs(Suffix("acme.cert-manager.io/finalizer"), "cert-manager", OPERATOR),
    hangs(Exact("finalizer.acme.cert-manager.io"), "cert-manager", OPERATOR),
    hangs(Suffix(".flink.apache.org/finalizer"), "the Flink Kubernetes operator", OPERATOR),
    hangs(Exact("strimzi.io/topic-operator"), "the Strimzi topic operator", OPERATOR),
    hangs(Exact("finalizer.keda.sh"), "KEDA", OPERATOR),
    hangs(Exact("finalizers.fluxcd.io"), "Flux", OPERATOR),
    hangs(Suffix(".crossplane.io"), "Crossplane", OPERATOR),
    hangs(Suffix("ceph.rook.io/disaster-protection"), "the Rook operator", OPERATOR),
    hangs(Suffix(".ceph.rook.io"), "the Rook operator", OPERATOR),
    hangs(
        Prefix("controller.cattle.io/"),
        "Rancher",
        "delete the Namespace while Rancher manages the cluster, or remove the finalizer if Rancher is gone",
    ),
];

/// What is known of a finalizer.
pub fn known(finalizer: &str) -> Option<&'static KnownFinalizer> {
    KNOWN.iter().find(|known| known.pattern.matches(finalizer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_variants_are_recognised() {
        let removed_by = |finalizer| known(finalizer).map(|known| (known.removed_by, known.hangs));
        assert_eq!(removed_by("ingress.k8s.aws/resources"), Some(("the AWS Load Balancer Controller", true)));
        assert_eq!(removed_by("group.ingress.k8s.aws/front"), Some(("the AWS Load Balancer Controller", true)));
        assert_eq!(removed_by("resources-finalizer.argocd.argoproj.io/background"), Some(("Argo CD", true)));
        assert_eq!(
            removed_by("flinkdeployments.flink.apache.org/finalizer"),
            Some(("the Flink Kubernetes operator", true))
        );
        assert_eq!(removed_by("kubernetes.io/pvc-protection"), Some(("Kubernetes", false)));
        assert_eq!(removed_by("example.com/mine"), None);
    }
}
