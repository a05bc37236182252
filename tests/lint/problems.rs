//! What cannot be read is said in one line each, and everything else is judged all the same.

use std::fs;

use crate::support::{Said, run};

/// A hook that can never work.
const BAD: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {argocd.argoproj.io/hook: presync}}\nspec: {activeDeadlineSeconds: 1}\n";

/// Lints one document before a good one, both on standard input.
fn lint(document: &str) -> Said {
    run(&std::env::temp_dir(), &["lint", "-"], &format!("{document}\n---\n{BAD}"))
}

fn said(document: &str) -> String {
    let said = lint(document);
    assert_eq!(said.code, 2, "{}", said.err);
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines.len(), 1, "{}", said.err);
    assert!(lines[0].len() < 300, "{}", said.err);
    assert!(said.out.contains("error[sync-wave/unknown-hook] Job migrate"), "{}", said.out);
    lines[0].to_owned()
}

#[test]
fn each_problem_is_one_line_and_the_rest_is_judged() {
    let starts = |document: &str, line: &str| {
        let said = said(document);
        assert!(said.starts_with(line), "{said}");
    };
    starts("a: b: c", "error: stdin:1:5: it is no YAML: mapping values are not allowed");
    starts("kind: Job\nname: {{ .Values.name }}", "error: stdin:2:7: a template that was not rendered");
    starts("{{- if .Values.on }}\nkind: Job\n{{- end }}", "error: stdin:1:1: a template that was not rendered");
    starts("apiVersion: v1\nkind: Job\nmetadata:\n  name: \"{{ .Values.name }}\"", "error: stdin:4:10: a template");
    let wave = "apiVersion: v1\nkind: Job\nmetadata:\n  name: a\n  annotations:\n    argocd.argoproj.io/sync-wave: ";
    starts(&format!("{wave}\"{{{{ .Values.wave }}}}\""), "error: stdin:6:36: a template that was not rendered");
    starts(&format!("{wave}'1{{{{ .Values.zeros }}}}'"), "error: stdin:5:3: a template that was not rendered");
    starts("kind: A\nmetadata: &a\n  x: *a", "error: stdin:3:6: an alias stands inside the very part that it repeats");
    starts("a: .nan", "error: stdin:1:4: Argo CD makes no JSON of it: `.nan` is a number that JSON cannot hold");
    starts("a: !!int x", "error: stdin:1:10: Argo CD makes no JSON of it: `x` is tagged !!int and is a text");
    starts("~: 1", "error: stdin:1:1: Argo CD makes no JSON of it: Argo CD cannot use `~` as a key");
    starts("replicaCount: 1", "error: stdin:1:1: it is no Kubernetes object: it has no kind");
    starts("just a text", "error: stdin:1:1: it is no Kubernetes object");
    starts("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "error: stdin:3:1: this ConfigMap has no name");
    starts(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5, labels: 7}",
        "error: stdin:3:1: the metadata of this ConfigMap cannot be read",
    );
    starts(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: [a]",
        "error: stdin:3:1: the metadata of this ConfigMap is a list",
    );
    starts(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []",
        "error: stdin:1:1: a Kustomization is no manifest; lint what kustomize build prints",
    );
}

