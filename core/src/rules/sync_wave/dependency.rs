//! Whether what an object needs is there when Argo CD reaches it.

use super::{
    lateness::{Late, Unmet, late},
    lifecycle::{hook_key, warn},
    remedies,
    subject::{Plan, Presence, Subject, Surroundings},
};
use crate::{
    argo::hook::{Phase, Stage},
    catalog::{
        Check,
        sync_wave::{
            BEING_DELETED, COMES_LATER, DEPENDS_ON_LATER, EARLIER_INSTALL, HOOK_IN_USE, NOBODY_CREATES, NOT_READ,
            OTHER_APPLICATION, PERHAPS_LATER, PRODUCER_ELSEWHERE, PRODUCER_LATER, REMOVED_FIRST, UNKNOWN_ORDER,
            WAVE_CONTRADICTS_PHASE,
        },
    },
    decision::{Finding, Severity},
    needs::{Force, Need},
    object::ObjectRef,
};

/// Judges every need of a subject at its stage.
pub(super) fn check(
    subject: &Subject<'_>,
    stage: Stage,
    needs: &[&Need],
    around: &mut dyn Surroundings,
    findings: &mut Vec<Finding>,
) {
    let mut unmet = Vec::new();
    for need in needs.iter().filter(|need| !need.optional) {
        let mut one = One { subject, stage, need, around: &mut *around };
        match one.judge() {
            Outcome::Fine => {}
            Outcome::Unmet(late, at) => unmet.push(Unmet { need, late, at }),
            Outcome::Warn(finding) => findings.push(*finding),
        }
    }
    refuse(subject, stage, &unmet, around, findings);
    if subject.hook.is_none() {
        return;
    }
    in_use(subject, stage, around, findings);
}

/// What ordinary objects use goes with the hook: the hook itself, or what its controller makes of it.
fn in_use(subject: &Subject<'_>, stage: Stage, around: &mut dyn Surroundings, findings: &mut Vec<Finding>) {
    let object = &subject.object;
    let mut looked: Vec<(String, Vec<ObjectRef>)> = vec![(String::new(), around.users(object))];
    if let Some(product) = &subject.product {
        let along = format!(", and {} goes with it{}", product.object, product.condition);
        looked.push((along, around.users(&product.object)));
    }
    let Some((along, users)) = looked.into_iter().find(|(_, users)| !users.is_empty()) else { return };
    let user = &users[0];
    let more = if users.len() > 1 { format!(" and {} more", users.len() - 1) } else { String::new() };
    let what = if along.is_empty() { "it" } else { "that" };
    findings.push(
        warn(
            subject,
            &HOOK_IN_USE,
            "an object that is no hook refers to a hook object, or to what is made of it, which its hook-delete-policy \
             deletes",
            format!("{object} is a {} hook that gets deleted{along}, but {user}{more} uses {what}", stage.phase),
        )
        .remedy(format!("make {object} an ordinary object with a low sync-wave, or give the hook a copy of its own"))
        .on_annotation(hook_key(subject.meta)),
    );
}

enum Outcome {
    Fine,
    Unmet(Late, Stage),
    Warn(Box<Finding>),
}

/// One need of one subject.
struct One<'a> {
    subject: &'a Subject<'a>,
    stage: Stage,
    need: &'a Need,
    around: &'a mut dyn Surroundings,
}

