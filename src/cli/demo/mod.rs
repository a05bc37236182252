//! `demo`: the three incidents that the guard exists for, and what would have been right, against an embedded snapshot:
//! the real server, a fresh certificate, real TLS.

mod client;
mod scenes;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use self::{client::Client, scenes::Scene};
use super::output;
use crate::{
    certs::Authority,
    server::{
        Guard, Lanes, Limits, ServerTls, Transport, admin, routes,
        shutdown::{self, Port},
    },
    state::{LiveInventory, LivePolicy, Readiness},
    telemetry::{DecisionLog, Metrics},
};
use cascade_guard_core::{
    policy::{Mode, Policy},
    snapshot::Snapshot,
};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave the server running afterwards and print a curl line for it
    #[arg(long)]
    keep: bool,
}

const DAY: Duration = Duration::from_secs(86_400);

/// Plays every scene. Exit 0 if every verdict is as it must be, 1 if not.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let good = runtime.block_on(play(args.keep))?;
    Ok(ExitCode::from(u8::from(!good)))
}

async fn play(keep: bool) -> anyhow::Result<bool> {
    let now = Timestamp::now();
    let world = include_str!("world.yaml").replace("${IN_AN_HOUR}", &(now + SignedDuration::from_hours(1)).to_string());
    let world = Snapshot::parse("the demo's snapshot", world)?;
    let scenes = scenes::read(&world)?;
    let authority = Authority::new(DAY)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = Server::start(world, &authority, stopped).await?;
    let client = Client::new(&authority.cert_pem, server.webhook)?;
    output::line(&format!("cascade-guard serves https://{} with a certificate made a moment ago.", server.webhook))?;
    let mut wrong = 0;
    for scene in &scenes {
        let answer = client.send(&scene.path(), &scene.review).await?;
        output::line(&scene.show(&answer))?;
        if let Err(problem) = scene.check(&answer) {
            wrong += 1;
            output::line(&format!("  !! this is not as it must be: {problem}"))?;
        }
    }
    let total = scenes.len();
    output::line(&format!("\n{} of {total} verdicts are as they must be.", total - wrong))?;
    if keep {
        wait(&authority, &scenes[0], &server).await?;
    }
    // The server is gone only if it failed, and then it says so itself.
    let _ = stop.send(());
    server.running.await??;
    Ok(wrong == 0)
}

/// The server of the demo.
struct Server {
    webhook: SocketAddr,
    plain: SocketAddr,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Server {
    async fn start(world: Snapshot, authority: &Authority, stopped: oneshot::Receiver<()>) -> anyhow::Result<Self> {
        let metrics = Arc::new(Metrics::new());
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let pair = authority.serving(&names, DAY)?;
        let tls = ServerTls::new(pair.cert_pem.as_bytes(), pair.key_pem.as_bytes(), None, metrics.clone())?;
        let policy = Policy::parse(include_str!("policy.yaml"))?;
        let inventory = Arc::new(LiveInventory::new(world.inventory(&policy, (0, 0))));
        let guard = Arc::new(Guard {
            inventory: inventory.clone(),
            health: Arc::default(),
            policy: Arc::new(LivePolicy::new(policy, Mode::Enforce, metrics.clone())),
            source: world,
            lanes: Lanes::default(),
            metrics: metrics.clone(),
            decisions: DecisionLog::default(),
            clock: Timestamp::now,
        });
        let readiness = Arc::new(Readiness::default());
        let plain = Port {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            transport: Transport::Plain,
            app: admin::router(admin::Admin {
                readiness: readiness.clone(),
                metrics,
                inventory,
                health: Arc::default(),
                stuck_after: SignedDuration::ZERO,
                log: None,
            }),
            limits: Limits::of_plain_port(),
        };
        let webhook = Port {
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            transport: Transport::Tls(Arc::new(tls)),
            app: routes::router(guard),
            limits: Limits::default(),
        };
        let addresses = (webhook.address()?, plain.address()?);
        let running = tokio::spawn(async move {
            let stop = async {
                // A demo that went away stops its server as well.
                let _ = stopped.await;
                Ok("the end of the demo")
            };
            let open = async { Ok(webhook) };
            let mut nothing = JoinSet::new();
            shutdown::run(open, plain, Duration::ZERO, &readiness, &mut nothing, stop).await
        });
        Ok(Self { webhook: addresses.0, plain: addresses.1, running })
    }
}

/// Files for curl, removed at the end.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints a curl line and waits for Ctrl-C.
async fn wait(authority: &Authority, scene: &Scene, server: &Server) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("cascade-guard-demo-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let kept = Kept(folder);
    let (ca, review) = (kept.0.join("ca.crt"), kept.0.join("review.json"));
    fs::write(&ca, &authority.cert_pem)?;
    fs::write(&review, &scene.review)?;
    output::line(&format!(
        "\nThe server goes on until Ctrl-C. Metrics: http://{}/metrics\n\ncurl --cacert {} -H 'Content-Type: application/json' \
         --data-binary @{} 'https://{}{}?timeout=10s'",
        server.plain,
        ca.display(),
        review.display(),
        server.webhook,
        scene.path(),
    ))?;
    shutdown::told_to_stop().await?;
    Ok(())
}