#[test]
fn sources_of_manifests_are_called_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("kustomization.yaml", "resources: [a.yaml]\n", "a kustomization is no manifest; lint what kustomize build"),
        ("values.yaml", "replicaCount: 1\n", "values of a chart are no manifest; lint what helm template prints"),
        ("values-prod.yaml", "image: {tag: 1}\n", "values of a chart are no manifest"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n", "the head of a chart is no manifest"),
        (
            "templates/job.yaml",
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\n{{ include \"labels\" . | indent 2 }}\n",
            "a template of the chart web that was not rendered; lint what helm template web prints",
        ),
        ("templates/b.yaml", "{{- if .Values.b }}\nkind: Job\n{{- end }}\n", "a template of the chart web"),
    ];
    fs::create_dir_all(folder.path().join("web/templates")).unwrap();
    for (name, text, _) in &files {
        fs::write(folder.path().join("web").join(name), text).unwrap();
    }
    fs::write(folder.path().join("web/good.yaml"), BAD).unwrap();
    // What Argo CD is told to leave out is left out.
    fs::write(folder.path().join("web/skipped.yaml"), "# +argocd:skip-file-rendering\na: [\n").unwrap();
    let said = run(folder.path(), &["lint", "web"], "");
    assert_eq!(said.code, 2);
    assert_eq!(said.err.lines().count(), files.len(), "{}", said.err);
    for (name, _, wanted) in files {
        let line = said.err.lines().find(|line| line.starts_with(&format!("error: web/{name}:"))).unwrap();
        assert!(line.contains(wanted), "{line}");
    }
    assert!(said.out.contains("unknown-hook"), "{}", said.out);
}

#[test]
fn key_that_is_there_twice_counts_as_argo_cd_counts_it() {
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: 1\n  a: 2\n";
    let said = run(&std::env::temp_dir(), &["lint", "-"], twice);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("stdin:6:3: warning[manifest/duplicate-key]"), "{}", said.out);
    assert!(said.out.contains("the key `a` is there twice; Argo CD takes the last one"), "{}", said.out);
    // The last annotation is the one that is judged.
    let hook = BAD.replace(
        "argocd.argoproj.io/hook: presync",
        "argocd.argoproj.io/hook: presync, argocd.argoproj.io/hook: PreSync",
    );
    let said = run(&std::env::temp_dir(), &["lint", "-"], &hook);
    assert_eq!(said.code, 0, "{}", said.out);
}

#[test]
fn numbers_and_words_are_read_as_argo_cd_reads_them() {
    let job = |field: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: seed, namespace: shop, annotations: {{argocd.argoproj.io/hook: PreSync}}}}\n\
             spec:\n  activeDeadlineSeconds: 6e1\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{{name: c, \
             image: x, envFrom: [{{secretRef: {{name: db}}}}]}}]\n      volumes: [{field}]\n---\n\
             apiVersion: v1\nkind: Secret\nmetadata: {{name: db, namespace: shop}}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: scripts, namespace: shop}}\n"
        )
    };
    let mode = |mode: &str| format!("{{name: s, configMap: {{name: scripts, defaultMode: {mode}}}}}");
    for written in ["0755", "0o755", "493", "1e2", "0b111", "1_000", "\"0755\"", "yes", "2001-12-14", "[]", "~"] {
        let said = run(&std::env::temp_dir(), &["lint", "-"], &job(&mode(written)));
        assert_eq!(said.code, 1, "{written}: {}{}", said.out, said.err);
        assert_eq!(said.out.matches("error[sync-wave/depends-on-later]").count(), 2, "{written}: {}", said.out);
        assert!(!said.out.contains("unreadable"), "{written}: {}", said.out);
    }
    // `optional: yes` is a boolean: the hook can do without.
    for written in ["yes", "on", "True", "y"] {
        let said = run(
            &std::env::temp_dir(),
            &["lint", "-"],
            &job(&format!("{{name: s, configMap: {{name: scripts, optional: {written}}}}}")),
        );
        assert_eq!(said.out.matches("error[sync-wave/depends-on-later]").count(), 1, "{written}: {}", said.out);
    }
    // Merged parts count like written ones.
    let merged = job("&v {name: s}, {<<: *v, configMap: {name: scripts}}");
    let said = run(&std::env::temp_dir(), &["lint", "-"], &merged);
    assert_eq!(said.out.matches("error[sync-wave/depends-on-later]").count(), 2, "{}", said.out);
}

#[test]
fn anchors_that_explode_are_stopped() {
    let levels =
        (1..12).map(|level| format!("l{level}: &l{level} [{}]\n", vec![format!("*l{}", level - 1); 9].join(", ")));
    let bomb = format!("l0: &l0 [{}]\n{}", ["x"; 9].join(", "), levels.collect::<String>());
    assert!(said(&bomb).contains("grow out of all proportion"));
}

#[test]
fn nesting_without_end_is_stopped() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(said(&deep).starts_with("error: stdin:"));
    }
    let deep = format!("a: {}1{}", "[".repeat(150), "]".repeat(150));
    assert!(said(&deep).contains("grow out of all proportion"));
}

