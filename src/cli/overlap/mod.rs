//! `overlap`: what two Applications, or two sets of rendered manifests, share, and the safe order of a migration from the
//! first to the second.

mod live;
mod rendered;
mod steps;
mod table;

use std::{fs, path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    live::{ClusterArgs, Opened},
    output::{self, Format},
    world::WorldArgs,
};
use crate::{
    judge::{Source, View, settle},
    snapshot,
};
use cascade_guard_core::judge::Inquiry;
use cascade_guard_core::{
    deletion::Inputs,
    facts::{Facts, Reading},
    inventory::{App, AppId, Inventory},
    object::ObjectRef,
    policy::Policy,
    snapshot::Snapshot,
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
    world: WorldArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// So many objects are read for a comparison that somebody looks at.
const MAX_READS: usize = 100_000;

/// What two sides share, as it is printed.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Who gives up.
    pub a: String,
    /// Who takes over.
    pub b: String,
    /// Every object that both hold.
    pub objects: Vec<Row>,
    /// What else of the second would go with the first, although the first does not list it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_along: Vec<String>,
    /// What has to be known before anything is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The safe order of a migration, first things first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl Report {
    /// Whether the two have nothing to do with each other.
    pub fn is_clean(&self) -> bool {
        self.objects.is_empty() && self.taken_along.is_empty()
    }
}

/// One object that both sides hold.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Group, kind, namespace and name.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// What the first says of it; absent for rendered manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_a: Option<Listed>,
    /// What the second says of it; absent for rendered manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_b: Option<Listed>,
    /// Whose marker the live object carries: an Application, `nobody`, or why that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub held_by: String,
    /// What happens to it if the first is deleted now: `deleted`, `spared` or `contested`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub fate: &'static str,
    /// Why it is spared, or is not although it looks so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What differs, from the first to the second (RFC 6902). Against a live object: what the manifest would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<json_patch::PatchOperation>,
    /// What stands on the live object and matters for a move.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// What an Application's list says of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// `Synced`, `OutOfSync`, `left Git`, `Unknown`, …
    pub status: &'static str,
    /// Effective sync wave.
    pub wave: i64,
}

/// One step of a migration.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What to do.
    pub title: String,
    /// How.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// How to see that it worked; the next step waits for it.
    pub check: Vec<String>,
    /// Whether it is so already.
    pub done: bool,
}

/// One of the two that are compared.
enum Side {
    App(AppId),
    Rendered(rendered::Set),
}

/// Exit 0 nothing in common, 1 something.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(compare(args))?;
    match args.output {
        Format::Table => output::line(table::draw(&report).trim_end())?,
        Format::Json | Format::Yaml => output::structured(args.output, &report)?,
    }
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}

async fn compare(args: &Args) -> anyhow::Result<Report> {
    let is_path = |word: &str| fs::exists(word).unwrap_or(false);
    // Two sets of manifests need no cluster.
    if args.world.snapshot.is_none() && is_path(&args.a) && is_path(&args.b) {
        let set = |word: &str| rendered::Set::read(Path::new(word), &args.namespace);
        return Ok(rendered::compare(&set(&args.a)?, &set(&args.b)?));
    }
    let no_path = [&args.a, &args.b].into_iter().find(|word| !is_path(word)).unwrap_or(&args.a);
    let world = Opened::new(&args.world, &args.cluster).await;
    let world = world.with_context(|| format!("{no_path} is no file or folder, so it has to be an Application"))?;
    let (view, policy) = (&world.inventory, &world.policy);
    let side = |word: &str| side(word, view, &args.namespace);
    Ok(match (side(&args.a)?, side(&args.b)?) {
        (Side::App(a), Side::App(b)) if a == b => bail!("{} and {} are the same Application", args.a, args.b),
        (Side::App(a), Side::App(b)) => applications(view, &world, policy, a, b).await,
        (Side::Rendered(a), Side::Rendered(b)) => rendered::compare(&a, &b),
        (Side::App(app), Side::Rendered(set)) => {
            rendered::against(view, &world, policy, app, &set, rendered::Direction::FromApplication).await
        }
        (Side::Rendered(set), Side::App(app)) => {
            rendered::against(view, &world, policy, app, &set, rendered::Direction::ToApplication).await
        }
    })
}

/// What a person means: an Application, or else a path.
fn side(word: &str, inventory: &Inventory, namespace: &str) -> anyhow::Result<Side> {
    let found = applications_named(inventory, word);
    match found[..] {
        [(id, _)] => Ok(Side::App(id)),
        [] if fs::exists(word).unwrap_or(false) => Ok(Side::Rendered(rendered::Set::read(Path::new(word), namespace)?)),
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

/// Compares two Applications of a cluster or a snapshot.
pub async fn applications(view: &impl View, source: &impl Source, policy: &Policy, a: AppId, b: AppId) -> Report {
    asking(view, source, policy, |inputs, facts| live::compare(inputs, facts, a, b)).await
}

/// Evaluates with as many reads as it takes.
async fn asking(
    view: &impl View,
    source: &impl Source,
    policy: &Policy,
    evaluate: impl Fn(Inputs<'_>, &mut Facts) -> Report,
) -> Report {
    settle(
        Inquiry::with_limit(MAX_READS),
        source,
        || Duration::from_secs(60),
        |facts| view.with(|inventory| evaluate(Inputs { inventory, policy, thorough: false }, facts)),
    )
    .await
}

/// Reads one Application of the inventory whole; what is missing is said in `notes`.
fn whole(facts: &mut Facts, app: &App, notes: &mut Vec<String>) -> Option<Arc<RawValue>> {
    match facts.object(&app.object())? {
        Reading::Found(raw) => Some(raw),
        Reading::NotFound => {
            notes.push(format!("Application {} is gone", app.path()));
            None
        }
        Reading::Unreadable(reason) | Reading::Forbidden(reason) => {
            notes.push(format!("Application {} could not be read: {reason}", app.path()));
            None
        }
    }
}

/// Adds the reason why a file cannot be used.
fn read_set(path: &Path) -> anyhow::Result<Snapshot> {
    let read = snapshot::load(path);
    let set = read.with_context(|| format!("{} holds no rendered manifests that can be read", path.display()))?;
    // What has nothing in common with anything is usually what a failed command has left behind.
    ensure!(set.objects().next().is_some(), "{} holds no manifest at all", path.display());
    Ok(set)
}
