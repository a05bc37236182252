//! The `cascade-guard` binary: parse, dispatch, turn an error into an exit code.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cascade_guard::cli::Cli::parse();
    match cascade_guard::cli::run(cli) {
        Ok(code) => code,
        Err(error) => {
            cascade_guard::cli::output::complain(&error);
            ExitCode::from(2)
        }
    }
}
