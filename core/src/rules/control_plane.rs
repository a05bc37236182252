//! `control-plane`: what Argo CD itself stands on is not taken from under it.

mod definitions;
mod own;
mod projects;
mod registrations;
mod routes;

use std::fmt;

use super::{Context, Rule, namespace_approval};
use crate::{
    admission::{Operation, Request},
    catalog::{
        RuleMeta,
        control_plane::{META, NAMESPACE},
    },
    decision::{Finding, Severity},
    deletion::{Deletion, Item, Via},
    facts::Facts,
    inventory::{App, AppId, LOCAL},
    namespace::approval::{Approval, Problem, remedies},
    object::{ARGO_GROUP, ObjectMeta},
    remedy::{Command, Remedy},
    text::{count, some},
};

/// What it does: refuses the delete of Argo CD's own definitions while an instance exists, of an AppProject that
/// Applications outside the plan still use, of the Secret of a cluster they deploy to, and of the Namespaces that Argo CD and
/// its Applications live in. What comes to the same without a delete is refused too: a definition that is no longer served,
/// an APIService that answers in its place, a Secret that loses its label.
///
/// Why that is bad: none of these looks as if it held anything. A definition takes every Application along without a
/// review, an Application without its project can never be deleted, and one whose controller is gone hangs.
///
/// How to proceed: delete or move the Applications first, each judged by itself; approve the Namespace.
pub(super) struct ControlPlane;

impl Rule for ControlPlane {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn applies(&self, request: &Request<'_>) -> bool {
        let changed = || {
            definitions::defines_argo_cd(&request.target)
                || routes::is_route(&request.target)
                || registrations::loses_label(request)
        };
        request.sub_resource.is_empty() && (request.operation == Operation::Delete || changed())
    }

    /// What is changed is judged by the request and by what is known anyway.
    fn when_overdue(&self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        if cx.request.operation == Operation::Delete {
            findings.push(cx.overdue(self.meta(), cx.on_unknown()));
        } else {
            self.check(cx, &mut Facts::closed("there was no time left"), findings);
        }
    }

    fn check(&self, cx: &Context<'_>, facts: &mut Facts, findings: &mut Vec<Finding>) {
        if cx.request.operation != Operation::Delete {
            definitions::changed(cx, findings);
            routes::check(cx, findings);
            return registrations::unlabelled(cx, findings);
        }
        let Some(deletion) = cx.deletion else { return };
        if !deletion.judged {
            return;
        }
        let before = findings.len();
        let mut projects = None;
        for item in deletion.plan.items.iter().filter(|item| item.cluster == LOCAL) {
            if item.fate.is_spared() {
                continue;
            }
            if item.via == Via::Root && item.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
                definitions::deleted(cx, &deletion.object, findings);
            } else if item.kind.is("", "Namespace") {
                namespace(cx, facts, deletion, item, findings);
            } else if item.kind.is(ARGO_GROUP, "AppProject") {
                let projects = projects.get_or_insert_with(|| projects::Projects::new(cx.inventory));
                projects::project(cx, facts, deletion, projects, item, findings);
            } else if item.kind.is("", "Secret") {
                registrations::deleted(cx, facts, deletion, item, findings);
            }
        }
        own::check(cx, deletion, findings);
        for finding in &mut findings[before..] {
            finding.scopes = deletion.scopes(&finding.object);
        }
    }
}

/// At most three Applications by name, then a count.
fn named<'a>(apps: impl Iterator<Item = &'a App>) -> String {
    let mut paths: Vec<String> = apps.map(App::path).collect();
    paths.sort();
    some(&paths, 3)
}

/// What becomes of what some Applications deploy, when the Applications are gone.
struct Fallout {
    apps: usize,
    cascading: usize,
    objects: usize,
}

impl Fallout {
    fn of<'a>(apps: impl Iterator<Item = &'a App>) -> Self {
        let mut fallout = Self { apps: 0, cascading: 0, objects: 0 };
        for app in apps {
            fallout.apps += 1;
            if app.cascades {
                fallout.cascading += 1;
                fallout.objects += app.claims.len();
            }
        }
        fallout
    }
}

impl fmt::Display for Fallout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = count(self.objects, "object");
        match (self.cascading, self.apps - self.cascading) {
            (0, _) => f.write_str("what they deployed stays behind, managed by nobody"),
            (_, 0) => write!(f, "what they deployed goes too ({objects})"),
            (cascading, others) => {
                let they = if cascading == 1 { "it" } else { "they" };
                write!(f, "{cascading} of them with what {they} deployed ({objects}), {others} leaving it behind")
            }
        }
    }
}

/// Namespaces that Argo CD, its Applications or its ApplicationSets live in.
fn namespace(cx: &Context<'_>, facts: &mut Facts, deletion: &Deletion, item: &Item, findings: &mut Vec<Finding>) {
    let inventory = cx.inventory;
    // A Namespace whose name nobody can tell is refused by namespace-approval.
    let Some(object) = &item.object else { return };
    let name = object.name.as_str();
    let alive = |app: &&App| app.terminating.is_none();
    let residents = || inventory.applications_in(name).iter().filter_map(|id| inventory.app(*id)).filter(alive);
    let sets = inventory.appsets_in(name).filter(|set| !set.meta.is_terminating()).count();
    let is_home = inventory.is_home(name);
    if !is_home && sets == 0 && residents().next().is_none() {
        return;
    }
    let meta = match item.via {
        Via::Root => Ok(deletion.meta.clone()),
        _ => match namespace_approval::read(cx, facts, object) {
            Some(meta) => meta,
            None => return,
        },
    };
    let unread = ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() };
    let problems = match &meta {
        Ok(meta) if meta.is_terminating() || namespace_approval::was_taken(deletion, item, meta) => return,
        Ok(meta) => namespace_approval::problems(cx, deletion, meta),
        Err(_) => vec![Problem::NotApproved],
    };
    let meta = meta.unwrap_or(unread);

    let mut parts = Vec::new();
    if is_home {
        parts.push("Argo CD lives in it".to_owned());
    }
    let fallout = Fallout::of(residents());
    if fallout.apps > 0 {
        parts.push(format!("{} in it: {fallout}", count(fallout.apps, "Application")));
    }
    if sets > 0 {
        parts.push(format!("{} in it", count(sets, "ApplicationSet")));
    }
    let elsewhere = |(id, app): &(AppId, &App)| {
        *app.namespace != *name && !deletion.plan.leaving.surely.contains(id) && inventory.belongs_to(app, name)
    };
    let elsewhere = inventory.applications().filter(elsewhere).count();
    if elsewhere > 0 {
        parts.push(format!("{} elsewhere would have no controller and hang", count(elsewhere, "Application")));
    }
    let severity = if problems.is_empty() { Severity::Warn } else { Severity::Deny };
    let mut finding = Finding::new(
        &NAMESPACE,
        severity,
        object.clone(),
        "a Namespace that Argo CD or Applications live in goes only when it was approved",
    )
    .detail(format!("{object}: {}", parts.join("; ")));
    Approval::read(&meta).by.clone_into(&mut finding.approved_by);
    finding.remedies.extend(remedies(&meta, cx.now, cx.policy, &problems));
    let plan = Remedy::run("see everything that would go", Command::new("cascade-guard plan namespace").word(name));
    // Whoever is about to delete Argo CD should look before he learns how.
    let place = if is_home { 0 } else { finding.remedies.len() };
    finding.remedies.insert(place, plan);
    findings.push(finding);
}
