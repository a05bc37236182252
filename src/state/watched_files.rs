//! Files that are read again when their content changes.
//!
//! The content is polled and compared. A watch on a mounted file would miss changes, because the kubelet swaps a
//! symbolic link. Polling works for every kind of mount, and the kubelet itself delivers changes a minute late.

use std::{convert::Infallible, io, path::PathBuf, time::Duration};

/// The time from one look at the files to the next.
pub const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The same for a policy, for which somebody may be waiting. It is small.
pub const POLICY_INTERVAL: Duration = Duration::from_secs(1);

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// Files that belong together, and what they held when they were last read.
#[derive(Debug)]
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    bytes: Vec<Vec<u8>>,
}

impl WatchedFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn read(paths: Vec<PathBuf>) -> Result<Self, FileError> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|source| FileError { path: path.clone(), source });
        let bytes = paths.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { paths, bytes })
    }

    /// What the files held when they were last read, in order.
    pub fn bytes(&self) -> &[Vec<u8>] {
        &self.bytes
    }

    /// Reads the files again and returns whether they changed.
    async fn refresh(&mut self) -> Result<bool, FileError> {
        let mut fresh = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            let bytes = tokio::fs::read(path).await.map_err(|source| FileError { path: path.clone(), source })?;
            fresh.push(bytes);
        }
        let changed = fresh != self.bytes;
        self.bytes = fresh;
        Ok(changed)
    }

    /// Looks at the files for ever and hands over every change. `what` names them in logs, which say once that the
    /// files cannot be read and once that they can be again.
    pub async fn follow(mut self, what: &str, every: Duration, mut changed: impl FnMut(&[Vec<u8>])) -> Infallible {
        let mut readable = true;
        loop {
            tokio::time::sleep(every).await;
            match self.refresh().await {
                Ok(true) => changed(&self.bytes),
                Ok(false) => {}
                Err(error) if readable => {
                    readable = false;
                    tracing::error!(%error, "{what} cannot be read any more; what was read last stays in force");
                    continue;
                }
                Err(_) => continue,
            }
            if !readable {
                readable = true;
                tracing::info!("{what} can be read again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn change_is_seen_through_a_swapped_link() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("..data");
        for (version, text) in [("v1", "one"), ("v2", "two")] {
            std::fs::create_dir(folder.path().join(version)).unwrap();
            std::fs::write(folder.path().join(version).join("file"), text).unwrap();
        }
        std::os::unix::fs::symlink("v1", &data).unwrap();
        let mut files = WatchedFiles::read(vec![data.join("file")]).unwrap();
        assert!(!files.refresh().await.unwrap());
        std::fs::remove_file(&data).unwrap();
        assert!(files.refresh().await.unwrap_err().to_string().contains("..data/file"));
        std::os::unix::fs::symlink("v2", &data).unwrap();
        assert!(files.refresh().await.unwrap());
        assert_eq!(files.bytes(), [b"two"]);
    }
}
