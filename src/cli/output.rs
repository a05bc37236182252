//! Everything a command prints goes through here.

use std::io::{self, BufRead as _, Write};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde::Serialize;

use cascade_guard_core::report::{self, Report};

/// How a command prints what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For both.
    Yaml,
}

/// How a command prints a report. Each command takes some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// For people in a terminal.
    Table,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for whatever shows test results.
    Junit,
    /// Workflow commands of GitHub Actions.
    Github,
    /// A comment on a pull request.
    Markdown,
    /// One page for a browser.
    Html,
    /// A graph for Graphviz.
    Dot,
    /// A graph for Mermaid.
    Mermaid,
}

impl ReportFormat {
    /// What every report can be printed as.
    pub const COMMON: [Self; 6] = [Self::Table, Self::Json, Self::Yaml, Self::Sarif, Self::Junit, Self::Github];

    /// A parser of the common formats and of `more`.
    pub fn parser(more: &[Self]) -> impl TypedValueParser<Value = Self> {
        let values = Self::COMMON.iter().chain(more).filter_map(Self::to_possible_value);
        // Only names of these values get past the first parser.
        PossibleValuesParser::new(values).try_map(|name| Self::from_str(&name, true))
    }

    /// The format of a report; `None` for what is no report.
    pub fn of_report(self) -> Option<report::Format> {
        Some(match self {
            Self::Table => report::Format::Table,
            Self::Json => report::Format::Json,
            Self::Yaml => report::Format::Yaml,
            Self::Sarif => report::Format::Sarif,
            Self::Junit => report::Format::Junit,
            Self::Github => report::Format::Github,
            Self::Markdown => report::Format::Markdown,
            Self::Html | Self::Dot | Self::Mermaid => return None,
        })
    }
}

/// Prints a value: as a table for people, or as JSON or YAML.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(format: Format, value: &impl Serialize, table: impl FnOnce() -> String) -> anyhow::Result<()> {
    match format {
        Format::Table => Ok(line(table().trim_end())?),
        Format::Json | Format::Yaml => structured(format, value),
    }
}

/// Prints a value as JSON or YAML.
///
/// # Errors
/// When standard output cannot be written.
pub fn structured(format: Format, value: &impl Serialize) -> anyhow::Result<()> {
    let text = match format {
        Format::Yaml => serde_saphyr::to_string(value)?,
        Format::Json | Format::Table => serde_json::to_string_pretty(value)?,
    };
    Ok(line(text.trim_end())?)
}

/// Prints a report.
///
/// # Errors
/// When the format cannot express it, or standard output cannot be written.
pub fn report(format: report::Format, report: &Report) -> anyhow::Result<()> {
    Ok(line(report.write(format)?.trim_end())?)
}

/// Prints a line to standard output. A reader that went away (`| head`) is not an error.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub fn line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Says on standard error why a command could not do its work.
pub fn complain(error: &anyhow::Error) {
    let _ = writeln!(io::stderr().lock(), "error: {}", chain(error));
}

/// An error and its causes in one line. Some errors say their cause themselves; it is not said twice.
fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&cause);
        }
    }
    line
}

/// Says on standard error what a reader of the result should know.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "note: {text}");
}

/// Says on standard error what was refused, in the words of whoever refused it.
pub fn refusal(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says on standard error what is to be read before an answer.
pub fn aside(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Asks on standard error and reads one line from standard input.
///
/// # Errors
/// When standard input cannot be read.
pub fn ask(question: &str) -> io::Result<String> {
    let mut error = io::stderr().lock();
    let _ = write!(error, "{question}");
    let _ = error.flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Columns as wide as their widest cell; the last one is not filled up.
pub fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let fill = width(column).unwrap_or_default() - cell.chars().count();
            format!("{cell}{}", " ".repeat(fill))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn no_cause_is_said_twice() {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "not there");
        let wrapped =
            anyhow::Error::new(crate::snapshot::Unreadable { path: "a".into(), problem: missing().to_string() });
        assert_eq!(chain(&wrapped.context("it cannot be used")), "it cannot be used: cannot read a: not there");
        let plain = Err::<(), _>(missing()).context("cannot read a").unwrap_err();
        assert_eq!(chain(&plain), "cannot read a: not there");
    }
}
