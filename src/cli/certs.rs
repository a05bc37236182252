//! `certs`: a certificate authority and a serving certificate, as files.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use base64::{Engine, engine::general_purpose::STANDARD};

use super::output;
use crate::certs::{Authority, Issued};

/// Arguments of `certs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder for ca.crt, ca.key, tls.crt and tls.key; made if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// DNS name or IP address of the server; may be given several times
    #[arg(
        long = "name",
        value_name = "NAME",
        default_values = ["cascade-guard.cascade-guard.svc", "cascade-guard.cascade-guard.svc.cluster.local"]
    )]
    names: Vec<String>,
    /// Days until the serving certificate expires
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u16).range(1..))]
    days: u16,
    /// Days until the authority expires
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u16).range(1..))]
    ca_days: u16,
    /// Sign with the authority that is in the folder already: the caBundle stays as it is
    #[arg(long)]
    keep_ca: bool,
    /// Replace files that are there already
    #[arg(long)]
    force: bool,
    /// Print the authority as a webhook configuration wants it in caBundle
    #[arg(long)]
    print_ca_bundle: bool,
}

const CA_CERT: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Makes the files.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let written: &[&str] = if args.keep_ca { &[CERT, KEY] } else { &[CA_CERT, CA_KEY, CERT, KEY] };
    let there = written.iter().map(|name| folder.join(name)).find(|path| path.exists());
    if let Some(path) = there.filter(|_| !args.force) {
        anyhow::bail!(
            "{} is there already; use --force to replace it, with --keep-ca to leave the authority in place",
            path.display()
        );
    }
    let authority = if args.keep_ca {
        Authority::from_pem(&read(folder, CA_CERT)?, &read(folder, CA_KEY)?)
            .with_context(|| format!("the authority in {} cannot sign", folder.display()))?
    } else {
        Authority::new(days(args.ca_days))?
    };
    // Everything is made before anything is written, so that a bad name leaves no half of a set behind.
    let Issued { cert_pem, key_pem } = authority.serving(&args.names, days(args.days))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if !args.keep_ca {
        write(folder, CA_KEY, &authority.key_pem, 0o600)?;
        write(folder, CA_CERT, &authority.cert_pem, 0o644)?;
    }
    write(folder, KEY, &key_pem, 0o600)?;
    write(folder, CERT, &cert_pem, 0o644)?;
    if args.print_ca_bundle {
        output::line(&STANDARD.encode(&authority.cert_pem))?;
    } else {
        output::line(&format!("{} for {}", folder.join(CERT).display(), args.names.join(", ")))?;
        output::line(&format!("caBundle of the webhook configuration: base64 -w0 {}", folder.join(CA_CERT).display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn days(days: u16) -> Duration {
    Duration::from_secs(u64::from(days) * 86_400)
}

fn read(folder: &Path, name: &str) -> anyhow::Result<String> {
    let path = folder.join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file so that nobody ever sees half of it, and a key never with more rights than it should have.
fn write(folder: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
    let (path, fresh) = (folder.join(name), folder.join(format!(".{name}.new")));
    let attempt = || -> io::Result<()> {
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    };
    attempt().with_context(|| format!("cannot write {}", path.display()))
}
