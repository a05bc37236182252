//! `overlap`: shows what two Applications, or two sets of rendered manifests, have in common, and the safe order of a
//! migration from the first to the second.

mod table;

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context as _, bail, ensure};

use super::{
    arguments::InputArgs,
    cluster_access::ClusterArgs,
    opened_input::OpenedInput,
    output::{self, Format},
    thorough,
};
use crate::snapshot;
use cascade_guard_core::{
    deletion::Inputs,
    facts::Facts,
    inventory::{App, AppId, Inventory},
    overlap::{Comparison, Direction, Manifests, compare_applications, compare_manifests, compare_with_manifests},
};

/// Arguments of `overlap`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Application that gives up, as [NAMESPACE/]NAME, or a file or folder of rendered manifests
    a: String,
    /// Application that takes over, or a file or folder of rendered manifests
    b: String,
    /// Namespace of rendered objects whose manifest names none
    #[arg(short, long, default_value = "")]
    namespace: String,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One side of the comparison.
enum Side {
    App(AppId),
    Rendered(Manifests),
}

/// Exits with 0 if the two sides have nothing in common, with 1 otherwise.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let comparison = runtime.block_on(compare(args))?;
    output::print(args.output, &comparison, || table::draw(&comparison))?;
    Ok(ExitCode::from(u8::from(!comparison.is_clean())))
}

async fn compare(args: &Args) -> anyhow::Result<Comparison> {
    let is_path = |word: &str| fs::exists(word).unwrap_or(false);
    // Two sets of manifests need no cluster.
    if args.input.snapshot.is_none() && is_path(&args.a) && is_path(&args.b) {
        let read = |word: &str| read_manifests(Path::new(word), &args.namespace);
        return Ok(compare_manifests(&read(&args.a)?, &read(&args.b)?));
    }
    let no_path = [&args.a, &args.b].into_iter().find(|word| !is_path(word)).unwrap_or(&args.a);
    let opened = OpenedInput::new(&args.input, &args.cluster).await;
    let opened = opened.with_context(|| format!("{no_path} is no file or folder, so it has to be an Application"))?;
    let side = |word: &str| side(word, &opened.inventory, &args.namespace);
    Ok(match (side(&args.a)?, side(&args.b)?) {
        (Side::App(a), Side::App(b)) if a == b => bail!("{} and {} are the same Application", args.a, args.b),
        (Side::App(a), Side::App(b)) => {
            asking(&opened, |inputs, facts| compare_applications(inputs, facts, a, b)).await
        }
        (Side::Rendered(a), Side::Rendered(b)) => compare_manifests(&a, &b),
        (Side::App(app), Side::Rendered(manifests)) => {
            let direction = Direction::FromApplication;
            asking(&opened, |inputs, facts| compare_with_manifests(inputs, facts, app, &manifests, direction)).await
        }
        (Side::Rendered(manifests), Side::App(app)) => {
            let direction = Direction::ToApplication;
            asking(&opened, |inputs, facts| compare_with_manifests(inputs, facts, app, &manifests, direction)).await
        }
    })
}

/// Repeats `compare` until it asks nothing any more.
async fn asking(opened: &OpenedInput, compare: impl Fn(Inputs<'_>, &mut Facts) -> Comparison) -> Comparison {
    let inputs = Inputs { inventory: &opened.inventory, policy: &opened.policy, thorough: false };
    thorough::settle(opened, |facts| compare(inputs, facts)).await
}

/// Finds the side that a person means by `word`: an Application, or else a path.
fn side(word: &str, inventory: &Inventory, namespace: &str) -> anyhow::Result<Side> {
    let found = applications_named(inventory, word);
    match found[..] {
        [(id, _)] => Ok(Side::App(id)),
        [] if fs::exists(word).unwrap_or(false) => Ok(Side::Rendered(read_manifests(Path::new(word), namespace)?)),
        [] => bail!("{word} is neither an Application nor a file or folder"),
        _ => {
            let paths: Vec<String> = found.iter().map(|(_, app)| app.path()).collect();
            bail!("{word} may be any of {}; name its namespace too", paths.join(", "))
        }
    }
}

fn applications_named<'a>(inventory: &'a Inventory, word: &str) -> Vec<(AppId, &'a App)> {
    if let Some((namespace, name)) = word.split_once('/') {
        let id = inventory.app_named(namespace, name);
        return id.and_then(|id| Some((id, inventory.app(id)?))).into_iter().collect();
    }
    inventory.applications().filter(|(_, app)| &*app.name == word).collect()
}

/// Reads a file or folder of rendered manifests. Objects whose manifest names no namespace are taken to be in
/// `namespace`.
fn read_manifests(path: &Path, namespace: &str) -> anyhow::Result<Manifests> {
    let read = snapshot::load(path);
    let read = read.with_context(|| format!("{} holds no rendered manifests that can be read", path.display()))?;
    // An empty file is usually the output of a command that failed. It has nothing in common with anything.
    ensure!(read.objects().next().is_some(), "{} holds no manifest at all", path.display());
    Ok(Manifests::new(path.display().to_string(), &read, namespace)?)
}
