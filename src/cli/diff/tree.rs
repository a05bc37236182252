//! A folder of rendered manifests, one folder or file for each Application.

use std::{
    fs,
    path::{Component, Path},
};

use anyhow::{Context as _, ensure};

use crate::snapshot;
use cascade_guard_core::{
    diff::{Side, Source},
    lint::Input,
};

/// All files of a tree together may be this large.
const MAX_BYTES: usize = 512 << 20;

/// Reads a tree. `shown` is the folder that findings name instead of `root`. A tree that is not there is one in which
/// nothing is rendered, if it was to come from a repository.
pub fn read(root: &Path, shown: Option<&Path>, single: bool) -> anyhow::Result<Side> {
    if shown.is_some() && !root.exists() {
        return Ok(Side::default());
    }
    let mut sources = Vec::new();
    let mut size = 0;
    for file in snapshot::files(root) {
        let file = file?;
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        size += text.len();
        ensure!(size <= MAX_BYTES, "the files of {} together are larger than {} MiB", root.display(), MAX_BYTES >> 20);
        let below = file.strip_prefix(root).unwrap_or(&file);
        let name = shown.map_or_else(|| file.clone(), |shown| shown.join(below));
        let application = if single || below.as_os_str().is_empty() { "manifests".to_owned() } else { first(below) };
        sources.push(Source { application, input: Input { name: name.display().to_string(), text } });
    }
    Ok(Side::read(&sources))
}

/// The first folder of a path, or the name of the file without its ending.
fn first(path: &Path) -> String {
    let mut parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    let first = parts.next().map(|part| Path::new(part.as_os_str()));
    let name = if parts.next().is_some() { first.map(Path::as_os_str) } else { first.and_then(Path::file_stem) };
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_is_the_first_folder_or_the_file() {
        for (path, wanted) in [("web/a.yaml", "web"), ("web/b/c.yaml", "web"), ("web.yaml", "web"), ("a.b.yaml", "a.b")]
        {
            assert_eq!(first(Path::new(path)), wanted, "{path}");
        }
    }
}
