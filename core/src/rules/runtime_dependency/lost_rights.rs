//! Who loses what: ServiceAccounts that go, and those whose roles or bindings go.
//!
//! Rights are compared, not names: what another binding still gives, by whatever role, is not lost. To spare reads this
//! goes in two steps. [`Losses::of`] finds out who might lose something if all went that is listed. Only for those who have
//! workloads that stay, [`Losses::lost`] finds out what really goes and what it gave.

use std::collections::{BTreeMap, HashMap};

use super::{
    Going, Gone,
    bonds::{Bond, Bonds},
    who::{ACCOUNT, Who},
};
use crate::{
    deletion::find_name,
    facts::{Facts, Reading},
    object::{ObjectRef, RBAC_GROUP},
    rbac::{PolicyRule, grants_all},
};

/// So many other roles are read to see whether they give what one that goes gave.
const MAX_ROLES: usize = 10;
/// What somebody might lose.
#[derive(Default)]
struct Threat {
    /// The ServiceAccount itself.
    account: Option<ObjectRef>,
    /// Places in [`Losses::bonds`] of bindings that are listed to go, or whose roles are.
    bonds: Vec<usize>,
}

/// Who might lose what.
#[derive(Default)]
pub(super) struct Losses {
    /// Whether an answer is out.
    pub pending: bool,
    by: BTreeMap<Who, Threat>,
    unread: Vec<String>,
    bonds: Vec<Bond>,
    places: HashMap<ObjectRef, usize>,
    known: Bonds,
}

impl Losses {
    /// Who might lose something, if everything goes that the plan lists.
    pub(super) fn of(going: &Going<'_, '_>, facts: &mut Facts) -> Self {
        let mut losses = Self::default();
        let things = losses.things(going, facts);
        let of_kind = |kinds: &'static [&str]| things.iter().filter(move |thing| kinds.contains(&&*thing.kind.kind));
        for account in of_kind(&[ACCOUNT]) {
            let who = Who::Account { namespace: account.namespace.clone(), name: account.name.clone() };
            losses.by.entry(who).or_default().account = Some(account.clone());
        }
        for role in of_kind(&["Role", "ClusterRole"]) {
            for bond in losses.known.of_role(facts, role) {
                losses.threaten(going, bond);
            }
        }
        for binding in of_kind(&["RoleBinding", "ClusterRoleBinding"]) {
            if let Some(bond) = losses.known.named(going, facts, binding) {
                losses.threaten(going, bond);
            }
        }
        losses.pending |= losses.known.pending;
        losses
    }

    /// Everybody who might lose something, in order.
    pub(super) fn threatened(&self) -> Vec<Who> {
        self.by.keys().cloned().collect()
    }

    /// Whether somebody might lose the ServiceAccount itself.
    pub(super) fn account_of(&self, who: &Who) -> bool {
        self.by.get(who).is_some_and(|threat| threat.account.is_some())
    }

    /// ServiceAccounts, roles and bindings that are listed to go, by name.
    fn things(&mut self, going: &Going<'_, '_>, facts: &mut Facts) -> Vec<ObjectRef> {
        let mut things = Vec::new();
        for item in going.items() {
            let is_binding_or_role = item.kind.group == RBAC_GROUP
                && ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"].contains(&&*item.kind.kind);
            if !is_binding_or_role && !item.kind.is("", ACCOUNT) {
                continue;
            }
            match find_name(going.cx.inputs(), facts, going.plan(), item) {
                None => self.pending = true,
                Some(Ok(object)) => things.push(object),
                Some(Err(reason)) => {
                    let what = format!("{} ({reason})", item.label());
                    if !self.unread.contains(&what) {
                        self.unread.push(what);
                    }
                }
            }
        }
        things
    }

    /// Everybody whom a binding binds may lose what it gives.
    fn threaten(&mut self, going: &Going<'_, '_>, bond: Bond) {
        if self.places.contains_key(&bond.binding) || bond.is_over(going) {
            return;
        }
        let place = self.bonds.len();
        for who in bond.subjects.iter().filter(|who| !is_swept(going, who)) {
            let bonds = &mut self.by.entry(who.clone()).or_default().bonds;
            // A binding may name somebody twice.
            if bonds.last() != Some(&place) {
                bonds.push(place);
            }
        }
        self.places.insert(bond.binding.clone(), place);
        self.bonds.push(bond);
    }

