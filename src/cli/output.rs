//! Everything a command prints goes through here.

use std::io::{self, Write};

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
    let _ = writeln!(io::stderr().lock(), "error: {error:#}");
}
