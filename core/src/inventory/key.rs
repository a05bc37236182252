//! Fingerprints: the identity of an object on a cluster, in 128 bits.

use std::hash::{BuildHasherDefault, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

/// Fingerprint of (cluster, group, kind, namespace, name). Kept as words of 32 bits so that records that hold one need
/// no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u32; 4]);

impl Key {
    fn from_u128(value: u128) -> Self {
        let [a, b, c, d] =
            [value >> 96, value >> 64, value >> 32, value].map(|word| u32::try_from(word & 0xffff_ffff).unwrap_or(0));
        Self([a, b, c, d])
    }

    /// The same object on another cluster: fingerprints of objects and clusters are combined by exclusive or, so that a
    /// changed cluster alias moves an Application's claims without knowing their names.
    #[must_use]
    pub fn on(self, cluster: ClusterSalt) -> Self {
        let (Self(a), Self(b)) = (self, cluster.0);
        Self([a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]])
    }
}

/// What a cluster adds to the fingerprints of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSalt(Key);

/// Makes fingerprints. The key is random for each process, so nobody can craft two names that collide.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprinter {
    keys: (u64, u64),
}

impl Fingerprinter {
    /// Fingerprints under these keys.
    pub fn new(keys: (u64, u64)) -> Self {
        Self { keys }
    }

    /// Fingerprint of an object, before its cluster is added.
    pub fn object(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Key {
        self.hash(0, &[group, kind, namespace, name])
    }

    /// What the cluster with this canonical name adds.
    pub fn cluster(&self, name: &str) -> ClusterSalt {
        ClusterSalt(self.hash(1, &[name]))
    }

    fn hash(&self, tag: u8, parts: &[&str]) -> Key {
        let mut hasher = SipHasher13::new_with_keys(self.keys.0, self.keys.1);
        hasher.write_u8(tag);
        for part in parts {
            hasher.write(part.as_bytes());
            // No part can hold this byte, so no two lists of parts run together.
            hasher.write_u8(0xff);
        }
        Key::from_u128(hasher.finish128().as_u128())
    }
}

/// A hasher for keys that are already uniformly random.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_usize(&mut self, _: usize) {
        // The length prefix of an array says nothing.
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = self.0.rotate_left(32) ^ u64::from(word);
    }
}

/// Builds hashers of fingerprints, which are random already and need no more hashing.
pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let prints = Fingerprinter::new((1, 2));
        assert_ne!(prints.object("", "a", "b", "c"), prints.object("a", "b", "c", ""));
        assert_ne!(prints.object("", "Role", "ab", "c"), prints.object("", "Role", "a", "bc"));
    }

    #[test]
    fn clusters_are_told_apart_and_can_be_moved() {
        let prints = Fingerprinter::new((1, 2));
        let object = prints.object("", "Role", "a", "b");
        let (east, west) = (prints.cluster("east"), prints.cluster("west"));
        assert_ne!(object.on(east), object.on(west));
        assert_eq!(object.on(east).on(east).on(west), object.on(west));
    }
}
