//! From findings to an answer. Rules say what they found; the policy's mode is applied here, once, and the message that a
//! tired person reads is written here.

mod groups;
mod message;
mod modes;
mod render;
mod unjudged;
mod waiver_limits;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::modes::Modes;
pub use self::{render::render, unjudged::unjudged};
use crate::{
    catalog::{Check, RuleMeta},
    inventory::Inventory,
    object::ObjectRef,
    policy::{Mode, Policy, Resolved, RuleKey, Scope, Scopes},
    remedy::Remedy,
};

/// How bad a finding is, before the policy's mode is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth saying; never refused.
    Warn,
    /// To be refused where the rule enforces.
    Deny,
}

/// A change to the object that mends a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    /// What it does, in one sentence.
    pub description: String,
    /// The change to the object, as an RFC 6902 patch.
    pub patch: json_patch::Patch,
}

/// What is kept of an approval that let a delete pass; who approved stands beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Until when it holds.
    pub until: String,
    /// The reason it gives; may be empty.
    pub reason: String,
}

/// Something a rule found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static RuleMeta,
    /// Which of the rule's checks.
    pub check: &'static Check,
    /// How bad it is.
    pub severity: Severity,
    /// Whose mode in the policy counts: the rule's own, unless what was found would lift another rule. `None` is always
    /// enforced, whatever modes, exemptions and ceiling say.
    pub key: Option<RuleKey>,
    /// Where an option of the rule sets one: a limit to how strictly this is acted on, and the line of the policy.
    pub at_most: Option<(Mode, &'static str)>,
    /// The object it is about.
    pub object: ObjectRef,
    /// Whose mode counts: the strictest of the places it covers, each of which the weakest of its scopes may waive, so that
    /// what was waived at the root stays waived below it.
    pub scopes: Scopes,
    /// One sentence that holds for every finding of the same rule and check in one answer, without a full stop.
    pub summary: String,
    /// What holds for this object alone; may be empty.
    pub detail: String,
    /// Applications that claim the object, for records.
    pub claimants: Vec<String>,
    /// Who approved, for records.
    pub approved_by: String,
    /// Of what was allowed because somebody answers for it: who until when and why. Such a finding is recorded and never
    /// said to the client.
    pub evidence: Option<Evidence>,
    /// What to do now. Each suffices by itself; the best comes first.
    pub remedies: Vec<Remedy>,
    /// What else is good to know, one line each. The first to go where a message would be too long.
    pub notes: Vec<String>,
    /// The other object it is about, such as the one that comes too late. Tells apart what one check found more than
    /// once about one object.
    pub regarding: Option<ObjectRef>,
    /// The field of the object that is at fault, as a JSON pointer; empty where no single one is known.
    pub field: String,
    /// A change that would mend it.
    pub fix: Option<Box<Fix>>,
}

impl Finding {
    /// A finding about an object, judged by the object's own scope.
    pub fn new(check: &'static Check, severity: Severity, object: ObjectRef, summary: impl Into<String>) -> Self {
        let scopes = Scope::of(&object, None).into();
        Self {
            rule: check.rule,
            check,
            severity,
            key: check.rule.key,
            at_most: None,
            object,
            scopes,
            summary: summary.into(),
            detail: String::new(),
            claimants: Vec::new(),
            approved_by: String::new(),
            evidence: None,
            remedies: Vec::new(),
            notes: Vec::new(),
            regarding: None,
            field: String::new(),
            fix: None,
        }
    }

    /// Says whose mode counts, where that is not the object's own alone.
    #[must_use]
    pub fn judged_in(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Says what holds for this object alone.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Names the Applications that claim the object.
    #[must_use]
    pub fn claimed_by(mut self, claimants: Vec<String>) -> Self {
        self.claimants = claimants;
        self
    }

    /// Names the other object it is about.
    #[must_use]
    pub fn regarding(mut self, other: &ObjectRef) -> Self {
        self.regarding = Some(other.clone());
        self
    }

    /// Names the annotation that is at fault.
    #[must_use]
    pub fn on_annotation(mut self, key: &str) -> Self {
        self.field = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
        self
    }

    /// Adds a change that would mend it.
    #[must_use]
    pub fn fixed_by(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into().map(Box::new);
        self
    }

    /// Adds one thing to do: a sentence, or a [`Remedy`] with commands.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Remedy>) -> Self {
        self.remedies.push(remedy.into());
        self
    }
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The rule is off here, or an exemption holds.
    Dropped,
    /// Recorded; the client hears nothing.
    Recorded,
    /// The client was told.
    Warned,
    /// It would have been refused, but the glass was broken.
    BrokeGlass,
    /// Refused.
    Refused,
}

