//! What the core says of a world, by each of its ways.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use cascade_guard_core::{
    admission::{DeleteOptions, Operation, Request, Resource, UserInfo, decode, delete_review},
    decision::{Decision, Effect, render},
    inventory::Inventory,
    judge::{Case, judge_at_hand},
    policy::{GuardPolicySpec, Policy},
    snapshot::{OneByOne, Snapshot},
};
use jiff::Timestamp;
use serde_json::json;

use crate::world::World;

/// A world as the core knows it.
pub struct Judged {
    /// Its objects.
    pub snapshot: Snapshot,
    /// What its Applications claim.
    pub inventory: Inventory,
    /// Its policy.
    pub policy: Arc<Policy>,
    /// Its clock.
    pub now: Timestamp,
}

thread_local! {
    /// Policies by their text: few, and slow to compile.
    static POLICIES: RefCell<HashMap<String, Arc<Policy>>> = RefCell::default();
}

fn policy(spec: serde_json::Value) -> Option<Arc<Policy>> {
    POLICIES.with_borrow_mut(|known| {
        let text = spec.to_string();
        if let Some(policy) = known.get(&text) {
            return Some(policy.clone());
        }
        let policy = Arc::new(Policy::new(serde_json::from_value::<GuardPolicySpec>(spec).ok()?).ok()?);
        known.insert(text, policy.clone());
        Some(policy)
    })
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the DELETE may pass.
    pub allowed: bool,
    /// The rules that refuse it.
    pub rules: BTreeSet<&'static str>,
    /// What is said, with the warnings.
    pub said: String,
}

impl Judged {
    /// `None` where the world is not one that can be read: a smaller world may have lost what it needs.
    pub fn new(world: &World) -> Option<Self> {
        let policy = policy(world.policy())?;
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": world.objects});
        let mut snapshot = Snapshot::default();
        snapshot.add("world", objects.to_string(), &OneByOne).ok()?;
        let inventory = snapshot.build(&policy, (world.seed, 7), &OneByOne);
        Some(Self { snapshot, inventory, policy, now: world.now.parse().ok()? })
    }

    fn decide(&self, request: &Request<'_>, case: Case<'_>) -> Answer {
        let decision = judge_at_hand(case, &self.inventory, &self.snapshot).decision;
        let response = render(&decision, request);
        let rules = refusing(&decision);
        Answer {
            allowed: response.allowed,
            rules,
            said: [vec![response.message], response.warnings].concat().join("\n"),
        }
    }

    /// As the webhook and `review` do it.
    pub fn review(&self, world: &World) -> Option<Answer> {
        let request = world.request();
        let body =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
        let request = decode(body.as_bytes()).ok()?;
        Some(self.decide(&request, Case::new(&request, &self.policy, self.now)))
    }

    /// As `plan` does it: thoroughly, for an object that it looked up.
    pub fn plan(&self, world: &World) -> Option<Answer> {
        let object = self.object(world)?;
        let user = user(world);
        let body = delete_review(&object.0, &self.snapshot.json_of(&object.0)?, &user).ok()?;
        let request = decode(&body).ok()?;
        Some(self.decide(&request, Case { thorough: true, ..Case::new(&request, &self.policy, self.now) }))
    }

    /// As `audit` does it: from what the inventory knows, without the object.
    pub fn audit(&self, world: &World) -> Option<Answer> {
        let (object, meta) = self.object(world)?;
        let request = Request {
            uid: "audit".to_owned(),
            resource: Resource { group: object.kind.group.clone(), resource: String::new() },
            target: object,
            sub_resource: String::new(),
            operation: Operation::Delete,
            user: user(world),
            object: None,
            old_object: None,
            dry_run: true,
            options: DeleteOptions::default(),
        };
        Some(self.decide(&request, Case { known: Some(&meta), ..Case::new(&request, &self.policy, self.now) }))
    }

    fn object(
        &self,
        world: &World,
    ) -> Option<(cascade_guard_core::object::ObjectRef, cascade_guard_core::object::ObjectMeta)> {
        let root = world.root();
        let found = self.snapshot.objects().find(|(object, meta)| {
            root["kind"] == object.kind.kind.as_str()
                && root["metadata"]["name"] == object.name.as_str()
                && root["metadata"]["uid"] == meta.uid.as_str()
        });
        found.map(|(object, meta)| (object.clone(), meta.clone()))
    }
}

fn user(world: &World) -> UserInfo {
    UserInfo { username: world.user.clone(), groups: vec!["system:authenticated".to_owned()], ..UserInfo::default() }
}

/// The rules that refuse.
pub fn refusing(decision: &Decision) -> BTreeSet<&'static str> {
    let refused = decision.outcomes.iter().filter(|outcome| outcome.effect == Effect::Refused);
    refused.map(|outcome| outcome.finding.rule.id).collect()
}
