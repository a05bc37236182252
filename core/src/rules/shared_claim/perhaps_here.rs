//! Claims across a cluster that nobody can resolve. They are said, not refused: most of these clusters are others.

use crate::{
    catalog::shared_claim::PERHAPS_HERE,
    decision::{Finding, Severity},
    deletion::{Deletion, PerhapsHere, find_name},
    facts::Facts,
    inventory::{App, gaps::resolve},
    rules::Context,
};

pub(super) fn check(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, findings: &mut Vec<Finding>) {
    for perhaps in &deletion.plan.perhaps_here {
        if let Some(app) = cx.inventory.app(perhaps.claimant) {
            findings.extend(finding(cx, facts, deletion, perhaps, app));
        }
    }
}

/// `None` while it is being found out what the object is called.
fn finding(
    cx: &Context<'_>,
    facts: &mut Facts,
    deletion: &Deletion,
    perhaps: &PerhapsHere,
    app: &App,
) -> Option<Finding> {
    let item = &deletion.plan.items[perhaps.place];
    let (path, cluster) = (app.path(), cx.inventory.cluster_name(perhaps.cluster));
    let named = find_name(cx.inputs(), facts, &deletion.plan, item)?.ok();
    let label = named.as_ref().map_or_else(|| item.label(), ToString::to_string);
    let what = match perhaps.count {
        1 => label,
        count => format!("{label} and {} more", count - 1),
    };
    let detail = if app.cluster == perhaps.cluster {
        format!("{path} claims {what} if {cluster}, where it deploys to, is this cluster")
    } else {
        format!("{path} claims {what} if {cluster}, where this deploys to, is this cluster")
    };
    let object = named.unwrap_or_else(|| super::unnamed(item));
    let finding = Finding::new(
        &PERHAPS_HERE,
        Severity::Warn,
        object,
        "a cluster that nobody can resolve may be this one, and then others claim what would go",
    )
    .detail(detail)
    .claimed_by(vec![path])
    .judged_in(deletion.scopes_in([&*item.namespace]))
    .remedy(resolve(cluster));
    Some(finding)
}