/// A finding, the mode that applied and what became of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The finding.
    pub finding: Finding,
    /// Mode and the line of the policy that decided.
    pub resolved: Resolved,
    /// What became of it.
    pub effect: Effect,
}

impl Outcome {
    /// Whether only an exemption keeps it from being refused.
    pub fn is_exempted(&self) -> bool {
        self.resolved.exempt && self.finding.severity == Severity::Deny
    }

    /// What became of it in one word, as it stands in audit annotations, metrics and logs.
    pub fn word(&self) -> &'static str {
        match (self.effect, self.finding.severity) {
            (Effect::Dropped, _) => "allow",
            (Effect::Recorded, _) if self.finding.evidence.is_some() => "allow",
            (Effect::Refused, _) => "deny",
            (Effect::BrokeGlass, _) => "break-glass",
            (Effect::Recorded | Effect::Warned, Severity::Deny) => "would-deny",
            (Effect::Recorded | Effect::Warned, Severity::Warn) => "warn",
        }
    }
}

/// Every word [`Outcome::word`] may be.
pub const WORDS: [&str; 5] = ["allow", "deny", "break-glass", "would-deny", "warn"];

/// A reason by which every rule is waived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenGlass {
    /// The reason.
    pub reason: String,
    /// Whether it is written on an object, where what a cascade deletes later finds it. Membership of a group waives one
    /// request.
    pub lasts: bool,
}

/// All outcomes of one request.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// In the order the rules found them.
    pub outcomes: Vec<Outcome>,
    /// The reason by which the glass was broken, if it was.
    pub break_glass: Option<BrokenGlass>,
    /// What a refusal says first, beside why: that a break-glass reason is there and does not count.
    pub note: Option<String>,
}

impl Decision {
    /// Applies modes, exemptions and break-glass to what the rules found.
    pub fn new(
        findings: Vec<Finding>,
        policy: &Policy,
        inventory: &Inventory,
        user: &str,
        now: Timestamp,
        break_glass: Option<BrokenGlass>,
    ) -> Self {
        let resolved: Vec<Resolved> = {
            let mut modes = Modes::new(policy, inventory, user, now);
            findings.iter().map(|finding| modes.of(finding)).collect()
        };
        let outcomes = findings
            .into_iter()
            .zip(resolved)
            .map(|(finding, resolved)| {
                let effect = match (resolved.mode, finding.severity) {
                    (Mode::Off, _) => Effect::Dropped,
                    _ if finding.evidence.is_some() => Effect::Recorded,
                    (Mode::Audit, _) => Effect::Recorded,
                    (Mode::Enforce, Severity::Deny) if break_glass.is_some() => Effect::BrokeGlass,
                    (Mode::Enforce, Severity::Deny) => Effect::Refused,
                    (Mode::Warn | Mode::Enforce, _) => Effect::Warned,
                };
                Outcome { finding, resolved, effect }
            })
            .collect();
        Self { outcomes, break_glass, note: None }
    }

    /// Adds a warning for each object that the cascade of `target` will not get past because only the one who asks is let through.
    #[must_use]
    pub fn foretold(mut self, target: &ObjectRef, policy: &Policy, inventory: &Inventory, now: Timestamp) -> Self {
        let warnings = waiver_limits::warnings(&self, target, policy, inventory, now);
        self.outcomes.extend(warnings);
        self
    }

    /// With a note that a refusal says first.
    #[must_use]
    pub fn noting(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }

    /// Whether the request may go on.
    pub fn allowed(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.effect != Effect::Refused)
    }

    /// What is to be said, the dropped left aside.
    pub fn said(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.effect != Effect::Dropped)
    }

    /// What is to be kept: what is said, and what an exemption let pass although the rule refuses it.
    pub fn recorded(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.effect != Effect::Dropped || outcome.is_exempted())
    }

    /// The outcome that weighs most of those that are to be kept.
    pub fn worst(&self) -> Option<&Outcome> {
        self.recorded().max_by_key(|outcome| (outcome.effect, outcome.finding.severity))
    }

    /// Whether nothing was found that anybody should hear of.
    pub fn is_plain_allow(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.effect == Effect::Dropped)
    }
}

/// The mode that will apply to a finding: for rules that would ask around only for an answer that somebody hears.
pub fn mode_of(finding: &Finding, policy: &Policy, inventory: &Inventory, user: &str, now: Timestamp) -> Mode {
    Modes::new(policy, inventory, user, now).of(finding).mode
}
