//! Every output, as it is.

use std::{env, fs, path::Path, process::Command};

use quick_junit::Report as Junit;
use serde_json::Value;

use crate::support::{Beside, findings, folder, input, run};

/// Runs `lint` over the example and returns what it printed, without what changes from version to version.
fn printed(arguments: &[&str], code: i32) -> String {
    let all: Vec<&str> =
        ["lint", "shop.yaml", "-n", "shop", "--now", "2026-11-29T12:00:00Z"].iter().chain(arguments).copied().collect();
    let said = run(&folder("outputs"), &all, "");
    assert_eq!(said.code, code, "{}", said.err);
    said.out.replace(concat!("\"", env!("CARGO_PKG_VERSION"), "\""), "\"VERSION\"")
}

#[test]
fn findings_in_every_format() {
    insta::assert_snapshot!("table", printed(&[], 1));
    insta::assert_snapshot!("json", printed(&["-o", "json"], 1));
    insta::assert_snapshot!("yaml", printed(&["-o", "yaml"], 1));
    insta::assert_snapshot!("github", printed(&["-o", "github"], 1));
}

/// Output of a program of the toolchain; the variable names another than the one on the path.
fn toolchain(variable: &str, program: &str, arguments: &[&str]) -> String {
    let program = env::var_os(variable).unwrap_or_else(|| program.into());
    let said = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

/// The schema of SARIF 2.1.0 as OASIS publishes it: the library by which reports are written is made from it, and carries it.
fn sarif_schema() -> Value {
    // Without a platform Cargo would want the packages of all of them.
    let versions = toolchain("RUSTC", "rustc", &["-vV"]);
    let host = versions.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let asked = ["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&toolchain("CARGO", "cargo", &asked)).unwrap();
    let library = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == "serde-sarif");
    let manifest = Path::new(library.unwrap()["manifest_path"].as_str().unwrap());
    let text = fs::read_to_string(manifest.with_file_name("src").join("schema.json")).unwrap();
    // Two patterns have a bracket too many as they are published, and are no regular expressions.
    serde_json::from_str(&text.replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}?$")).unwrap()
}

#[test]
fn sarif_fits_its_schema_and_carries_the_help_of_its_rules() {
    let text = printed(&["-o", "sarif", "broken.yaml"], 2);
    let mut log: Value = serde_json::from_str(&text).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&sarif_schema()).unwrap();
    let faults: Vec<String> =
        schema.iter_errors(&log).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let mut without_version = log.clone();
    without_version.as_object_mut().unwrap().remove("version");
    assert!(!schema.is_valid(&without_version), "the schema takes anything");
    for rule in log["runs"][0]["tool"]["driver"]["rules"].as_array_mut().unwrap() {
        assert!(rule["help"]["text"].is_string() && rule["help"]["markdown"].as_str().unwrap().starts_with("# "));
        rule["help"]["markdown"] = "the page".into();
    }
    insta::assert_snapshot!("sarif", serde_json::to_string_pretty(&log).unwrap());
}

