//! The content of a Namespace as lines of messages, warnings and tables.

use crate::text::{count, some};
use std::collections::BTreeMap;

use super::{Content, Count, HeldObject};

/// At most this many names are given. The others are counted.
const NAMED: usize = 3;
/// So long may a line be that goes into a warning, beside the name of the rule.
const LINE: usize = 98;

impl Content {
    /// Counts the objects in use that somebody may miss, what holds data first.
    fn in_use(&self) -> Vec<String> {
        let kinds = [
            (self.bound_volumes, "bound PersistentVolumeClaim", "PersistentVolumeClaim"),
            (self.load_balancers, "LoadBalancer", "Service"),
            (self.running_pods, "running Pod", ""),
            (self.ingresses, "Ingress", ""),
        ];
        let counted = kinds.iter().filter_map(|(count, what, kind)| {
            let count = count.filter(|count| count.number > 0)?;
            let name = self.precious.iter().find(|object| object.kind.kind == *kind);
            let example = if count.number > 1 { "such as " } else { "" };
            Some(match name {
                Some(object) => format!("{} ({example}{})", count.of(what), object.name),
                None => count.of(what),
            })
        });
        counted.collect()
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
            notes.push(format!("In {namespace}: {}", in_use.join(", ")));
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
        // A warning is short. What holds data stands first, so that only what matters less has to be left out.
        let line = |shown: usize| {
            let more = if shown < in_use.len() { ", …" } else { "" };
            format!("Namespace {namespace} takes along {}{more}", in_use[..shown].join(", "))
        };
        let fits = |shown: &usize| line(*shown).chars().count() <= LINE;
        (!in_use.is_empty()).then(|| line((1..=in_use.len()).rev().find(fits).unwrap_or(1)))
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
