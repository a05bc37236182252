//! Everything a command prints goes through here.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::{self, Report};

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

/// Says something on standard error: beside what a command prints, never in it.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says on standard error why a command could not do its work.
pub fn complain(error: &anyhow::Error) {
    let _ = writeln!(io::stderr().lock(), "error: {error:#}");
}
