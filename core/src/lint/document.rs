//! A stream cut into its documents, each parsed by itself: one that cannot be read leaves the others readable.

use serde_json::Value;

use super::tree::{Node, Tree};
use crate::yaml::{self, Duplicate, Limits, Loaded, Values};

/// How much one document may hold: the deepest definitions of custom resources stay well below this.
const LIMITS: Limits = Limits { from_aliases: 100_000, depth: 100 };

/// A document larger than this is not read: no object of that size fits into a cluster.
const MAX_BYTES: usize = 64 << 20;

/// Annotation of an object that names checks and why they do not matter for it: `check: reason`, several separated by
/// semicolons or line breaks. The same may stand in a comment of its document, behind this and a colon.
pub const LINT_IGNORE: &str = "cascade-guard.io/lint-ignore";

/// One document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its text, with the marker that begins it.
    pub text: &'a str,
    /// How many lines of the stream come before it.
    pub lines_before: u32,
}

/// Why a document cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not YAML.
    BadYaml,
    /// A key stands in a mapping twice.
    DuplicateKey,
    /// It is too large, or grows too large.
    TooLarge,
    /// It is a template that was not rendered.
    Template,
    /// Manifests are made from it, and it is none.
    Source,
    /// It is not a Kubernetes object.
    NoObject,
    /// It belongs to none of the Applications that are known.
    NoApplication,
    /// Its file cannot be read.
    File,
}

impl Fault {
    /// As it stands in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadYaml => "bad-yaml",
            Self::DuplicateKey => "duplicate-key",
            Self::TooLarge => "too-large",
            Self::Template => "template",
            Self::Source => "source",
            Self::NoObject => "no-object",
            Self::NoApplication => "no-application",
            Self::File => "unreadable-file",
        }
    }
}

/// Why a document cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem.
    pub check: Fault,
    /// What is wrong and what to do, in one sentence.
    pub text: String,
    /// Line of the stream, from 1; 0 if the stream as a whole is meant.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// Cuts a stream at its document markers. Inside a document no line begins with one, not even in a block of text (YAML
/// 1.2.2, section 9.1.2), so no parser is needed to find them.
pub fn documents(stream: &str) -> impl Iterator<Item = Document<'_>> {
    let mut rest = stream;
    let mut lines = 0_u32;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let (length, count) = length_of_first(rest);
            let document = Document { text: &rest[..length], lines_before: lines };
            rest = &rest[length..];
            lines = lines.saturating_add(count);
            if !document.is_empty() {
                return Some(document);
            }
        }
    })
}

/// Bytes and lines of the first document.
fn length_of_first(stream: &str) -> (usize, u32) {
    let (mut length, mut count) = (0, 0);
    let mut begun = false;
    for line in stream.split_inclusive('\n') {
        if begun && is_marker(line, "---") {
            return (length, count);
        }
        length += line.len();
        count += 1;
        if is_marker(line, "...") {
            return (length, count);
        }
        begun |= !is_prelude(line);
    }
    (length, count)
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Whether a line may stand before the marker of a document: nothing, a comment, a directive.
fn is_prelude(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim();
    line.is_empty() || line.starts_with('#') || line.starts_with('%')
}

impl<'a> Document<'a> {
    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.text.lines().all(|line| {
            let rest = if is_marker(line, "---") || is_marker(line, "...") { &line[3..] } else { line };
            is_prelude(rest)
        })
    }

    /// What stands behind a key in comments that have a line of their own.
    pub(super) fn comments(&self, key: &str) -> Vec<String> {
        if !self.text.contains(key) {
            return Vec::new();
        }
        let lines = self.text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
        lines
            .filter_map(|comment| comment.trim_start().strip_prefix(key)?.trim_start().strip_prefix(':'))
            .map(|entries| entries.trim().to_owned())
            .collect()
    }

    /// The template that it was rendered from, as Helm writes it above each document.
    pub fn template(&self) -> Option<&'a str> {
        let comments = self.text.lines().take(8).map(str::trim).take_while(|line| is_prelude(line) || *line == "---");
        comments.filter_map(|line| line.strip_prefix("# Source:")).map(str::trim).find(|source| !source.is_empty())
    }

    /// What it says, as Argo CD reads it.
    ///
    /// # Errors
    /// With line and column where it is no YAML.
    pub fn parse(&self) -> Result<Value, Problem> {
        self.read().map(|loaded| loaded.node.unwrap_or_default())
    }

    /// The same, with the keys that are there twice.
    pub(super) fn read(&self) -> Result<Loaded<Value>, Problem> {
        if self.text.len() > MAX_BYTES {
            return Err(Problem {
                check: Fault::TooLarge,
                text: format!("the document is larger than {} MiB; split it", MAX_BYTES >> 20),
                line: self.lines_before + 1,
                column: 1,
            });
        }
        yaml::load(self.text, &Values, LIMITS).map_err(|error| self.problem(error))
    }

    /// Where everything in it stands.
    pub(super) fn tree(&self) -> Option<Node> {
        yaml::load(self.text, &Tree, LIMITS).ok()?.node
    }

    /// The first line that holds a template outside of a text.
    pub(super) fn unrendered(&self) -> Option<(u32, u32)> {
        let at = |line: &str| {
            let at = line.find("{{")?;
            let before = line[..at].trim_end_matches(['"', '\'']).trim();
            (before.is_empty() || before.ends_with([':', '-'])).then_some(at)
        };
        let (line, column) = self.text.lines().enumerate().find_map(|(number, line)| Some((number, at(line)?)))?;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
        Some((self.lines_before.saturating_add(number(line)), number(column)))
    }

    /// What to say about a key that is there twice: its place is one in the stream.
    pub(super) fn twice(&self, Duplicate { key, place }: &Duplicate) -> Problem {
        Problem {
            check: Fault::DuplicateKey,
            text: format!("the key `{key}` is there twice; Argo CD takes the last one and says nothing"),
            line: self.lines_before.saturating_add(place.line),
            column: place.column,
        }
    }

    fn problem(&self, error: yaml::Error) -> Problem {
        let yaml::Error { fault, line, column } = error;
        let line = self.lines_before.saturating_add(line);
        let (check, text) = match fault {
            yaml::Fault::TooLarge => (
                Fault::TooLarge,
                format!(
                    "its aliases or its nesting grow out of all proportion (more than {} nodes from aliases, or deeper \
                     than {}); write it out",
                    LIMITS.from_aliases, LIMITS.depth
                ),
            ),
            yaml::Fault::Recursive => (Fault::BadYaml, RECURSIVE_ALIAS.to_owned()),
            yaml::Fault::Syntax(_) | yaml::Fault::NoJson(_) if self.unrendered().is_some() => {
                let (line, column) = self.unrendered().unwrap_or((line, column));
                return Problem { check: Fault::Template, text: UNRENDERED.to_owned(), line, column };
            }
            yaml::Fault::Syntax(text) => (Fault::BadYaml, format!("it is no YAML: {}", text.replace('\n', " "))),
            yaml::Fault::NoJson(text) => (Fault::BadYaml, format!("Argo CD makes no JSON of it: {text}")),
        };
        Problem { check, text, line, column }
    }
}

