//! The order in which Argo CD applies manifests, and what each of them waits for.

use std::{collections::HashMap, fmt::Write};

use serde::Serialize;

use super::{application::Application, set::Set};
use crate::{
    argo::{
        hook::{Hook, Phase, Stage},
        order::{Task, sort},
    },
    needs::Force,
    object::{GroupKind, ObjectRef},
    rules::sync_wave::late,
};

/// The order of everything, one list for each Application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// One list for each Application.
    pub applications: Vec<Sequence>,
}

/// The order of one Application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sequence {
    /// The Application, as `namespace/name`; empty where none was named.
    pub application: String,
    /// The same with what decides how it is applied, for people.
    #[serde(skip)]
    pub title: String,
    /// Its objects, in the order in which they are applied; then the hooks of a deletion, then what is never applied.
    pub objects: Vec<Row>,
}

/// One object in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Index of the manifest.
    #[serde(skip)]
    pub manifest: usize,
    /// The phase; nothing for an object that is never applied.
    pub phase: Option<Phase>,
    /// The wave; nothing where waves do not count.
    pub wave: Option<i64>,
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Where it would stand by its own annotations, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "said")]
    pub moved_from: Option<Stage>,
    /// Why it is never applied.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub never: &'static str,
    /// What it waits for, as far as that is known.
    pub waits_for: Vec<Wait>,
}

/// Something that an object waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// What.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Where it is referred to.
    pub via: &'static str,
    /// When it comes; nothing if the manifests do not hold it.
    #[serde(serialize_with = "said")]
    pub comes: Option<Stage>,
    /// Whether that is too late for what waits.
    pub too_late: bool,
}

#[allow(clippy::ref_option, reason = "the signature that serde asks for")]
fn said<S: serde::Serializer>(stage: &Option<Stage>, serializer: S) -> Result<S::Ok, S::Error> {
    stage.map(|stage| stage.to_string()).serialize(serializer)
}

impl Order {
    /// The order of a set of manifests.
    pub fn of(set: &Set<'_>) -> Self {
        let sequence = |number: usize| {
            let Application { path, .. } = &set.applications[number];
            let title = if path.is_empty() { String::new() } else { set.applications[number].title() };
            Sequence { application: path.clone(), title, objects: rows(set, number) }
        };
        Self { applications: (0..set.applications.len()).map(sequence).collect() }
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for sequence in &self.applications {
            if !sequence.application.is_empty() {
                let _ = writeln!(text, "{}", sequence.title);
            }
            let cells: Vec<[String; 5]> = sequence.objects.iter().map(Row::cells).collect();
            let header = ["PHASE", "WAVE", "KIND", "NAME", "WAITS FOR"].map(str::to_owned);
            let width =
                |column: usize| cells.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0);
            let widths: Vec<usize> = (0..4).map(width).collect();
            for row in [&header].into_iter().chain(&cells) {
                let line: String = row[..4].iter().zip(&widths).fold(String::new(), |mut line, (cell, width)| {
                    let _ = write!(line, "{cell:width$}  ");
                    line
                });
                let _ = writeln!(text, "{}", format!("{line}{}", row[4]).trim_end());
            }
            text.push('\n');
        }
        text
    }
}

impl Row {
    fn cells(&self) -> [String; 5] {
        let waits: Vec<String> = self.waits_for.iter().map(Wait::text).collect();
        let mut notes = Vec::new();
        notes.extend(self.moved_from.map(|from| format!("(moved here from {from})")));
        notes.extend((!self.never.is_empty()).then(|| format!("({})", self.never)));
        notes.extend((!waits.is_empty()).then(|| waits.join(", ")));
        [
            self.phase.map_or("never", Phase::as_str).to_owned(),
            self.wave.map(|wave| wave.to_string()).unwrap_or_default(),
            self.object.kind.kind.clone(),
            self.object.path(),
            notes.join(" "),
        ]
    }
}

impl Wait {
    fn text(&self) -> String {
        match (self.comes, self.too_late) {
            (Some(comes), true) => format!("{} (TOO LATE: {comes})", self.object),
            (Some(_), false) => self.object.to_string(),
            (None, _) => format!("{} (not in these manifests)", self.object),
        }
    }
}

/// Why an object that is a hook is in no sync.
fn never(hook: Option<&Hook>) -> &'static str {
    match hook {
        Some(hook) if hook.skipped => "Skip",
        Some(hook) if hook.only_for_helm => "a hook of Helm alone",
        _ => "no hook type that Argo CD knows",
    }
}

