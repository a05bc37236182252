//! Containers whose copies share what they hold until one of them changes it.
//!
//! A review is judged by the inventory as it was at one moment, and goes on while events come in. So an inventory can be
//! copied in a few steps, and an event copies only the parts that it changes, and only while somebody still looks at the
//! copy from before. Everything is reached through these containers, so the largest of them are cut into small parts.

use std::{
    borrow::Borrow,
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, Hash, RandomState},
    ops::{Deref, DerefMut, Index},
    sync::Arc,
};

/// A value that is copied as a whole: for what is small or seldom changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared<T>(Arc<T>);

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

/// Page and part of a key. The tables of the parts go by the lowest and the highest bits of the hash, so these are others.
fn place<const W: usize>(hasher: &impl BuildHasher, key: &(impl Hash + ?Sized)) -> (usize, usize) {
    let hash = usize::try_from(hasher.hash_one(key) >> 32 & 0xff_ffff).unwrap_or_default();
    (hash % W, hash / W % W)
}

type Part<K, V, S> = Arc<HashMap<K, V, S>>;

/// Parts on pages, `W` on each of `W`.
type Pages<P, const W: usize> = Arc<[Arc<[P; W]>; W]>;

/// A map in `W * W` parts, by hash, on `W` pages. A part is small beside the map, and so is a page.
#[derive(Clone, Debug)]
pub(super) struct SharedMap<K, V, S = RandomState, const W: usize = 16> {
    pages: Pages<Part<K, V, S>, W>,
    hasher: S,
}

impl<K, V, S: BuildHasher + Default + Clone, const W: usize> Default for SharedMap<K, V, S, W> {
    fn default() -> Self {
        let hasher = S::default();
        let part = Arc::new(HashMap::with_hasher(hasher.clone()));
        let page = Arc::new(std::array::from_fn(|_| part.clone()));
        Self { pages: Arc::new(std::array::from_fn(|_| page.clone())), hasher }
    }
}

impl<K, V, S, const W: usize> SharedMap<K, V, S, W> {
    /// Every entry, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pages.iter().flat_map(|page| page.iter()).flat_map(|part| part.iter())
    }

    /// Every key, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Every value, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, const W: usize> SharedMap<K, V, S, W> {
    fn part<Q: Hash + ?Sized>(&self, key: &Q) -> &HashMap<K, V, S> {
        let (page, part) = place::<W>(&self.hasher, key);
        &self.pages[page][part]
    }

    /// The value under a key.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.part(key).get(key)
    }

    /// Whether there is a value under a key.
    pub(super) fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.part(key).contains_key(key)
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone, const W: usize> SharedMap<K, V, S, W> {
    fn part_mut<Q: Hash + ?Sized>(&mut self, key: &Q) -> &mut HashMap<K, V, S> {
        let (page, part) = place::<W>(&self.hasher, key);
        Arc::make_mut(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.pages)[page])[part])
    }

    /// The value under a key, to be changed.
    pub(super) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        // What is not there is no reason to copy anything.
        if self.contains_key(key) { self.part_mut(key).get_mut(key) } else { None }
    }

    /// Puts a value under a key; gives the one that was there.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.part_mut(&key).insert(key, value)
    }

    /// Takes the value under a key out.
    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if self.contains_key(key) { self.part_mut(key).remove(key) } else { None }
    }

    /// The entry of a key.
    pub(super) fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        self.part_mut(&key).entry(key)
    }
}

/// A map of which there is an entry for every claim. Its parts are sorted lists, which hold nothing but their entries; a
/// hash table of that size is half empty.
#[derive(Clone, Debug)]
pub(super) struct SharedIndex<K, V, S> {
    pages: Pages<Arc<Vec<(K, V)>>, INDEX_WIDTH>,
    hasher: S,
}

/// An index is in so many parts, squared: of a million entries each holds a few hundred.
const INDEX_WIDTH: usize = 64;

impl<K, V, S: Default> Default for SharedIndex<K, V, S> {
    fn default() -> Self {
        let part = Arc::new(Vec::new());
        let page = Arc::new(std::array::from_fn(|_| part.clone()));
        Self { pages: Arc::new(std::array::from_fn(|_| page.clone())), hasher: S::default() }
    }
}

impl<K: Hash + Ord + Copy, V: Copy, S: BuildHasher> SharedIndex<K, V, S> {
    /// The value under a key.
    pub(super) fn get(&self, key: K) -> Option<&V> {
        let (page, part) = place::<INDEX_WIDTH>(&self.hasher, &key);
        let part = &self.pages[page][part];
        part.binary_search_by_key(&key, |(known, _)| *known).ok().map(|at| &part[at].1)
    }

    fn part_mut(&mut self, key: K) -> &mut Vec<(K, V)> {
        let (page, part) = place::<INDEX_WIDTH>(&self.hasher, &key);
        Arc::make_mut(&mut Arc::make_mut(&mut Arc::make_mut(&mut self.pages)[page])[part])
    }

    /// Puts a value under a key, instead of the one that was there.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let part = self.part_mut(key);
        match part.binary_search_by_key(&key, |(known, _)| *known) {
            Ok(at) => part[at].1 = value,
            Err(at) => {
                if part.len() == part.capacity() {
                    // By an eighth, where a list would double: there are very many of them.
                    part.reserve_exact(part.len() / 8 + 4);
                }
                part.insert(at, (key, value));
            }
        }
    }

    /// Takes the value under a key out.
    pub(super) fn remove(&mut self, key: K) {
        if self.get(key).is_none() {
            return;
        }
        let part = self.part_mut(key);
        if let Ok(at) = part.binary_search_by_key(&key, |(known, _)| *known) {
            part.remove(at);
            if part.len() < part.capacity() / 2 {
                part.shrink_to_fit();
            }
        }
    }
}

