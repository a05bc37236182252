//! The sync-wave rule over rendered manifests, before anything reaches a cluster.
//!
//! The rule is the webhook's own ([`crate::rules::sync_wave::judge`]); what is around an object comes from the other
//! manifests (`set::Around`) instead of an inventory. Added to it is what admission never sees (`checks`). Pure: texts
//! in, findings out.

mod application;
mod checks;
mod document;
mod graph;
mod ignore;
mod manifest;
mod misspelt;
mod order;
mod origin;
mod remote;
mod rights;
mod set;
mod storage;
mod tree;
mod unsaid;
mod volume;

use std::collections::BTreeMap;

use self::ignore::Ignored;
pub use self::{
    application::{Application, Folder},
    document::{Document, Fault, LINT_IGNORE, Problem, RECURSIVE_ALIAS, documents},
    graph::{dot, mermaid},
    ignore::{Baseline, BaselineError},
    manifest::{Input, Manifest},
    order::{Order, Row, Sequence, Wait},
    set::{Existing, LintContext, Set},
};
use crate::{
    decision::{Finding, Severity},
    object::ObjectRef,
    report::{Location, ReportFinding, Rule},
    rules::sync_wave::{self, Surroundings},
    yaml::Place,
};

/// What is said about documents that cannot be judged.
pub const UNREADABLE: Rule = Rule::new("manifest", "Manifests that can be read", "docs/lint.md");

/// What a look at manifests brought.
#[derive(Debug)]
pub struct Linted<'a> {
    /// The manifests.
    pub set: Set<'a>,
    /// When each of them is applied.
    pub order: Order,
    /// What was found.
    pub findings: Vec<ReportFinding>,
    /// How many findings an annotation with a reason took away.
    pub ignored: usize,
    /// What could not be judged.
    pub problems: Vec<ReportFinding>,
}

/// Judges manifests.
pub fn lint<'a>(inputs: &[Input], context: &'a LintContext<'a>) -> Linted<'a> {
    let (mut manifests, mut problems) = (Vec::new(), Vec::new());
    let mut remarks = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let mut found = manifest::Remarks::default();
        manifest::read(index, input, &mut manifests, &mut found);
        problems.extend(found.problems.into_iter().map(|problem| unreadable(&input.name, problem)));
        let warning = |problem| ReportFinding { severity: Severity::Warn, ..unreadable(&input.name, problem) };
        remarks.extend(found.warnings.into_iter().map(warning));
    }
    let (set, unplaced) = Set::new(manifests, inputs, context);
    problems.extend(unplaced.into_iter().map(|(input, problem)| unreadable(&inputs[input].name, problem)));
    let order = Order::of(&set);
    let (found, ignored) = judge(&set, inputs, &order);
    let mut findings = located(&set, inputs, found);
    findings.append(&mut remarks);
    Linted { set, order, findings, ignored, problems }
}

/// A document that cannot be judged, as a finding.
pub fn unreadable(name: &str, problem: Problem) -> ReportFinding {
    let Problem { check, text, line, column } = problem;
    ReportFinding {
        rule: UNREADABLE.id,
        check: check.as_str().into(),
        severity: Severity::Deny,
        mode: None,
        effect: None,
        object: ObjectRef::new("", "Document", "", &format!("{name}:{line}")),
        summary: text,
        detail: String::new(),
        regarding: None,
        claimants: Vec::new(),
        remedies: Vec::new(),
        location: Some(Location { file: name.to_owned(), line, column }),
        fix: None,
    }
}

/// Whether an object is judged at all: what is being deleted, or is owned by another object, is none of Argo CD's.
fn is_judged(manifest: &Manifest) -> bool {
    !manifest.meta.is_terminating() && manifest.meta.owner_references.is_empty()
}

/// Everything that was found, with the manifest it is about, in the order of the manifests; and how much of it was ignored.
fn judge(set: &Set<'_>, inputs: &[Input], order: &Order) -> (Vec<set::Found>, usize) {
    let mut found = Vec::new();
    checks::check(set, inputs, order, &mut found);
    for look in [unsaid::check, rights::check, storage::check, remote::check, misspelt::check] {
        look(set, &mut found);
    }
    let mut around: Vec<_> = (0..set.applications.len()).map(|number| set.around(number)).collect();
    for (index, manifest) in set.manifests.iter().enumerate() {
        let mut findings = Vec::new();
        let surroundings: &mut dyn Surroundings = &mut around[manifest.application];
        sync_wave::judge(&manifest.subject(), Some(surroundings), &mut findings);
        findings.retain(|finding| !checks::is_said_of_no_text(manifest, finding));
        found.extend(findings.into_iter().map(|finding| (index, finding)));
    }
    found.sort_by_key(|(index, _)| *index);
    let mut ignored = BTreeMap::new();
    found.retain(|(index, _)| is_judged(&set.manifests[*index]));
    let before = found.len();
    found.retain(|(index, finding)| {
        !ignored.entry(*index).or_insert_with(|| Ignored::of(&set.manifests[*index])).covers(finding)
    });
    let count = before - found.len();
    for (index, manifest) in set.manifests.iter().enumerate().filter(|(_, manifest)| is_judged(manifest)) {
        let entries = ignored.remove(&index).unwrap_or_else(|| Ignored::of(manifest));
        found.extend(entries.faults(manifest).into_iter().map(|fault| (index, fault)));
    }
    found.sort_by_key(|(index, _)| *index);
    (found, count)
}

/// Adds the place of each finding. Documents in which something was found are read once more for it.
fn located(set: &Set<'_>, inputs: &[Input], found: Vec<set::Found>) -> Vec<ReportFinding> {
    let mut read = None;
    let mut findings = Vec::new();
    for (index, finding) in found {
        let manifest = &set.manifests[index];
        let written = &manifest.written;
        let input = &inputs[written.input];
        let text = input.text.get(written.start..written.start + written.length).unwrap_or_default();
        let document = Document { text, lines_before: written.lines_before };
        let key = (written.input, written.start);
        // Findings come in the order of the documents.
        if read.as_ref().is_none_or(|(known, _)| *known != key) {
            read = Some((key, document.tree()));
        }
        let place = read
            .as_ref()
            .and_then(|(_, tree)| tree.as_ref())
            .and_then(|tree| Some(place(&finding, tree::below(tree, &written.items)?)));
        let (line, column) = place.map_or((1, 1), |place| (place.line, place.column));
        let line = written.lines_before.saturating_add(line);
        let mut reported = ReportFinding::new(&finding);
        if finding.severity == Severity::Deny && finding.regarding.is_some() {
            // The detail says what meets what, the summary why that can never work; a line by itself needs both.
            reported.detail = format!("{}: {}", finding.detail, finding.summary);
        }
        if let Some(template) = document.template() {
            reported.detail = format!("{} (rendered from {template})", reported.sentence());
        }
        findings.push(reported.at(Location { file: input.name.clone(), line, column }));
    }
    findings
}

/// The field at fault, or the reference to what is at fault, or the beginning of the object.
fn place(finding: &Finding, node: &tree::Node) -> Place {
    let reference = || finding.regarding.as_ref().and_then(|other| tree::reference(node, other));
    if finding.field.is_empty()
        && let Some(place) = reference()
    {
        return place;
    }
    tree::locate(node, &finding.field)
}