fn rows(set: &Set<'_>, application: usize) -> Vec<Row> {
    let definitions: HashMap<&GroupKind, &ObjectRef> = set
        .manifests
        .iter()
        .filter(|manifest| manifest.application == application && manifest.stage.is_some())
        .filter_map(|manifest| Some((&manifest.defines.as_ref()?.kind, &manifest.object)))
        .collect();
    let mut tasks = Vec::new();
    let (mut of_deletion, mut others) = (Vec::new(), Vec::new());
    for (index, manifest) in
        set.manifests.iter().enumerate().filter(|(_, manifest)| manifest.application == application)
    {
        let last = set.own(application, &manifest.object).is_none_or(|own| own.written == manifest.written);
        let Some(stage) = manifest.stage else {
            others.push((index, never(manifest.hook.as_ref())));
            continue;
        };
        if !last && !manifest.object.name.is_empty() {
            others.push((index, "another manifest of this name replaces it"));
            continue;
        }
        let phases = manifest.hook.as_ref().map_or(vec![Phase::Sync], |hook| hook.phases.clone());
        for phase in phases {
            if phase.is_deletion() {
                of_deletion.push((phase, index));
            } else {
                let defines = manifest.defines.as_ref().map(|defined| defined.kind.clone());
                let stage = Stage::new(phase, stage.wave);
                tasks.push(Task { id: index, stage, object: manifest.object.clone(), defines });
            }
        }
    }
    sort(&mut tasks);
    of_deletion.sort_unstable();
    let stages: HashMap<&ObjectRef, Stage> = tasks.iter().rev().map(|task| (&task.object, task.stage)).collect();
    let make = Make { set, application, stages: &stages, definitions: &definitions };
    let in_sync = tasks.iter().map(|task| make.row(task.id, Some(task.stage), ""));
    let in_deletion = of_deletion.iter().map(|(phase, index)| make.row(*index, Some(Stage::new(*phase, 0)), ""));
    in_sync.chain(in_deletion).chain(others.iter().map(|(index, why)| make.row(*index, None, why))).collect()
}

struct Make<'a> {
    set: &'a Set<'a>,
    application: usize,
    /// When each object is first applied.
    stages: &'a HashMap<&'a ObjectRef, Stage>,
    definitions: &'a HashMap<&'a GroupKind, &'a ObjectRef>,
}

impl Make<'_> {
    fn row(&self, index: usize, stage: Option<Stage>, never: &'static str) -> Row {
        let manifest = &self.set.manifests[index];
        let (object, deletion) = (&manifest.object, stage.is_some_and(|stage| stage.phase.is_deletion()));
        let mut waits_for = Vec::new();
        if let Some(stage) = stage {
            let namespace = ObjectRef::namespace(&object.namespace);
            let definition = self.definitions.get(&object.kind).copied();
            for (made, via) in [(Some(&namespace), "namespace"), (definition, "definition")] {
                let Some(made) = made.filter(|made| self.stages.contains_key(made)) else { continue };
                waits_for.push(Wait { object: made.clone(), via, comes: self.comes(made), too_late: false });
            }
            for need in manifest.work.iter().flat_map(|work| &work.needs).filter(|need| !need.optional) {
                let comes = self.comes(&need.object);
                let holds_up = !matches!(need.force, Force::Bearable(_));
                let wait = comes.and_then(|at| late(&object.kind, stage, &need.object.kind, need.force, at));
                let too_late = holds_up && !deletion && wait.is_some();
                waits_for.push(Wait { object: need.object.clone(), via: need.via, comes, too_late });
            }
        }
        // Only what Argo CD itself moves stands elsewhere than it says.
        let moves = object.is_namespace() || manifest.defines.is_some();
        let moved_from = manifest
            .stage
            .filter(|own| moves && !deletion && stage.is_some_and(|stage| stage != *own && manifest.hook.is_none()));
        Row {
            manifest: index,
            phase: stage.map(|stage| stage.phase),
            wave: stage.filter(|stage| !stage.phase.is_deletion()).map(|stage| stage.wave),
            object: object.clone(),
            moved_from,
            never,
            waits_for,
        }
    }

    fn comes(&self, object: &ObjectRef) -> Option<Stage> {
        let planned = || self.set.own(self.application, object).and_then(|manifest| manifest.stage);
        self.stages.get(object).copied().or_else(planned)
    }
}
