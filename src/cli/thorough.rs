//! Inquiries of commands. A person who looks waits longer than an API server, so that much more may be read.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;

use crate::judge::{self, Source, View};
use cascade_guard_core::{
    admission::Request,
    facts::Facts,
    inventory::Inventory,
    judge::{Case, Inquiry, Judgement, Verdict},
    namespace::content::{Content, survey_thoroughly},
    object::ObjectMeta,
    policy::Policy,
};

/// At most this many objects are read for one inquiry.
const MAX_READS: usize = 100_000;

/// At most this long an inquiry waits for one round of answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats `look` until it asks nothing any more.
pub async fn settle<T>(source: &impl Source, look: impl FnMut(&mut Facts) -> T) -> T {
    judge::settle(Inquiry::with_limit(MAX_READS), source, || PATIENCE, look).await
}

/// Judges a request and finds out everything that a DELETE takes along.
pub async fn judge(
    request: &Request<'_>,
    inventory: &impl View,
    policy: &Policy,
    source: &impl Source,
    now: Timestamp,
) -> Verdict {
    let case = Case { thorough: true, ..Case::new(request, policy, now) };
    let mut judgement = Judgement::new(case, inventory.is_fixed());
    let decision = judge::look(&mut judgement, Inquiry::with_limit(MAX_READS), inventory, source, || PATIENCE).await;
    Verdict { decision, deletion: judgement.into_deletion() }
}

/// At most this many objects are read of one Namespace.
const MAX_READS_OF_NAMESPACE: usize = 1000;

/// At most this long somebody waits for a round of answers about one Namespace.
const PATIENCE_FOR_NAMESPACE: Duration = Duration::from_secs(30);

/// Finds out what is in a Namespace.
///
/// # Errors
/// When the questions never end.
pub async fn namespace_content(
    meta: &ObjectMeta,
    inventory: &Inventory,
    source: &impl Source,
) -> anyhow::Result<Content> {
    let inquiry = Inquiry::with_limit(MAX_READS_OF_NAMESPACE);
    let look = |facts: &mut Facts| survey_thoroughly(inventory, facts, meta);
    let content = judge::settle(inquiry, source, || PATIENCE_FOR_NAMESPACE, look).await;
    content.context("what is in the Namespace cannot be found out")
}
