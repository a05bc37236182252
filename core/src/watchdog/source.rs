//! A source of an Application, and which files it is rendered from.

use serde_json::Value;

use super::facts::{Facts, Question, is_object_id};

/// A source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// URL of the repository.
    pub repository: String,
    /// Folder; empty for the root.
    pub path: String,
    /// Branch, tag or commit.
    pub target: String,
    /// Whether it is a chart from a registry.
    pub is_chart: bool,
    /// Whether a plugin or Jsonnet with libraries renders it, which may read whatever it likes.
    pub is_plugin: bool,
    /// Whether it renders nothing and only lends its files to others.
    pub lends: bool,
    /// Its name for the other sources.
    pub reference: String,
    /// Files beside its folder, from its folder, from the root (`/…`), or from another source (`$name/…`).
    pub files: Vec<String>,
    /// What the annotation `manifest-generate-paths` says; empty without one.
    pub generate_paths: String,
    /// The whole source as text, to see that it changed.
    pub text: String,
}

/// The sources of a spec, of a comparison or of an entry of a history.
pub(super) fn sources_in(holder: &Value, generate_paths: Option<&str>) -> Vec<Source> {
    let several = holder["sources"].as_array().filter(|several| !several.is_empty());
    match several {
        Some(several) => several.iter().map(|source| read(source, generate_paths)).collect(),
        None if holder["source"].is_object() => vec![read(&holder["source"], generate_paths)],
        None => Vec::new(),
    }
}

fn read(source: &Value, generate_paths: Option<&str>) -> Source {
    let text = |pointer: &str| source.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |pointer: &str| source.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let mut files: Vec<String> = list("/helm/valueFiles").filter_map(|file| file.as_str().map(str::to_owned)).collect();
    files.extend(list("/helm/fileParameters").filter_map(|file| file["path"].as_str().map(str::to_owned)));
    let (path, chart) = (text("/path"), text("/chart"));
    let reference = text("/ref");
    Source {
        repository: text("/repoURL"),
        target: text("/targetRevision"),
        is_chart: !chart.is_empty(),
        is_plugin: source["plugin"].is_object() || list("/directory/jsonnet/libs").next().is_some(),
        lends: !reference.is_empty() && path.is_empty() && chart.is_empty(),
        path: clean(&path).unwrap_or_default(),
        reference,
        files,
        generate_paths: generate_paths.unwrap_or_default().to_owned(),
        text: source.to_string(),
    }
}

impl Source {
    /// Whether it follows this branch. `HEAD` means the default branch.
    pub fn tracks(&self, branch: &str, is_default: bool) -> bool {
        match self.target.as_str() {
            "" | "HEAD" => is_default,
            target => target.strip_prefix("refs/heads/").unwrap_or(target) == branch,
        }
    }
}

/// The files that an Application is rendered from, in one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Why every file counts; empty where the paths below say which.
    pub everything: String,
    /// Files and folders.
    pub paths: Vec<String>,
}

