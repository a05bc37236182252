//! Hooks that are there now, judged as if they were created again.

use std::{sync::Arc, time::Duration};

use serde_json::value::RawValue;

use super::{AuditInput, Options, deletion, each_object};
use crate::judge::{Source, View, judge};
use cascade_guard_core::{
    admission::{Object, Operation, Request},
    decision::Effect,
    facts::Reading,
    judge::Case,
    object::{KnownObject, ObjectRef},
    report::ReportFinding,
};

/// What makes an object a hook.
const HOOKS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];

pub(super) async fn find<V: View, S: Source>(input: &AuditInput<'_, V, S>, options: &Options) -> Vec<ReportFinding> {
    let is_hook = |subject: &&KnownObject| {
        !subject.meta.is_terminating() && HOOKS.iter().any(|hook| subject.meta.annotation(hook).is_some())
    };
    let hooks: Vec<ObjectRef> = input.objects.iter().filter(is_hook).map(|subject| subject.object.clone()).collect();
    let mut bodies: Vec<(ObjectRef, Arc<RawValue>)> = Vec::new();
    each_object(input.source, hooks, |object, reading| {
        if let Reading::Found(raw) = reading {
            bodies.push((object.clone(), raw));
        }
    })
    .await;
    let mut found = Vec::new();
    for (object, raw) in &bodies {
        let Ok(new) = Object::new(raw) else { continue };
        let request = Request { operation: Operation::Create, object: Some(new), ..deletion(object, &options.user) };
        let case = Case::new(&request, input.policy, input.now);
        let decision = judge(case, input.view, input.source, || Duration::from_secs(60)).await;
        let said = decision.outcomes.iter().filter(|outcome| outcome.effect != Effect::Dropped);
        found.extend(said.map(ReportFinding::judged));
    }
    found
}
