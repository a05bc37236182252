//! Two trees in a folder, and the program that compares them.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

/// Two trees.
pub struct Trees(pub TempDir);

/// What the program said.
pub struct Said {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Trees {
    /// Writes files: path below `base` or `target`, text.
    pub fn new(base: &[(&str, &str)], target: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (tree, files) in [("base", base), ("target", target)] {
            fs::create_dir_all(folder.path().join(tree)).unwrap();
            write(&folder.path().join(tree), files);
            // A tree without files is no tree.
            write(
                &folder.path().join(tree),
                &[("unchanged.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: none}}")],
            );
        }
        Self(folder)
    }

    /// Runs `diff base target` with further arguments.
    pub fn diff(&self, arguments: &[&str]) -> Said {
        run(self.0.path(), &[&["diff", "base", "target", "-n", "shop"], arguments].concat())
    }

    /// The findings, as `severity rule/check object`, and the details.
    pub fn found(&self) -> (Vec<String>, String) {
        let said = self.diff(&["-o", "json"]);
        assert_eq!(said.err, "");
        findings(&said.out)
    }
}

/// The findings of a report, as `severity rule/check object`, and their details.
pub fn findings(json: &str) -> (Vec<String>, String) {
    let report: Value = serde_json::from_str(json).unwrap();
    let all = report["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = all.iter().map(|finding| {
        let object = &finding["object"];
        let path = format!("{}/{}", text(&object["namespace"]), text(&object["name"]));
        let check = text(&finding["check"]);
        let label =
            if check.is_empty() { text(&finding["rule"]) } else { format!("{}/{check}", text(&finding["rule"])) };
        format!("{} {label} {} {}", text(&finding["severity"]), text(&object["kind"]), path.trim_start_matches('/'))
    });
    (lines.collect(), all.iter().map(|finding| text(&finding["detail"]) + "\n").collect())
}

pub fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Runs the program in a folder.
pub fn run(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_cascade-guard"))
        .args(arguments)
        .current_dir(folder)
        .env("KUBECONFIG", "/nonexistent")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// An Application `argocd/NAME`; `more` goes into its spec.
pub fn application(name: &str, finalizer: bool, more: &str) -> String {
    let finalizers = if finalizer { ", finalizers: [resources-finalizer.argocd.argoproj.io]" } else { "" };
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd{finalizers}}}\nspec:\n  project: default\n  source: {{repoURL: 'https://git.example.com/x', path: {name}}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: shop}}\n{more}"
    )
}

pub const NAMESPACE: &str = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
pub const CONFIG: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1'}\n";
pub const CLAIM: &str = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}\n";
pub const ROLE: &str = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: api}\nrules: [{apiGroups: [''], resources: [leases], verbs: [get, update]}]\n";
