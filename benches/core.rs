//! What decoding, indexing and judging cost, as ratios against a baseline measured in the same run.
//!
//! `cargo bench --bench core` runs everything; `-- decode`, `-- index` or `-- review` one part. Memory is the growth of the
//! resident set, so each part that measures it is best run alone.

use std::{
    fs,
    hint::black_box,
    io::{self, Write},
    time::{Duration, Instant},
};

use cascade_guard_core::{
    admission,
    argo::{Application, Clusters},
    facts::Facts,
    inventory::Inventory,
    judge::{Case, judge},
    policy::Policy,
};
use jiff::Timestamp;
use kube::core::{DynamicObject, admission::AdmissionReview};

type Part = fn(&mut dyn Write) -> io::Result<()>;

fn main() -> io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut out = io::stdout().lock();
    let parts: [(&str, Part); 3] = [("decode", decode), ("index", index), ("review", review)];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            part(&mut out)?;
        }
    }
    Ok(())
}

/// The best of several runs: what is left when nothing else disturbs.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<usize>().ok()).unwrap_or_default() * 1024
}

/// An Application with this many objects, 215 bytes each as in a real one.
fn application(number: usize, objects: usize) -> String {
    let entries: Vec<String> = (0..objects)
        .map(|object| {
            format!(
                r#"{{"group":"apps","health":{{"status":"Healthy","message":"as it should be, as far as anybody can tell"}},"kind":"Deployment","name":"deployment-number-{object:05}","namespace":"team-{number:05}","status":"Synced","syncWave":1,"version":"v1"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{{"name":"app-{number}","namespace":"argocd","uid":"u-{number}","finalizers":["resources-finalizer.argocd.argoproj.io"],"managedFields":[{{"manager":"argocd","operation":"Update","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}}}}}}}}}}]}},"spec":{{"project":"default","source":{{"repoURL":"https://git.example.com/org/deploy.git","path":"app-{number}","targetRevision":"main"}},"destination":{{"namespace":"team-{number:05}","server":"https://kubernetes.default.svc"}}}},"status":{{"reconciledAt":"2026-11-29T17:00:00Z","sync":{{"status":"Synced"}},"resources":[{}]}}}}"#,
        entries.join(",")
    )
}

fn deletion_of(application: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"1","kind":{{"group":"argoproj.io","version":"v1alpha1","kind":"Application"}},"resource":{{"group":"argoproj.io","version":"v1alpha1","resource":"applications"}},"name":"app-0","namespace":"argocd","operation":"DELETE","userInfo":{{"username":"alice"}},"object":null,"oldObject":{application},"dryRun":false,"options":null}}}}"#
    )
}

fn decode(out: &mut dyn Write) -> io::Result<()> {
    for objects in [3, 600, 3_000] {
        let body = deletion_of(&application(0, objects));
        let runs = 40_000 / (objects + 10) + 5;
        let ours = best(runs, || {
            let request = admission::decode(body.as_bytes()).ok();
            let application =
                request.as_ref().and_then(|request| request.old_object.as_ref()?.decode::<Application<'_>>().ok());
            application.map(|application| application.status.resources.len())
        });
        let dynamic = best(runs, || serde_json::from_slice::<AdmissionReview<DynamicObject>>(body.as_bytes()).is_ok());
        let value = best(runs, || serde_json::from_slice::<serde_json::Value>(body.as_bytes()).is_ok());
        writeln!(
            out,
            "decode  {:>8} bytes: {ours:>10.1?}   AdmissionReview<DynamicObject> {:.1}x   serde_json::Value {:.1}x",
            body.len(),
            ratio(dynamic, ours),
            ratio(value, ours)
        )?;
    }
    Ok(())
}

fn ratio(other: Duration, ours: Duration) -> f64 {
    other.as_secs_f64() / ours.as_secs_f64()
}

fn empty() -> Inventory {
    Inventory::new((1, 2), "argocd", Clusters::default())
}

fn fill(inventory: &mut Inventory, applications: usize, objects: usize) -> usize {
    let mut bytes = 0;
    for number in 0..applications {
        let text = application(number, objects);
        bytes += text.len();
        if let Ok(application) = serde_json::from_str::<Application<'_>>(&text) {
            inventory.apply_application(&application);
        }
    }
    bytes
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn index(out: &mut dyn Write) -> io::Result<()> {
    for (applications, objects) in [(1_000, 100), (10_000, 100)] {
        let before = resident();
        let mut inventory = empty();
        fill(&mut inventory, applications, objects);
        let claims = inventory.claims().len();
        let ours = (resident() - before) as f64 / claims as f64;
        drop(inventory);
        let before = resident();
        let kept: Vec<DynamicObject> = (0..applications / 10)
            .filter_map(|number| serde_json::from_str(&application(number, objects)).ok())
            .collect();
        let whole = resident().saturating_sub(before) as f64 / (kept.len() * objects) as f64;
        drop(kept);
        writeln!(
            out,
            "index   {claims:>8} claims: {ours:.0} bytes a claim   whole objects in a store {:.1}x",
            whole / ours
        )?;
    }
    let texts: Vec<String> = (0..10_000).map(|number| application(number, 205)).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let ours = best(1, || {
        let mut inventory = empty();
        for application in texts.iter().filter_map(|text| serde_json::from_str::<Application<'_>>(text).ok()) {
            inventory.apply_application(&application);
        }
        inventory.claims().len()
    });
    let ignored =
        best(1, || texts.iter().filter(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()).count());
    writeln!(
        out,
        "index   {:>8} MB of Applications: {ours:.1?}   {:.1}x the time to skip over them",
        bytes / 1_000_000,
        ratio(ours, ignored)
    )
}

fn review(out: &mut dyn Write) -> io::Result<()> {
    let mut inventory = empty();
    fill(&mut inventory, 10_000, 100);
    let large = application(0, 3_000);
    if let Ok(application) = serde_json::from_str::<Application<'_>>(&large) {
        inventory.apply_application(&application);
    }
    inventory.set_ready(true);
    let body = deletion_of(&large);
    let policy = Policy::default();
    let now = Timestamp::UNIX_EPOCH;
    let skip = best(20, || serde_json::from_slice::<serde::de::IgnoredAny>(body.as_bytes()).is_ok());
    let whole = best(20, || {
        let request = admission::decode(body.as_bytes()).ok()?;
        Some(judge(&Case::new(&request, &policy, now), &inventory, &mut Facts::new(), None).decision.allowed())
    });
    writeln!(
        out,
        "review  3000 objects, {} claims: {whole:.1?} with decoding   {:.1}x the time to skip over the body",
        inventory.claims().len(),
        ratio(whole, skip)
    )
}
