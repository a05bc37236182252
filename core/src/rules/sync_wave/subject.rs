//! The object that is judged, and what is known around it.

use serde_json::value::RawValue;

use crate::{
    argo::hook::{Hook, Stage},
    needs::{
        self, Work,
        products::{self, Product},
    },
    object::{ObjectMeta, ObjectRef},
};

/// Where an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On its way into a cluster: the API server has filled in the defaults.
    Cluster,
    /// A manifest as someone wrote it.
    Manifest,
}

/// An object, decoded as far as its place in a sync and its needs go.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Its identity.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: &'a ObjectMeta,
    /// What makes it a hook; `None` for an ordinary object.
    pub hook: Option<Hook>,
    /// Where it stands in a sync; `None` if Argo CD never applies it.
    pub stage: Option<Stage>,
    /// What it refers to, or why that cannot be read.
    pub work: Result<Work, String>,
    /// What its controller makes of it, and deletes with it.
    pub product: Option<Product>,
    /// Where it was found.
    pub origin: Origin,
}

impl<'a> Subject<'a> {
    /// Decodes an object.
    pub fn new(object: ObjectRef, meta: &'a ObjectMeta, raw: &RawValue, origin: Origin) -> Self {
        let hook = Hook::of(meta);
        let work = needs::read(&object.kind, &object.namespace, raw).map_err(|error| error.to_string());
        let product = products::of(&object, raw);
        Self { hook, stage: Stage::of(meta), work, product, object, meta, origin }
    }
}

/// What is planned for an object that something else needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The Application creates it.
    At {
        /// When.
        stage: Stage,
        /// Whether the Application last saw it in place.
        synced: bool,
        /// Why that may not hold, in words for a person; `None` if it does.
        doubt: Option<&'static str>,
    },
    /// It is one of the Application's hooks; of which phase is not known.
    Hook,
    /// Another Application creates it.
    Elsewhere {
        /// Which, as `namespace/name`.
        application: String,
        /// Whether that Application last saw it in place.
        synced: bool,
    },
    /// Nobody that is known creates it.
    Nobody,
}

/// Whether an object is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    There {
        /// If it is a hook of the same Application, where it stands.
        hook: Option<Stage>,
        /// Whether a cascade leaves it alone.
        kept: bool,
    },
    /// It is being deleted.
    Leaving,
    /// It is not.
    Missing,
    /// It could not be read, for this reason.
    Unread(String),
    /// Nobody looked: there is no cluster, only manifests.
    NotLooked {
        /// Whether a cascade would leave it alone.
        kept: bool,
    },
}

/// What is known around a subject: the rest of its Application, and the cluster. A webhook answers from the inventory and
/// from reads, a linter from a folder of manifests.
pub trait Surroundings {
    /// The Application, as `namespace/name`; empty where none is known.
    fn application(&self) -> String;

    /// What is planned for an object.
    fn plan(&self, object: &ObjectRef) -> Plan;

    /// Whether an object is there now; `None` while the answer is out.
    fn presence(&mut self, object: &ObjectRef) -> Option<Presence>;

    /// What produces a Secret or ConfigMap that is planned nowhere, and what is planned for that.
    fn producer(&self, object: &ObjectRef) -> Option<(ObjectRef, Plan)>;

    /// Objects of the Application that are no hooks and refer to this object.
    fn users(&mut self, object: &ObjectRef) -> Vec<ObjectRef>;

    /// Whether the Application's objects are still to be removed when it is deleted.
    fn cascades(&self) -> bool;
}