#[test]
fn junit_fits_its_schema_and_reads_back() {
    let text = printed(&["-o", "junit", "broken.yaml"], 2);
    let scratch = tempfile::tempdir().unwrap();
    let fits = |text: &str| {
        let report = scratch.path().join("report.xml");
        fs::write(&report, text).unwrap();
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/junit.xsd");
        let said = Command::new("xmllint").args(["--noout", "--nonet", "--schema"]).arg(schema).arg(report).output();
        let said =
            said.unwrap_or_else(|error| panic!("no xmllint ({error}): run `make tools` as root, which installs it"));
        (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    let (valid, faults) = fits(&text);
    assert!(valid, "{faults}");
    assert!(!fits(&text.replace("<testcase name", "<testcase title")).0, "the schema takes anything");
    let report = Junit::deserialize_from_str(&text).unwrap();
    assert_eq!((report.tests, report.failures), (4, 3));
    insta::assert_snapshot!("junit", text);
}

#[test]
fn order_in_every_format() {
    insta::assert_snapshot!("order", printed(&["--order"], 0));
    insta::assert_snapshot!("order-json", printed(&["--order", "-o", "json"], 0));
    insta::assert_snapshot!("order-yaml", printed(&["--order", "-o", "yaml"], 0));
    insta::assert_snapshot!("dot", printed(&["-o", "dot"], 0));
    insta::assert_snapshot!("mermaid", printed(&["-o", "mermaid"], 0));
}

#[test]
fn order_is_no_report() {
    let said = run(&folder("outputs"), &["lint", "shop.yaml", "--order", "-o", "sarif"], "");
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("table, json, yaml, dot or mermaid"), "{}", said.err);
}

#[test]
fn baseline_leaves_only_what_is_new() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let lint =
        |arguments: &[&str]| run(scratch.path(), &[&["lint", "shop.yaml", "-n", "shop"], arguments].concat(), "");
    let text = fs::read_to_string(folder("outputs").join("shop.yaml")).unwrap();
    fs::write(at("shop.yaml"), &text).unwrap();
    let written = lint(&["--write-baseline", "known.json"]);
    assert_eq!(written.code, 1);
    assert!(written.err.contains("note: known.json written"), "{}", written.err);
    let again = lint(&["--baseline", "known.json", "--fail-on", "warn"]);
    assert_eq!((again.code, again.out.trim()), (0, "nothing found"));
    assert!(again.err.contains("known from the baseline: 3; entries no longer found: 0"), "{}", again.err);
    // Moved about, one mended, one new.
    let changed = text.replace("hook: presync", "hook: PreSync")
        + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {argocd.argoproj.io/sync-wave: x}}\n";
    fs::write(at("shop.yaml"), format!("# moved\n{changed}")).unwrap();
    let changed = lint(&["--baseline", "known.json", "--fail-on", "warn"]);
    assert_eq!(changed.code, 1);
    assert!(changed.out.contains("ConfigMap shop/c") && !changed.out.contains("Job shop/migrate"), "{}", changed.out);
    assert!(changed.err.contains("entries no longer found: 1"), "{}", changed.err);
    fs::write(at("known.json"), "{}").unwrap();
    assert_eq!(lint(&["--baseline", "known.json"]).code, 2);
}

#[test]
fn exit_code_follows_the_least_severity_that_fails() {
    let warning =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {argocd.argoproj.io/sync-wave: x}}\n";
    let code = |arguments: &[&str]| run(&folder("outputs"), arguments, warning).code;
    assert_eq!(code(&["lint", "-"]), 0);
    assert_eq!(code(&["lint", "-", "--fail-on", "warn"]), 1);
    assert_eq!(code(&["lint"]), 2);
}

#[test]
fn application_is_taken_from_a_file_or_from_the_snapshot() {
    let scratch = tempfile::tempdir().unwrap();
    let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec: {destination: {namespace: from-app}}\n";
    fs::write(scratch.path().join("app.yaml"), app).unwrap();
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    let order = |arguments: &[&str]| run(scratch.path(), &[&["lint", "-", "--order"], arguments].concat(), manifest);
    assert!(order(&["--app", "app.yaml"]).out.contains("from-app/c"));
    assert!(order(&["--app", "web", "--snapshot", "app.yaml"]).out.contains("from-app/c"));
    assert!(order(&["--app", "argocd/web", "--snapshot", "app.yaml"]).out.contains("from-app/c"));
    assert!(order(&["-n", "mine"]).out.contains("mine/c"));
    let missing = order(&["--app", "other", "--snapshot", "app.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("no Application other in the snapshot"), "{}", missing.err);
}

#[test]
fn applications_are_judged_apart_and_know_of_each_other() {
    let app = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec: {{destination: {{namespace: shop}}}}\n---\n"
        )
    };
    let beside = Beside { applications: Some(app("web") + &app("base")), ..Beside::default() };
    let web = "apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {activeDeadlineSeconds: 1, template: {spec: {containers: [{name: main, envFrom: [{secretRef: {name: db}}]}]}}}
---
apiVersion: example.com/v1
kind: Cart
metadata: {name: first}
";
    let base = "apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: db}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Cart}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: by-its-own-word
  annotations: {argocd.argoproj.io/tracking-id: 'web:/ConfigMap:shop/by-its-own-word'}
";
    let inputs = [input("out/web.yaml", web), input("out/base/all.yaml", base)];
    let (found, problems) = findings(&inputs, &beside);
    assert!(problems.is_empty(), "{problems:#?}");
    let found: Vec<String> = found
        .iter()
        .map(|finding| format!("{} {}: {}", finding.check, finding.object, finding.regarding.as_ref().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            "other-application Job shop/migrate: Namespace shop",
            "other-application Job shop/migrate: Secret shop/db",
            "other-application Cart shop/first: CustomResourceDefinition carts.example.com",
        ]
    );
    // The same manifests as one Application are an order that cannot work.
    let (found, _) = findings(&inputs, &Beside { namespace: "shop", ..Beside::default() });
    assert!(found.iter().any(|finding| finding.check == "depends-on-later"), "{found:#?}");
}

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {activeDeadlineSeconds: 1, template: {spec: {containers: [{name: main, envFrom: [{secretRef: {name: db}}]}]}}}
";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n";

