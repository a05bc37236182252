//! `replay`: recorded requests through a policy, and through another.

use std::{fmt::Write, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};

use super::{
    arguments::{InputArgs, PolicyArgs},
    output::{self, Format},
};
use cascade_guard_core::replay::{self, Judge, Recording, Replay, ReplayedCluster, Row, Tally};

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files with AdmissionReviews or requests (JSON, a list, or one a line), or with an audit log at level
    /// RequestResponse
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Another policy: report what it would answer differently
    #[arg(long, value_name = "POLICY")]
    against: Option<PathBuf>,
    /// Let the cluster follow the recorded requests; it begins as --snapshot, or empty
    #[arg(long)]
    build_world: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
}

/// So many rows are shown in a table; JSON has them all.
const MAX_ROWS: usize = 50;

/// Exit 1 if something would be refused, or answered differently by the policy of `--against`.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let against = PolicyArgs { policy: args.against.clone(), mode_ceiling: None };
    let against = args.against.is_some().then(|| against.load()).transpose()?;
    let recording = read(&args.files)?;
    let (mut world, policy) = match args.input.snapshot()? {
        Some((snapshot, policy)) => {
            // What follows the requests may begin with nothing.
            if !args.build_world {
                args.input.ensure_holds(&snapshot, &[])?;
            }
            (ReplayedCluster::from(snapshot), policy)
        }
        None if args.build_world => {
            let policy = args.input.policy.load()?;
            (ReplayedCluster::new(&policy.spec.argocd.namespace)?, policy)
        }
        None => {
            bail!("replay needs --snapshot with the cluster as it was, or --build-world to build it from the requests")
        }
    };
    let mut judge = Judge::new(policy, &world);
    let mut other = against.map(|policy| Judge::new(policy, &world));
    let mut result =
        replay::replay(&recording.requests, &mut world, &mut judge, other.as_mut(), args.build_world, args.input.now());
    for (reason, count) in recording.left_out {
        *result.left_out.entry(reason.to_owned()).or_default() += count;
    }
    output::print(args.output, &result, || table(&result, args.against.is_some()))?;
    Ok(ExitCode::from(u8::from(!result.refused.is_empty() || !result.changes.is_empty())))
}

fn read(files: &[PathBuf]) -> anyhow::Result<Recording> {
    let mut all = Recording::default();
    for path in files {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let recording = replay::read(&path.display().to_string(), &text)?;
        all.requests.extend(recording.requests);
        for (reason, count) in recording.left_out {
            *all.left_out.entry(reason).or_default() += count;
        }
    }
    Ok(all)
}

fn table(result: &Replay, compared: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} requests judged", result.judged);
    for (reason, count) in &result.left_out {
        let _ = writeln!(text, "{count} left out: {reason}");
    }
    tally(&mut text, "Decisions", &result.decisions);
    tally(&mut text, "Decisions of the other policy", &result.decisions_against);
    if !result.refused.is_empty() {
        let _ = writeln!(text, "\nWould be refused ({}):", result.refused.len());
        for row in result.refused.iter().take(MAX_ROWS) {
            let _ = writeln!(text, "  {}", head(row));
            details(&mut text, &row.verdict.details);
        }
        more(&mut text, result.refused.len());
    }
    if compared {
        let _ = writeln!(text, "\nAnswered differently by the other policy ({}):", result.changes.len());
        for change in result.changes.iter().take(MAX_ROWS) {
            let (from, to) = (&change.row.verdict, &change.against);
            let _ = writeln!(
                text,
                "  {}: {} -> {} [{}]",
                head(&change.row),
                from.decision,
                to.decision,
                to.deciding().join(", ")
            );
            details(&mut text, &to.details);
        }
        more(&mut text, result.changes.len());
    }
    text
}

fn tally(text: &mut String, title: &str, rows: &[Tally]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for row in rows {
        let rule = if row.rule.is_empty() { "-" } else { &row.rule };
        let _ = writeln!(text, "  {rule:<22} {:<12} {:>7}", row.decision, row.requests);
    }
}

fn head(row: &Row) -> String {
    format!("{} {} {} by {}", row.place, row.operation, row.object, row.user)
}

fn details(text: &mut String, details: &[String]) {
    for detail in details.iter().take(3) {
        let _ = writeln!(text, "    - {detail}");
    }
}

fn more(text: &mut String, rows: usize) {
    if rows > MAX_ROWS {
        let _ = writeln!(text, "  and {} more; -o json has them all", rows - MAX_ROWS);
    }
}
