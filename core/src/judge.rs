//! One review, from decoded request to decision: the only way in for the webhook, the command line and the audit.
//!
//! [`judge`] takes one look: it works out the deletion first and asks the rules second. Where something has to be read
//! first, it leaves questions in the [`Facts`] and its result is provisional. An [`Inquiry`] makes that visible: each
//! [`Step`] either needs answers or is done.

use jiff::Timestamp;

use crate::{
    admission::{DeleteOptions, Operation, Request},
    budget::{Budget, Interrupt},
    decision::Decision,
    deletion::{Deletion, Inputs, Stored, is_to_be_judged},
    facts::{Answer, Facts, Question},
    inventory::Inventory,
    object::ObjectMeta,
    policy::Policy,
    rules::{Context, Foreseen, RULES, foresees},
};

/// What is judged, by which policy, and when.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The request.
    pub request: &'a Request<'a>,
    /// Metadata of the object, where the caller knows it. An object that the inventory knows is then judged as the
    /// inventory knows it, so that thousands of Applications are judged without decoding one of them again.
    pub known: Option<&'a ObjectMeta>,
    /// The policy.
    pub policy: &'a Policy,
    /// The clock.
    pub now: Timestamp,
    /// Whether everything a DELETE takes is named and read, not only what a decision hangs on: for people who look
    /// before they leap.
    pub thorough: bool,
    /// Why the inventory may be out of date, if it may: a clause that says since when and what failed. What cascades is then
    /// judged as if an Application whose claims are not known wanted it.
    pub stale: Option<&'a str>,
}

impl<'a> Case<'a> {
    /// A request as the API server sends it.
    pub fn new(request: &'a Request<'a>, policy: &'a Policy, now: Timestamp) -> Self {
        Self { request, known: None, policy, now, thorough: false, stale: None }
    }

    fn inputs(&self, inventory: &'a Inventory) -> Inputs<'a> {
        Inputs { inventory, policy: self.policy, thorough: self.thorough }
    }

    fn context(
        &self,
        inventory: &'a Inventory,
        stored: Option<&'a Stored<'a>>,
        deletion: Option<&'a Deletion>,
        foreseen: Option<&'a Foreseen>,
    ) -> Context<'a> {
        let Self { request, policy, now, thorough, stale, known: _ } = *self;
        Context { request, inventory, policy, now, thorough, stale, stored, deletion, foreseen }
    }
}

/// What came of a case.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// What the DELETE means and takes along; `None` for other operations and for objects that do not exist.
    pub deletion: Option<Deletion>,
}

/// Judges a case with what is known so far. While [`Facts::is_asking`] the result is provisional.
///
/// `deletion` is what an earlier look at the same case worked out from the same inventory, if there was one.
///
/// Once nobody waits any more ([`Facts::until`]) the verdict is one without a judgement: what a rule cannot tell of a
/// delete, or of what gives a power to delete, is unknown; anything else passes with a warning.
pub fn judge(case: &Case<'_>, inventory: &Inventory, facts: &mut Facts, deletion: Option<Deletion>) -> Verdict {
    // What has to be known before the first step is known now; a verdict that comes too late is not begun.
    let verdict = if facts.step() { weigh(case, inventory, facts, deletion) } else { Verdict::default() };
    if !facts.budget().is_over() {
        return verdict;
    }
    // Nothing is read for a verdict that is too late already.
    facts.take_pending();
    Verdict { decision: overdue(case, inventory), deletion: None }
}

fn weigh(case: &Case<'_>, inventory: &Inventory, facts: &mut Facts, deletion: Option<Deletion>) -> Verdict {
    let request = case.request;
    let inputs = case.inputs(inventory);
    let stored = Stored::of(request, case.known, inventory, facts);
    let is_delete = request.operation == Operation::Delete;
    // Refusing what is already being deleted only strands what is half gone.
    if facts.is_asking() || (is_delete && stored.as_ref().is_some_and(|stored| stored.meta.is_terminating())) {
        return Verdict::default();
    }
    let deletion = match (deletion, &stored) {
        (Some(deletion), _) => Some(deletion),
        (None, Some(stored)) if is_delete && request.sub_resource.is_empty() => {
            Deletion::new(inputs, facts, request, stored)
        }
        _ => None,
    };
    let foreseen = foresee(case, inventory, facts);
    if facts.is_asking() || facts.budget().is_over() {
        return Verdict::default();
    }
    let cx = case.context(inventory, stored.as_ref(), deletion.as_ref(), foreseen.as_ref());
    let decision = decide(&cx, facts);
    Verdict { decision, deletion }
}

/// Judges the delete that a rule wants foreseen. Provisional while [`Facts::is_asking`].
fn foresee(case: &Case<'_>, inventory: &Inventory, facts: &mut Facts) -> Option<Foreseen> {
    let user = foresees(case.request, case.inputs(inventory))?;
    let delete = Request {
        user,
        operation: Operation::Delete,
        object: None,
        options: DeleteOptions::default(),
        ..case.request.clone()
    };
    let Verdict { decision, deletion } =
        weigh(&Case { request: &delete, known: None, ..*case }, inventory, facts, None);
    let touched = deletion.iter().flat_map(Deletion::namespaces_here).map(str::to_owned);
    Some(Foreseen { decision, namespaces: touched.collect() })
}

