//! `serve`: runs the webhook.

use std::{
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use tokio::{net::TcpSocket, task::JoinSet};

use super::{
    arguments::{PolicyArgs, duration},
    cluster_access::NO_SNAPSHOT,
    duties::{Duties, DutyArgs},
};
use crate::judge::Source;
use crate::{
    cluster::{Cluster, Health, Kinds, LiveSource, SILENCE, STALE_AFTER, connect},
    server::{
        Guard, Lanes, Limits, ServerTls, Transport, admin, routes,
        shutdown::{self, Port},
        tls::TlsFiles,
    },
    state::{LiveInventory, LivePolicy, POLICY_INTERVAL, POLL_INTERVAL, Readiness, Requirement, WatchedFiles},
    telemetry::{
        DecisionLog, Metrics, decisions,
        log::{self, DEFAULT_FILTER, LogFilter},
    },
};
use cascade_guard_core::{argo::Clusters, inventory::Inventory, policy::Policy};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of the webhook port (TLS); [::]:8443 for a cluster with IPv6
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Address of the plain port: /livez, /readyz, /metrics, /log-filter
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    admin_listen: SocketAddr,
    /// Serving certificate chain (PEM); read again when it changes
    #[arg(long, value_name = "FILE", default_value = "/tls/tls.crt")]
    tls_cert: PathBuf,
    /// Private key of the serving certificate (PEM)
    #[arg(long, value_name = "FILE", default_value = "/tls/tls.key")]
    tls_key: PathBuf,
    /// Let only clients connect that show a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Of those let only clients connect whose certificate bears this common name or DNS name; may be given several times
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Serve these files instead of a cluster
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context"])]
    snapshot: Option<PathBuf>,
    /// Kubeconfig of the cluster; without it $KUBECONFIG, ~/.kube/config or the Pod's ServiceAccount
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// When nothing has been heard of Applications or Namespaces for so long, claims count as unknown for whatever cascades
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    claims_stale_after: SignedDuration,
    #[command(flatten)]
    duties: DutyArgs,
    /// After SIGTERM go on accepting for so long, while the Service stops sending requests here
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    drain_seconds: u64,
    /// What is logged, such as debug or info,cascade_guard=trace
    #[arg(long, value_name = "FILTER", env = "CASCADE_GUARD_LOG", default_value = DEFAULT_FILTER)]
    log_filter: String,
}

/// Runs until SIGTERM or SIGINT.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let log = log::init(&args.log_filter).map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args, log))?;
    // Watches are still running and have nothing to tidy up.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args, log: LogFilter) -> anyhow::Result<()> {
    let Args {
        listen,
        admin_listen,
        tls_cert,
        tls_key,
        client_ca,
        client_name,
        policy: policy_args,
        snapshot,
        kubeconfig,
        context,
        claims_stale_after,
        duties: duty_args,
        drain_seconds,
        log_filter: _,
    } = args;
    let metrics = Arc::new(Metrics::new());
    let readiness = Arc::new(Readiness::default());
    let mut background = JoinSet::new();

    if client_ca.is_some() && client_name.is_empty() {
        tracing::warn!("any certificate of --client-ca is let in; say with --client-name whose is the API server's");
    }
    let tls_files = TlsFiles { cert: tls_cert, key: tls_key, client_ca, client_names: client_name };
    let (tls, watched) = ServerTls::from_files(&tls_files, metrics.clone())
        .with_context(|| format!("{} and {} cannot be served", tls_files.cert.display(), tls_files.key.display()))?;
    background.spawn(tls.clone().follow(watched, POLL_INTERVAL));
    let policy = live_policy(&policy_args, &metrics, &mut background)?;

    let served = Served {
        listen,
        admin_listen,
        tls,
        policy,
        metrics,
        readiness,
        health: Arc::new(Health::new(Duration::try_from(claims_stale_after).unwrap_or(STALE_AFTER))),
        log,
        stuck_after: duty_args.terminating_after,
        linger: Duration::from_secs(drain_seconds),
    };
    if let Some(path) = snapshot {
        let snapshot = crate::snapshot::load(&path).context("the snapshot cannot be used")?;
        if policy_args.policy.is_none() {
            served.policy.offer(Ok(policy_args.load_over(&snapshot)?), "the snapshot");
        }
        let inventory = snapshot.inventory(&served.policy.load(), fingerprint_keys());
        for (_, app) in inventory.applications().filter(|(_, app)| app.is_unreadable()) {
            tracing::error!(application = app.path(), "an Application cannot be decoded; its list is not believed");
        }
        return served.run(Arc::new(LiveInventory::new(inventory)), snapshot, background).await;
    }
    let client = connect(kubeconfig.as_deref(), context.as_deref()).await.context(NO_SNAPSHOT)?;
    let argocd = served.policy.load().spec.argocd.namespace.clone();
    let inventory = Arc::new(LiveInventory::new(Inventory::new(fingerprint_keys(), &argocd, Clusters::default())));
    let kinds = Arc::new(Kinds::default());
    let source = LiveSource::new(client.clone(), kinds.clone(), served.metrics.clone());
    let watch_policy = policy_args.policy.is_none();
    if watch_policy {
        served.readiness.missing(Requirement::Policy, "the GuardPolicy was not read yet");
    }
    served.readiness.missing(Requirement::Claims, "nothing is listed yet");
    let duties = Duties {
        client: client.clone(),
        kinds: kinds.clone(),
        source: source.clone(),
        inventory: inventory.clone(),
        policy: served.policy.clone(),
        readiness: served.readiness.clone(),
        health: served.health.clone(),
        tls: served.tls.clone(),
        metrics: served.metrics.clone(),
    };
    duties.begin(&duty_args, &mut background);
    let cluster = Cluster {
        client,
        kinds,
        inventory: inventory.clone(),
        policy: served.policy.clone(),
        watch_policy,
        readiness: served.readiness.clone(),
        metrics: served.metrics.clone(),
        health: served.health.clone(),
        silence: SILENCE,
    };
    background.spawn(cluster.run());
    served.run(inventory, source, background).await
}