impl One<'_> {
    fn judge(&mut self) -> Outcome {
        let plan = self.around.plan(&self.need.object);
        if self.stage.phase == Phase::PostDelete {
            return self.after_the_cascade(&plan);
        }
        match plan {
            Plan::At { stage: at, synced, doubt } => match self.late(at) {
                Some(late) => self.later(late, at, synced, doubt),
                None if self.stage.phase == Phase::PreDelete && !synced => self.unplanned(&Plan::Nobody),
                None => Outcome::Fine,
            },
            other => self.unplanned(&other),
        }
    }

    fn late(&self, at: Stage) -> Option<Late> {
        late(&self.subject.object.kind, self.stage, &self.need.object.kind, self.need.force, at)
    }

    /// The Application creates it, but only later.
    fn later(&mut self, late: Late, at: Stage, synced: bool, doubt: Option<&'static str>) -> Outcome {
        let Some(presence) = self.around.presence(&self.need.object) else { return Outcome::Fine };
        let (need, stage) = (&self.need.object, self.stage);
        // A list that saw it and a read that does not see it contradict each other. Nothing is refused on that ground.
        let there = match &presence {
            Presence::There { .. } => true,
            Presence::Missing | Presence::Unread(_) => synced,
            Presence::Leaving | Presence::NotLooked { .. } => false,
        };
        if let Force::Bearable(why) = self.need.force {
            if there {
                return Outcome::Fine;
            }
            let via = self.need.via;
            return self.warn(
                &COMES_LATER,
                "something this refers to comes later; the sync goes on all the same",
                format!("{stage}: {need} ({via}) comes in {at}; {why}"),
            );
        }
        if there {
            return self.warn(
                &EARLIER_INSTALL,
                "the order only works because of an earlier install; a first install would hang",
                format!("{stage} needs {need} of {at}: only there from an earlier install"),
            );
        }
        if presence == Presence::Leaving {
            return self.warn(
                &BEING_DELETED,
                "something this needs is being deleted, and is only made again later",
                format!("{stage} needs {need}, which is being deleted; it comes again in {at}"),
            );
        }
        if let Presence::Unread(reason) = presence {
            return self.warn(
                &NOT_READ,
                "whether something that comes later exists already could not be read",
                format!("{stage} needs {need} of {at}; whether it exists could not be read: {reason}"),
            );
        }
        match doubt {
            Some(reason) => self.warn(
                &PERHAPS_LATER,
                "something this needs comes later, by a list that may not be what is synced now",
                format!("{stage} needs {need} of {at}, by the list of an Application: {reason}"),
            ),
            None => Outcome::Unmet(late, at),
        }
    }

    /// The Application's list does not say when it is created, if ever.
    fn unplanned(&mut self, plan: &Plan) -> Outcome {
        if matches!(self.need.force, Force::Bearable(_)) {
            return Outcome::Fine;
        }
        let Some(presence) = self.around.presence(&self.need.object) else { return Outcome::Fine };
        let (need, stage) = (&self.need.object, self.stage);
        match (presence, plan) {
            (Presence::There { hook: Some(at), .. }, _) if self.late(at).is_some() => self.warn(
                &EARLIER_INSTALL,
                "the order only works because of an earlier install; a first install would hang",
                format!("{stage} needs {need} of {at}: only there from an earlier install"),
            ),
            (Presence::There { .. }, _)
            | (
                Presence::Missing | Presence::Unread(_) | Presence::NotLooked { .. },
                Plan::Elsewhere { synced: true, .. },
            ) => Outcome::Fine,
            (Presence::Leaving, _) => self.warn(
                &BEING_DELETED,
                "something this needs is being deleted",
                format!("{stage} needs {need}, which is being deleted"),
            ),
            (Presence::Unread(reason), _) => self.warn(
                &NOT_READ,
                "whether something this needs exists could not be read",
                format!("{stage} needs {need}; whether it exists could not be read: {reason}"),
            ),
            (_, Plan::Elsewhere { application, .. }) => self.warn(
                &OTHER_APPLICATION,
                "something this needs is created by another Application, and nothing orders two Applications",
                format!("{stage} needs {need}, which is missing; {application} creates it, in no order with this"),
            ),
            (Presence::Missing, Plan::Hook) => self.warn(
                &UNKNOWN_ORDER,
                "something this needs is a hook of the same Application that is not there now",
                format!("{stage} needs {need}, a hook that is not there now; of which phase is unknown"),
            ),
            (presence, _) => self.produced(presence == Presence::Missing),
        }
    }

    /// Nobody creates it; perhaps something produces it.
    fn produced(&mut self, missing: bool) -> Outcome {
        let (need, stage) = (&self.need.object, self.stage);
        match self.around.producer(need) {
            Some((producer, Plan::At { stage: at, .. })) => self.produced_in(&producer, at),
            // The list does not say when a hook comes; the hook itself does, while it is there.
            Some((producer, Plan::Hook)) => match self.around.presence(&producer) {
                Some(Presence::There { hook: Some(at), .. }) => self.produced_in(&producer, at),
                _ => Outcome::Fine,
            },
            Some((producer, Plan::Elsewhere { application, .. })) if missing => self.warn(
                &PRODUCER_ELSEWHERE,
                "what produces something this needs belongs to another Application, and nothing orders two Applications",
                format!("{stage} needs {need}, not there yet; {} of {application} makes it", producer.kind.kind),
            ),
            None if missing => self.warn(
                &NOBODY_CREATES,
                "something this needs does not exist, and nobody that is known creates it",
                format!("{stage} needs {need}: it does not exist, and nobody known creates it"),
            ),
            _ => Outcome::Fine,
        }
    }

    /// Its producer comes in `at`.
    fn produced_in(&mut self, producer: &ObjectRef, at: Stage) -> Outcome {
        let (need, stage) = (&self.need.object, self.stage);
        if late(&self.subject.object.kind, stage, &producer.kind, Force::Start, at).is_none() {
            return Outcome::Fine;
        }
        self.warn(
            &PRODUCER_LATER,
            "what produces something this needs comes later",
            format!("{stage} needs {need}; what makes it, {} {}, comes in {at}", producer.kind.kind, producer.name),
        )
    }

    /// PostDelete runs when the Application's objects are gone, unless something keeps them.
    fn after_the_cascade(&mut self, plan: &Plan) -> Outcome {
        if matches!(self.need.force, Force::Bearable(_)) {
            return Outcome::Fine;
        }
        let Some(presence) = self.around.presence(&self.need.object) else { return Outcome::Fine };
        let need = &self.need.object;
        let own = match plan {
            Plan::At { stage, .. } => stage.phase != Phase::PostDelete,
            Plan::Hook => true,
            Plan::Elsewhere { .. } | Plan::Nobody => false,
        };
        let gone = match presence {
            Presence::There { hook: Some(at), .. } if at.phase == Phase::PostDelete => false,
            Presence::There { kept, .. } | Presence::NotLooked { kept } => own && !kept && self.around.cascades(),
            Presence::Leaving => true,
            Presence::Missing => !matches!(plan, Plan::Elsewhere { synced: true, .. }),
            Presence::Unread(_) => false,
        };
        if !gone {
            return Outcome::Fine;
        }
        let why = if own { "the deletion of its Application removes that first" } else { "it is not there" };
        self.warn(
            &REMOVED_FIRST,
            "a PostDelete hook needs something that is gone by the time it runs",
            format!("PostDelete needs {need} ({}): {why}", self.need.via),
        )
    }

    fn warn(&self, check: &'static Check, summary: &str, detail: String) -> Outcome {
        let mut finding = warn(self.subject, check, summary, detail);
        finding.claimants = named(self.around.application());
        finding.regarding = Some(self.need.object.clone());
        Outcome::Warn(Box::new(finding))
    }
}

