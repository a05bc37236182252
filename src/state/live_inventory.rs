//! The inventory of a running process.

use std::sync::Arc;

use cascade_guard_core::inventory::Inventory;
use parking_lot::{MappedRwLockWriteGuard, RwLock, RwLockWriteGuard};

use crate::judge::View;

/// What the cluster looks like: events change it, reviews and audits read it as it was at one moment.
///
/// The lock is held for as long as it takes to take a copy, or to take in one event; never while anything is judged. Copies
/// share what they hold. An event that comes in while somebody still looks at a copy copies the parts that it changes.
#[derive(Debug)]
pub struct LiveInventory {
    now: RwLock<Arc<Inventory>>,
}

impl LiveInventory {
    /// Begins with this inventory.
    pub fn new(inventory: Inventory) -> Self {
        Self { now: RwLock::new(Arc::new(inventory)) }
    }

    /// The inventory as it is at this moment, for as long as the caller likes.
    pub fn read(&self) -> Arc<Inventory> {
        self.now.read().clone()
    }

    /// Access for one change. Nobody may wait for anything while holding it.
    pub fn write(&self) -> MappedRwLockWriteGuard<'_, Inventory> {
        RwLockWriteGuard::map(self.now.write(), Arc::make_mut)
    }
}

impl View for LiveInventory {
    fn with<T>(&self, read: impl FnOnce(&Inventory) -> T) -> T {
        read(&self.read())
    }
}

#[cfg(test)]
mod tests {
    use cascade_guard_core::{argo::Clusters, object::ObjectMeta};

    use super::*;

    #[test]
    fn whoever_reads_holds_up_nobody_and_sees_no_change() {
        let live = LiveInventory::new(Inventory::new((1, 2), "argocd", Clusters::default()));
        let before = live.read();
        // With a lock held by a reader this would wait for ever.
        live.write().apply_namespace(ObjectMeta { name: "shop".to_owned(), ..ObjectMeta::default() });
        assert!(before.namespace("shop").is_none() && live.read().namespace("shop").is_some());
        live.with(|inventory| {
            live.write().remove_namespace("shop");
            assert!(inventory.namespace("shop").is_some());
        });
        assert!(live.read().namespace("shop").is_none());
    }
}
