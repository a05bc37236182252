//! The order check against a simulation of a sync: what is refused can never work, in whatever order Argo CD goes
//! through a wave; what is not refused can.

use proptest::prelude::*;

use super::late;
use crate::{
    argo::{
        hook::{Phase, Stage},
        order::kind_rank,
    },
    needs::Force,
    object::GroupKind,
};

#[derive(Clone, Debug)]
struct Thing {
    stage: Stage,
    kind: GroupKind,
}

/// Index of the hook and of its need among the things of a sync.
const HOOK: usize = 0;
const NEED: usize = 1;

/// Whether some order in which Argo CD may apply these things lets the sync end: it never applies a thing before another
/// of an earlier phase, wave or kind, it does not leave a wave before everything in it is healthy, and a hook is healthy
/// only once its need is there. A bare Pod that the API server refuses for want of its need ends the sync at once.
fn can_end(things: &[Thing], force: Force) -> bool {
    permutations(things.len()).iter().any(|order| allowed(things, order) && ends(things, order, force))
}

fn allowed(things: &[Thing], order: &[usize]) -> bool {
    let place = |index: usize| (things[index].stage, kind_rank(&things[index].kind.kind));
    order.windows(2).all(|pair| place(pair[0]) <= place(pair[1]))
}

fn ends(things: &[Thing], order: &[usize], force: Force) -> bool {
    let mut applied: Vec<usize> = Vec::new();
    for index in order {
        let new_wave = applied.last().is_some_and(|last| things[*last].stage != things[*index].stage);
        let hook_waits = applied.contains(&HOOK) && !applied.contains(&NEED);
        if new_wave && hook_waits {
            return false;
        }
        let refused = *index == HOOK && things[HOOK].kind.kind == "Pod" && force == Force::Creation;
        if refused && !applied.contains(&NEED) {
            return false;
        }
        applied.push(*index);
    }
    true
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for at in 0..count {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            all.push(longer);
        }
    }
    all
}

fn stage() -> impl Strategy<Value = Stage> {
    let phases = vec![Phase::PreSync, Phase::Sync, Phase::PostSync, Phase::SyncFail];
    (proptest::sample::select(phases), -2_i64..3).prop_map(|(phase, wave)| Stage::new(phase, wave))
}

fn thing(kinds: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Thing> {
    (stage(), proptest::sample::select(kinds))
        .prop_map(|(stage, (group, kind))| Thing { stage, kind: GroupKind::new(group, kind) })
}

const HOOKS: &[(&str, &str)] =
    &[("", "Pod"), ("batch", "Job"), ("apps", "Deployment"), ("apps", "DaemonSet"), ("argoproj.io", "Workflow")];
const NEEDS: &[(&str, &str)] = &[
    ("", "ServiceAccount"),
    ("", "Secret"),
    ("", "ConfigMap"),
    ("", "PersistentVolumeClaim"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("resource.k8s.io", "ResourceClaim"),
];

proptest! {
    #[test]
    fn refused_exactly_where_no_order_that_argo_cd_allows_could_work(
        hook in thing(HOOKS),
        need in thing(NEEDS),
        others in proptest::collection::vec(thing(NEEDS), 0..3),
        force in proptest::sample::select(vec![Force::Creation, Force::Start]),
    ) {
        let refused = late(&hook.kind, hook.stage, &need.kind, force, need.stage).is_some();
        let things: Vec<Thing> = [hook, need].into_iter().chain(others).collect();
        prop_assert_eq!(refused, !can_end(&things, force), "{:?}", things);
    }

    #[test]
    fn hooks_of_a_deletion_have_no_order_among_themselves(
        phase in proptest::sample::select(vec![Phase::PreDelete, Phase::PostDelete]),
        (wave, other) in (-2_i64..3, -2_i64..3),
    ) {
        let (job, account) = (GroupKind::new("batch", "Job"), GroupKind::new("", "ServiceAccount"));
        let found = late(&job, Stage::new(phase, wave), &account, Force::Creation, Stage::new(phase, other));
        prop_assert_eq!(found, None);
    }
}
