//! `lint`: the sync-wave rule over rendered manifests, and the order in which Argo CD would apply them.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use jiff::Timestamp;

use super::{
    arguments::{PolicyArgs, ensure_holds, name_unreadable},
    cluster_access::ClusterArgs,
    cluster_reader::ClusterReader,
    output::{self, ReportFormat},
};
use cascade_guard_core::{
    catalog,
    decision::Severity,
    lint::{self, Application, Baseline, Existing, Fault, Folder, Input, LintContext, Linted, Order, Problem},
    object::ARGO_GROUP,
    policy::Policy,
    report::{self, Report, ReportFinding, Rule},
    snapshot::Snapshot,
};

/// All files of a run together may be this large.
const MAX_BYTES: u64 = 512 << 20;

/// Arguments of `lint`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or folders of rendered manifests, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Application that the manifests belong to: a file, or [NAMESPACE/]NAME in the snapshot or the cluster, and the folder
    /// of its manifests if its name or its source does not say which; can be given several times. Without it the
    /// Applications among the manifests count
    #[arg(long = "app", value_name = "FILE|NAME[=FOLDER]")]
    apps: Vec<String>,
    /// Where objects without a namespace go, if no Application says so
    #[arg(short, long, default_value = "", hide_default_value = true)]
    namespace: String,
    /// File or folder of Kubernetes objects: what exists already
    #[arg(long, value_name = "PATH")]
    snapshot: Option<PathBuf>,
    /// Ask the cluster of the kubeconfig what exists already
    #[arg(long, conflicts_with = "snapshot")]
    live: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// GuardPolicy file; only its secretProducers matter here
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Print the order in which Argo CD applies the manifests instead of findings
    #[arg(long)]
    order: bool,
    /// Output format; dot and mermaid print the order
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_parser = ReportFormat::parser(&[ReportFormat::Dot, ReportFormat::Mermaid]))]
    output: ReportFormat,
    /// The least severity of a finding that makes the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Deny)]
    fail_on: FailOn,
    /// File with findings that were there before; only others count
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write everything that was found into a baseline file
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// The time to write into reports (RFC 3339)
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

/// The least severity that makes a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// What would be refused.
    Deny,
    /// Warnings as well.
    Warn,
}

impl FailOn {
    /// As a severity.
    pub fn threshold(self) -> Severity {
        if self == Self::Warn { Severity::Warn } else { Severity::Deny }
    }
}

/// Exit 0 clean, 1 findings, 2 something could not be judged.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let policy = PolicyArgs { policy: args.policy.clone(), mode_ceiling: None };
    let (snapshot, policy) = if let Some(path) = &args.snapshot {
        let snapshot = crate::snapshot::load(path).context("the snapshot cannot be used")?;
        ensure_holds(path, &snapshot, &[])?;
        name_unreadable(&snapshot, snapshot.objects().map(|(object, _)| object.clone()));
        let policy = policy.load_over(&snapshot)?;
        (Some(snapshot), policy)
    } else {
        let policy = policy.load()?;
        let snapshot = args.live.then(|| existing(&args.cluster)).transpose()?;
        (snapshot, policy)
    };
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let inventory = snapshot.as_ref().map(|snapshot| snapshot.inventory(&policy, (0, 0)));
    let existing = snapshot.as_ref().zip(inventory.as_ref());
    let context = LintContext {
        applications: applications(&args.apps, snapshot.as_ref())?,
        namespace: args.namespace.clone(),
        existing: existing.map(|(snapshot, inventory)| Existing { objects: snapshot.objects().collect(), inventory }),
        remotes: args.paths.first().map(|path| remotes(path)).unwrap_or_default(),
        secret_producers: secret_producers(&policy),
    };
    let (inputs, mut problems) = read(&args.paths);
    let mut linted = lint::lint(&inputs, &context);
    problems.append(&mut linted.problems);
    for problem in &problems {
        let place = problem.location.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        output::aside(&format!("error: {place}{}", problem.sentence()));
    }
    let failed = !problems.is_empty();
    // Usually the command before it in a pipe has failed; a clean bill would hide that.
    anyhow::ensure!(failed || !linted.set.manifests.is_empty(), "there is no manifest to judge");
    if args.order || args.output.of_report().is_none() {
        print_order(args.output, &linted.order)?;
        return Ok(ExitCode::from(if failed { 2 } else { 0 }));
    }
    // Nothing was judged, so there is nothing to say of it but what stands above. Programs find it in their report.
    if linted.set.manifests.is_empty() && args.output == ReportFormat::Table {
        return Ok(ExitCode::from(2));
    }
    let worst = print_findings(args, linted, problems, baseline.as_ref())?;
    Ok(ExitCode::from(match (failed, worst) {
        (true, _) => 2,
        (false, Some(worst)) if worst >= args.fail_on.threshold() => 1,
        _ => 0,
    }))
}

