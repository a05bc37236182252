//! `policy explain`: which line of the policy decides for an object and a user.

use std::{fmt::Write, process::ExitCode};

use anyhow::bail;
use serde::Serialize;

use super::{
    output::{self, Format},
    world::WorldArgs,
};
use crate::{
    decision::Scope,
    inventory::Inventory,
    object::{GroupKind, ObjectRef},
    policy::{Mode, Policy, Subject, explain::Line},
    rules::{RULES, RuleMeta},
    snapshot::Snapshot,
};

/// What to do with the policy.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say for each rule which mode an object gets, and which line of the policy decides that
    Explain(ExplainArgs),
}

/// Arguments of `policy explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Kind of the object: application, namespace, role, …
    kind: String,
    /// Name of the object
    name: String,
    /// Namespace of the object
    #[arg(short, long, default_value = "")]
    namespace: String,
    /// User whose request it is
    #[arg(long, default_value = "kubectl-user", value_name = "USER")]
    user: String,
    /// A group of that user; may be given several times
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// AppProject of the Application that is deleted; with --snapshot that of the Application named
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    world: WorldArgs,
}

/// What decides for an object, as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    /// The object.
    object: ObjectRef,
    /// Namespace that the lines are compared with.
    namespace: String,
    /// Whether the labels of that Namespace are known.
    labels_known: bool,
    /// AppProject that the lines are compared with.
    project: Option<String>,
    /// The user.
    user: String,
    /// What the user is to the guard.
    roles: Vec<&'static str>,
    /// One entry a rule.
    rules: Vec<RuleRow>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleRow {
    rule: &'static str,
    mode: Mode,
    decided_by: String,
    exempt: bool,
    lines: Vec<Line>,
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Explain(args) => explain(args),
    }
}

fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let policy = args.world.policy.load()?;
    let world = args.world.open(&policy)?;
    let object = find(args, world.as_ref().map(|(snapshot, _)| snapshot))?;
    let inventory = match world {
        Some((_, inventory)) => inventory,
        None => Snapshot::default().inventory(&policy, (0, 0)),
    };
    let project = args.project.clone().or_else(|| project_of(&object, &inventory));
    let scope = Scope::of(&object, project.as_deref());
    let labels = inventory.namespace(&scope.namespace).map(|meta| &meta.labels);
    let subject = Subject { namespace: &scope.namespace, labels, project: project.as_deref(), user: &args.user };
    let rules = RULES.iter().filter_map(|rule| row(rule.meta(), &policy, &subject, args)).collect();
    let explained = Explained {
        labels_known: labels.is_some(),
        namespace: scope.namespace.clone(),
        project: project.clone(),
        user: args.user.clone(),
        roles: roles(&policy, args),
        rules,
        object,
    };
    match args.output {
        Format::Table => output::line(draw(&explained).trim_end())?,
        Format::Json | Format::Yaml => output::structured(args.output, &explained)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The object in the snapshot; without one, an object of that name.
fn find(args: &ExplainArgs, snapshot: Option<&Snapshot>) -> anyhow::Result<ObjectRef> {
    let Some(snapshot) = snapshot else {
        let namespace_kind = GroupKind::new("", "Namespace");
        return Ok(if namespace_kind.is_meant_by(&args.kind) {
            ObjectRef::namespace(&args.name)
        } else {
            ObjectRef::new("", &args.kind, &args.namespace, &args.name)
        });
    };
    let Some(object) = snapshot.find_by_words(&args.kind, &args.namespace, &args.name) else {
        bail!(
            "there is no {} {} in the snapshot",
            args.kind,
            ObjectRef::new("", "", &args.namespace, &args.name).path()
        );
    };
    Ok(object)
}

fn project_of(object: &ObjectRef, inventory: &Inventory) -> Option<String> {
    let id = inventory.app_named(&object.namespace, &object.name).filter(|_| object.is_application())?;
    inventory.app(id).map(|app| app.project.to_string())
}

fn row(rule: &'static RuleMeta, policy: &Policy, subject: &Subject<'_>, args: &ExplainArgs) -> Option<RuleRow> {
    // A rule without a key is beyond every policy.
    let explanation = policy.explain(rule.key?, subject, args.world.now());
    Some(RuleRow {
        rule: rule.id,
        mode: explanation.resolved.mode,
        decided_by: explanation.resolved.decided_by,
        exempt: explanation.resolved.exempt,
        lines: explanation.lines,
    })
}

/// What a user is to the guard.
fn roles(policy: &Policy, args: &ExplainArgs) -> Vec<&'static str> {
    let roles = [
        (policy.is_argocd(&args.user), "Argo CD, which syncs, prunes and cascades"),
        (policy.is_namespace_controller(&args.user), "the namespace controller"),
        (policy.is_garbage_collector(&args.user), "the garbage collector"),
        (policy.may_break_glass(&args.groups), "somebody who may break the glass"),
    ];
    roles.into_iter().filter(|(holds, _)| *holds).map(|(_, role)| role).collect()
}

fn draw(explained: &Explained) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} for {}", explained.object, explained.user);
    for role in &explained.roles {
        let _ = writeln!(text, "  {} is {role}", explained.user);
    }
    let namespace = if explained.namespace.is_empty() { "none" } else { &explained.namespace };
    let labels = if explained.labels_known || explained.namespace.is_empty() {
        ""
    } else {
        " (its labels are not known, so no label selector matches)"
    };
    let _ =
        writeln!(text, "  namespace {namespace}{labels}, project {}", explained.project.as_deref().unwrap_or("none"));
    for rule in &explained.rules {
        let _ = writeln!(text, "\n{}: {}, by {}", rule.rule, rule.mode.as_str(), rule.decided_by);
        for line in &rule.lines {
            let _ = writeln!(text, "  {:<26} {:<36} {}", line.line, line.says, line.verdict.as_str());
        }
    }
    text
}
