//! Background tasks of a server of a live cluster: status, alarm, reports, objects stuck in deletion.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use kube::Client;
use tokio::task::JoinSet;

use super::arguments::duration;
use crate::{
    cluster::{Alarm, Health, Kinds, LiveSource, StatusWriter, StuckWatch, reports::Reporter},
    server::ServerTls,
    state::{LiveInventory, LivePolicy, Readiness},
    telemetry::Metrics,
};
use cascade_guard_core::object::GroupKind;

/// Arguments of the background tasks.
#[derive(Clone, Debug, clap::Args)]
pub struct DutyArgs {
    /// The time from one audit of the cluster to the next; its reports are kept where openreports.io or wgpolicyk8s.io
    /// is installed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    report_interval: SignedDuration,
    /// Keep no reports in the cluster
    #[arg(long, conflicts_with = "report_interval")]
    no_reports: bool,
    /// What has been terminating for this long is stuck: counted, logged once a day, reported
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub terminating_after: SignedDuration,
    /// A further kind to watch for stuck deletions, such as Job.batch; may be given several times, and needs the right
    /// to list it
    #[arg(long, value_name = "KIND.GROUP", value_parser = kind)]
    terminating_kind: Vec<GroupKind>,
}

/// What the background tasks need.
pub struct Duties {
    /// The connection.
    pub client: Client,
    /// What the API server serves.
    pub kinds: Arc<Kinds>,
    /// Reads of the cluster.
    pub source: LiveSource,
    /// What Applications claim.
    pub inventory: Arc<LiveInventory>,
    /// The policy in force.
    pub policy: Arc<LivePolicy>,
    /// Whether reviews can be judged.
    pub readiness: Arc<Readiness>,
    /// Whether watches go on.
    pub health: Arc<Health>,
    /// The serving certificate.
    pub tls: Arc<ServerTls>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

impl Duties {
    /// Starts them all.
    pub fn begin(self, args: &DutyArgs, background: &mut JoinSet<anyhow::Result<()>>) {
        let Self { client, kinds, source, inventory, policy, readiness, health, tls, metrics } = self;
        let source = source.gently();
        let status = StatusWriter {
            client: client.clone(),
            inventory: inventory.clone(),
            policy: policy.clone(),
            readiness: readiness.clone(),
            health: health.clone(),
        };
        background.spawn(status.run());
        let alarm = Alarm {
            client: client.clone(),
            policy: policy.clone(),
            readiness: readiness.clone(),
            health,
            certificate: Box::new({
                let tls = tls.clone();
                move || tls.chain()
            }),
            certificate_end: Box::new(move || tls.not_after()),
            metrics: metrics.clone(),
        };
        background.spawn(alarm.run());
        let stuck = StuckWatch {
            source: source.clone(),
            inventory: inventory.clone(),
            policy: policy.clone(),
            metrics,
            after: args.terminating_after,
            kinds: args.terminating_kind.clone(),
        };
        background.spawn(stuck.run());
        if !args.no_reports {
            let every = Duration::try_from(args.report_interval).unwrap_or(Duration::from_secs(3600));
            let stuck_after = args.terminating_after;
            let reporter = Reporter { client, kinds, source, inventory, policy, readiness, every, stuck_after };
            background.spawn(reporter.run());
        }
    }
}

/// `Job.batch`, or `Pod` for the core group.
fn kind(text: &str) -> Result<GroupKind, String> {
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    if kind.starts_with(|first: char| first.is_ascii_uppercase()) {
        Ok(GroupKind::new(group, kind))
    } else {
        Err("write it as Kind.group, such as Job.batch or Certificate.cert-manager.io".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written_everywhere() {
        assert_eq!(kind("Job.batch"), Ok(GroupKind::new("batch", "Job")));
        assert_eq!(kind("Certificate.cert-manager.io"), Ok(GroupKind::new("cert-manager.io", "Certificate")));
        assert_eq!(kind("Pod"), Ok(GroupKind::new("", "Pod")));
        assert!(kind("jobs.batch").is_err());
        assert!(duration("0s").is_err() && duration("soon").is_err() && duration("90s").is_ok());
    }
}
