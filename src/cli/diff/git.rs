//! Two revisions of a repository, each in a folder of its own.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};

/// A revision that was written into a folder. It goes when this goes.
#[derive(Debug)]
pub struct Tree {
    /// The folder of the manifests in it.
    pub path: PathBuf,
    folder: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Tree {
    /// The folder of the manifests in the repository.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Writes both revisions of `A..B` into folders. Neither the repository nor its index is touched. `folder` is the folder of
/// the manifests, which also says which repository is meant.
pub fn check_out(range: &str, folder: Option<&PathBuf>) -> anyhow::Result<(Tree, Tree)> {
    let (before, after) = range.split_once("..").with_context(|| format!("{range} is no A..B"))?;
    let after = after.strip_prefix('.').map_or(after, |rest| rest);
    ensure!(!before.is_empty() && !after.is_empty(), "{range} is no A..B");
    let folder = folder.map_or_else(|| Path::new("."), PathBuf::as_path);
    // The folder may be new or gone in what is checked out now.
    let here = folder.ancestors().find(|path| path.is_dir()).unwrap_or_else(|| Path::new("."));
    let root = PathBuf::from(git(here, None, ["rev-parse", "--show-toplevel"])?);
    let here = here.canonicalize().context("the folder cannot be found")?;
    let rest = folder.strip_prefix(folder.ancestors().find(|path| path.is_dir()).unwrap_or(folder)).unwrap_or(folder);
    let rest = if folder.is_dir() { Path::new("") } else { rest };
    let inside = here.join(rest);
    let root = root.canonicalize().context("the repository cannot be found")?;
    let inside = inside.strip_prefix(&root).map(Path::to_owned).unwrap_or_default();
    // With three points Git means the change since the two parted.
    let before =
        if range.contains("...") { git(&root, None, ["merge-base", before, after])? } else { before.to_owned() };
    Ok((one(&root, &before, &inside)?, one(&root, after, &inside)?))
}

fn one(root: &Path, revision: &str, inside: &Path) -> anyhow::Result<Tree> {
    ensure!(!revision.starts_with('-'), "{revision} is no revision");
    let scratch = tempfile::tempdir().context("no folder for a revision")?;
    let commit = git(root, None, ["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
    let index = scratch.path().join("index");
    git(root, Some(&index), ["read-tree", commit.as_str()])?;
    let files = scratch.path().join("tree");
    let prefix = format!("--prefix={}/", files.display());
    git(root, Some(&index), ["checkout-index", "--all", prefix.as_str()])?;
    Ok(Tree { path: files.join(inside), folder: inside.to_owned(), _scratch: scratch })
}

/// What Git prints, without the line break at its end.
fn git<'a>(
    folder: &Path,
    index: Option<&Path>,
    arguments: impl IntoIterator<Item = &'a str>,
) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments.into_iter().map(OsStr::new));
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let said = command.output().context("git cannot be run")?;
    if !said.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim_end().to_owned())
}
