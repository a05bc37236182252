//! Takes Applications and image updaters into what the watchdog knows.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::engine::Seen;
use crate::cluster::{Kinds, Observer, in_words};
use cascade_guard_core::{
    inventory::Names,
    object::GroupKind,
    watchdog::{AppRef, View, updaters::ImageUpdater},
};

/// Group and kind of Image Updater's own resources.
const IMAGE_UPDATER: (&str, &str) = ("argocd-image-updater.argoproj.io", "ImageUpdater");

/// Feeds what is seen, and wakes whoever judges.
pub struct Feed {
    /// What is known.
    pub seen: Arc<Mutex<Seen>>,
    /// Woken by every change.
    pub changed: Arc<Notify>,
}

impl Observer for Feed {
    fn applied(&self, namespace: &str, name: &str, json: &str) {
        let mut seen = self.seen.lock();
        match View::parse(json) {
            Ok(view) => seen.applications.observe(view, Timestamp::now()),
            Err(error) => {
                tracing::error!(namespace, name, column = error.column(), "an Application cannot be decoded");
                seen.applications.remove(&AppRef::new(namespace, name));
            }
        }
        drop(seen);
        self.changed.notify_one();
    }

    fn removed(&self, namespace: &str, name: &str) {
        self.seen.lock().applications.remove(&AppRef::new(namespace, name));
        self.changed.notify_one();
    }

    fn listed(&self, names: &Names) {
        let listed: BTreeSet<AppRef> = names.iter().map(|(namespace, name)| AppRef::new(namespace, name)).collect();
        self.seen.lock().applications.keep_only(&listed);
        self.changed.notify_one();
    }
}

/// The image updaters of the cluster; where they cannot be listed, one that stands for all.
pub async fn image_updaters(client: &Client, kinds: &Kinds) -> Vec<ImageUpdater> {
    let (group, kind) = IMAGE_UPDATER;
    let Some(served) = kinds.known(&GroupKind::new(group, kind)) else { return Vec::new() };
    let kind = GroupVersionKind::gvk(group, &served.version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &served.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => {
            let objects = list.items.iter().filter_map(|item| serde_json::to_value(item).ok());
            objects.map(|object| ImageUpdater::read(&object)).collect()
        }
        Err(error) => vec![ImageUpdater::unreadable(&in_words(&error))],
    }
}
