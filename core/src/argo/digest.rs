//! Comparing two pieces of JSON by meaning, without building them.
//!
//! `status.sync.comparedTo` repeats the part of the spec that a list of resources belongs to. Argo CD writes it from Go
//! structs, which leave out empty fields; people write the spec by hand. So fields that are empty (`null`, `""`,
//! `false`, `0`, `[]`, `{}`) count as absent, and the order of keys does not count.

use std::{fmt, hash::Hasher};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use siphasher::sip128::{Hasher128, SipHasher13};

/// Digest of one JSON value. Zero is the digest of every empty value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u128);

/// Digest of an Application's source, with and without its `targetRevision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SourceDigest {
    /// The whole source.
    pub whole: Digest,
    /// All of it but `targetRevision`: two Applications that differ only there render the same objects.
    pub without_revision: Digest,
}

fn hash(tag: u8, bytes: &[u8]) -> Digest {
    // The key is fixed: nobody gains anything by making two specs look alike.
    let mut hasher = SipHasher13::new_with_keys(0x6361_7363_6164_6521, 0x6775_6172_6421_2121);
    hasher.write_u8(tag);
    hasher.write(bytes);
    Digest(hasher.finish128().as_u128())
}

struct DigestVisitor;

impl<'de> Visitor<'de> for DigestVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Digest, E> {
        Ok(if v { hash(1, &[1]) } else { Digest::default() })
    }

    fn visit_i64<E>(self, v: i64) -> Result<Digest, E> {
        Ok(if v == 0 { Digest::default() } else { hash(2, v.to_string().as_bytes()) })
    }

    fn visit_u64<E>(self, v: u64) -> Result<Digest, E> {
        Ok(if v == 0 { Digest::default() } else { hash(2, v.to_string().as_bytes()) })
    }

    fn visit_f64<E>(self, v: f64) -> Result<Digest, E> {
        Ok(if v == 0.0 { Digest::default() } else { hash(2, v.to_string().as_bytes()) })
    }

    fn visit_str<E>(self, v: &str) -> Result<Digest, E> {
        Ok(if v.is_empty() { Digest::default() } else { hash(3, v.as_bytes()) })
    }

    fn visit_unit<E>(self) -> Result<Digest, E> {
        Ok(Digest::default())
    }

    fn visit_none<E>(self) -> Result<Digest, E> {
        Ok(Digest::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Digest, D::Error> {
        Digest::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Digest, A::Error> {
        let mut bytes = Vec::new();
        while let Some(Digest(item)) = seq.next_element()? {
            bytes.extend_from_slice(&item.to_le_bytes());
        }
        Ok(if bytes.is_empty() { Digest::default() } else { hash(4, &bytes) })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Digest, A::Error> {
        Ok(digest_map(map, "")?.whole)
    }
}

/// Sums the fields of a map, so that their order does not count; `skip` is left out of the second sum.
fn digest_map<'de, A: MapAccess<'de>>(mut map: A, skip: &str) -> Result<SourceDigest, A::Error> {
    let (mut whole, mut rest) = (0u128, 0u128);
    while let Some((key, value)) = map.next_entry::<String, Digest>()? {
        if value == Digest::default() {
            continue;
        }
        let mut bytes = value.0.to_le_bytes().to_vec();
        bytes.extend_from_slice(key.as_bytes());
        let field = hash(5, &bytes).0;
        whole = whole.wrapping_add(field);
        if key != skip {
            rest = rest.wrapping_add(field);
        }
    }
    Ok(SourceDigest { whole: Digest(whole), without_revision: Digest(rest) })
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DigestVisitor)
    }
}

impl<'de> Deserialize<'de> for SourceDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SourceVisitor;
        impl<'de> Visitor<'de> for SourceVisitor {
            type Value = SourceDigest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an Application source")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SourceDigest, A::Error> {
                digest_map(map, "targetRevision")
            }

            fn visit_unit<E>(self) -> Result<SourceDigest, E> {
                Ok(SourceDigest::default())
            }
        }
        deserializer.deserialize_any(SourceVisitor)
    }
}

/// Whether a field is there and not `null`, whatever it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Present(pub bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<IgnoredAny>::deserialize(deserializer)?.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> Digest {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn order_and_empty_fields_do_not_count() {
        assert_eq!(digest(r#"{"a":1,"b":{"c":"x"}}"#), digest(r#"{"b":{"c":"x","d":[]},"e":false,"a":1,"f":null}"#));
        assert_ne!(digest(r#"{"a":1}"#), digest(r#"{"a":"1"}"#));
        assert_ne!(digest(r#"["a","b"]"#), digest(r#"["b","a"]"#));
        assert_ne!(digest(r#"{"a":"b"}"#), digest(r#"{"b":"a"}"#));
    }

    #[test]
    fn revision_can_be_left_aside() {
        let main: SourceDigest = serde_json::from_str(r#"{"repoURL":"r","path":"p","targetRevision":"main"}"#).unwrap();
        let head: SourceDigest = serde_json::from_str(r#"{"repoURL":"r","path":"p","targetRevision":"HEAD"}"#).unwrap();
        assert_ne!(main.whole, head.whole);
        assert_eq!(main.without_revision, head.without_revision);
    }
}