/// What to say about an alias that would repeat itself for ever.
pub const RECURSIVE_ALIAS: &str = "an alias stands inside the very part that it repeats; write that part out";

/// What to say about a template.
pub(super) const UNRENDERED: &str =
    "a template that was not rendered; lint what helm template or kustomize build prints instead";

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(stream: &str) -> Vec<(u32, &str)> {
        documents(stream).map(|document| (document.lines_before, document.text)).collect()
    }

    fn problem(text: &str) -> (&'static str, u32, u32) {
        let problem = documents(text).find_map(|document| document.parse().err()).unwrap();
        assert!(!problem.text.contains('\n') && !problem.text.is_empty(), "{}", problem.text);
        (problem.check.as_str(), problem.line, problem.column)
    }

    #[test]
    fn stream_is_cut_where_documents_begin_and_end() {
        assert_eq!(cut("a: 1\n---\nb: 2\n"), [(0, "a: 1\n"), (1, "---\nb: 2\n")]);
        assert_eq!(
            cut("---\n# none\n---\n\n--- # x\nb: 2\n...\n# end\n"),
            [(0, "---\n# none\n"), (4, "--- # x\nb: 2\n...\n")][1..]
        );
        assert_eq!(cut("# comment\n%YAML 1.2\n---\na: 1\n"), [(0, "# comment\n%YAML 1.2\n---\na: 1\n")]);
        assert_eq!(cut("a: |\n  ---\n  x\n---x: 1\n"), [(0, "a: |\n  ---\n  x\n---x: 1\n")]);
        assert_eq!(cut("a: 1\r\n---\r\nb: 2"), [(0, "a: 1\r\n"), (1, "---\r\nb: 2")]);
        assert_eq!(cut(""), []);
        assert_eq!(cut("---\n...\n\n# x\n"), []);
    }

    #[test]
    fn template_is_named_where_helm_wrote_it_down() {
        let of = |text| documents(text).next().unwrap().template();
        assert_eq!(of("---\n# Source: shop/templates/job.yaml\na: 1\n"), Some("shop/templates/job.yaml"));
        assert_eq!(of("a: 1\n# Source: no\n"), None);
    }

    #[test]
    fn each_kind_of_problem_has_its_name_and_place() {
        assert_eq!(problem("a: 1\n---\nb: [\n"), ("bad-yaml", 3, 4));
        assert_eq!(problem("kind: A\nname: {{ .Values.name }}\n"), ("template", 2, 7));
        assert_eq!(problem("{{- if .Values.on }}\nkind: A\n{{- end }}\n"), ("template", 1, 1));
        let level = |n: usize| format!("l{n}: &l{n} [{}]", vec![format!("*l{}", n - 1); 9].join(","));
        let bomb = (1..9).map(level).collect::<Vec<_>>().join("\n");
        assert_eq!(problem(&format!("l0: &l0 [x,x,x,x,x,x,x,x,x]\n{bomb}")).0, "too-large");
    }

    #[test]
    fn text_that_speaks_of_templates_is_no_template() {
        let text = "kind: ConfigMap\ndata:\n  a: '{{ .x }}'\n  b: |\n    {{ range }}\n";
        assert!(documents(text).next().unwrap().parse().is_ok());
        assert_eq!(problem("data:\n  a: x {{ .y }}\n  b: [\n").0, "bad-yaml");
    }
}
