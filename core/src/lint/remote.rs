//! Hooks that take an entry out of a store outside the cluster while something still reads it.

use super::set::{Found, Set};
use crate::{
    catalog::sync_wave::HOOK_IN_USE,
    decision::{Finding, Severity},
};

/// A PushSecret with `deletionPolicy: Delete` takes along what it pushed.
pub fn check(set: &Set<'_>, found: &mut Vec<Found>) {
    for (index, hook) in set.manifests.iter().enumerate() {
        let Some(stage) = hook.stage.filter(|_| hook.hook.is_some()) else { continue };
        let reader = hook.remote.pushed.iter().find_map(|key| {
            let mut readers = set.manifests.iter().filter(|reader| reader.hook.is_none());
            Some((key, readers.find(|reader| reader.remote.read.contains(key))?))
        });
        let Some((key, reader)) = reader else { continue };
        let (object, reader) = (&hook.object, &reader.object);
        let mut finding = Finding::new(
            &HOOK_IN_USE,
            Severity::Warn,
            object.clone(),
            "an object that is no hook reads what a hook object puts into a store, and its hook-delete-policy deletes both",
        )
        .detail(format!(
            "{object} is a {} hook that gets deleted, and `{key}` goes from the store with it, but {reader} reads that",
            stage.phase
        ))
        .remedy("set deletionPolicy: None, or make it an ordinary object with a low sync-wave");
        finding.regarding = Some(reader.clone());
        "/spec/deletionPolicy".clone_into(&mut finding.field);
        found.push((index, finding));
    }
}
