//! The object that a request is about, as it is stored now.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use crate::{
    admission::{Operation, Request},
    facts::{Facts, Reading},
    inventory::Inventory,
    object::{ObjectMeta, ObjectRef},
};

/// A stored object: its metadata and, unless only the inventory knows it, the whole of it.
#[derive(Debug)]
pub struct Stored<'a> {
    /// Its metadata.
    pub meta: Cow<'a, ObjectMeta>,
    raw: Raw<'a>,
}

#[derive(Debug)]
enum Raw<'a> {
    /// The inventory knows what there is to know.
    Known,
    /// The review carries it.
    Sent(&'a RawValue),
    /// It was looked up by name.
    Read(Arc<RawValue>),
}

impl<'a> Stored<'a> {
    /// The stored object of a request: as the inventory knows it, where it knows it and the caller hands over its
    /// metadata; else as the review carries it; else, for a DELETE, looked up by name. `None` if there is none, or while
    /// it is being looked up.
    pub fn of(
        request: &'a Request<'a>,
        known: Option<&'a ObjectMeta>,
        inventory: &Inventory,
        facts: &mut Facts,
    ) -> Option<Self> {
        Self::carried(request, known.filter(|_| knows(inventory, &request.target))).or_else(|| look_up(request, facts))
    }

    /// The same without looking anything up.
    pub fn carried(request: &'a Request<'a>, known: Option<&'a ObjectMeta>) -> Option<Self> {
        if let Some(meta) = known {
            return Some(Self { meta: Cow::Borrowed(meta), raw: Raw::Known });
        }
        let object = request.old_object.as_ref()?;
        Some(Self { meta: Cow::Borrowed(&object.meta), raw: Raw::Sent(object.raw) })
    }

    /// The object in full; nothing if only the inventory knows it.
    pub fn sent(&self) -> Option<&RawValue> {
        match &self.raw {
            Raw::Known => None,
            Raw::Sent(raw) => Some(raw),
            Raw::Read(raw) => Some(raw),
        }
    }

    /// The object in full; `null` if only the inventory knows it.
    pub fn raw(&self) -> &RawValue {
        self.sent().unwrap_or(RawValue::NULL)
    }
}

fn knows(inventory: &Inventory, target: &ObjectRef) -> bool {
    (target.is_application() && inventory.app_named(&target.namespace, &target.name).is_some())
        || (target.is_namespace() && inventory.namespace(&target.name).is_some())
}

/// An API server always sends what it deletes; others that imitate one may not.
fn look_up<'a>(request: &Request<'_>, facts: &mut Facts) -> Option<Stored<'a>> {
    let target = &request.target;
    if request.operation != Operation::Delete || target.name.is_empty() {
        return None;
    }
    let (raw, meta) = match facts.object(target)? {
        Reading::Found(raw) => {
            let meta = ObjectMeta::of(raw.get()).ok()?;
            (raw, meta)
        }
        Reading::NotFound => return None,
        // It is there for all we know, and nothing on it can be relied on.
        Reading::Unreadable(_) | Reading::Forbidden(_) => {
            let raw = RawValue::from_string("{}".to_owned()).ok()?;
            let (name, namespace) = (target.name.clone(), target.namespace.clone());
            (raw.into(), ObjectMeta { name, namespace, ..ObjectMeta::default() })
        }
    };
    Some(Stored { meta: Cow::Owned(meta), raw: Raw::Read(raw) })
}
