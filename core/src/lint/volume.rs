//! What a StorageClass or a claim says about when a volume is bound.

use serde_json::Value;

use crate::object::{ObjectMeta, ObjectRef};

/// What an object says about storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A StorageClass.
    Class {
        /// Whether its claims are bound only when a Pod uses them.
        binds_late: bool,
        /// Whether it is the class of claims that name none.
        is_default: bool,
    },
    /// A PersistentVolumeClaim that waits for its class to bind it.
    Claim {
        /// The class; `None` for the default one.
        class: Option<String>,
    },
}

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

impl Storage {
    /// Reads a StorageClass or a claim. A claim that names its volume, or no class at all, is bound without a Pod.
    pub fn of(object: &ObjectRef, meta: &ObjectMeta, value: &Value) -> Option<Self> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        if object.kind.is("storage.k8s.io", "StorageClass") {
            let binds_late = text("/volumeBindingMode") == Some("WaitForFirstConsumer");
            return Some(Self::Class { binds_late, is_default: meta.annotation(IS_DEFAULT) == Some("true") });
        }
        if !object.kind.is("", "PersistentVolumeClaim") || text("/spec/volumeName").is_some_and(|name| !name.is_empty())
        {
            return None;
        }
        match text("/spec/storageClassName") {
            Some("") => None,
            class => Some(Self::Claim { class: class.map(str::to_owned) }),
        }
    }
}
