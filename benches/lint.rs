//! What linting 5,000 manifests of 50 MB costs, beside only parsing their YAML.
//!
//! `cargo bench --bench lint`. The peak of memory is that of the whole process, the text included.

use std::{
    fmt::Write as _,
    fs,
    hint::black_box,
    io::{self, Write},
    time::{Duration, Instant},
};

use cascade_guard_core::{
    decision::Severity,
    lint::{Input, LintContext, documents, lint},
};

const MANIFESTS: usize = 5_000;
const BYTES: usize = 50 << 20;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let inputs = [Input { name: "stream".to_owned(), text: stream() }];
    let text = &inputs[0].text;
    let count = documents(text).count();
    writeln!(out, "{count} documents, {:.1} MiB; peak of memory so far {:.0} MiB", mib(text.len()), mib(peak()))?;
    let context = LintContext::default();
    let linted = best(3, || {
        let linted = lint(&inputs, &context);
        assert!(linted.problems.is_empty(), "{:?}", linted.problems);
        linted.findings.iter().filter(|finding| finding.severity == Severity::Deny).count()
    });
    writeln!(out, "lint        {linted}  peak of memory {:.0} MiB", mib(peak()))?;
    let parsed = best(3, || documents(text).filter(|document| document.parse().is_ok()).count());
    writeln!(out, "parse only  {parsed}")?;
    writeln!(out, "ratio       {:.2}", linted.processor.as_secs_f64() / parsed.processor.as_secs_f64())
}

/// What a run took: by the clock on the wall, and of the processor. On a machine that others use too only the second says
/// anything about the program.
#[derive(Clone, Copy)]
struct Taken {
    wall: Duration,
    processor: Duration,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6.2?} wall, {:>6.2?} processor", self.wall, self.processor)
    }
}

fn mib(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) / 1024.0
}

/// The best of several runs: what is left when nothing else disturbs.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Taken {
    let mut best = Taken { wall: Duration::MAX, processor: Duration::MAX };
    for _ in 0..runs {
        let (start, spent) = (Instant::now(), processor());
        black_box(work());
        best.wall = best.wall.min(start.elapsed());
        best.processor = best.processor.min(processor().saturating_sub(spent));
    }
    best
}

/// How long the main thread had the processor; there is no other.
fn processor() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default())
}

/// The most memory that the process ever held.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<usize>().ok()).unwrap_or_default() * 1024
}

/// Teams with Deployments, Secrets, ConfigMaps and hooks; one hook in a hundred needs what comes too late.
fn stream() -> String {
    let mut text = String::with_capacity(BYTES + (1 << 20));
    for number in 0..MANIFESTS {
        let (team, kind) = (number / 5, number % 5);
        let start = text.len();
        let _ = match kind {
            0 => write!(
                text,
                "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: team-{team}\nspec:\n  template:\n    spec:\n      serviceAccountName: web\n      containers:\n      - name: web\n        image: registry.example.com/web:1\n        envFrom:\n        - secretRef: {{name: db}}\n        env:\n"
            ),
            1 => write!(
                text,
                "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: team-{team}\n  annotations:\n    argocd.argoproj.io/sync-wave: \"-1\"\nstringData:\n"
            ),
            2 => write!(
                text,
                "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: web\n  namespace: team-{team}\n  annotations:\n"
            ),
            3 => write!(
                text,
                "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  namespace: team-{team}\n  annotations:\n    argocd.argoproj.io/hook: {}\nspec:\n  activeDeadlineSeconds: 300\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: main\n        image: registry.example.com/migrate:1\n        envFrom:\n        - secretRef: {{name: db}}\n        env:\n",
                if team % 100 == 0 { "PreSync" } else { "PostSync" }
            ),
            _ => write!(
                text,
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: team-{team}\ndata:\n"
            ),
        };
        let env = matches!(kind, 0 | 3);
        let mut line = 0;
        while text.len() - start < BYTES / MANIFESTS {
            let _ = if env {
                write!(
                    text,
                    "        - name: SETTING_NUMBER_{line}\n          value: \"of team {team}, as long as values are\"\n"
                )
            } else {
                writeln!(text, "    setting-number-{line}: \"of team {team}, as long as values usually are\"")
            };
            line += 1;
        }
    }
    text
}