fn existing(cluster: &ClusterArgs) -> anyhow::Result<Snapshot> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let reader = ClusterReader::new(cluster.connect().await?).await?;
        reader.existing().await
    })
}

fn secret_producers(policy: &Policy) -> &[String] {
    &policy.spec.rules.sync_wave.secret_producers
}

fn print_order(format: ReportFormat, order: &Order) -> anyhow::Result<()> {
    match format {
        ReportFormat::Table => Ok(output::line(order.table().trim_end())?),
        ReportFormat::Json => output::structured(output::Format::Json, order),
        ReportFormat::Yaml => output::structured(output::Format::Yaml, order),
        ReportFormat::Dot => Ok(output::line(lint::dot(order).trim_end())?),
        ReportFormat::Mermaid => Ok(output::line(lint::mermaid(order).trim_end())?),
        ReportFormat::Sarif
        | ReportFormat::Junit
        | ReportFormat::Github
        | ReportFormat::Markdown
        | ReportFormat::Html => {
            anyhow::bail!("the order can be printed as table, json, yaml, dot or mermaid")
        }
    }
}

/// Prints what is left of the findings, and returns the worst of them.
fn print_findings(
    args: &Args,
    linted: Linted<'_>,
    problems: Vec<ReportFinding>,
    baseline: Option<&Baseline>,
) -> anyhow::Result<Option<Severity>> {
    let Linted { mut findings, ignored, .. } = linted;
    if let Some(path) = &args.write_baseline {
        fs::write(path, Baseline::of(&findings).text()).with_context(|| format!("cannot write {}", path.display()))?;
        output::aside(&format!("note: {} written", path.display()));
    }
    if ignored > 0 {
        output::aside(&format!("note: findings ignored by annotations: {ignored}"));
    }
    if let Some(baseline) = baseline {
        let (known, gone) = baseline.subtract(&mut findings);
        output::aside(&format!("note: findings known from the baseline: {known}; entries no longer found: {gone}"));
    }
    let format = args.output.of_report().unwrap_or(report::Format::Table);
    let mut rules = vec![Rule::from(&catalog::sync_wave::META)];
    let worst = findings.iter().map(|finding| finding.severity).max();
    // People have read them on standard error; programs read only the report.
    if format != report::Format::Table {
        findings.extend(problems);
    }
    if format != report::Format::Table || findings.iter().any(|finding| finding.rule == lint::UNREADABLE.id) {
        rules.push(lint::UNREADABLE);
    }
    let now = args.now.unwrap_or_else(Timestamp::now);
    output::report(format, &Report::new("lint", now, rules, findings))?;
    Ok(worst)
}

fn read_baseline(path: &Path) -> anyhow::Result<Baseline> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Baseline::parse(&text).with_context(|| format!("{} cannot be used", path.display()))
}

/// The Applications that are named, from files or from the snapshot.
fn applications(names: &[String], snapshot: Option<&Snapshot>) -> anyhow::Result<Vec<Application>> {
    let mut found = Vec::new();
    for name in names {
        // A file may have such a sign in its name.
        let (name, folder) = match name.rsplit_once('=') {
            Some((name, folder)) if !Path::new(&format!("{name}={folder}")).exists() => (name, Some(folder)),
            _ => (name.as_str(), None),
        };
        let before = found.len();
        read_applications(name, snapshot, &mut found)?;
        if let Some(folder) = folder {
            let path = folder.trim_start_matches("./").trim_end_matches('/').to_owned();
            for application in &mut found[before..] {
                application.sources = vec![Folder { path: path.clone(), recurses: true, ..Folder::default() }];
            }
        }
    }
    Ok(found)
}

