//! Lets somebody else see the Applications that feed the inventory, so that they are watched once.

use std::sync::Arc;

use super::index_feed::Feed;
use cascade_guard_core::inventory::Names;

/// Somebody who is shown every Application.
pub trait Observer: Send + Sync {
    /// It is there, new or changed.
    fn applied(&self, namespace: &str, name: &str, json: &str);
    /// It is gone.
    fn removed(&self, namespace: &str, name: &str);
    /// A whole list was delivered: what is not in it is gone.
    fn listed(&self, names: &Names);
}

/// A feed and whoever looks on.
pub(super) struct ObservedFeed {
    pub(super) feed: Box<dyn Feed>,
    pub(super) observer: Arc<dyn Observer>,
}

impl Feed for ObservedFeed {
    fn apply(&mut self, namespace: &str, name: &str, json: &str) {
        self.feed.apply(namespace, name, json);
        self.observer.applied(namespace, name, json);
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        self.feed.remove(namespace, name);
        self.observer.removed(namespace, name);
    }

    fn retain(&mut self, listed: &Names) {
        self.feed.retain(listed);
        self.observer.listed(listed);
    }
}
