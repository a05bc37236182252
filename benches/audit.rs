//! What `audit` of a large snapshot costs, beside only skipping over the JSON: 10,000 Applications of 205 objects each.
//!
//! `cargo bench --bench audit`. The program runs as a process of its own, so the peak of memory is that of the audit alone;
//! the snapshot, half a gigabyte, is written to Cargo's folder for temporary files and removed.

use std::{
    fs,
    hint::black_box,
    io::{self, BufWriter, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const APPLICATIONS: usize = 10_000;
const OBJECTS: usize = 205;

fn main() -> io::Result<()> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit-bench.json");
    let outcome = run(&file);
    fs::remove_file(&file)?;
    outcome
}

fn run(file: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write_snapshot(file)?;
    let bytes = fs::metadata(file)?.len();
    writeln!(out, "{APPLICATIONS} Applications, {} MB", bytes / 1_000_000)?;
    let audit = audit(file)?;
    writeln!(
        out,
        "audit       {:>6.2?} wall, {:>6.2?} processor  peak of memory {} MiB",
        audit.wall, audit.processor, audit.peak_mib
    )?;
    let start = Instant::now();
    let text = fs::read_to_string(file)?;
    black_box(serde_json::from_str::<serde::de::IgnoredAny>(&text)?);
    let skip = start.elapsed();
    writeln!(out, "skip only   {skip:>6.2?} wall")?;
    writeln!(out, "ratio       {:.2}", audit.wall.as_secs_f64() / skip.as_secs_f64())
}

struct Cost {
    wall: Duration,
    processor: Duration,
    peak_mib: usize,
}

/// Runs the audit and watches it from outside.
fn audit(snapshot: &Path) -> io::Result<Cost> {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cascade-guard"))
        .args(["audit", "-o", "json", "--snapshot"])
        .arg(snapshot)
        .stdout(Stdio::null())
        .spawn()?;
    let proc = Path::new("/proc").join(child.id().to_string());
    let mut cost = Cost { wall: Duration::ZERO, processor: Duration::ZERO, peak_mib: 0 };
    // A process that has ended tells its times until somebody waits for it, its memory only before.
    loop {
        let times = fs::read_to_string(proc.join("stat"))?;
        let fields: Vec<&str> = times.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
            // utime and stime (proc_pid_stat(5)), in hundredths of a second.
            cost.processor = Duration::from_millis(10 * (ticks(11) + ticks(12)));
            break;
        }
        let status = fs::read_to_string(proc.join("status"))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next()?.parse().ok());
        cost.peak_mib = peak.map_or(cost.peak_mib, |kib: usize| kib / 1024);
        thread::sleep(Duration::from_millis(20));
    }
    cost.wall = start.elapsed();
    let code = child.wait()?.code();
    // 1: the Namespaces are not approved, and so their deletes would be refused.
    assert_eq!(code, Some(1), "the audit failed");
    Ok(cost)
}

/// Every Application has a Namespace of its own; every hundredth shares a Role with the one before.
fn write_snapshot(file: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(file)?);
    write!(out, r#"{{"apiVersion":"v1","kind":"List","items":["#)?;
    for number in 0..APPLICATIONS {
        let comma = if number == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"team-{number:05}","uid":"n-{number}"}}}},{{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{{"name":"app-{number}","namespace":"argocd","uid":"u-{number}","finalizers":["resources-finalizer.argocd.argoproj.io"]}},"spec":{{"project":"default","source":{{"repoURL":"https://git.example.com/org/deploy.git","path":"app-{number}","targetRevision":"main"}},"destination":{{"namespace":"team-{number:05}","server":"https://kubernetes.default.svc"}}}},"status":{{"reconciledAt":"2026-11-29T17:00:00Z","sync":{{"status":"Synced"}},"resources":[{{"group":"rbac.authorization.k8s.io","kind":"Role","name":"leader","namespace":"team-{:05}","status":"Synced","version":"v1"}}"#,
            number - usize::from(number % 100 == 99)
        )?;
        for object in 1..OBJECTS {
            write!(
                out,
                r#",{{"group":"apps","health":{{"status":"Healthy","message":"as it should be, as far as anybody can tell"}},"kind":"Deployment","name":"deployment-number-{object:05}","namespace":"team-{number:05}","status":"Synced","syncWave":1,"version":"v1"}}"#
            )?;
        }
        write!(out, "]}}}}")?;
    }
    write!(out, "]}}")?;
    out.flush()
}