/// The refusals of one subject: one for each need, grouped by what is wrong, with one set of ways out.
fn refuse(
    subject: &Subject<'_>,
    stage: Stage,
    unmet: &[Unmet<'_>],
    around: &mut dyn Surroundings,
    findings: &mut Vec<Finding>,
) {
    let application = around.application();
    let remedies = remedies::of(subject, stage, unmet, &application);
    let fix = remedies::fix(subject, stage, unmet);
    let of = if application.is_empty() { String::new() } else { format!(" of Application {application}") };
    for Unmet { need, late, at } in unmet {
        let (check, summary) = match late {
            Late::Phase { contradicts: true } => (
                &WAVE_CONTRADICTS_PHASE,
                format!(
                    "wave numbers only order objects inside one phase. They say that this comes after what it needs; the \
                     phases say before: all of {}, whatever its waves, runs before any of {}. The sync would wait for it \
                     for ever, without an error",
                    stage.phase, at.phase
                ),
            ),
            Late::Phase { .. } | Late::Wave => (
                &DEPENDS_ON_LATER,
                format!(
                    "Argo CD creates what this needs only when this is done, and this is never done without it: the \
                     sync would wait in {stage} for ever, without an error"
                ),
            ),
            Late::Kind => (
                &DEPENDS_ON_LATER,
                "Argo CD applies kind after kind inside a wave, and the API server refuses a Pod without this"
                    .to_owned(),
            ),
        };
        let mut finding = Finding::new(check, Severity::Deny, subject.object.clone(), summary)
            .detail(format!("{stage} needs {} ({}), created in {at}{of}", need.object, need.via));
        finding.claimants = named(application.clone());
        finding.regarding = Some(need.object.clone());
        finding.fix = fix.clone().map(Box::new);
        finding.remedies.clone_from(&remedies);
        findings.push(finding);
    }
}

/// A list of the one Application, if it has a name.
fn named(application: String) -> Vec<String> {
    if application.is_empty() { Vec::new() } else { vec![application] }
}
