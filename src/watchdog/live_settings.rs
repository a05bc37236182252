//! The configuration in force.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::state::{POLL_INTERVAL, WatchedFiles};
use cascade_guard_core::watchdog::{Mode, Settings};

/// The configuration in force. A bad change is refused, and the last good one stays.
#[derive(Debug)]
pub struct LiveSettings {
    current: ArcSwap<Settings>,
    ceiling: Mode,
    changes: watch::Sender<()>,
}

impl LiveSettings {
    /// Reads the file, under a ceiling that also holds for what follows.
    ///
    /// # Errors
    /// When it cannot be read or is no usable configuration.
    pub fn read(file: PathBuf, ceiling: Mode) -> anyhow::Result<(Arc<Self>, WatchedFiles)> {
        let place = file.display().to_string();
        let files = WatchedFiles::read(vec![file])?;
        let settings = Settings::parse(&String::from_utf8_lossy(&files.bytes()[0]))
            .with_context(|| format!("{place} is no usable WatchdogConfiguration"))?;
        let current = ArcSwap::from_pointee(settings.with_ceiling(ceiling));
        Ok((Arc::new(Self { current, ceiling, changes: watch::Sender::new(()) }), files))
    }

    /// The configuration in force now.
    pub fn load(&self) -> Arc<Settings> {
        self.current.load_full()
    }

    /// Puts a changed text in force if it is usable.
    pub fn offer(&self, text: &str) {
        match Settings::parse(text) {
            Ok(settings) => {
                let digest = settings.digest.clone();
                self.current.store(Arc::new(settings.with_ceiling(self.ceiling)));
                self.changes.send_replace(());
                tracing::info!(digest, "configuration in force");
            }
            Err(error) => {
                tracing::error!(%error, "the changed configuration is refused; the last good one stays in force");
            }
        }
    }

    /// Wakes whenever another configuration is in force.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) async fn follow(self: Arc<Self>, files: WatchedFiles) -> anyhow::Result<()> {
        let never = files.follow("the configuration", POLL_INTERVAL, |bytes| {
            self.offer(&String::from_utf8_lossy(&bytes[0]));
        });
        match never.await {}
    }
}
