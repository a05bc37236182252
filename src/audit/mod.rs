//! The audit finds what is wrong before anybody deletes anything: objects that two Applications claim, deletes that
//! would be refused, Namespaces without protection, Applications whose lists cannot be trusted, objects stuck in
//! deletion.
//!
//! It judges by the same rules as the webhook. A cluster and a snapshot can both be audited: anything that gives a
//! [`View`] and answers as a [`Source`].

pub mod failed_open;
mod findings;
mod gaps;
mod hooks;
pub mod html;
mod overlap;
mod protection;
mod refusals;
mod since;
mod table;
pub mod terminating;
mod untrusted_lists;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::{
    failed_open::FailedOpen,
    findings::rules,
    gaps::Unsettled,
    overlap::Overlap,
    protection::PROTECTING,
    protection::{ApprovalValidity, AuditedApproval, Unprotected},
    refusals::Refusal,
    since::Changes,
    table::draw,
    terminating::Stuck,
    untrusted_lists::Untrusted,
};
use crate::judge::{Source, View};
use cascade_guard_core::{
    admission::{DeleteOptions, Operation, Request, Resource, UserInfo},
    catalog,
    facts::{Answer, Question, Reading},
    object::{KnownObject, ObjectMeta, ObjectRef},
    policy::{Mode, Policy},
    report::{Report, ReportFinding, Tool},
};

/// At most this many objects are asked for at once.
const BATCH: usize = 64;

/// The cluster or snapshot that is audited, the policy and the time.
pub struct AuditInput<'a, V, S> {
    /// What Applications claim.
    pub view: &'a V,
    /// What answers the questions of the rules.
    pub source: &'a S,
    /// The policy to judge by.
    pub policy: &'a Policy,
    /// The clock.
    pub now: Timestamp,
    /// Every object to audit.
    pub objects: &'a [KnownObject],
}

/// Options of an audit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose deletes are judged.
    pub user: String,
    /// An object that is being deleted for longer than this counts as stuck.
    pub stuck_after: SignedDuration,
    /// An approval that ends within this time is about to end.
    pub ending_within: SignedDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            user: "kubectl-user".to_owned(),
            stuck_after: SignedDuration::from_mins(10),
            ending_within: SignedDuration::from_mins(30),
        }
    }
}

/// The findings of an audit, in sections.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Audit {
    /// How many objects were audited.
    pub counts: Counts,
    /// The mode of each rule where no override or exemption applies, under the ceiling.
    pub modes: BTreeMap<Cow<'static, str>, Mode>,
    /// Objects that several Applications claim, the most contested first.
    pub overlaps: Vec<Overlap>,
    /// Deletes that would be refused, or would be if every rule enforced.
    pub refusals: Vec<Refusal>,
    /// Namespaces with Applications in them, and less protection than the rules give elsewhere.
    pub unprotected: Vec<Unprotected>,
    /// Approvals on Namespaces.
    pub approvals: Vec<AuditedApproval>,
    /// Hooks whose order cannot work.
    pub hooks: Vec<ReportFinding>,
    /// Applications whose lists cannot be trusted.
    pub untrusted: Vec<Untrusted>,
    /// What is not settled about the Argo CDs of the cluster.
    pub installations: Vec<Unsettled>,
    /// Objects whose deletion does not end, the oldest first.
    pub terminating: Vec<Stuck>,
    /// Deletes that the API server let through while the guard did not answer.
    pub failed_open: Vec<FailedOpen>,
}

impl Audit {
    /// How many Applications and ApplicationSets would delete too much. Each counts once, however many rules refuse it.
    pub fn too_much(&self) -> usize {
        let wrong = self.refusals.iter().filter(|refusal| !refusal.expected);
        wrong.map(|refusal| &refusal.object).collect::<std::collections::HashSet<_>>().len()
    }

    /// How many Namespaces a rule protects, or would protect if it enforced.
    pub fn guarded(&self) -> usize {
        let names: std::collections::HashSet<&str> = self
            .refusals
            .iter()
            .filter(|refusal| refusal.expected)
            .map(|refusal| refusal.object.name.as_str())
            .collect();
        names.len()
    }
}

/// How many objects were audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Applications.
    pub applications: usize,
    /// ApplicationSets.
    pub application_sets: usize,
    /// Namespaces.
    pub namespaces: usize,
    /// Objects that Applications list.
    pub claims: usize,
}

