//! The rollout watchdog in a cluster: two replicas, a Git server behind TLS, an Application whose status follows what a real
//! Argo CD wrote.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use cascade_guard_core::watchdog::{
    Phase, WatchedRepository,
    schema::{Opening, RevertOutcome, WatchedRepositorySpec, WatchedRepositoryStatus},
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        argo::applications,
        git_server::{GitServer, TOKEN, git},
        guard::plain_get,
        rights::may,
        wait::eventually,
        watchdog::{NAMESPACE, Replica, install, status},
        world::World,
    },
    tests,
};

tests!(alone:
    watchdog_has_its_own_rights_and_no_others,
    one_cycle_loads_everything_and_judges,
    leader_that_is_killed_at_any_step_leaves_one_revert,
    protected_branch_calls_a_person,
    circuit_is_closed_by_a_person_with_a_reason,
);

async fn watchdog_has_its_own_rights_and_no_others(world: &World) -> Result<()> {
    install(world).await?;
    let account = world.plane.client(world.plane.service_account(NAMESPACE, "cascade-guard-watchdog").await?)?;
    for (verb, group, resource) in [
        ("patch", "argoproj.io", "applications"),
        ("delete", "argoproj.io", "applications"),
        ("get", "", "secrets"),
        ("create", "", "pods"),
        ("patch", "cascade-guard.io", "guardpolicies"),
        ("patch", "cascade-guard.io", "watchedrepositories"),
        ("list", "cascade-guard.io", "rolloutwatches"),
    ] {
        ensure!(!may(&account, verb, group, resource).await?, "it may {verb} {group}/{resource} everywhere");
    }
    let guard = world.guard_account().await?;
    ensure!(!may(&guard, "create", "cascade-guard.io", "rolloutwatches").await?, "the guard has no part in it");
    Ok(())
}

/// The folder of one test.
fn folder(world: &World, name: &str) -> Result<PathBuf> {
    let folder = world.folder.join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

async fn one_cycle_loads_everything_and_judges(world: &World) -> Result<()> {
    install(world).await?;
    let server = GitServer::start(&folder(world, "once")?).await?;
    server.commit("once/d.yaml", "1", "first").await?;
    let replica = Replica::new(world, &server, "replica", "").await?;
    let run = async |flags: &'static [&'static str]| tokio::task::block_in_place(|| replica.once(flags));
    let (ended, text) = run(&["--mode-ceiling=shadow"]).await?;
    ensure!(ended.success() && text.contains("one cycle: ") && text.contains("ceiling shadow"), "{ended}: {text}");
    fs::write(&server.token_file, "wrong")?;
    let (ended, text) = run(&[]).await?;
    ensure!(ended.code() == Some(2) && text.contains("cannot be reached"), "{ended}: {text}");
    ensure!(!text.contains(TOKEN) && !text.contains("wrong@"), "{text}");
    Ok(())
}

/// An Application that follows the repository, as Argo CD writes it.
struct Rollout<'a> {
    world: &'a World,
    name: &'static str,
    url: String,
    history: Vec<String>,
}

impl Rollout<'_> {
    fn source(&self) -> Value {
        json!({"repoURL": self.url, "path": self.name, "targetRevision": "main"})
    }

    async fn create(&self) -> Result<()> {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": self.name, "namespace": "argocd"},
            "spec": {"project": "default", "source": self.source(),
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.name}},
        });
        applications(self.world).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// What the controller writes: `compared`, and what is deployed.
    async fn write(&self, compared: &str, sync: &str, health: &str, phase: &str) -> Result<()> {
        let now = Timestamp::now().to_string();
        let history: Vec<Value> = (self.history.iter().enumerate())
            .map(|(id, revision)| json!({"id": id, "revision": revision, "source": self.source(), "deployedAt": now}))
            .collect();
        let status = json!({"status": {
            "reconciledAt": now,
            "sync": {"status": sync, "revision": compared, "comparedTo": {"source": self.source(),
                "destination": {"server": "https://kubernetes.default.svc", "namespace": self.name}}},
            "health": {"status": health, "lastTransitionTime": now},
            "history": history, "sourceType": "Directory",
            "operationState": {"phase": phase, "startedAt": now, "operation": {"sync": {"revision": compared}},
                "syncResult": {"revision": compared, "source": self.source(), "resources": []}},
        }});
        let client = self.world.argocd.clone();
        let api = crate::harness::argo::applications_by(client);
        api.patch(self.name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// A sync that succeeds, after which it is like this.
    async fn sync(&mut self, commit: &str, health: &str) -> Result<()> {
        self.write(commit, "OutOfSync", "Healthy", "Running").await?;
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        self.history.push(commit.to_owned());
        self.write(commit, "Synced", health, "Succeeded").await
    }
}

/// A watch about to fail: the deadline of a trailer is half a minute at least, so it was seen in the past.
async fn about_to_fail(world: &World, name: &str) -> Result<()> {
    let api: Api<cascade_guard_core::watchdog::RolloutWatch> = Api::namespaced(world.plane.admin()?, NAMESPACE);
    eventually("the watch to be judged", async || {
        let mut watch = api.get(name).await?;
        let status = watch.status.as_mut().context("no status")?;
        ensure!(status.phase == Phase::Reached && status.before.is_some(), "{status:?}");
        status.reached = Some(Timestamp::now() - SignedDuration::from_secs(28));
        api.replace_status(name, &PostParams::default(), &watch).await?;
        Ok(())
    })
    .await
}

/// Where the leader is killed.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// While the watch is judged, before anything was intended.
    Judging,
    /// The intent is written, the server has the push in hand and has not taken it.
    Pushing,
    /// The server has taken the push, the leader does not know it.
    Pushed,
    /// Nobody is killed.
    Never,
}

