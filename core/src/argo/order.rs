//! The order in which a sync applies objects (`gitops-engine/pkg/sync/sync_tasks.go`): phase, wave, kind, name; then
//! Namespaces and CustomResourceDefinitions are moved in front of what needs them.

use std::{cmp::Ordering, collections::HashMap};

use super::hook::Stage;
use crate::object::{GroupKind, ObjectRef};

/// Kinds in the order in which one wave applies them. The group is not looked at. Kinds that are not listed come last,
/// all of them at once.
pub const KIND_ORDER: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Place of a kind inside its wave.
pub fn kind_rank(kind: &str) -> usize {
    KIND_ORDER.iter().position(|known| *known == kind).unwrap_or(KIND_ORDER.len())
}

/// One object in one phase of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Whatever the caller finds it by again.
    pub id: usize,
    /// Where it stands; [`sort`] changes it for what it moves forward.
    pub stage: Stage,
    /// The object.
    pub object: ObjectRef,
    /// For a CustomResourceDefinition, the kind it defines.
    pub defines: Option<GroupKind>,
}

impl Task {
    /// Argo CD subtracts one wave from the other, so that two waves more than 2^63 apart come out the wrong way round
    /// there. No order of that kind exists that Rust could sort by, and nobody writes such waves: here they are compared.
    fn compare(&self, other: &Self) -> Ordering {
        self.stage
            .cmp(&other.stage)
            .then_with(|| kind_rank(&self.object.kind.kind).cmp(&kind_rank(&other.object.kind.kind)))
            .then_with(|| self.object.name.cmp(&other.object.name))
    }
}

/// Sorts tasks into the order in which Argo CD applies them. Inside one wave, tasks of one kind go out together.
pub fn sort(tasks: &mut [Task]) {
    tasks.sort_by(Task::compare);
    move_forward(
        tasks,
        |task| task.object.is_namespace().then(|| task.object.name.clone()),
        |task| (!task.object.namespace.is_empty()).then(|| task.object.namespace.clone()),
    );
    move_forward(tasks, |task| task.defines.clone(), |task| Some(task.object.kind.clone()));
}

