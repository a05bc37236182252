//! Updates of ApplicationSets after which it no longer generates some of its Applications: their names change, or an
//! element of a list is taken out. The controller deletes those, and their cascades take what they deployed, before the
//! Applications of new names exist.

use crate::{
    admission::Object,
    argo::generated_names::{Dropped, Naming},
    catalog::shared_update::GENERATED,
    decision::{Finding, Severity},
    inventory::App,
    rules::Context,
    text::{plural, some},
};

/// So many are named in a warning.
const NAMED: usize = 2;

pub(super) fn check(
    cx: &Context<'_>,
    old: &Object<'_>,
    new: &Object<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), serde_json::Error> {
    let ids = cx.inventory.apps_generated_by(&old.meta).iter();
    let apps: Vec<&App> = ids.filter_map(|id| cx.inventory.app(*id)).filter(|app| app.terminating.is_none()).collect();
    if apps.is_empty() {
        return Ok(());
    }
    let (before, after) = (Naming::of(old.raw.get())?, Naming::of(new.raw.get())?);
    let generated: Vec<&str> = apps.iter().map(|app| &*app.name).collect();
    let Dropped { mut names, surely } = before.dropped(&after, &generated);
    if names.is_empty() {
        return Ok(());
    }
    names.sort_unstable();
    let target = &cx.request.target;
    let cascade = apps.iter().any(|app| app.cascades && names.binary_search(&&*app.name).is_ok());
    let with = match (cascade, names.len()) {
        (false, _) => "",
        (true, 1) => " with its objects",
        (true, _) => " with their objects",
    };
    let (may, what) = if surely { ("drops", "") } else { ("may drop", "perhaps ") };
    let noun = plural(names.len(), "Application");
    let finding = Finding::new(
        &GENERATED,
        Severity::Warn,
        target.clone(),
        format!("{what}Applications of an ApplicationSet change their names or go"),
    )
    .detail(format!("{target} {may} {} {noun}{with}: {}", names.len(), some(&names, NAMED)))
    .remedy("to keep them, set syncPolicy.applicationsSync to create-update in the ApplicationSet first");
    findings.push(finding);
    Ok(())
}
