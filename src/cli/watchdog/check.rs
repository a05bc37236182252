//! `watchdog check`: the trailers of one commit, before it is pushed.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, ensure};
use serde::Serialize;

use super::{
    super::{
        arguments::InputArgs,
        cluster_access::ClusterArgs,
        output::{self, Format},
    },
    known::{ConfigArgs, Known},
};
use crate::watchdog::{git::Git, history::candidates};
use cascade_guard_core::watchdog::{
    Mode,
    conditions::standing,
    trailer::{Message, Wish, wishes},
    view::is_of,
    watchable::unwatchable,
};

/// Arguments of `watchdog check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The commit, such as HEAD
    commit: String,
    /// Clone that holds it
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repo: PathBuf,
    /// URL of the repository, as Applications name it; by default that of the remote `origin`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Branch that it is meant for; by default the one that is checked out
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What is said about one trailer.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    application: String,
    mode: &'static str,
    /// What keeps it from being watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// What keeps it from being reverted, as far as that is known before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_armed: Vec<String>,
}

/// Exit 0 the trailers are right, or there are none; 1 something is wrong with them.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(check(args))?;
    match args.output {
        Format::Table => {
            if rows.is_empty() {
                output::line("the commit asks for nothing: it has no such trailer")?;
            }
            for row in &rows {
                print(row)?;
            }
        }
        Format::Json | Format::Yaml => output::structured(args.output, &rows)?,
    }
    let wrong = |row: &Row| !row.problems.is_empty() || row.mode == "arm" && !row.not_armed.is_empty();
    Ok(ExitCode::from(u8::from(rows.iter().any(wrong))))
}

fn print(row: &Row) -> anyhow::Result<()> {
    let name = if row.application.is_empty() { "a trailer" } else { &row.application };
    for problem in &row.problems {
        output::line(&format!("{name}  PROBLEM  {problem}"))?;
    }
    if row.problems.is_empty() {
        output::line(&format!("{name}  will be watched, mode {}", row.mode))?;
    }
    for why in &row.not_armed {
        output::line(&format!("{name}  would not be reverted: {why}"))?;
    }
    Ok(())
}

async fn check(args: &Args) -> anyhow::Result<Vec<Row>> {
    let git = Git::local(&args.repo);
    ensure!(!args.commit.starts_with('-'), "`{}` is no commit", args.commit);
    let wanted = format!("{}^{{commit}}", args.commit);
    let commit = git.text(&["rev-parse", "--verify", "--quiet", &wanted]).await;
    let commit = commit.with_context(|| format!("{} holds no commit {}", args.repo.display(), args.commit))?;
    let known = Known::open(&args.input, &args.cluster, &args.config).await?;
    let keys = &known.settings.spec.trailer_keys;
    let namespace = &known.settings.spec.argocd_namespace;
    let url = match &args.url {
        Some(url) => url.clone(),
        None => git.text(&["remote", "get-url", "origin"]).await.context("name the repository with --url")?,
    };
    let branch = match &args.branch {
        Some(branch) => branch.clone(),
        None => git.text(&["symbolic-ref", "--short", "HEAD"]).await.context("name the branch with --branch")?,
    };
    let head = git.text(&["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]).await.unwrap_or_default();
    let is_default = match head.strip_prefix("origin/") {
        Some(head) => head == branch,
        // A clone that does not know it: `HEAD` is taken for this branch.
        None => true,
    };
    let mut rows = Vec::new();
    for candidate in candidates(&git, None, &commit, keys).await? {
        let message = Message { text: &candidate.text, trailers: &candidate.trailers };
        for wish in wishes(message, keys, namespace) {
            rows.push(match wish {
                Ok(wish) => row(&wish, &known, &url, &branch, is_default),
                Err(malformed) => Row {
                    application: malformed.app.map(|app| app.to_string()).unwrap_or_default(),
                    mode: Mode::Shadow.as_str(),
                    problems: vec![format!("`{}`: {}", malformed.line, malformed.problem)],
                    not_armed: Vec::new(),
                },
            });
        }
    }
    Ok(rows)
}

fn row(wish: &Wish, known: &Known, url: &str, branch: &str, is_default: bool) -> Row {
    let mut row = Row { application: wish.app.to_string(), mode: wish.mode.as_str(), ..Row::default() };
    let Some(observed) = known.applications.get(&wish.app) else {
        row.problems.push("there is no such Application; it may come with the commit".to_owned());
        return row;
    };
    let view = &observed.view;
    // The watch starts when the commit is on the branch that the Application follows, so a branch that is watched will do.
    let later = known.settings.repository(url).into_iter().flat_map(|repository| &repository.branches);
    let follows = |branch: &str| view.sources.iter().any(|source| is_of(source, url) && source.tracks(branch, false));
    let branch = later.map(String::as_str).find(|other| follows(other)).unwrap_or(branch);
    row.problems.extend(unwatchable(view, url, branch, is_default));
    let against = standing(view, &known.applications, &known.circumstances());
    row.not_armed.extend(against.into_iter().filter_map(|check| check.against));
    row
}