fn tree(repo: &str, directory: &str) -> Vec<cascade_guard_core::lint::Input> {
    let app = |name: &str| {
        format!(
            "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  source: {{repoURL: '{repo}', path: deploy/{name}{directory}}}\n  destination: {{namespace: {name}-ns}}\n"
        )
    };
    vec![
        input("repo/apps/all.yaml", app("web") + &app("db")),
        input("repo/deploy/web/job.yaml", JOB),
        input("repo/deploy/db/sub/secret.yaml", SECRET),
    ]
}

#[test]
fn applications_among_the_manifests_have_the_folders_of_their_sources() {
    // The Secret is in the folder of another Application, or in none that it reads.
    let (found, _) = findings(&tree("https://git.example.com/x", ""), &Beside::default());
    assert!(found.is_empty(), "{found:#?}");
    let (found, _) = findings(&tree("https://git.example.com/x", ", directory: {recurse: true}"), &Beside::default());
    assert!(found.is_empty(), "{found:#?}");
    // In one folder they are one Application's.
    let mut inputs = tree("https://git.example.com/x", "");
    inputs[2].name = "repo/deploy/web/secret.yaml".to_owned();
    let (found, _) = findings(&inputs, &Beside::default());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].check == "depends-on-later" && found[0].object.namespace == "web-ns", "{found:#?}");
}

#[test]
fn folder_of_an_application_may_be_said() {
    let scratch = tempfile::tempdir().unwrap();
    let app = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec: {{project: p, destination: {{namespace: {name}-ns}}, syncPolicy: {{syncOptions: [ServerSideApply=true, ApplyOutOfSyncOnly=true]}}}}\n"
        )
    };
    for (name, text) in [
        ("a.yaml", app("a")),
        ("b.yaml", app("b")),
        ("out/one/x.yaml", JOB.to_owned()),
        ("out/two/y.yaml", SECRET.to_owned()),
    ] {
        fs::create_dir_all(scratch.path().join(name).parent().unwrap()).unwrap();
        fs::write(scratch.path().join(name), text).unwrap();
    }
    let said =
        run(scratch.path(), &["lint", "out", "--app", "a.yaml=out/one", "--app", "b.yaml=out/two", "--order"], "");
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(
        said.out.contains(
            "Application argocd/a (project p, namespace a-ns, ServerSideApply=true, ApplyOutOfSyncOnly=true)"
        ),
        "{}",
        said.out
    );
    assert!(said.out.contains("a-ns/migrate") && said.out.contains("b-ns/db"), "{}", said.out);
}

#[test]
fn application_of_another_repository_has_no_folder_here() {
    let scratch = tempfile::tempdir().unwrap();
    for input in tree("https://git.example.com/other", "") {
        let path = scratch.path().join(&input.name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, input.text).unwrap();
    }
    let order = || run(scratch.path(), &["lint", "repo", "--order"], "").out;
    assert!(order().contains("web-ns/migrate"), "{}", order());
    fs::create_dir_all(scratch.path().join("repo/.git")).unwrap();
    fs::write(
        scratch.path().join("repo/.git/config"),
        "[remote \"origin\"]\n\turl = git@git.example.com:org/repo.git\n",
    )
    .unwrap();
    assert!(!order().contains("web-ns/migrate"), "{}", order());
}
