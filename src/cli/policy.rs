//! `policy explain`: which line of the policy decides for an object and a user.

use std::{fmt::Write, process::ExitCode};

use anyhow::Context as _;
use serde::Serialize;

use super::{
    arguments::InputArgs,
    cluster_access::{self, ClusterArgs},
    opened_input::OpenedInput,
    output::{self, Format},
    target::{ObjectArgs, UserArgs, Wanted},
};
use cascade_guard_core::{
    admission::UserInfo,
    catalog::{self, RuleMeta},
    inventory::Inventory,
    object::{GroupKind, ObjectRef},
    policy::{Mode, Policy, Scope, Subject, explain::Line},
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
    #[command(flatten)]
    object: ObjectArgs,
    #[command(flatten)]
    user: UserArgs,
    /// AppProject of the Application that is deleted; by default that of the Application named
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
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
        Command::Explain(args) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(explain(args))
        }
    }
}

/// What is explained, and what is known around it.
struct Asked {
    object: ObjectRef,
    user: UserInfo,
    policy: Policy,
    inventory: Inventory,
}

async fn ask(args: &ExplainArgs) -> anyhow::Result<Asked> {
    let wanted = args.object.wanted()?;
    let opened = match &args.input.snapshot {
        Some(_) => OpenedInput::new(&args.input, &args.cluster).await?,
        // A policy file alone says what it would do about an object that need not exist.
        None if args.input.policy.policy.is_some() && !args.cluster.is_named() => {
            let policy = args.input.policy.load()?;
            let inventory = Snapshot::default().inventory(&policy, (0, 0));
            return Ok(Asked { object: supposed(wanted), user: args.user.user(None).await?, policy, inventory });
        }
        None => {
            let client = args.cluster.connect().await.context("no policy is known; name a file with --policy")?;
            let policy = cluster_access::certain_policy(&client, &args.input.policy).await?;
            OpenedInput::of_cluster(client, policy).await?
        }
    };
    let (object, _) = opened.find(wanted).await?;
    let user = args.user.user(opened.client()).await?;
    Ok(Asked { object, user, policy: opened.policy, inventory: opened.inventory })
}

async fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let Asked { object, user, policy, inventory } = ask(args).await?;
    let project = args.project.clone().or_else(|| project_of(&object, &inventory));
    let scope = Scope::of(&object, project.as_deref());
    let labels = inventory.namespace(&scope.namespace).map(|meta| &meta.labels);
    let subject = Subject { namespace: &scope.namespace, labels, project: project.as_deref(), user: &user.username };
    let rules = catalog::ALL.iter().filter_map(|rule| row(rule, &policy, &subject, args)).collect();
    let explained = Explained {
        labels_known: labels.is_some(),
        namespace: scope.namespace.clone(),
        project: project.clone(),
        roles: roles(&policy, &user),
        user: user.username.clone(),
        rules,
        object,
    };
    output::print(args.output, &explained, || draw(&explained))?;
    Ok(ExitCode::SUCCESS)
}

/// An object of that name, whether it exists or not.
fn supposed(wanted: Wanted<'_>) -> ObjectRef {
    if GroupKind::new("", "Namespace").is_meant_by(wanted.kind) {
        ObjectRef::namespace(wanted.name)
    } else {
        ObjectRef::new("", wanted.kind, wanted.namespace, wanted.name)
    }
}

fn project_of(object: &ObjectRef, inventory: &Inventory) -> Option<String> {
    let id = inventory.app_named(&object.namespace, &object.name).filter(|_| object.is_application())?;
    inventory.app(id).map(|app| app.project.to_string())
}

fn row(rule: &'static RuleMeta, policy: &Policy, subject: &Subject<'_>, args: &ExplainArgs) -> Option<RuleRow> {
    // A rule without a key is beyond every policy.
    let explanation = policy.explain(rule.key?, subject, args.input.now());
    Some(RuleRow {
        rule: rule.id,
        mode: explanation.resolved.mode,
        decided_by: explanation.resolved.decided_by,
        exempt: explanation.resolved.exempt,
        lines: explanation.lines,
    })
}

/// What a user is to the guard.
fn roles(policy: &Policy, user: &UserInfo) -> Vec<&'static str> {
    let roles = [
        (policy.is_argocd(&user.username), "Argo CD, which syncs, prunes and cascades"),
        (policy.is_namespace_controller(&user.username), "the namespace controller"),
        (policy.is_garbage_collector(&user.username), "the garbage collector"),
        (policy.may_break_glass(&user.groups), "somebody who may break the glass"),
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
