//! `plan`: shows what a delete would take along, which Applications claim it, what is spared, and what would hang.

mod tree;
mod unlisted;

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Context as _;
use serde::Serialize;

use super::{
    arguments::InputArgs,
    cluster_access::ClusterArgs,
    opened_input::OpenedInput,
    output::{self, Format},
    target::{ObjectArgs, UserArgs},
    thorough,
};
use cascade_guard_core::{
    admission::{Request, decode, delete_review},
    decision::{Decision, Effect, render},
    deletion::{Deletion, Item, Plan},
    inventory::Inventory,
    judge::Verdict,
    namespace::content::{HeldObject, NotRead},
    object::ObjectRef,
};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    object: ObjectArgs,
    #[command(flatten)]
    user: UserArgs,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Show every line of the table; long lists are folded otherwise
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One object of the plan, as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Group, kind, namespace and name.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Cluster it is on.
    pub cluster: String,
    /// `deleted`, `spared`, `contested`, or `absent` for what an Application lists but nobody found.
    pub fate: &'static str,
    /// Why it is spared, or why it is not although it looks so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Applications whose cascade takes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_by: Vec<String>,
    /// Applications outside the plan that claim it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claimed_by: Vec<String>,
    /// Finalizers that hold it until somebody removes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

/// The whole plan, as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What would be deleted.
    pub object: ObjectRef,
    /// Who would delete it.
    pub user: String,
    /// Whether the delete would be admitted.
    pub allowed: bool,
    /// What the client would be told when refused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the client would be warned of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What rules found, whatever their mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingRow>,
    /// Every object, the root first.
    pub objects: Vec<Row>,
    /// What may stay because somebody has to remove a finalizer, in the Namespaces that would go as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hanging: Vec<HeldObject>,
    /// What goes although no Application lists it: instances of a definition, and in Namespaces what holds data or has an
    /// address that others know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unclaimed: Vec<ObjectRef>,
    /// What could not be read, so that nobody knows what of it goes, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<NotRead>,
    /// Applications never compared that may want some of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_claimants: Vec<String>,
}

/// One finding, as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingRow {
    /// Rule id.
    pub rule: &'static str,
    /// Mode that applies.
    pub mode: &'static str,
    /// What became of it.
    pub effect: String,
    /// What was found.
    pub detail: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(show(args))
}

async fn show(args: &Args) -> anyhow::Result<ExitCode> {
    let opened = OpenedInput::new(&args.input, &args.cluster).await?;
    let (object, json) = opened.find(args.object.wanted()?).await?;
    let user = args.user.user(opened.client()).await?;
    let body = delete_review(&object, &json, &user).with_context(|| format!("{object} cannot be read"))?;
    let request = decode(&body)?;
    let Verdict { decision, deletion } =
        thorough::judge(&request, &opened.inventory, &opened.policy, &opened, args.input.now()).await;
    let mut report = report(&request, &decision, deletion.as_ref(), &opened.inventory);
    if let Some(deletion) = &deletion {
        let unlisted = unlisted::find(&report.objects, deletion, &json, &opened).await;
        (report.hanging, report.unclaimed, report.not_read) = (unlisted.hanging, unlisted.unclaimed, unlisted.not_read);
    }
    match args.output {
        Format::Table => {
            let plan = deletion.as_ref().map(|deletion| &deletion.plan);
            output::line(tree::draw(&report, plan, args.all).trim_end())?;
        }
        Format::Json | Format::Yaml => output::structured(args.output, &report)?,
    }
    Ok(ExitCode::from(u8::from(!report.allowed)))
}

fn report(request: &Request<'_>, decision: &Decision, deletion: Option<&Deletion>, inventory: &Inventory) -> Report {
    let response = render(decision, request);
    let plan = deletion.map(|deletion| &deletion.plan);
    let path =
        |id: &cascade_guard_core::inventory::AppId| inventory.app(*id).map(cascade_guard_core::inventory::App::path);
    let findings = decision
        .outcomes
        .iter()
        .filter(|outcome| outcome.effect != Effect::Dropped && outcome.finding.evidence.is_none());
    Report {
        object: request.target.clone(),
        user: request.user.username.clone(),
        allowed: response.allowed,
        message: response.message,
        warnings: response.warnings,
        findings: findings
            .map(|outcome| FindingRow {
                rule: outcome.finding.rule.id,
                mode: outcome.resolved.mode.as_str(),
                effect: format!("{:?}", outcome.effect).to_lowercase(),
                detail: if outcome.finding.detail.is_empty() {
                    outcome.finding.summary.clone()
                } else {
                    outcome.finding.detail.clone()
                },
            })
            .collect(),
        objects: plan
            .map(|plan| plan.items.iter().map(|item| row(plan, item, inventory)).collect())
            .unwrap_or_default(),
        hanging: Vec::new(),
        unclaimed: Vec::new(),
        not_read: Vec::new(),
        unknown_claimants: plan
            .map(|plan| plan.unknown_claimants.iter().filter_map(path).collect())
            .unwrap_or_default(),
    }
}

fn row(plan: &Plan, item: &Item, inventory: &Inventory) -> Row {
    let unnamed = || ObjectRef::new(&item.kind.group, &item.kind.kind, &item.namespace, "");
    let (fate, why) = item.outcome();
    let takers: BTreeSet<String> = plan.takers_of(item).map(|taker| taker.app.path()).collect();
    Row {
        object: item.object.clone().unwrap_or_else(unnamed),
        cluster: inventory.cluster_name(item.cluster).to_owned(),
        fate,
        why,
        taken_by: takers.into_iter().collect(),
        claimed_by: item
            .claimants
            .iter()
            .filter_map(|id| inventory.app(*id))
            .map(cascade_guard_core::inventory::App::path)
            .collect(),
        finalizers: item.finalizers.clone(),
    }
}
