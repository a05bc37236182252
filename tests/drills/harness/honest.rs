//! What goes on while an attack runs: somebody deletes a Namespace, somebody changes a label, the kubelet probes.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::{
    guard::{Client, Guard},
    milliseconds,
    world::{BYSTANDER, namespace, review},
};

/// Honest requests, one after another, until they are told to end.
pub struct Meanwhile<'a> {
    guard: &'a Guard,
    stop: Arc<AtomicBool>,
    deletes: JoinHandle<Result<Vec<Duration>>>,
    probes: Vec<JoinHandle<Result<Vec<Duration>>>>,
}

/// How long the honest waited.
pub struct Waited {
    deletes: Vec<Duration>,
    probes: Vec<Duration>,
    peak: u64,
}

impl<'a> Meanwhile<'a> {
    /// Begins.
    pub fn start(guard: &'a Guard) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let deletes = std::thread::spawn({
            let (stop, client) = (stop.clone(), guard.client());
            move || deleting(client?, &stop)
        });
        let probes = ["/livez", "/readyz", "/metrics"]
            .into_iter()
            .map(|path| {
                let (stop, probe) = (stop.clone(), guard.prober(path));
                std::thread::spawn(move || probing(&probe, &stop))
            })
            .collect();
        Self { guard, stop, deletes, probes }
    }

    /// Ends, and says how long each was waited for.
    ///
    /// # Errors
    /// When one of them was not answered, or answered wrongly.
    pub fn end(self) -> Result<Waited> {
        self.stop.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<Result<Vec<Duration>>>| {
            thread.join().map_err(|_| anyhow!("an honest client broke down")).flatten()
        };
        let deletes = join(self.deletes).context("an honest delete")?;
        let mut probes = Vec::new();
        for thread in self.probes {
            probes.extend(join(thread).context("a probe")?);
        }
        Ok(Waited { deletes, probes, peak: self.guard.peak_memory() })
    }
}

/// Deletes a Namespace for which there is no approval: the one right answer is a refusal.
fn deleting(mut client: Client, stop: &AtomicBool) -> Result<Vec<Duration>> {
    let body = review("DELETE", "alice", None, Some(&namespace(BYSTANDER))).to_string();
    until(stop, || {
        let answer = client.post("/validate/namespaces?timeout=10s", &body)?;
        ensure!(answer.verdict() == "refused", "it was answered with `{}`", answer.verdict());
        Ok(())
    })
}

fn probing(probe: &dyn Fn() -> Result<String>, stop: &AtomicBool) -> Result<Vec<Duration>> {
    until(stop, || {
        let status = probe()?;
        ensure!(status.contains(" 200 "), "it was answered with `{status}`");
        Ok(())
    })
}

/// Repeats `work` at least once, and goes on until it is told to stop.
fn until(stop: &AtomicBool, mut work: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let mut waited = Vec::new();
    loop {
        let start = Instant::now();
        work()?;
        waited.push(start.elapsed());
        if stop.load(Ordering::Relaxed) {
            return Ok(waited);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = |times: &[Duration]| milliseconds(times.iter().max().copied().unwrap_or_default());
        write!(
            f,
            "{} honest deletes refused as they should be, the slowest in {}; {} probes, the slowest in {}; peak memory {} MB",
            self.deletes.len(),
            longest(&self.deletes),
            self.probes.len(),
            longest(&self.probes),
            self.peak >> 20
        )
    }
}
