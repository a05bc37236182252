//! What `check` and `survey` work on: Applications of a snapshot or a cluster, and a configuration.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};

use super::super::{arguments::InputArgs, cluster_access::ClusterArgs, opened_input::OpenedInput, output};
use cascade_guard_core::{
    object::ARGO_GROUP,
    watchdog::{Applications, Circumstances, Settings, View, settings::Spec, updaters::ImageUpdater},
};

/// Where the configuration comes from.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// WatchdogConfiguration; without one no Application is listed as one that may be armed
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Reads it.
    pub fn load(&self) -> anyhow::Result<Settings> {
        let Some(path) = &self.config else { return Ok(Settings::new(Spec::default())?) };
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Settings::parse(&text).with_context(|| format!("{} is no usable WatchdogConfiguration", path.display()))
    }
}

/// What is known.
pub struct Known {
    /// The Applications.
    pub applications: Applications,
    /// Image updaters of 1.0 and later.
    pub updaters: Vec<ImageUpdater>,
    /// The configuration.
    pub settings: Settings,
}

impl Known {
    /// Reads a snapshot, if one is named, or else the cluster as the current user.
    pub async fn open(input: &InputArgs, cluster: &ClusterArgs, config: &ConfigArgs) -> anyhow::Result<Self> {
        let settings = config.load()?;
        let opened = OpenedInput::new(input, cluster).await?;
        let (mut applications, mut updaters) = (Applications::default(), Vec::new());
        for (object, _) in opened.snapshot.objects() {
            let is_updater = object.kind.is("argocd-image-updater.argoproj.io", "ImageUpdater");
            if !is_updater && !object.kind.is(ARGO_GROUP, "Application") {
                continue;
            }
            let Some(json) = opened.snapshot.json_of(object) else { continue };
            if is_updater {
                updaters.push(ImageUpdater::read(&serde_json::from_str(&json)?));
                continue;
            }
            match View::parse(&json) {
                Ok(view) => applications.observe(view, input.now()),
                Err(error) => output::note(&format!("{object} is left out: {error}")),
            }
        }
        if let Some(client) = opened.client() {
            let kinds = crate::cluster::Kinds::default();
            kinds.refresh(client).await.context("the API server does not say which kinds it serves")?;
            updaters = crate::watchdog::image_updaters(client, &kinds).await;
        }
        Ok(Self { applications, updaters, settings })
    }

    /// As a judgement wants it, where no commit is judged.
    pub fn circumstances(&self) -> Circumstances<'_> {
        Circumstances {
            settings: &self.settings,
            applications: &self.applications,
            updaters: &self.updaters,
            readable: true,
            tip: None,
            revert_tip: None,
            is_default_branch: true,
            fresh: false,
            siblings: &[],
            open: &[],
            holds_lease: false,
            gap: SignedDuration::MAX,
            now: Timestamp::UNIX_EPOCH,
        }
    }
}
