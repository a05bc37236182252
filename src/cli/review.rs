//! `review`: one AdmissionReview in, its answer out.

use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, bail};

use super::{arguments::InputArgs, output};
use cascade_guard_core::judge::{Case, judge_at_hand};
use cascade_guard_core::{
    admission::{decode, encode},
    decision::render,
};

/// Arguments of `review`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File with an AdmissionReview, or - for standard input
    #[arg(default_value = "-", value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
}

/// Exit 0 allowed, 1 denied.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // A forgotten flag must not pass for a cluster in which nothing is claimed. A file without objects may: nobody judges a
    // single request by accident, and an empty cluster is one.
    let Some((snapshot, policy, inventory)) = args.input.open()? else {
        bail!("review needs --snapshot with the cluster as it is; an empty file stands for an empty cluster")
    };
    let body = read(&args.file)?;
    let request = decode(&body).with_context(|| format!("{} cannot be judged", args.file.display()))?;
    let decision = judge_at_hand(Case::new(&request, &policy, args.input.now()), &inventory, &snapshot).decision;
    let response = render(&decision, &request);
    output::line(&String::from_utf8_lossy(&encode(&request.uid, &response)))?;
    Ok(ExitCode::from(u8::from(!response.allowed)))
}

fn read(path: &PathBuf) -> anyhow::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut body = Vec::new();
        io::stdin().lock().read_to_end(&mut body).context("cannot read standard input")?;
        return Ok(body);
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