/// An audit as it is written to a file and read back by `--since`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// The tool that wrote it.
    pub tool: Tool,
    /// When it was written.
    pub generated_at: Timestamp,
    /// All findings, each with its rule. Every format has this part.
    pub findings: Vec<ReportFinding>,
    /// The same findings in sections, with more details.
    #[serde(flatten)]
    pub audit: Audit,
    /// What changed since an earlier audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Changes>,
}

impl Document {
    /// The document of an audit made at `now`, compared with an `earlier` one.
    pub fn new(audit: Audit, now: Timestamp, earlier: Option<&Document>) -> Self {
        let findings = audit.findings();
        let since = earlier.map(|earlier| Changes::between(earlier, &findings));
        Self { tool: Tool::running("audit"), generated_at: now, findings, audit, since }
    }

    /// A report for the formats that hold findings only.
    pub fn report(&self) -> Report {
        Report::new("audit", self.generated_at, rules(), self.findings.clone())
    }
}

/// The progress of an audit, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is being done, in a word or two.
    pub what: &'static str,
    /// How many objects are done.
    pub done: usize,
    /// How many objects there are.
    pub total: usize,
}

/// Runs the whole audit.
pub async fn scan<V: View, S: Source>(
    input: &AuditInput<'_, V, S>,
    options: &Options,
    progress: &(dyn Fn(Step) + Sync),
) -> Audit {
    let of = |kind: &str| input.objects.iter().filter(|subject| subject.object.kind.kind == kind).count();
    let claims = input.view.with(|inventory| inventory.claims().len());
    let counts = Counts {
        applications: input.view.with(|inventory| inventory.applications().count()),
        application_sets: of("ApplicationSet"),
        namespaces: of("Namespace"),
        claims,
    };
    let modes = catalog::ALL.iter().filter_map(|rule| rule.key);
    Audit {
        counts,
        modes: modes.map(|key| (key.as_str().into(), input.policy.base_mode(key))).collect(),
        overlaps: overlap::find(input, progress).await,
        refusals: refusals::find(input, options, progress).await,
        unprotected: protection::unprotected(input, options),
        approvals: protection::approvals(input, options),
        hooks: hooks::find(input, options).await,
        untrusted: untrusted_lists::find(input).await,
        installations: gaps::find(input),
        terminating: terminating::find(input, options).await,
        failed_open: Vec::new(),
    }
}

/// The request for a DELETE that nobody has sent.
pub fn deletion<'a>(object: &ObjectRef, user: &str) -> Request<'a> {
    Request {
        uid: "audit".to_owned(),
        target: object.clone(),
        resource: Resource { group: object.kind.group.clone(), resource: String::new() },
        sub_resource: String::new(),
        operation: Operation::Delete,
        user: UserInfo {
            username: user.to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            ..UserInfo::default()
        },
        object: None,
        old_object: None,
        dry_run: true,
        options: DeleteOptions::default(),
    }
}

/// Reads whole objects, a batch at a time, and hands each to `read`.
async fn each_object<S: Source>(
    source: &S,
    objects: impl IntoIterator<Item = ObjectRef>,
    mut read: impl FnMut(&ObjectRef, Reading<Arc<RawValue>>),
) {
    let mut objects = objects.into_iter().peekable();
    while objects.peek().is_some() {
        let questions: Vec<Question> = objects.by_ref().take(BATCH).map(Question::Object).collect();
        let mut answers: Vec<(Question, Answer)> = source.answer(&questions, Duration::from_secs(60)).await;
        for question in &questions {
            let Question::Object(object) = question else { continue };
            let at = answers.iter().position(|(asked, _)| asked == question);
            let answer = at.map(|at| answers.swap_remove(at).1);
            read(
                object,
                match answer {
                    Some(Answer::Object(reading)) => reading,
                    _ => Reading::Unreadable("it was not read in time".to_owned()),
                },
            );
        }
    }
}

/// Reads the metadata of objects, a batch at a time. Objects that cannot be read are left out.
pub(crate) async fn metadata_of<S: Source>(
    source: &S,
    objects: impl IntoIterator<Item = ObjectRef>,
) -> std::collections::HashMap<ObjectRef, Arc<ObjectMeta>> {
    let mut found = std::collections::HashMap::new();
    let mut objects = objects.into_iter().peekable();
    while objects.peek().is_some() {
        let questions: Vec<Question> = objects.by_ref().take(BATCH).map(Question::Metadata).collect();
        for (question, answer) in source.answer(&questions, Duration::from_secs(60)).await {
            if let (Question::Metadata(object), Answer::Metadata(Reading::Found(meta))) = (question, answer) {
                found.insert(object, meta);
            }
        }
    }
    found
}