async fn leader_that_is_killed_at_any_step_leaves_one_revert(world: &World) -> Result<()> {
    install(world).await?;
    let server = GitServer::start(&folder(world, "killed")?).await?;
    let spec = "  circuit: {revertsInARow: 100, revertsAnHour: 100}\n";
    let replicas = [Replica::new(world, &server, "one", spec).await?, Replica::new(world, &server, "two", spec).await?];
    let first = server.commit("kill/d.yaml", "0", "first").await?;
    let mut rollout = Rollout { world, name: "kill", url: server.url(), history: vec![first.clone()] };
    rollout.create().await?;
    rollout.write(&first, "Synced", "Healthy", "Succeeded").await?;
    let admin = world.plane.admin()?;
    for replica in &replicas {
        replica.start()?;
    }
    eventually("the first fetch", async || {
        let api: Api<WatchedRepository> = Api::namespaced(admin.clone(), NAMESPACE);
        let found = api.list(&ListParams::default()).await?.items;
        let mine = found.iter().find(|repository| repository.spec.url == server.url());
        ensure!(mine.is_some_and(|r| r.status.as_ref().is_some_and(|status| !status.cursors.is_empty())), "not yet");
        Ok(())
    })
    .await?;
    for (index, step) in [Step::Judging, Step::Pushing, Step::Pushed, Step::Never].into_iter().enumerate() {
        let content = format!("bad {index}");
        let message = format!("kill: {content}\n\nWatchdog: app=kill deadline=30 stable=5 mode=arm");
        let commit = server.commit("kill/d.yaml", &content, &message).await?;
        let name = format!("kill-{}", &commit[..10]);
        eventually("the watch", async || {
            status(&admin, &name).await?.context("there is none")?;
            Ok(())
        })
        .await
        .with_context(|| replicas.iter().map(Replica::log).collect::<String>())?;
        rollout.sync(&commit, "Degraded").await?;
        killed_at(world, &server, &replicas, &name, step).await.with_context(|| format!("{step:?}"))?;
        let settled = eventually("the revert", async || {
            let status = status(&admin, &name).await?.context("there is none")?;
            ensure!(status.phase == Phase::Reverted, "{status:?}");
            Ok(status)
        })
        .await
        .with_context(|| replicas.iter().map(Replica::log).collect::<String>())?;
        let reverts = server.reverts(&commit).await?;
        ensure!(reverts.len() == 1, "{step:?}: {reverts:?}");
        ensure!(settled.revert.as_ref().is_some_and(|revert| revert.commit == reverts[0]), "{step:?}: {settled:?}");
        // It is deployed and heals.
        rollout.sync(&reverts[0], "Healthy").await?;
        eventually("the look after the revert", async || {
            let status = status(&admin, &name).await?.context("there is none")?;
            ensure!(status.revert.is_some_and(|revert| revert.outcome == RevertOutcome::Healed), "not healed yet");
            Ok(())
        })
        .await?;
        server.pull().await?;
        for replica in &replicas {
            replica.kill()?;
            replica.start()?;
        }
    }
    let logs: String = replicas.iter().map(Replica::log).collect();
    ensure!(!logs.contains(TOKEN), "the token is in the log");
    Ok(())
}

/// Lets the watch fail, and kills whoever leads at a step of the revert.
async fn killed_at(world: &World, server: &GitServer, replicas: &[Replica], name: &str, step: Step) -> Result<()> {
    let holding = server.folder.join("holding");
    let _ = fs::remove_file(&holding);
    let admin = world.plane.admin()?;
    // The hook says that it is held up, and goes on when the file is gone, or after a time if nobody removes it.
    let hold = format!(
        "touch '{0}'; i=0; while test -e '{0}' && test $i -lt 200; do sleep 0.1; i=$((i+1)); done",
        holding.display()
    );
    match step {
        Step::Judging => {
            about_to_fail(world, name).await?;
            for replica in replicas {
                replica.kill()?;
            }
            for replica in replicas {
                replica.start()?;
            }
            return Ok(());
        }
        Step::Never => return about_to_fail(world, name).await,
        // What the server has in hand is refused: the client is gone.
        Step::Pushing => server.hook("pre-receive", &format!("{hold}; exit 1"))?,
        Step::Pushed => server.hook("post-receive", &hold)?,
    }
    about_to_fail(world, name).await?;
    eventually("the push", async || {
        ensure!(holding.exists(), "nobody pushes");
        Ok(())
    })
    .await
    .with_context(|| replicas.iter().map(Replica::log).collect::<String>())?;
    let intended = status(&admin, name).await?.and_then(|status| status.revert).context("the intent comes first")?;
    ensure!(!intended.commit.is_empty() && intended.pushed.is_none(), "{intended:?}");
    for replica in replicas {
        replica.kill()?;
    }
    server.hook("pre-receive", "")?;
    server.hook("post-receive", "")?;
    fs::remove_file(&holding)?;
    for replica in replicas {
        replica.start()?;
    }
    Ok(())
}

