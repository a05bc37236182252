//! What a revert would remove where Argo CD prunes, worked out as the guard works out a delete.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{
    cluster::LiveSource,
    judge::{self, Source},
    state::{LiveInventory, LivePolicy},
};
use cascade_guard_core::{
    admission::{UserInfo, decode, delete_review},
    facts::{Answer, Question, Reading},
    inventory::{App, LOCAL},
    judge::{Case, Inquiry, Judgement},
    object::{GroupKind, ObjectRef},
    watchdog::schema::AppRef,
};

/// So many objects are looked at; nobody can say what the removal of more would do.
const MAX_OBJECTS: usize = 50;
/// So much is read for one of them.
const MAX_READS: usize = 2000;
/// So long one read may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Works out removals.
pub struct Remover {
    /// What Applications claim.
    pub inventory: Arc<LiveInventory>,
    /// The policy in force.
    pub policy: Arc<LivePolicy>,
    /// Reads of the cluster.
    pub source: LiveSource,
}

impl Remover {
    /// What speaks against the removal of these objects; `None` if nobody can say.
    pub async fn against(&self, objects: &[(AppRef, ObjectRef)]) -> Option<Vec<String>> {
        if objects.len() > MAX_OBJECTS || !self.inventory.read().is_ready() {
            return None;
        }
        let mut against = Vec::new();
        for (app, object) in objects {
            against.extend(self.against_one(app, object).await?);
        }
        Some(against)
    }

    async fn against_one(&self, app: &AppRef, object: &ObjectRef) -> Option<Vec<String>> {
        if is_precious(&object.kind) {
            return Some(vec![format!("the revert would remove {object}")]);
        }
        let question = Question::Object(object.clone());
        let raw = match self.source.answer(&[question], PATIENCE).await.pop() {
            Some((_, Answer::Object(Reading::Found(raw)))) => raw,
            Some((_, Answer::Object(Reading::NotFound))) => return Some(Vec::new()),
            _ => return None,
        };
        let user = UserInfo { username: "cascade-guard-watchdog".to_owned(), ..UserInfo::default() };
        let body = delete_review(object, raw.get(), &user).ok()?;
        let request = decode(&body).ok()?;
        let policy = self.policy.load();
        let case = Case { thorough: true, ..Case::new(&request, &policy, Timestamp::now()) };
        let mut judgement = Judgement::new(case, false);
        let inquiry = Inquiry::with_limit(MAX_READS);
        judge::look(&mut judgement, inquiry, &*self.inventory, &self.source, || PATIENCE).await;
        let deletion = judgement.into_deletion()?;
        let inventory = self.inventory.read();
        let mut against = Vec::new();
        for item in deletion.plan.items.iter().filter(|item| !item.fate.is_spared() && item.cluster == LOCAL) {
            let claimants = item.claimants.iter().filter_map(|id| inventory.app(*id)).map(App::path);
            let others: Vec<String> = claimants.filter(|path| *path != app.to_string()).collect();
            let named = || item.object.as_ref().map_or_else(|| item.kind.to_string(), ToString::to_string);
            if is_precious(&item.kind) {
                against.push(format!("the revert would remove {} with {object}", named()));
            }
            if let Some(other) = others.first() {
                against.push(format!("the revert would remove {}, which {other} claims", named()));
            }
        }
        if !deletion.plan.unknown_claimants.is_empty() {
            against.push(format!("an Application that was never compared may want {object}"));
        }
        Some(against)
    }
}

/// What nobody brings back.
fn is_precious(kind: &GroupKind) -> bool {
    kind.is("", "Namespace")
        || kind.is("", "PersistentVolumeClaim")
        || kind.is("", "PersistentVolume")
        || kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}