#[test]
fn large_stream_is_read() {
    let filler = "x".repeat(100);
    let document = |number: usize| {
        let lines = (0..90).map(|line| format!("  line-{line}: {filler}")).collect::<Vec<_>>().join("\n");
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}, namespace: shop}}\ndata:\n{lines}\n---\n"
        )
    };
    // Ten megabytes keep an unoptimized test short; the benchmark reads fifty.
    let stream: String = (0..1_100).map(document).collect();
    assert!(stream.len() > 10 << 20);
    let said = run(&std::env::temp_dir(), &["lint", "-"], &format!("{stream}{BAD}"));
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(said.out.contains("unknown-hook"), "{}", said.out);
}

#[test]
fn file_that_cannot_be_read_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.yaml"), BAD).unwrap();
    fs::write(folder.path().join("bytes.yaml"), [0x61, 0xff, 0xfe]).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let said = run(folder.path(), &["lint", "good.yaml", "bytes.yaml", "empty", "gone.yaml"], "");
    assert_eq!(said.code, 2);
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines.len(), 3, "{}", said.err);
    assert!(lines[0].starts_with("error: bytes.yaml: it is no UTF-8 text"), "{}", said.err);
    assert!(lines[1].starts_with("error: empty: there is no .yaml"), "{}", said.err);
    assert!(lines[2].starts_with("error: gone.yaml: "), "{}", said.err);
    assert!(said.out.contains("unknown-hook"));
}

#[test]
fn nothing_that_could_be_read_is_no_clean_bill() {
    let said = run(&std::env::temp_dir(), &["lint", "no-such-file"], "");
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let report = run(&std::env::temp_dir(), &["lint", "no-such-file", "-o", "json"], "");
    assert!(report.code == 2 && report.out.contains("unreadable-file"), "{}", report.out);
}

#[cfg(unix)]
#[test]
fn link_to_nowhere_and_pipe_do_not_hide_the_rest_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("all").join(name);
    fs::create_dir(folder.path().join("all")).unwrap();
    fs::write(at("good.yaml"), BAD).unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling.yaml")).unwrap();
    std::os::unix::fs::symlink("round.yml", at("round.yml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(at("pipe.yaml")).status().unwrap();
    assert!(made.success());
    let said = run(folder.path(), &["lint", "all"], "");
    assert_eq!(said.code, 2);
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines.len(), 3, "{}", said.err);
    assert_eq!(lines[0], "error: all/dangling.yaml: it is a symbolic link to nowhere, which does not exist");
    assert_eq!(lines[1], "error: all/pipe.yaml: it is a pipe, a socket or a device, not a file");
    assert!(lines[2].starts_with("error: all/round.yml: it is a symbolic link to round.yml that"), "{}", said.err);
    assert!(said.out.contains("unknown-hook"));
    // Part of what exists is no ground to judge on.
    let said = run(folder.path(), &["lint", "all/good.yaml", "--snapshot", "all"], "");
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("all/dangling.yaml: it is a symbolic link to nowhere"), "{}", said.err);
}

#[test]
fn list_of_nothing_is_nothing() {
    for list in
        ["apiVersion: v1\nkind: List\nitems:", "apiVersion: v1\nkind: List\nitems: []", "apiVersion: v1\nkind: List"]
    {
        let said = lint(list);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{list}");
    }
}

#[test]
fn manifests_of_none_of_several_applications_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let app = |name: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec: {{destination: {{namespace: {name}}}}}\n---\n"
        )
    };
    fs::write(folder.path().join("apps.yaml"), app("shop") + &app("pay")).unwrap();
    fs::write(folder.path().join("shop.yaml"), BAD).unwrap();
    fs::write(folder.path().join("other.yaml"), BAD).unwrap();
    let said = run(folder.path(), &["lint", "shop.yaml", "other.yaml", "--app", "apps.yaml"], "");
    assert_eq!(said.code, 2);
    assert_eq!(said.err.lines().count(), 1);
    assert!(
        said.err.starts_with("error: other.yaml: which of the Applications argocd/shop, argocd/pay"),
        "{}",
        said.err
    );
    assert!(said.out.contains("Job shop/migrate") && !said.out.contains("other.yaml"), "{}", said.out);
}

#[test]
fn nothing_at_all_is_no_clean_bill() {
    let folder = tempfile::tempdir().unwrap();
    for nothing in ["", "\n", "---\n# only a comment\n"] {
        let said = run(folder.path(), &["lint", "-"], nothing);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{nothing:?}");
        assert!(said.err.contains("there is no manifest to judge"), "{}", said.err);
    }
}
