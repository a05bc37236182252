//! `diff`: what Argo CD would delete if a change to rendered manifests were merged and synced with prune.

mod git;
mod tree;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, ensure};

use super::{
    arguments::InputArgs,
    cluster_access::ClusterArgs,
    lint::FailOn,
    opened_input::OpenedInput,
    output::{self, ReportFormat},
};
use crate::judge::Source as _;
use cascade_guard_core::{
    diff::{self, Context, Side},
    facts::{Answer, Question, Reading},
    lint::UNREADABLE,
    report::{Format, Report},
    snapshot::Snapshot,
};

/// So many objects that would go are read from a cluster.
const MAX_READS: usize = 500;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// BEFORE and AFTER: folders with one folder or file for each Application. With --git, the folder of these trees in the
    /// repository. With --snapshot or --live, AFTER alone
    #[arg(value_name = "TREE", num_args = 0..=2)]
    trees: Vec<PathBuf>,
    /// Two revisions of the repository in this folder, such as main..HEAD
    #[arg(long, value_name = "A..B", conflicts_with_all = ["snapshot", "live"])]
    git: Option<String>,
    /// Compare with what the Applications of the current cluster list
    #[arg(long, conflicts_with = "snapshot")]
    live: bool,
    /// Take each tree for a single Application, whatever folders it has
    #[arg(long)]
    single: bool,
    /// Where objects without a namespace go, if no Application among the manifests says so
    #[arg(short, long, default_value = "", hide_default_value = true)]
    namespace: String,
    /// Output format; markdown is a comment for a pull request
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = ReportFormat::parser(&[ReportFormat::Markdown]))]
    output: ReportFormat,
    /// The least severity of a finding that makes the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Deny)]
    fail_on: FailOn,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Exit 0 clean, 1 findings, 2 something could not be judged.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let policy = args.input.policy.load()?;
    let (before, after, cluster, policy) = if args.input.snapshot.is_some() || args.live {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (before, after, opened) = runtime.block_on(against_cluster(args))?;
        (before, after, opened.snapshot, opened.policy)
    } else {
        let (before, after) = two_trees(args)?;
        (before, after, Snapshot::default(), policy)
    };
    let mut problems: Vec<_> = before.problems.iter().chain(&after.problems).cloned().collect();
    problems.sort_by_key(cascade_guard_core::report::ReportFinding::fingerprint);
    problems.dedup_by_key(|problem| problem.fingerprint());
    for problem in &problems {
        let place = problem.location.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        output::aside(&format!("error: {place}{}", problem.sentence()));
    }
    let now = args.input.now();
    let context = Context { cluster, policy: &policy, now, namespace: args.namespace.clone() };
    let mut findings = diff::diff(before, after, context)?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    let failed = !problems.is_empty();
    let mut rules = diff::rules();
    let format = args.output.of_report().unwrap_or(Format::Table);
    if format != Format::Table && failed {
        rules.push(UNREADABLE);
        findings.append(&mut problems);
    }
    output::report(format, &Report::new("diff", now, rules, findings))?;
    Ok(ExitCode::from(match (failed, worst) {
        (true, _) => 2,
        (false, Some(worst)) if worst >= args.fail_on.threshold() => 1,
        _ => 0,
    }))
}

/// Both trees, from folders or from a repository.
fn two_trees(args: &Args) -> anyhow::Result<(Side, Side)> {
    if let Some(range) = &args.git {
        ensure!(args.trees.len() < 2, "with --git name one folder of the repository at most");
        let (before, after) = git::check_out(range, args.trees.first())?;
        let read = |tree: &git::Tree| tree::read(&tree.path, Some(tree.folder()), args.single);
        return Ok((read(&before)?, read(&after)?));
    }
    let [before, after] = args.trees.as_slice() else {
        anyhow::bail!("name two trees, BEFORE and AFTER, or one with --git, --snapshot or --live");
    };
    Ok((tree::read(before, None, args.single)?, tree::read(after, None, args.single)?))
}

/// What the cluster's Applications list, and the tree.
async fn against_cluster(args: &Args) -> anyhow::Result<(Side, Side, OpenedInput)> {
    let [after] = args.trees.as_slice() else {
        anyhow::bail!("with --snapshot or --live name one tree, AFTER");
    };
    let after = tree::read(after, None, args.single)?;
    let mut opened = OpenedInput::new(&args.input, &args.cluster).await?;
    let folders = || after.applications.keys().map(String::as_str);
    let listed = Side::of_cluster(&opened.snapshot, folders());
    ensure!(
        !listed.applications.is_empty(),
        "no Application there has the name of a folder or file of this tree ({})",
        folders().take(5).collect::<Vec<_>>().join(", ")
    );
    if opened.client().is_some() {
        read_what_goes(&listed, &after, &mut opened).await?;
    }
    Ok((Side::of_cluster(&opened.snapshot, folders()), after, opened))
}

/// Reads the objects that an Application lists and the tree does not hold, so that the rules see them as they are.
async fn read_what_goes(listed: &Side, after: &Side, opened: &mut OpenedInput) -> anyhow::Result<()> {
    let questions: Vec<Question> = listed
        .pieces()
        .filter(|(folder, piece)| {
            after.applications.get(*folder).is_none_or(|now| !now.contains_key(&piece.object))
                && opened.snapshot.json_of(&piece.object).is_none()
        })
        .take(MAX_READS)
        .map(|(_, piece)| Question::Object(piece.object.clone()))
        .collect();
    let answers = opened.answer(&questions, std::time::Duration::from_secs(60)).await;
    for (_, answer) in answers {
        if let Answer::Object(Reading::Found(raw)) = answer {
            opened.snapshot.put("the cluster", raw.get().to_owned()).context("an object of the cluster")?;
        }
    }
    Ok(())
}