/// The decision on a case that nobody has finished judging.
fn overdue(case: &Case<'_>, inventory: &Inventory) -> Decision {
    let request = case.request;
    let stored = Stored::carried(request, case.known);
    let goes_anyway = |stored: &Stored<'_>| {
        stored.meta.is_terminating() || !is_to_be_judged(case.inputs(inventory), request, &stored.meta)
    };
    if request.operation == Operation::Delete && stored.as_ref().is_some_and(goes_anyway) {
        return Decision::default();
    }
    let cx = case.context(inventory, stored.as_ref(), None, None);
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| rule.meta().operations.contains(&request.operation)) {
        if rule.applies(request) {
            rule.when_overdue(&cx, &mut findings);
        }
    }
    Decision::new(findings, case.policy, inventory, &request.user.username, case.now, cx.break_glass())
}

fn decide(cx: &Context<'_>, facts: &mut Facts) -> Decision {
    let (request, inventory, policy, now) = (cx.request, cx.inventory, cx.policy, cx.now);
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| rule.meta().operations.contains(&request.operation)) {
        if !rule.applies(request) {
            continue;
        }
        if rule.needs_inventory() && !inventory.is_ready() {
            findings.extend(cx.not_ready(rule.meta()));
            continue;
        }
        rule.check(cx, facts, &mut findings);
        if facts.budget().is_over() {
            return Decision::default();
        }
    }
    let glass = cx.break_glass();
    let holds = if glass.is_none() { cx.glass_holds() } else { None };
    let decision = Decision::new(findings, policy, inventory, &request.user.username, now, glass).noting(holds);
    if request.operation == Operation::Delete {
        decision.foretold(&request.target, policy, inventory, now)
    } else {
        decision
    }
}

/// What one look at something led to.
#[derive(Debug)]
pub enum Step<T> {
    /// It is settled.
    Done(T),
    /// These questions have to be answered first.
    Needs(Vec<Question>),
}

/// A plan is followed to any depth, but no honest tree of Applications is deeper than this; what lies below counts as
/// not read.
const MAX_ROUNDS: usize = 32;

/// Looks that are repeated until nothing is asked any more.
#[derive(Debug, Default)]
pub struct Inquiry {
    facts: Facts,
    rounds: usize,
}

impl Inquiry {
    /// An inquiry that may read at most `limit` objects.
    pub fn with_limit(limit: usize) -> Self {
        Self { facts: Facts::with_limit(limit), rounds: 0 }
    }

    /// One whose result counts for nothing once `interrupt` says that nobody waits for it any more.
    #[must_use]
    pub fn until(self, interrupt: Interrupt) -> Self {
        Self { facts: self.facts.until(interrupt), ..self }
    }

    /// Takes one look.
    pub fn step<T>(&mut self, look: impl FnOnce(&mut Facts) -> T) -> Step<T> {
        let result = look(&mut self.facts);
        let questions = self.facts.take_pending();
        if questions.is_empty() { Step::Done(result) } else { Step::Needs(questions) }
    }

    /// What the looks have cost so far.
    pub fn budget(&self) -> &Budget {
        self.facts.budget()
    }

    /// Whether another round of answers is worth waiting for.
    pub fn may_go_on(&self) -> bool {
        self.rounds < MAX_ROUNDS
    }

    /// Takes answers to `questions`. A question without an answer was not read in time.
    pub fn answer(&mut self, questions: Vec<Question>, answers: impl IntoIterator<Item = (Question, Answer)>) {
        self.rounds += 1;
        for (question, answer) in answers {
            self.facts.insert(question, answer);
        }
        for question in questions {
            self.facts.insert_missing(question, "it was not read in time");
        }
    }

    /// From now on nothing more is read: the next step is done, with what is not known taken as not read.
    pub fn close(&mut self, reason: &str) {
        self.facts.close(reason);
    }
}

/// Who answers at once, without waiting for anything.
pub trait AtHand {
    /// The answer to one question.
    fn reply(&self, question: &Question) -> Answer;
}

/// Looks until nothing is asked any more, with answers that are at hand.
pub fn settle<T>(mut inquiry: Inquiry, source: &impl AtHand, mut look: impl FnMut(&mut Facts) -> T) -> T {
    loop {
        match inquiry.step(&mut look) {
            Step::Done(result) => return result,
            Step::Needs(questions) if inquiry.may_go_on() => {
                let answers: Vec<_> =
                    questions.iter().map(|question| (question.clone(), source.reply(question))).collect();
                inquiry.answer(questions, answers);
            }
            Step::Needs(_) => inquiry.close("there was no time left to read it"),
        }
    }
}

/// A case that is looked at again and again until nothing is asked any more.
pub struct Judgement<'a> {
    case: Case<'a>,
    fixed: bool,
    deletion: Option<Deletion>,
}

impl<'a> Judgement<'a> {
    /// Of this case. With `fixed` the inventory is the same at every look, so that the deletion is worked out once.
    pub fn new(case: Case<'a>, fixed: bool) -> Self {
        Self { case, fixed, deletion: None }
    }

    /// Takes one look.
    pub fn look(&mut self, inventory: &Inventory, facts: &mut Facts) -> Decision {
        let earlier = self.deletion.take().filter(|_| self.fixed);
        let Verdict { decision, deletion } = judge(&self.case, inventory, facts, earlier);
        self.deletion = deletion;
        decision
    }

    /// What the last look made of the DELETE.
    pub fn into_deletion(self) -> Option<Deletion> {
        self.deletion
    }
}

/// Judges a case with answers that are at hand.
pub fn judge_at_hand(case: Case<'_>, inventory: &Inventory, source: &impl AtHand) -> Verdict {
    let mut judgement = Judgement::new(case, true);
    let decision = settle(Inquiry::default(), source, |facts| judgement.look(inventory, facts));
    Verdict { decision, deletion: judgement.into_deletion() }
}
