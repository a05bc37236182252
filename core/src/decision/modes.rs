//! Which mode of the policy applies to a finding.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Finding;
use crate::{
    inventory::Inventory,
    policy::{Mode, Place, Policy, Resolved, RuleKey, ScopeRef, Subject},
};

/// Looks modes up for the findings of one request. Many of them are in the same place, which is looked up once.
pub(super) struct Modes<'a> {
    policy: &'a Policy,
    inventory: &'a Inventory,
    user: &'a str,
    now: Timestamp,
    places: HashMap<(RuleKey, PlaceId<'a>), Option<Resolved>>,
}

type PlaceId<'a> = (&'a str, usize, usize, Option<Timestamp>);

impl<'a> Modes<'a> {
    pub(super) fn new(policy: &'a Policy, inventory: &'a Inventory, user: &'a str, now: Timestamp) -> Self {
        Self { policy, inventory, user, now, places: HashMap::new() }
    }

    /// The strictest mode of the places that the finding covers.
    pub(super) fn of(&mut self, finding: &'a Finding) -> Resolved {
        let Some(key) = finding.key else {
            return Resolved { mode: Mode::Enforce, decided_by: "always enforced".to_owned(), exempt: false };
        };
        let strictest = finding.scopes.places().iter().filter_map(|place| self.weakest(key, place));
        let resolved = strictest
            .reduce(|strictest, next| if next.mode > strictest.mode { next } else { strictest })
            .unwrap_or_else(|| self.of_scope(key, ScopeRef { namespace: "", project: None, since: None }));
        match finding.at_most {
            Some((mode, line)) if mode < resolved.mode => Resolved { mode, decided_by: line.to_owned(), exempt: false },
            _ => resolved,
        }
    }

    /// The weakest mode of the scopes that may waive a finding in a place.
    fn weakest(&mut self, key: RuleKey, place: &'a Place) -> Option<Resolved> {
        if let Some(known) = self.places.get(&(key, place.identity())) {
            return known.clone();
        }
        let weakest = place
            .scopes()
            .map(|scope| self.of_scope(key, scope))
            .reduce(|weakest, next| if next.mode < weakest.mode { next } else { weakest });
        self.places.insert((key, place.identity()), weakest.clone());
        weakest
    }

    fn of_scope(&self, key: RuleKey, scope: ScopeRef<'_>) -> Resolved {
        let labels = self.inventory.namespace(scope.namespace).map(|meta| &meta.labels);
        let subject = Subject { namespace: scope.namespace, labels, project: scope.project, user: self.user };
        self.policy.resolve(key, &subject, scope.since.unwrap_or(self.now))
    }
}
