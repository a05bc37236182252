//! `watchdog survey`: every Application, whether it can be watched and may be armed.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    super::{
        arguments::InputArgs,
        cluster_access::ClusterArgs,
        output::{self, Format},
    },
    known::{ConfigArgs, Known},
};
use cascade_guard_core::watchdog::{
    View, conditions::standing, repository::without_credentials, watchable::unwatchable,
};

/// Arguments of `watchdog survey`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One Application.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    application: String,
    /// The repository and branch whose commits can name it; empty if none can.
    source: String,
    watchable: bool,
    armable: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let known = runtime.block_on(Known::open(&args.input, &args.cluster, &args.config))?;
    let rows: Vec<Row> = known.applications.iter().map(|observed| row(&observed.view, &known)).collect();
    match args.output {
        Format::Table => {
            if rows.is_empty() {
                output::line("there is no Application")?;
            }
            for row in &rows {
                let word = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
                let because =
                    if row.because.is_empty() { String::new() } else { format!("  {}", row.because.join("; ")) };
                output::line(&format!(
                    "{}  {}  {}{because}",
                    row.application,
                    word(row.watchable, "watchable", "not watchable"),
                    word(row.armable, "may be armed", "not to be armed"),
                ))?;
            }
        }
        Format::Json | Format::Yaml => output::structured(args.output, &rows)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An Application is watchable if commits of some repository and branch can name it.
fn row(view: &View, known: &Known) -> Row {
    let mut because = Vec::new();
    let mut source = String::new();
    let mut git = view.sources.iter().filter(|source| !source.is_chart);
    match git.next() {
        None => because.push("it is made of charts alone, and a chart version holds no commit".to_owned()),
        Some(first) => {
            let branch = if first.target.is_empty() { "HEAD" } else { &first.target };
            let url = &first.repository;
            let configured = known.settings.repository(url);
            match unwatchable(view, url, branch, branch == "HEAD") {
                Some(why) => because.push(why),
                None if configured.is_none() && !known.settings.spec.repositories.is_empty() => {
                    because.push(format!("the configuration does not name {}", without_credentials(url)));
                }
                None => source = format!("{} {branch}", without_credentials(url)),
            }
        }
    }
    let watchable = because.is_empty();
    let against = standing(view, &known.applications, &known.circumstances());
    because.extend(against.into_iter().filter_map(|check| check.against));
    Row { application: view.app.to_string(), source, watchable, armable: because.is_empty(), because }
}