/// The URLs of the repository that a path lies in, as far as its configuration names them.
fn remotes(path: &Path) -> Vec<String> {
    let Ok(path) = path.canonicalize() else { return Vec::new() };
    let config = path.ancestors().find_map(|folder| fs::read_to_string(folder.join(".git/config")).ok());
    let config = config.unwrap_or_default();
    let lines = config.lines().filter_map(|line| line.trim().strip_prefix("url")?.trim_start().strip_prefix('='));
    lines.map(|url| url.trim().to_owned()).collect()
}

fn read_applications(name: &str, snapshot: Option<&Snapshot>, found: &mut Vec<Application>) -> anyhow::Result<()> {
    let path = Path::new(name);
    if path.exists() {
        let file = crate::snapshot::load(path).context("the Application cannot be read")?;
        let before = found.len();
        for json in file.json_of_kind(ARGO_GROUP, "Application") {
            found.push(Application::read(json).with_context(|| format!("{name} holds no usable Application"))?);
        }
        anyhow::ensure!(found.len() > before, "{name} holds no Application");
        return Ok(());
    }
    let snapshot = snapshot
        .with_context(|| format!("{name} is no file; Applications are looked up by name with --live or --snapshot"))?;
    let json = in_snapshot(snapshot, name)?;
    found.push(Application::read(&json).with_context(|| format!("Application {name} cannot be read"))?);
    Ok(())
}

fn in_snapshot(snapshot: &Snapshot, name: &str) -> anyhow::Result<String> {
    let fits = |namespace: &str, own: &str| match name.split_once('/') {
        Some(parts) => parts == (namespace, own),
        None => name == own,
    };
    let all = snapshot.objects().map(|(object, _)| object);
    let found: Vec<_> = all.filter(|object| object.is_application() && fits(&object.namespace, &object.name)).collect();
    match found.as_slice() {
        [] => anyhow::bail!("there is no file and no Application {name} in the snapshot or the cluster"),
        [only] => snapshot.json_of(only).with_context(|| format!("{only} is not in the snapshot")),
        [first, second, ..] => anyhow::bail!("{name} is {first} and {second}; say which"),
    }
}

/// The texts below the paths, and what of them cannot be read.
fn read(paths: &[PathBuf]) -> (Vec<Input>, Vec<ReportFinding>) {
    let (mut inputs, mut problems) = (Vec::new(), Vec::new());
    let mut left = MAX_BYTES;
    for path in paths {
        let files = if path.as_os_str() == "-" { vec![Ok(path.clone())] } else { crate::snapshot::files(path) };
        if files.is_empty() {
            let text = "there is no .yaml, .yml or .json file in it";
            problems.push(unreadable(&path.display().to_string(), text));
        }
        for file in files {
            let file = match file {
                Ok(file) => file,
                Err(error) => {
                    problems.push(unreadable(&error.path.display().to_string(), &error.problem));
                    continue;
                }
            };
            let name = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
            match read_one(&file, &mut left) {
                Ok(text) => inputs.push(Input { name, text }),
                Err(error) => problems.push(unreadable(&name, &format!("{error:#}"))),
            }
        }
    }
    (inputs, problems)
}

fn unreadable(name: &str, text: &str) -> ReportFinding {
    lint::unreadable(name, Problem { check: Fault::File, text: text.to_owned(), line: 0, column: 0 })
}

fn read_one(path: &Path, left: &mut u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = *left + 1;
    let size = if path.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    }
    .context("it cannot be read")?;
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    anyhow::ensure!(size <= *left, "all files together are larger than {} MiB; lint fewer at once", MAX_BYTES >> 20);
    *left -= size;
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("it is no UTF-8 text"))
}
