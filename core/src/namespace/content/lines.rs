//! The content of a Namespace as lines of messages, warnings and tables.

use crate::text::{count, some};
use std::collections::BTreeMap;

use super::{Content, Count, HeldObject};

/// At most this many names are given. The others are counted.
const NAMED: usize = 3;

impl Content {
    /// Counts the objects in use that somebody may miss; empty if there are none.
    fn in_use(&self) -> String {
        let kinds = [
            (self.running_pods, "running Pod"),
            (self.bound_volumes, "bound PersistentVolumeClaim"),
            (self.load_balancers, "LoadBalancer"),
            (self.ingresses, "Ingress"),
        ];
        let counted: Vec<String> =
            kinds.iter().filter_map(|(count, what)| count.filter(|count| count.number > 0)?.of(what).into()).collect();
        counted.join(", ")
    }

    /// Lines below the refusal of a Namespace: which Applications use it, what runs there, what would hang.
    pub fn notes(&self, namespace: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.applications.is_empty() {
            let claimed = match self.claimed_objects {
                0 => "nothing claimed yet".to_owned(),
                1 => "1 claimed object".to_owned(),
                number => format!("{number} claimed objects"),
            };
            notes.push(format!("In {namespace}: {claimed} of {}", some(&self.applications, NAMED)));
        }
        let in_use = self.in_use();
        if !in_use.is_empty() {
            notes.push(format!("In {namespace}: {in_use}"));
        }
        notes.extend(self.hanging().into_iter().map(|line| format!("May hang: {line}")));
        notes.extend(self.unavailable().map(|line| format!("Would hang: {line}")));
        notes.extend(self.unread().map(|line| format!("Not read: {line}")));
        notes
    }

    /// One line for each thing that may keep the Namespace from going, for a warning.
    pub fn obstacles(&self) -> Vec<String> {
        let mut lines = self.hanging();
        lines.extend(self.unavailable().map(|line| format!("it stays Terminating while {line}")));
        lines
    }

    /// What goes with the Namespace, for a warning to whoever may delete it; `None` if nothing is there.
    pub fn taken_along(&self, namespace: &str) -> Option<String> {
        let in_use = self.in_use();
        (!in_use.is_empty()).then(|| format!("Namespace {namespace} takes {in_use} along"))
    }

    /// What was not read, for a warning; `None` if everything was.
    pub fn unread(&self) -> Option<String> {
        let what: Vec<&str> = self.not_read.iter().map(|unread| unread.what.as_str()).collect();
        let why = &self.not_read.first()?.why;
        Some(format!("{} ({why})", what.join(", ")))
    }

    fn unavailable(&self) -> Option<String> {
        let is = if self.unavailable_apis.len() == 1 { "is" } else { "are" };
        (!self.unavailable_apis.is_empty())
            .then(|| format!("API {} {is} not available", some(&self.unavailable_apis, NAMED)))
    }

    /// One line for each finalizer that may hang.
    fn hanging(&self) -> Vec<String> {
        let mut by_finalizer: BTreeMap<&str, Vec<&HeldObject>> = BTreeMap::new();
        for held in self.held.iter().filter(|held| held.hangs()) {
            by_finalizer.entry(&held.finalizer).or_default().push(held);
        }
        by_finalizer
            .into_iter()
            .map(|(finalizer, held)| {
                let waits =
                    if held.len() > 1 { format!("and {} more wait", held.len() - 1) } else { "waits".to_owned() };
                let who = held[0].known.map_or("its controller", |known| known.removed_by);
                format!("{} {waits} for {who} ({finalizer})", held[0].object)
            })
            .collect()
    }
}

impl Count {
    fn of(self, what: &str) -> String {
        let more = if self.more { "at least " } else { "" };
        format!("{more}{}", count(self.number, what))
    }
}