    /// The objects that really go and without which `who` has fewer rights: the ServiceAccount, or else bindings and
    /// roles. `None` while an answer is out.
    pub(super) fn lost(&mut self, going: &Going<'_, '_>, facts: &mut Facts, who: &Who) -> Option<Vec<ObjectRef>> {
        let threat = self.by.get(who)?;
        // Whoever loses the ServiceAccount itself loses everything.
        if let Some(account) = &threat.account
            && going.takes(facts, account)?
        {
            return Some(vec![account.clone()]);
        }
        // Every question is asked before the first answer is waited for.
        let gone: Vec<_> = threat.bonds.iter().map(|place| going.takes_of(facts, &self.bonds[*place])).collect();
        let gone: Vec<Gone<'_>> = gone.into_iter().collect::<Option<_>>()?;
        let mut lost: Vec<ObjectRef> = Vec::new();
        let mut pending = false;
        for (gone, place) in gone.into_iter().zip(&threat.bonds) {
            let (Gone::Object(thing), bond) = (gone, &self.bonds[*place]) else { continue };
            match still_given(&mut self.known, going, facts, who, bond) {
                None => pending = true,
                Some(false) if !lost.contains(thing) => lost.push(thing.clone()),
                Some(_) => {}
            }
        }
        (!pending).then_some(lost)
    }

    /// What could not be read, with the reason.
    pub(super) fn take_unread(&mut self) -> Vec<String> {
        self.unread.append(&mut self.known.unread);
        std::mem::take(&mut self.unread)
    }
}

/// Whether bindings that stay give `who` what `gone` gave, where it gave it; `None` while an answer is out.
fn still_given(known: &mut Bonds, going: &Going<'_, '_>, facts: &mut Facts, who: &Who, gone: &Bond) -> Option<bool> {
    let mut others = staying(known, going, facts, who, gone)?;
    if others.iter().any(|other| other.role == gone.role) {
        return Some(true);
    }
    // What is meant for everybody seldom gives what somebody needs.
    others.sort_by_key(|other| !other.subjects.contains(who));
    let mut alternatives: Vec<&ObjectRef> = Vec::new();
    for role in others.iter().map(|other| &other.role) {
        if !alternatives.contains(&role) && alternatives.len() < MAX_ROLES {
            alternatives.push(role);
        }
    }
    if alternatives.is_empty() {
        return Some(false);
    }
    let wanted = rules(going, facts, &gone.role);
    let given: Vec<_> = alternatives.into_iter().map(|role| rules(going, facts, role)).collect();
    let given: Vec<Rules> = given.into_iter().collect::<Option<_>>()?;
    let mut wanted = match wanted? {
        Rules::Known(rules) => rules,
        Rules::NoRole => Vec::new(),
        Rules::Unknown => return Some(false),
    };
    if !gone.binding.namespace.is_empty() {
        // A RoleBinding gives nothing outside its namespace, whatever its role says.
        for rule in &mut wanted {
            rule.non_resource_urls.clear();
        }
    }
    let known: Vec<Vec<PolicyRule>> = given
        .into_iter()
        .filter_map(|rules| if let Rules::Known(rules) = rules { Some(rules) } else { None })
        .collect();
    Some(!known.is_empty() && grants_all(&wanted, &known.concat()))
}

/// Bindings that stay, with roles that stay, and bind `who` wherever `gone` did; `None` while an answer is out.
fn staying(known: &mut Bonds, going: &Going<'_, '_>, facts: &mut Facts, who: &Who, gone: &Bond) -> Option<Vec<Bond>> {
    let mut found = Vec::new();
    let mut pending = false;
    for other in known.reaching(facts, &gone.binding.namespace) {
        let binds = other.binding != gone.binding && other.subjects.iter().any(|subject| subject.includes(who));
        if !binds || other.is_over(going) {
            continue;
        }
        match going.takes_of(facts, &other) {
            None => pending = true,
            Some(Gone::Nothing) => found.push(other),
            Some(Gone::Object(_)) => {}
        }
    }
    (!pending && !known.pending).then_some(found)
}

/// What a role grants.
enum Rules {
    Known(Vec<PolicyRule>),
    NoRole,
    Unknown,
}

/// The rules of a role, as the review carries it or as it is read; `None` while the answer is out.
fn rules(going: &Going<'_, '_>, facts: &mut Facts, role: &ObjectRef) -> Option<Rules> {
    let of = |text: &str| {
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Role {
            #[serde(deserialize_with = "crate::object::null_to_default")]
            rules: Vec<PolicyRule>,
        }
        serde_json::from_str::<Role>(text).map_or(Rules::Unknown, |role| Rules::Known(role.rules))
    };
    if *role == going.deletion.object
        && let Some(stored) = going.cx.stored
    {
        return Some(of(stored.raw().get()));
    }
    Some(match facts.object(role)? {
        Reading::Found(raw) => of(raw.get()),
        Reading::NotFound => Rules::NoRole,
        Reading::Unreadable(_) | Reading::Forbidden(_) => Rules::Unknown,
    })
}

/// Whether all of them go with their Namespace.
fn is_swept(going: &Going<'_, '_>, who: &Who) -> bool {
    match who {
        Who::Account { namespace, .. } | Who::Namespace(namespace) => going.sweeps(namespace),
        Who::Everyone => false,
    }
}
