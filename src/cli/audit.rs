//! `audit`: what is wrong now, before anybody deletes anything.

use std::{fs, io::IsTerminal, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::SignedDuration;

use super::{
    arguments::{InputArgs, duration},
    cluster_access::ClusterArgs,
    opened_input::OpenedInput,
    output::{self, Format, ReportFormat},
};
use crate::audit::{self, AuditInput, Document, Options, Step};
use cascade_guard_core::{
    object::{ARGO_GROUP, GroupKind},
    replay,
};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = ReportFormat::parser(&[ReportFormat::Html]))]
    output: ReportFormat,
    /// Say what changed since an earlier `audit -o json`
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Audit log of the API server: judge the deletes it let through while the guard did not answer
    #[arg(long, value_name = "FILE")]
    audit_log: Vec<PathBuf>,
    /// Judge as if this user deleted everything
    #[arg(long, default_value = "kubectl-user", value_name = "USER")]
    user: String,
    /// An object that has been terminating for this long is stuck
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration)]
    stuck_after: SignedDuration,
    /// An approval that ends within this time is about to end
    #[arg(long, default_value = "30m", value_name = "TIME", value_parser = duration)]
    ending_within: SignedDuration,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Exit 0 if nothing was found, 1 if something was.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(look(args))
}

async fn look(args: &Args) -> anyhow::Result<ExitCode> {
    let now = args.input.now();
    let earlier = args.since.as_ref().map(read_earlier).transpose()?;
    let bar = progress_bar();
    let opened = OpenedInput::new(&args.input, &args.cluster).await?;
    args.input.ensure_holds(
        &opened.snapshot,
        &[
            GroupKind::new(ARGO_GROUP, "Application"),
            GroupKind::new(ARGO_GROUP, "ApplicationSet"),
            GroupKind::new("", "Namespace"),
        ],
    )?;
    let (policy, view) = (&opened.policy, &opened.inventory);
    let objects = opened.snapshot.subjects();
    let options = Options { user: args.user.clone(), stuck_after: args.stuck_after, ending_within: args.ending_within };
    let input = AuditInput { view, source: &opened, policy, now, objects: &objects };
    let show = |step: Step| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        bar.set_message(step.what);
    };
    let mut audit = audit::scan(&input, &options, &show).await;
    for path in &args.audit_log {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let recording = replay::read(&path.display().to_string(), &text)?;
        audit.failed_open.extend(audit::failed_open::find(&recording.events, view, &opened, policy, now).await);
    }
    bar.finish_and_clear();
    let document = Document::new(audit, now, earlier.as_ref());
    print(args.output, &document)?;
    Ok(ExitCode::from(u8::from(!document.findings.is_empty())))
}

fn print(format: ReportFormat, document: &Document) -> anyhow::Result<()> {
    match (format, format.of_report()) {
        (ReportFormat::Table, _) => Ok(output::line(audit::draw(document).trim_end())?),
        (ReportFormat::Json, _) => output::structured(Format::Json, document),
        (ReportFormat::Yaml, _) => output::structured(Format::Yaml, document),
        (ReportFormat::Html, _) => Ok(output::line(&audit::html::page(document))?),
        (_, Some(format)) => output::report(format, &document.report()),
        (_, None) => anyhow::bail!("an audit is no graph"),
    }
}

fn read_earlier(path: &PathBuf) -> anyhow::Result<Document> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is no audit; make one with `cascade-guard audit -o json`", path.display()))
}

/// A bar on a terminal, nothing anywhere else.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg:>10} {wide_bar} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.set_message("reading");
    bar
}