/// Moves whatever `provides` a thing in front of the first task that `refers` to it, and into that task's phase and wave.
/// A task that already comes first stays where it is.
fn move_forward<K: Eq + std::hash::Hash>(
    tasks: &mut [Task],
    provides: impl Fn(&Task) -> Option<K>,
    refers: impl Fn(&Task) -> Option<K>,
) {
    let mut first_use: HashMap<K, usize> = HashMap::new();
    for index in 0..tasks.len() {
        if let Some(thing) = provides(&tasks[index]) {
            let Some(target) = first_use.get(&thing).copied() else { continue };
            tasks[index].stage = tasks[target].stage;
            tasks[target..=index].rotate_right(1);
            for place in first_use.values_mut().filter(|place| **place >= target) {
                *place += 1;
            }
        } else if let Some(thing) = refers(&tasks[index]) {
            first_use.entry(thing).or_insert(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argo::hook::Phase::{self, PostSync, PreSync, Sync, SyncFail};

    fn task(phase: Phase, wave: i64, group: &str, kind: &str, namespace: &str, name: &str) -> Task {
        let stage = Stage::new(phase, wave);
        Task { id: 0, stage, object: ObjectRef::new(group, kind, namespace, name), defines: None }
    }

    fn sorted(mut tasks: Vec<Task>) -> Vec<String> {
        sort(&mut tasks);
        tasks.iter().map(|task| format!("{} {} {}", task.stage, task.object.kind.kind, task.object.name)).collect()
    }

    #[test]
    fn phase_counts_before_wave_before_kind_before_name() {
        let order = sorted(vec![
            task(SyncFail, -9, "batch", "Job", "a", "fail"),
            task(PostSync, -9, "batch", "Job", "a", "post"),
            task(Sync, 1, "", "Secret", "a", "late"),
            task(Sync, 0, "apps", "Deployment", "a", "web"),
            task(Sync, 0, "", "ConfigMap", "a", "b"),
            task(Sync, 0, "", "ConfigMap", "a", "a"),
            task(Sync, 0, "", "Secret", "a", "z"),
            task(PreSync, 5, "batch", "Job", "a", "pre"),
        ]);
        assert_eq!(
            order,
            [
                "PreSync wave 5 Job pre",
                "Sync wave 0 Secret z",
                "Sync wave 0 ConfigMap a",
                "Sync wave 0 ConfigMap b",
                "Sync wave 0 Deployment web",
                "Sync wave 1 Secret late",
                "PostSync wave -9 Job post",
                "SyncFail wave -9 Job fail",
            ]
        );
    }

    #[test]
    fn unknown_kinds_come_last_and_the_group_is_ignored() {
        let order = sorted(vec![
            task(Sync, 0, "external-secrets.io", "ExternalSecret", "a", "x"),
            task(Sync, 0, "apiregistration.k8s.io", "APIService", "", "y"),
            task(Sync, 0, "example.com", "Service", "a", "z"),
        ]);
        assert_eq!(order, ["Sync wave 0 Service z", "Sync wave 0 APIService y", "Sync wave 0 ExternalSecret x"]);
    }

    #[test]
    fn namespace_moves_in_front_of_the_first_object_in_it() {
        let order = sorted(vec![
            task(PreSync, -1, "batch", "Job", "shop", "migrate"),
            task(PreSync, -2, "batch", "Job", "other", "first"),
            task(Sync, 3, "", "Namespace", "", "shop"),
            task(Sync, 0, "", "Secret", "shop", "db"),
        ]);
        assert_eq!(
            order,
            [
                "PreSync wave -2 Job first",
                "PreSync wave -1 Namespace shop",
                "PreSync wave -1 Job migrate",
                "Sync wave 0 Secret db",
            ]
        );
    }

    #[test]
    fn definition_moves_in_front_of_its_first_instance() {
        let mut crd =
            task(Sync, 5, "apiextensions.k8s.io", "CustomResourceDefinition", "", "flinkdeployments.flink.apache.org");
        crd.defines = Some(GroupKind::new("flink.apache.org", "FlinkDeployment"));
        let order = sorted(vec![
            crd,
            task(Sync, 0, "flink.apache.org", "FlinkDeployment", "a", "job"),
            task(Sync, 0, "", "Secret", "a", "s"),
        ]);
        assert_eq!(
            order,
            [
                "Sync wave 0 Secret s",
                "Sync wave 0 CustomResourceDefinition flinkdeployments.flink.apache.org",
                "Sync wave 0 FlinkDeployment job",
            ]
        );
    }

    #[test]
    fn namespace_that_comes_first_anyway_keeps_its_wave() {
        let order =
            sorted(vec![task(Sync, -7, "", "Namespace", "", "shop"), task(Sync, 0, "", "Secret", "shop", "db")]);
        assert_eq!(order, ["Sync wave -7 Namespace shop", "Sync wave 0 Secret db"]);
    }

    #[test]
    fn page_shows_the_order_of_the_code() {
        let page = include_str!("../../../docs/rules/sync-wave.md");
        let kinds = KIND_ORDER.into_iter().chain(["every other kind"]);
        let rows: Vec<String> = kinds.map(|kind| format!("| {} | {kind} |", kind_rank(kind) + 1)).collect();
        let table = format!("| | kind |\n|---|---|\n{}\n", rows.join("\n"));
        assert!(page.contains(&table), "docs/rules/sync-wave.md should hold this table:\n{table}");
        let mut rest = page;
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            let place = if phase.is_deletion() { "–".to_owned() } else { (index + 1).to_string() };
            let row = format!("| {place} | {phase} | ");
            let at = rest.find(&row);
            assert!(at.is_some(), "docs/rules/sync-wave.md should have a row `{row}` next");
            rest = &rest[at.unwrap_or_default()..];
        }
    }

    #[test]
    fn extreme_waves_are_compared_not_subtracted() {
        let order = sorted(vec![
            task(Sync, i64::MAX, "", "Secret", "a", "last"),
            task(Sync, i64::MIN, "", "Secret", "a", "first"),
        ]);
        assert!(order[0].ends_with("first") && order[1].ends_with("last"));
    }
}
