//! Watches in the cluster: `RolloutWatch` and `WatchedRepository`, with Events on them.

use std::{collections::BTreeMap, sync::Arc};

use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectMeta, PostParams},
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use parking_lot::Mutex;

use super::{
    removal::Remover,
    store::{Kept, KeptRepository, Store, Written},
};
use crate::cluster::in_words;
use cascade_guard_core::{
    object::ObjectRef,
    text::clip,
    watchdog::{Phase, RolloutWatch, RolloutWatchSpec, WatchedRepository, schema::AppRef},
};

/// A page of a list.
const PAGE: u32 = 500;
/// An Event's note is no longer than this.
const MAX_NOTE: usize = 1000;

/// The cluster as a store.
pub struct KubeStore {
    watches: Api<RolloutWatch>,
    repositories: Api<WatchedRepository>,
    recorder: Recorder,
    remover: Arc<Remover>,
    uids: Mutex<BTreeMap<String, String>>,
}

impl KubeStore {
    /// Keeps everything in one namespace.
    pub fn new(client: Client, namespace: &str, remover: Arc<Remover>) -> Self {
        Self {
            watches: Api::namespaced(client.clone(), namespace),
            repositories: Api::namespaced(client.clone(), namespace),
            recorder: Recorder::new(client, Reporter::from("cascade-guard-watchdog")),
            remover,
            uids: Mutex::default(),
        }
    }

    fn read(&self, watch: RolloutWatch) -> Kept {
        let name = watch.name_any();
        self.uids.lock().insert(name.clone(), watch.uid().unwrap_or_default());
        Kept {
            version: watch.resource_version().unwrap_or_default(),
            stored: None,
            status: watch.status.unwrap_or_default(),
            spec: watch.spec,
            name,
        }
    }
}

fn failed(error: &kube::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", in_words(error))
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

impl Store for KubeStore {
    async fn watches(&self) -> anyhow::Result<Vec<Kept>> {
        let mut found = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = self.watches.list(&params).await.map_err(|error| failed(&error))?;
            found.extend(page.items.into_iter().map(|watch| self.read(watch)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    async fn repositories(&self) -> anyhow::Result<Vec<KeptRepository>> {
        let list = self.repositories.list(&ListParams::default()).await.map_err(|error| failed(&error))?;
        let read = |found: WatchedRepository| KeptRepository {
            name: found.name_any(),
            status: found.status.unwrap_or_default(),
            spec: found.spec,
        };
        Ok(list.items.into_iter().map(read).collect())
    }

    async fn create(&self, name: &str, spec: &RolloutWatchSpec) -> anyhow::Result<Kept> {
        let watch = RolloutWatch::new(name, spec.clone());
        let made = match self.watches.create(&PostParams::default(), &watch).await {
            Err(error) if code(&error) == 409 => self.watches.get(name).await,
            made => made,
        };
        Ok(self.read(made.map_err(|error| failed(&error))?))
    }

    async fn write(&self, kept: &Kept) -> anyhow::Result<Written> {
        let mut watch = RolloutWatch::new(&kept.name, kept.spec.clone());
        watch.metadata.resource_version = Some(kept.version.clone());
        watch.status = Some(kept.status.clone());
        match self.watches.replace_status(&kept.name, &PostParams::default(), &watch).await {
            Ok(written) => Ok(Written::Done(written.resource_version().unwrap_or_default())),
            Err(error) if code(&error) == 409 => Ok(Written::Stale),
            Err(error) if code(&error) == 404 => Ok(Written::Gone),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        self.uids.lock().remove(name);
        match self.watches.delete(name, &kube::api::DeleteParams::default()).await {
            Err(error) if code(&error) != 404 => Err(failed(&error)),
            _ => Ok(()),
        }
    }

    async fn write_repository(&self, kept: &KeptRepository) -> anyhow::Result<()> {
        let found = self.repositories.get_opt(&kept.name).await.map_err(|error| failed(&error))?;
        let found = if let Some(found) = found {
            found
        } else {
            let new = WatchedRepository {
                metadata: ObjectMeta { name: Some(kept.name.clone()), ..ObjectMeta::default() },
                spec: kept.spec.clone(),
                status: None,
            };
            self.repositories.create(&PostParams::default(), &new).await.map_err(|error| failed(&error))?
        };
        let changed = WatchedRepository { status: Some(kept.status.clone()), ..found };
        let written = self.repositories.replace_status(&kept.name, &PostParams::default(), &changed).await;
        written.map(|_| ()).map_err(|error| failed(&error))
    }

    async fn tell(&self, kept: &Kept) {
        let uid = self.uids.lock().get(&kept.name).cloned();
        let mut watch = RolloutWatch::new(&kept.name, RolloutWatchSpec::default());
        watch.metadata.namespace = Some(self.watches.namespace().unwrap_or_default().to_owned());
        watch.metadata.uid = uid;
        let calm = matches!(
            kept.status.phase,
            Phase::Waiting | Phase::Reached | Phase::Stabilizing | Phase::Confirmed | Phase::Superseded
        );
        let event = Event {
            type_: if calm { EventType::Normal } else { EventType::Warning },
            reason: kept.status.phase.as_str().to_owned(),
            note: Some(clip(&kept.status.message, MAX_NOTE)),
            action: "Watching".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &watch.object_ref(&())).await {
            tracing::warn!(watch = kept.name, reason = in_words(&error), "the Event cannot be written");
        }
    }

    async fn against_removal(&self, objects: &[(AppRef, ObjectRef)]) -> Option<Vec<String>> {
        self.remover.against(objects).await
    }
}