/// The policy at the start. A policy file is followed. Without one, the GuardPolicy of a cluster may replace it.
fn live_policy(
    args: &PolicyArgs,
    metrics: &Arc<Metrics>,
    background: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<Arc<LivePolicy>> {
    let live = |policy| Arc::new(LivePolicy::new(policy, args.ceiling(), metrics.clone()));
    let Some(path) = &args.policy else { return Ok(live(Policy::default())) };
    let files = WatchedFiles::read(vec![path.clone()])?;
    let policy = Policy::parse(&String::from_utf8_lossy(&files.bytes()[0]))
        .with_context(|| format!("{} is no usable GuardPolicy", path.display()))?;
    let policy = live(policy);
    background.spawn(policy.clone().follow(files, path.display().to_string(), POLICY_INTERVAL));
    Ok(policy)
}

/// Keys of the fingerprints. They are secret, so that nobody can craft two names with one fingerprint.
fn fingerprint_keys() -> (u64, u64) {
    (RandomState::new().hash_one(0), RandomState::new().hash_one(1))
}

/// Everything that is the same for a cluster and a snapshot.
struct Served {
    listen: SocketAddr,
    admin_listen: SocketAddr,
    tls: Arc<ServerTls>,
    policy: Arc<LivePolicy>,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    health: Arc<Health>,
    log: LogFilter,
    stuck_after: SignedDuration,
    linger: Duration,
}

impl Served {
    async fn run<S: Source + Send + 'static>(
        self,
        inventory: Arc<LiveInventory>,
        source: S,
        mut background: JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let guard = Arc::new(Guard {
            inventory: inventory.clone(),
            health: self.health.clone(),
            policy: self.policy,
            source,
            lanes: Lanes::default(),
            metrics: self.metrics.clone(),
            decisions: DecisionLog::default(),
            clock: Timestamp::now,
        });
        background.spawn(sweep(guard.clone()));
        let webhook = bind(self.listen)?;
        let plain = bind(self.admin_listen)?.listen(1024).context("the plain port cannot be listened on")?;
        let plain = Port {
            listener: plain,
            transport: Transport::Plain,
            app: admin::router(admin::Admin {
                readiness: self.readiness.clone(),
                metrics: self.metrics,
                inventory,
                health: self.health,
                stuck_after: self.stuck_after,
                log: Some(self.log),
            }),
            limits: Limits::of_plain_port(),
        };
        tracing::info!(version = env!("CARGO_PKG_VERSION"), plain = %plain.address()?, "started");
        let (readiness, tls) = (self.readiness.clone(), self.tls);
        let webhook = async move {
            // Before the policy is known an answer would be a guess. A port that is not open yet makes the API server
            // do what the failure policy of each entry says, which is what its owner decided for this case.
            readiness.wait_for(Requirement::Policy).await;
            let listener = webhook.listen(1024).context("the webhook port cannot be listened on")?;
            let (transport, limits) = (Transport::Tls(tls), Limits::default());
            let port = Port { listener, transport, app: routes::router(guard), limits };
            tracing::info!(address = %port.address()?, "the webhook port is open");
            Ok(port)
        };
        let stop = shutdown::told_to_stop();
        shutdown::run(webhook, plain, self.linger, &self.readiness, &mut background, stop).await
    }
}

/// Binds without listening yet: a port that is taken is noticed at once.
fn bind(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }
        .with_context(|| format!("there can be no socket for {address}"))?;
    // A restart must not wait for the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address).with_context(|| format!("cannot bind {address}"))?;
    Ok(socket)
}

/// Logs the counts of repeated decisions when their window is over.
async fn sweep<S>(guard: Arc<Guard<S>>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(decisions::WINDOW / 10).await;
        guard.decisions.sweep(Instant::now());
    }
}
