//! The index of claims: who lists what, by fingerprint, by namespace and by kind.
//!
//! Owners are small numbers and objects are fingerprints, so a claim costs tens of bytes. An Application's own claims are
//! kept beside it; when it changes, only the difference touches the index.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    AppId, ClusterId,
    key::{BuildKeyHasher, Key},
    shared::{Shared, SharedIndex, SharedList, SharedMap},
};
use crate::{argo::Class, object::GroupKind};

/// One object in an Application's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which object.
    pub key: Key,
    /// Which group, kind, namespace and cluster it belongs to.
    pub bucket: BucketId,
    /// Effective sync wave; Argo CD's own are as wide.
    pub wave: i64,
    /// What the entry means.
    pub class: Class,
    /// Whether the entry says `Synced`.
    pub synced: bool,
}

/// Number of a [`Bucket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketId(u32);

/// All claims of one group and kind in one namespace of one cluster.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Cluster.
    pub cluster: ClusterId,
    /// Group and kind.
    pub kind: Arc<GroupKind>,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Applications with a claim here, and how many; sorted.
    apps: Vec<(AppId, u32)>,
}

type BucketKey = (ClusterId, Arc<GroupKind>, Arc<str>);

/// The index.
#[derive(Clone, Debug, Default)]
pub struct ClaimIndex {
    owners: SharedIndex<Key, AppId, BuildKeyHasher>,
    shared: SharedList<Vec<AppId>>,
    free_shared: Shared<Vec<u32>>,
    buckets: SharedList<Arc<Bucket>>,
    free_buckets: Shared<Vec<BucketId>>,
    places: SharedMap<BucketKey, BucketId>,
    by_namespace: SharedMap<(ClusterId, Arc<str>), BTreeSet<BucketId>>,
    by_kind: SharedMap<(ClusterId, Arc<GroupKind>), BTreeSet<BucketId>>,
    claims: usize,
}

/// Marks a number in `owners` as that of a list of several owners.
const SHARED: u32 = 1 << 31;

impl ClaimIndex {
    /// How many claims there are.
    pub fn len(&self) -> usize {
        self.claims
    }

    /// Whether nothing is claimed.
    pub fn is_empty(&self) -> bool {
        self.claims == 0
    }

    /// Applications that list the object, whatever the entry means.
    pub fn owners(&self, key: Key) -> &[AppId] {
        match self.owners.get(key) {
            None => &[],
            Some(AppId(number)) if number & SHARED != 0 => &self.shared[(number & !SHARED) as usize],
            Some(owner) => std::slice::from_ref(owner),
        }
    }

    /// The bucket with this number.
    pub fn bucket(&self, id: BucketId) -> &Bucket {
        &self.buckets[id.0 as usize]
    }

    /// Buckets of one namespace, with the Applications that have claims there.
    pub fn in_namespace(&self, cluster: ClusterId, namespace: &str) -> impl Iterator<Item = (BucketId, &Bucket)> {
        let ids = self.by_namespace.get(&(cluster, namespace.into()));
        ids.into_iter().flatten().map(|id| (*id, self.bucket(*id)))
    }

    /// Buckets of one group and kind.
    pub fn of_kind(&self, cluster: ClusterId, kind: &GroupKind) -> impl Iterator<Item = (BucketId, &Bucket)> {
        let ids = self.by_kind.get(&(cluster, Arc::new(kind.clone())));
        ids.into_iter().flatten().map(|id| (*id, self.bucket(*id)))
    }

    /// The number of the bucket for this place, made if need be. It must be followed by [`Self::replace`], which counts
    /// its claims.
    pub fn bucket_for(&mut self, cluster: ClusterId, kind: &GroupKind, namespace: &str) -> BucketId {
        let place = (cluster, Arc::new(kind.clone()), Arc::from(namespace));
        if let Some(id) = self.places.get(&place) {
            return *id;
        }
        let (_, kind, namespace) = place.clone();
        let bucket = Bucket { cluster, kind: kind.clone(), namespace: namespace.clone(), apps: Vec::new() };
        let id = if let Some(id) = self.free_buckets.pop() {
            self.buckets.set(id.0 as usize, Arc::new(bucket));
            id
        } else {
            self.buckets.push(Arc::new(bucket));
            BucketId(u32::try_from(self.buckets.len() - 1).unwrap_or(u32::MAX))
        };
        self.places.insert(place, id);
        if !namespace.is_empty() {
            self.by_namespace.entry((cluster, namespace)).or_default().insert(id);
        }
        self.by_kind.entry((cluster, kind)).or_default().insert(id);
        id
    }