/// So many values are on one page of a list.
const PAGE: usize = 64;

/// A list in pages.
#[derive(Clone, Debug)]
pub(super) struct SharedList<T> {
    pages: Arc<Vec<Arc<Vec<T>>>>,
    len: usize,
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { pages: Arc::default(), len: 0 }
    }
}

impl<T> SharedList<T> {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The value at a place.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE)?.get(at % PAGE)
    }

    /// Every value, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| page.iter())
    }
}

impl<T: Clone> SharedList<T> {
    /// The value at a place, to be changed.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        Arc::make_mut(Arc::make_mut(&mut self.pages).get_mut(at / PAGE)?).get_mut(at % PAGE)
    }

    /// Changes the value at a place, which has to be there.
    pub(super) fn set(&mut self, at: usize, value: T) {
        if let Some(place) = self.get_mut(at) {
            *place = value;
        }
    }

    /// Adds a value at the end.
    pub(super) fn push(&mut self, value: T) {
        let pages = Arc::make_mut(&mut self.pages);
        if self.len.is_multiple_of(PAGE) {
            pages.push(Arc::default());
        }
        if let Some(page) = pages.last_mut() {
            Arc::make_mut(page).push(value);
            self.len += 1;
        }
    }
}

impl<T> Index<usize> for SharedList<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pages[at / PAGE][at % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_a_map_stays_as_it_was_and_shares_what_did_not_change() {
        let mut map: SharedMap<u32, u32> = SharedMap::default();
        for key in 0..10_000 {
            map.insert(key, key);
        }
        let before = map.clone();
        *map.get_mut(&7).unwrap() = 70;
        map.remove(&8);
        map.entry(10_000).or_insert(1);
        assert_eq!((before.get(&7), before.get(&8), before.get(&10_000)), (Some(&7), Some(&8), None));
        assert_eq!((map.get(&7), map.get(&8), map.get(&10_000)), (Some(&70), None, Some(&1)));
        assert_eq!((before.iter().count(), map.keys().count()), (10_000, 10_000));
        let shared = |(one, other): (&Part<u32, u32, _>, &Part<u32, u32, _>)| Arc::ptr_eq(one, other);
        let parts = |map: &SharedMap<u32, u32>| map.pages.iter().flat_map(|page| page.to_vec()).collect::<Vec<_>>();
        let same = parts(&before).iter().zip(&parts(&map)).filter(|pair| shared(*pair)).count();
        assert!(same >= 256 - 3, "{same} parts of 256 are shared");
    }

    #[test]
    fn nothing_is_copied_for_what_is_not_there() {
        let mut map: SharedMap<u32, u32> = SharedMap::default();
        map.insert(1, 1);
        let before = map.clone();
        assert!(map.get_mut(&2).is_none() && map.remove(&2).is_none());
        assert!(Arc::ptr_eq(&before.pages, &map.pages));
    }

    #[test]
    fn entries_are_spread_over_all_parts() {
        let mut map: SharedMap<u32, ()> = SharedMap::default();
        for key in 0..25_600 {
            map.insert(key, ());
        }
        let sizes: Vec<usize> = map.pages.iter().flat_map(|page| page.iter().map(|part| part.len())).collect();
        assert!(sizes.iter().all(|size| (40..200).contains(size)), "{sizes:?}");
    }

    #[test]
    fn copy_of_an_index_stays_as_it_was_and_shares_what_did_not_change() {
        let mut index: SharedIndex<u32, u32, RandomState> = SharedIndex::default();
        for key in 0..50_000 {
            index.insert(key, key);
        }
        let before = index.clone();
        index.insert(7, 70);
        index.remove(8);
        index.remove(60_000);
        index.insert(50_000, 1);
        assert_eq!((before.get(7), before.get(8), before.get(50_000)), (Some(&7), Some(&8), None));
        assert_eq!((index.get(7), index.get(8), index.get(50_000)), (Some(&70), None, Some(&1)));
        assert!((9..50_000).all(|key| index.get(key) == Some(&key)));
        let parts =
            |index: &SharedIndex<u32, u32, _>| index.pages.iter().flat_map(|page| page.to_vec()).collect::<Vec<_>>();
        let (old, new) = (parts(&before), parts(&index));
        assert!(old.iter().zip(&new).filter(|(old, new)| Arc::ptr_eq(old, new)).count() >= 4096 - 3);
        assert!(new.iter().all(|part| part.capacity() <= part.len() + part.len() / 8 + 5), "too much is kept free");
    }

    #[test]
    fn copy_of_a_list_stays_as_it_was_and_shares_what_did_not_change() {
        let mut list: SharedList<u32> = SharedList::default();
        for value in 0..1000 {
            list.push(value);
        }
        let before = list.clone();
        list.set(100, 1);
        list.push(1000);
        assert_eq!((before[100], before.len(), before.get(1000)), (100, 1000, None));
        assert_eq!((list[100], list.len(), list.get(1000)), (1, 1001, Some(&1000)));
        assert!(list.get(1001).is_none() && list.get_mut(1001).is_none());
        assert_eq!(list.iter().sum::<u32>(), before.iter().sum::<u32>() - 100 + 1 + 1000);
        let same = before.pages.iter().zip(list.pages.iter()).filter(|(one, other)| Arc::ptr_eq(one, other)).count();
        assert_eq!(same, before.pages.len() - 2);
    }
}