impl Reach {
    /// Whether one of the paths of a commit counts.
    pub fn includes(&self, changed: &[String]) -> bool {
        if !self.everything.is_empty() {
            return !changed.is_empty();
        }
        changed.iter().any(|file| {
            self.paths.iter().any(|path| {
                path.is_empty()
                    || file.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        })
    }

    fn all(why: &str) -> Self {
        Self { everything: why.to_owned(), paths: Vec::new() }
    }
}

/// What the sources `of` the repository (by index) are rendered from, at the commit `tip`. `None` while Git is asked.
pub fn reach(sources: &[Source], of: &[usize], tip: &str, facts: &mut Facts) -> Option<Reach> {
    let mut reach = Reach::default();
    for index in of {
        let source = &sources[*index];
        if source.generate_paths.is_empty() {
            if source.is_plugin {
                return Some(Reach::all("a plugin or a library outside the path may read any file"));
            }
            if !source.lends {
                if outside(source, tip, facts)? {
                    return Some(Reach::all("it refers to files outside its path, and has no manifest-generate-paths"));
                }
                reach.paths.push(source.path.clone());
            }
        } else {
            for path in source.generate_paths.split(';').map(str::trim).filter(|path| !path.is_empty()) {
                if path.contains(['*', '?', '[']) {
                    return Some(Reach::all("its manifest-generate-paths holds a pattern"));
                }
                match from(&source.path, path) {
                    Some(path) => reach.paths.push(path),
                    None => return Some(Reach::all("its manifest-generate-paths leaves the repository")),
                }
            }
        }
    }
    // Files that a source names count wherever the annotation points: they are given in the Application itself.
    for (index, source) in sources.iter().enumerate() {
        for file in &source.files {
            let found = match file.strip_prefix('$') {
                Some(rest) => {
                    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
                    let lender = sources.iter().position(|source| source.reference == name);
                    match lender {
                        Some(lender) if of.contains(&lender) => clean(path),
                        _ => continue,
                    }
                }
                None if file.contains("://") => continue,
                None if !of.contains(&index) => continue,
                None => from(&source.path, file),
            };
            match found {
                Some(path) if !path.contains(['*', '?', '[']) => reach.paths.push(path),
                _ => return Some(Reach::all("a value file is named by a pattern, or lies outside the repository")),
            }
        }
    }
    Some(reach)
}

fn outside(source: &Source, tip: &str, facts: &mut Facts) -> Option<bool> {
    if !is_object_id(tip) {
        return Some(true);
    }
    let question = Question::Outside { revision: tip.to_owned(), path: source.path.clone() };
    Some(facts.ask(question)? != super::facts::Answer::Is(false))
}

/// A path from a folder, or from the root if it begins with a slash; `None` if it leaves the repository.
fn from(folder: &str, path: &str) -> Option<String> {
    match path.strip_prefix('/') {
        Some(path) => clean(path),
        None => clean(&format!("{folder}/{path}")),
    }
}

/// A path without `.`, `..` and double slashes; `None` if it leaves the root.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog::facts::Answer;
    use serde_json::json;

    fn facts(outside: bool) -> (Facts, String) {
        let tip = "a".repeat(40);
        let mut facts = Facts::default();
        for path in ["web", "", "chart"] {
            let question = Question::Outside { revision: tip.clone(), path: path.to_owned() };
            facts.answer(question, Answer::Is(outside));
        }
        (facts, tip)
    }

    fn reached(spec: &Value, annotation: Option<&str>, outside: bool) -> Reach {
        let sources = sources_in(spec, annotation);
        let (mut facts, tip) = facts(outside);
        let of: Vec<usize> = (0..sources.len()).filter(|index| sources[*index].repository == "r").collect();
        reach(&sources, &of, &tip, &mut facts).unwrap()
    }

    fn touches(reach: &Reach, file: &str) -> bool {
        reach.includes(&[file.to_owned()])
    }

    #[test]
    fn folder_counts_and_its_neighbours_do_not() {
        let reach = reached(&json!({"source": {"repoURL": "r", "path": "./web/"}}), None, false);
        assert!(touches(&reach, "web/d.yaml") && touches(&reach, "web/x/y"));
        assert!(!touches(&reach, "web2/d.yaml") && !touches(&reach, "d.yaml"));
        let root = reached(&json!({"source": {"repoURL": "r", "path": "."}}), None, false);
        assert!(touches(&root, "any"));
    }

    #[test]
    fn what_can_reach_outside_counts_everything() {
        let spec = json!({"source": {"repoURL": "r", "path": "web"}});
        assert!(touches(&reached(&spec, None, true), "base/x"));
        assert!(touches(&reached(&json!({"source": {"repoURL": "r", "path": "web", "plugin": {}}}), None, false), "x"));
        let annotated = reached(&spec, Some(".;/base"), true);
        assert!(touches(&annotated, "web/a") && touches(&annotated, "base/a") && !touches(&annotated, "other/a"));
        assert!(touches(&reached(&spec, Some("/*"), false), "x"));
        assert!(touches(&reached(&spec, Some("../../.."), false), "x"));
    }

    #[test]
    fn value_files_count_where_they_lie() {
        let one = reached(
            &json!({"source": {"repoURL": "r", "path": "chart", "helm": {"valueFiles": ["../env/prod.yaml", "/all.yaml"]}}}),
            None,
            false,
        );
        assert!(touches(&one, "env/prod.yaml") && touches(&one, "all.yaml") && !touches(&one, "env/dev.yaml"));
        let two = reached(
            &json!({"sources": [
                {"repoURL": "charts", "chart": "web", "helm": {"valueFiles": ["$values/env/prod.yaml", "own.yaml"]}},
                {"repoURL": "r", "ref": "values"},
            ]}),
            None,
            false,
        );
        assert!(touches(&two, "env/prod.yaml") && !touches(&two, "env/dev.yaml") && !touches(&two, "own.yaml"));
    }

    #[test]
    fn head_is_the_default_branch() {
        let source = |target: &str| Source { target: target.to_owned(), ..Source::default() };
        assert!(source("HEAD").tracks("main", true) && !source("HEAD").tracks("main", false));
        assert!(source("").tracks("main", true) && source("refs/heads/main").tracks("main", false));
        assert!(!source("v1").tracks("main", true) && !source("main2").tracks("main", true));
    }
}