    /// Replaces an Application's claims. Both lists are sorted by key and hold no key twice.
    pub fn replace(&mut self, app: AppId, old: &[Claim], new: &[Claim]) {
        let (mut left, mut right) = (old.iter().peekable(), new.iter().peekable());
        // New claims are added before old ones go, so that a bucket that is still used never becomes free in between.
        let mut gone = Vec::new();
        loop {
            match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.key == b.key => {
                    if a.bucket != b.bucket {
                        self.count(app, b.bucket);
                        gone.push((None, a.bucket));
                    }
                    left.next();
                    right.next();
                }
                (Some(a), Some(b)) if a.key < b.key => {
                    gone.push((Some(a.key), a.bucket));
                    left.next();
                }
                (Some(a), None) => {
                    gone.push((Some(a.key), a.bucket));
                    left.next();
                }
                (_, Some(b)) => {
                    self.add_owner(b.key, app);
                    self.count(app, b.bucket);
                    right.next();
                }
            }
        }
        for (key, bucket) in gone {
            if let Some(key) = key {
                self.remove_owner(key, app);
            }
            self.discount(app, bucket);
        }
    }

    fn add_owner(&mut self, key: Key, app: AppId) {
        self.claims += 1;
        let Some(owner) = self.owners.get(key).copied() else {
            self.owners.insert(key, app);
            return;
        };
        if owner.0 & SHARED != 0 {
            if let Some(list) = self.shared.get_mut((owner.0 & !SHARED) as usize) {
                list.push(app);
            }
            return;
        }
        let list = vec![owner, app];
        let number = if let Some(number) = self.free_shared.pop() {
            self.shared.set(number as usize, list);
            number
        } else {
            self.shared.push(list);
            u32::try_from(self.shared.len() - 1).unwrap_or(0)
        };
        self.owners.insert(key, AppId(number | SHARED));
    }

    fn remove_owner(&mut self, key: Key, app: AppId) {
        let Some(owner) = self.owners.get(key).copied() else { return };
        self.claims -= 1;
        if owner.0 & SHARED == 0 {
            self.owners.remove(key);
            return;
        }
        let number = owner.0 & !SHARED;
        let Some(list) = self.shared.get_mut(number as usize) else { return };
        list.retain(|other| *other != app);
        if let [last] = list[..] {
            *list = Vec::new();
            self.free_shared.push(number);
            self.owners.insert(key, last);
        }
    }

    fn count(&mut self, app: AppId, id: BucketId) {
        let Some(bucket) = self.buckets.get_mut(id.0 as usize) else { return };
        let apps = &mut Arc::make_mut(bucket).apps;
        match apps.binary_search_by_key(&app, |(other, _)| *other) {
            Ok(at) => apps[at].1 += 1,
            Err(at) => apps.insert(at, (app, 1)),
        }
    }

    fn discount(&mut self, app: AppId, id: BucketId) {
        let Some(bucket) = self.buckets.get_mut(id.0 as usize) else { return };
        let bucket = Arc::make_mut(bucket);
        if let Ok(at) = bucket.apps.binary_search_by_key(&app, |(other, _)| *other) {
            bucket.apps[at].1 -= 1;
            if bucket.apps[at].1 == 0 {
                bucket.apps.remove(at);
            }
        }
        if bucket.apps.is_empty() {
            let (cluster, kind, namespace) = (bucket.cluster, bucket.kind.clone(), bucket.namespace.clone());
            self.places.remove(&(cluster, kind.clone(), namespace.clone()));
            forget(&mut self.by_namespace, &(cluster, namespace), id);
            forget(&mut self.by_kind, &(cluster, kind), id);
            self.free_buckets.push(id);
        }
    }
}

fn forget<K: std::hash::Hash + Eq + Clone>(map: &mut SharedMap<K, BTreeSet<BucketId>>, key: &K, id: BucketId) {
    if let Some(ids) = map.get_mut(key) {
        ids.remove(&id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}

impl Bucket {
    /// Applications with a claim here.
    pub fn apps(&self) -> impl Iterator<Item = AppId> {
        self.apps.iter().map(|(app, _)| *app)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_stays_small() {
        assert_eq!(size_of::<Claim>(), 32, "there is one for every object of every Application");
    }
}
