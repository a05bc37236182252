//! Ordinary manifests are left alone, and planted faults are found where they stand.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use cascade_guard_core::{catalog::sync_wave::META, decision::Severity, lint::Input, report::ReportFinding};
use serde_json::Value;

use crate::support::{Beside, files, findings, folder, input};

#[test]
fn ordinary_manifests_are_refused_nothing() {
    let files = files("corpus");
    assert!(files.len() >= 30, "{} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (found, problems) = findings(&[input(&name(&file), text)], &Beside::default());
        let refused: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Deny).collect();
        assert!(refused.is_empty() && problems.is_empty(), "{refused:#?}\n{problems:#?}");
    }
}

/// Checks that need a cluster which answers, or fails to, and one that needs more than a thousand references.
const NOT_PLANTED: [&str; 5] = ["unseen", "not-read", "perhaps-later", "unknown-order", "too-many-needs"];

#[test]
fn object_that_refers_to_more_than_anybody_judges_is_told() {
    let references = |count: usize| {
        (0..count).map(|number| format!("{{secretRef: {{name: s{number}}}}}")).collect::<Vec<_>>().join(", ")
    };
    let job = |count: usize| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j, namespace: shop, annotations: {{argocd.argoproj.io/hook: PreSync}}}}\nspec: {{activeDeadlineSeconds: 1, template: {{spec: {{containers: [{{name: c, envFrom: [{}]}}]}}}}}}\n",
            references(count)
        )
    };
    let said = |count: usize| {
        let (found, problems) = findings(&[input("a.yaml", job(count))], &Beside::default());
        assert!(problems.is_empty(), "{problems:#?}");
        found.iter().map(|finding| finding.check.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(said(1000), [""; 0]);
    assert_eq!(said(1001), ["too-many-needs"]);
}

#[test]
fn every_kind_of_fault_is_found_at_its_line() {
    let mut planted = BTreeSet::from(NOT_PLANTED.map(str::to_owned));
    for file in files("faults") {
        let text = fs::read_to_string(&file).unwrap();
        let (found, problems) = findings(&[input(&name(&file), text.clone())], &beside(&file));
        assert!(problems.is_empty(), "{problems:#?}");
        let mut found: Vec<(u32, String)> =
            found.iter().map(|finding| (finding.location.as_ref().unwrap().line, finding.check.to_string())).collect();
        found.sort();
        let wanted = wanted(&text);
        assert_eq!(found, wanted, "{}", file.display());
        planted.extend(wanted.into_iter().map(|(_, check)| check));
    }
    let all: BTreeSet<String> = META.checks.iter().map(|check| check.id.to_owned()).collect();
    assert_eq!(planted, all);
}

#[test]
fn fix_of_every_fault_mends_it() {
    let mut mended = BTreeSet::new();
    for file in files("faults") {
        let text = fs::read_to_string(&file).unwrap();
        let (beside, name) = (beside(&file), name(&file));
        // The place of a finding is where its text is; here everything is written anew.
        let objects = objects(&text);
        let before = findings(&[rewritten(&name, &objects)], &beside).0;
        for finding in &before {
            let Some(fix) = &finding.fix else { continue };
            let mut objects = objects.clone();
            let object = objects.iter_mut().find(|object| is(object, finding)).unwrap();
            json_patch::patch(object, &fix.patch).unwrap();
            let after = findings(&[rewritten(&name, &objects)], &beside).0;
            let left = after.iter().any(|other| other.fingerprint() == finding.fingerprint());
            assert!(!left, "{} is not mended by {fix:#?}", finding.fingerprint());
            let worse = after.iter().find(|other| {
                other.severity == Severity::Deny
                    && before.iter().all(|known| known.fingerprint() != other.fingerprint())
            });
            assert!(worse.is_none(), "{fix:#?} brings {worse:#?}");
            mended.insert(finding.check.to_string());
        }
    }
    assert!(mended.len() >= 12, "{mended:?}");
}

#[test]
fn wave_that_is_no_text_has_one_fix_or_none() {
    let fixes = |wave: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    argocd.argoproj.io/hook: PreSync\n    argocd.argoproj.io/sync-wave: {wave}\n"
        );
        let (found, problems) = findings(&[input("a.yaml", text)], &Beside::default());
        assert!(problems.is_empty(), "{problems:#?}");
        assert_eq!(found.len(), 1, "{wave}: {found:#?}");
        assert!(found[0].sentence().contains(&format!("sync-wave: {wave} is no text")), "{}", found[0].sentence());
        found[0].fix.as_ref().map(|fix| serde_json::to_value(&fix.patch).unwrap()[0]["value"].clone())
    };
    for (wave, fix) in [("5", "5"), ("-3", "-3"), ("010", "010"), ("1.0", "1"), ("1e3", "1000"), ("1.5", "2")] {
        assert_eq!(fixes(wave), Some(Value::from(fix)), "{wave}");
    }
    for wave in ["yes", "true", "0x10", "[1]"] {
        assert_eq!(fixes(wave), None, "{wave}");
    }
    // In quotes it would still be no hook type.
    let text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    argocd.argoproj.io/hook: yes\n";
    let found = findings(&[input("a.yaml", text)], &Beside::default()).0;
    assert!(found.iter().any(|finding| finding.check == "annotation-no-text"), "{found:#?}");
    assert!(found.iter().all(|finding| finding.fix.is_none()), "{found:#?}");
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_string_lossy().into_owned()
}

fn beside(file: &Path) -> Beside {
    let read = |what: &str| {
        let path: PathBuf = folder("faults/with").join(format!("{}.{what}.yaml", file.file_stem()?.to_str()?));
        fs::read_to_string(path).ok()
    };
    Beside { applications: read("app"), snapshot: read("snapshot"), namespace: "" }
}

/// The lines that carry `# finds: check, check`.
fn wanted(text: &str) -> Vec<(u32, String)> {
    let mut wanted = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let checks = line.split_once("# finds: ").map_or("", |(_, checks)| checks);
        wanted.extend(checks.split(", ").filter(|check| !check.is_empty()).map(|check| (number, check.to_owned())));
    }
    wanted.sort();
    wanted
}

fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let items = |document: &Value| document.get("items").and_then(Value::as_array).cloned();
    documents.into_iter().flat_map(|document| items(&document).unwrap_or_else(|| vec![document])).collect()
}

fn rewritten(name: &str, objects: &[Value]) -> Input {
    let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
    input(name, documents.join("\n---\n"))
}

fn is(object: &Value, finding: &ReportFinding) -> bool {
    let meta = &object["metadata"];
    let generated = || meta["generateName"].as_str().map(|name| format!("{name}*"));
    let name = meta["name"].as_str().map(str::to_owned).or_else(generated);
    object["kind"] == finding.object.kind.kind && name.as_deref() == Some(&finding.object.name)
}

#[test]
fn every_check_is_on_the_page_of_the_rule() {
    let page = include_str!("../../docs/rules/sync-wave.md");
    let missing: Vec<_> = META.checks.iter().filter(|check| !page.contains(&format!("`{}`", check.id))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