async fn protected_branch_calls_a_person(world: &World) -> Result<()> {
    install(world).await?;
    let server = GitServer::start(&folder(world, "protected")?).await?;
    let first = server.commit("protected/d.yaml", "0", "first").await?;
    let mut rollout = Rollout { world, name: "protected", url: server.url(), history: vec![first.clone()] };
    rollout.create().await?;
    rollout.write(&first, "Synced", "Healthy", "Succeeded").await?;
    // Other tests revert as well, and the circuit counts over all.
    let spec = "  circuit: {revertsInARow: 100, revertsAnHour: 100}\n";
    let replica = Replica::new(world, &server, "replica", spec).await?;
    tokio::task::block_in_place(|| replica.once(&[]))?;
    replica.start()?;
    eventually("the probes", async || {
        for probe in ["/livez", "/readyz"] {
            let (status, body) = plain_get(replica.port, probe).await?;
            ensure!(status == 200, "{probe}: {body}");
        }
        let (_, metrics) = plain_get(replica.port, "/metrics").await?;
        ensure!(metrics.contains("cascade_guard_watchdog_leading 1"), "it does not lead yet");
        ensure!(metrics.contains("cascade_guard_watchdog_verdicts_total{phase=\"RevertFailed\"} 0"), "{metrics}");
        Ok(())
    })
    .await
    .with_context(|| replica.log())?;
    let message = "protected: bad\n\nWatchdog: app=protected deadline=30 stable=5 mode=arm";
    let commit = server.commit("protected/d.yaml", "bad", message).await?;
    let name = format!("protected-{}", &commit[..10]);
    let admin = world.plane.admin()?;
    eventually("the watch", async || {
        status(&admin, &name).await?.context("there is none")?;
        Ok(())
    })
    .await
    .with_context(|| replica.log())?;
    server.hook("pre-receive", "echo 'main is protected' >&2; exit 1")?;
    rollout.sync(&commit, "Degraded").await?;
    about_to_fail(world, &name).await?;
    let ended = eventually("the verdict", async || {
        let status = status(&admin, &name).await?.context("there is none")?;
        ensure!(status.phase == Phase::RevertFailed, "{status:?}");
        Ok(status)
    })
    .await
    .with_context(|| replica.log())?;
    ensure!(ended.message.contains("protected"), "{}", ended.message);
    ensure!(git(&server.folder, &["rev-parse", "main"]).await? == commit, "something was pushed");
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(admin, NAMESPACE);
    let told = events.list(&ListParams::default()).await?;
    ensure!(told.items.iter().any(|event| event.reason.as_deref() == Some("RevertFailed")), "no Event says it");
    Ok(())
}

async fn circuit_is_closed_by_a_person_with_a_reason(world: &World) -> Result<()> {
    install(world).await?;
    let admin = world.plane.admin()?;
    let api: Api<WatchedRepository> = Api::namespaced(admin, NAMESPACE);
    let spec = WatchedRepositorySpec { url: "https://git.example.com/org/open.git".to_owned(), ..Default::default() };
    let mut repository = api.create(&PostParams::default(), &WatchedRepository::new("open", spec)).await?;
    let application = "argocd/web".to_owned();
    let opening = Opening { application, since: Some(Timestamp::now()), reason: "2 reverts in a row".to_owned() };
    repository.status = Some(WatchedRepositoryStatus { open: vec![opening], ..Default::default() });
    api.replace_status("open", &PostParams::default(), &repository).await?;
    let kubeconfig = folder(world, "circuit")?.join("kubeconfig");
    fs::write(&kubeconfig, world.plane.kubeconfig(&world.plane.administrator()?))?;
    let run = |app: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cascade-guard"));
        command.args(["watchdog", "close-circuit", app, "--reason", "the registry was down", "--kubeconfig"]);
        tokio::task::block_in_place(|| command.arg(&kubeconfig).output())
    };
    let other = run("api")?;
    ensure!(other.status.code() == Some(1), "it is not open for api: {other:?}");
    let closed = run("web")?;
    ensure!(closed.status.success(), "{closed:?}");
    let stored = api.get("open").await?.spec.closed;
    let closing = stored.first().context("nothing is kept")?;
    ensure!(closing.application == "argocd/web" && closing.reason == "the registry was down", "{closing:?}");
    ensure!(closing.at.is_some() && !closing.by.is_empty(), "{closing:?}");
    api.delete("open", &kube::api::DeleteParams::default()).await?;
    Ok(())
}
