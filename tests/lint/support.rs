//! Running `lint`, as a library and as a program.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cascade_guard_core::{
    lint::{self, Application, Existing, Input, LintContext},
    object::ARGO_GROUP,
    policy::Policy,
    report::ReportFinding,
    snapshot::Snapshot,
};

/// A folder of the tests of `lint`.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint").join(name)
}

/// The files of such a folder, by name.
pub fn files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// What a run needs beside manifests.
#[derive(Default)]
pub struct Beside {
    /// YAML of Applications.
    pub applications: Option<String>,
    /// YAML of what exists.
    pub snapshot: Option<String>,
    /// Where objects without a namespace go.
    pub namespace: &'static str,
}

/// Findings and problems of texts, by the library.
pub fn findings(inputs: &[Input], beside: &Beside) -> (Vec<ReportFinding>, Vec<ReportFinding>) {
    let snapshot = beside.snapshot.as_ref().map(|text| Snapshot::parse("snapshot", text.clone()).unwrap());
    let applications = beside.applications.as_ref().map(|text| Snapshot::parse("applications", text.clone()).unwrap());
    let inventory = snapshot.as_ref().map(|snapshot| snapshot.inventory(&Policy::default(), (1, 2)));
    let applications = applications
        .iter()
        .flat_map(|file| file.json_of_kind(ARGO_GROUP, "Application"))
        .map(|json| Application::read(json).unwrap())
        .collect();
    let existing = snapshot
        .as_ref()
        .zip(inventory.as_ref())
        .map(|(snapshot, inventory)| Existing { objects: snapshot.objects().collect(), inventory });
    let world =
        LintContext { applications, existing, namespace: beside.namespace.to_owned(), ..LintContext::default() };
    let linted = lint::lint(inputs, &world);
    (linted.findings, linted.problems)
}

/// One input.
pub fn input(name: &str, text: impl Into<String>) -> Input {
    Input { name: name.to_owned(), text: text.into() }
}

/// What a program said.
pub struct Said {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs the program in a folder, with a text on standard input.
pub fn run(folder: &Path, arguments: &[&str], stdin: &str) -> Said {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cascade-guard"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let text = stdin.to_owned();
    // The program may not read it at all.
    let writer = std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
}
