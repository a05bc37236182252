//! Objects of the guard's own cluster by the marker they carry, whether a list holds them or not.
//!
//! A cascade deletes what carries its Application's marker, wherever it is and whatever the marker says besides
//! (section 1.5 of the Argo CD facts): a hook that was left behind, a copy, what came after the list was made. Of a live
//! cluster only what is watched is known here; of a snapshot everything is.

use std::{collections::BTreeSet, sync::Arc};

use super::{App, Identity, Inventory, shared::SharedMap};
use crate::{
    argo::{
        Marker,
        sync_options::{HELM_RESOURCE_POLICY, SYNC_OPTIONS},
        tracking::{self, INSTALLATION_ID, INSTANCE_LABEL, TRACKING_ID, TrackingId},
    },
    object::{ARGO_GROUP, ObjectMeta, ObjectRef},
};

/// Marked objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// Of each object what markers are read from, and no more.
    objects: SharedMap<Arc<ObjectRef>, Arc<ObjectMeta>>,
    /// Objects whose tracking id or label names this instance; which of the two counts is decided when they are looked up.
    by_instance: SharedMap<Box<str>, BTreeSet<Arc<ObjectRef>>>,
}

impl Marks {
    fn put(&mut self, object: ObjectRef, meta: ObjectMeta) {
        // Most events change nothing of it.
        if self.objects.get(&object).is_some_and(|known| **known == meta) {
            return;
        }
        self.remove(&object);
        let object = Arc::new(object);
        for instance in instances(&meta) {
            self.by_instance.entry(instance.into()).or_default().insert(object.clone());
        }
        self.objects.insert(object, Arc::new(meta));
    }

    /// Whether all labels of this object are kept: which of them is the marker may be known only later.
    fn keeps_labels(object: &ObjectRef) -> bool {
        object.kind.group == ARGO_GROUP
    }

    fn remove(&mut self, object: &ObjectRef) {
        let Some(meta) = self.objects.remove(object) else { return };
        for instance in instances(&meta) {
            if let Some(objects) = self.by_instance.get_mut(instance) {
                objects.remove(object);
                if objects.is_empty() {
                    self.by_instance.remove(instance);
                }
            }
        }
    }
}

/// Every text on an object that may be the name of an Application in a marker; which of them is one, is asked elsewhere.
pub(super) fn instances(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    let id = meta.annotation(TRACKING_ID).and_then(TrackingId::parse).map(|id| id.instance);
    id.into_iter().chain(meta.labels.values().map(String::as_str)).filter(|instance| !instance.is_empty())
}

impl Inventory {
    /// Takes note of the marker of an object of the guard's own cluster. Namespaces, Applications and ApplicationSets are
    /// noted when they are applied.
    pub fn mark(&mut self, object: &ObjectRef, meta: &ObjectMeta) {
        let object = self.normalise(object.clone());
        // Whether a cascade passes an Application or a set by is asked of each of them, marked or not.
        let always = Marks::keeps_labels(&object);
        let counts =
            |key: &str| key == INSTANCE_LABEL || self.installations.every_settings().any(|of| of.label_key == key);
        let read = ObjectMeta {
            labels: meta.labels.iter().filter(|(key, _)| always || counts(key)).map(owned).collect(),
            annotations: [TRACKING_ID, INSTALLATION_ID, SYNC_OPTIONS, HELM_RESOURCE_POLICY]
                .iter()
                .filter_map(|key| meta.annotations.get_key_value(*key).map(owned))
                .collect(),
            owner_references: meta.owner_references.clone(),
            ..ObjectMeta::default()
        };
        if !always && instances(&read).next().is_none() {
            self.marks.remove(&object);
        } else {
            self.marks.put(object, read);
        }
    }

    /// What decides whether a cascade passes an Application or ApplicationSet by, as it is watched: labels and annotations
    /// by which Argo CD marks and keeps objects, and owners. `None` for what is not known.
    pub fn watched_markers(&self, object: &ObjectRef) -> Option<&ObjectMeta> {
        self.marks.objects.get(object).map(|meta| &**meta).filter(|_| object.kind.group == ARGO_GROUP)
    }

    /// Forgets the marker of an object that is gone.
    pub fn unmark(&mut self, object: &ObjectRef) {
        let object = self.normalise(object.clone());
        self.marks.remove(&object);
    }

    /// Labels that are the marker now may have been none when a Namespace was noted. Of Applications and ApplicationSets all
    /// labels are kept.
    pub(super) fn mark_namespaces(&mut self) {
        for meta in self.namespaces.values().cloned().collect::<Vec<_>>() {
            self.mark(&ObjectRef::namespace(&meta.name), &meta);
        }
    }

    /// Objects that carry the marker of `app`, as an Argo CD reads it that may serve it, each once. What something else owns is
    /// left to the garbage collector (section 1.4 of the Argo CD facts). While the settings of that Argo CD are not known
    /// only the tracking id counts: the usual label may be any chart's.
    pub fn marked_by<'a>(&'a self, app: &'a App) -> BTreeSet<&'a ObjectRef> {
        let mut found = BTreeSet::new();
        for Identity { home, instance } in self.identities_of(app) {
            let settings = self.settings(home);
            let marked = self.marks.by_instance.get(&*instance).into_iter().flatten().map(|object| &**object);
            found.extend(marked.filter(|object| {
                self.marks.objects.get(*object).is_some_and(|meta| {
                    meta.owner_references.is_empty()
                        && (settings.is_some() || meta.annotations.contains_key(TRACKING_ID))
                        && tracking::marker(meta, settings) == Marker::Instance(&instance)
                })
            }));
        }
        found
    }
}

fn owned((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        argo::{Application, Clusters, tracking::TrackingSettings},
        object::OwnerReference,
    };

    fn inventory() -> Inventory {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        let text = r#"{"metadata": {"name": "shop", "namespace": "argocd"}, "spec": {}, "status": {}}"#;
        inventory.apply_application(&serde_json::from_str::<Application<'_>>(text).unwrap());
        inventory
    }

    fn marked(inventory: &Inventory) -> Vec<String> {
        let app = inventory.app(inventory.app_named("argocd", "shop").unwrap()).unwrap();
        inventory.marked_by(app).into_iter().map(ToString::to_string).collect()
    }

    fn meta(annotations: &[(&str, &str)], labels: &[(&str, &str)]) -> ObjectMeta {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ObjectMeta { annotations: map(annotations), labels: map(labels), ..ObjectMeta::default() }
    }

    #[test]
    fn marker_counts_as_the_argo_cd_of_the_application_reads_it() {
        let mut inventory = inventory();
        let role = ObjectRef::new("rbac.authorization.k8s.io", "Role", "a", "r");
        let by_label = ObjectRef::new("", "ConfigMap", "a", "c");
        inventory.mark(&role, &meta(&[(TRACKING_ID, "shop:x/y:z/copied")], &[]));
        inventory.mark(&by_label, &meta(&[], &[(INSTANCE_LABEL, "shop")]));
        assert_eq!(marked(&inventory), ["Role a/r"]);
        inventory.set_settings(
            "argocd",
            Some(TrackingSettings { method: tracking::TrackingMethod::Label, ..TrackingSettings::default() }),
        );
        assert_eq!(marked(&inventory), ["ConfigMap a/c"]);
    }

    #[test]
    fn what_changes_its_marker_or_is_owned_or_gone_is_not_marked() {
        let mut inventory = inventory();
        let object = ObjectRef::namespace("a");
        let named = meta(&[(TRACKING_ID, "shop:/Namespace:a/a")], &[]);
        let namespace = |meta: &ObjectMeta| ObjectMeta { name: "a".to_owned(), ..meta.clone() };
        inventory.apply_namespace(namespace(&named));
        assert_eq!(marked(&inventory), ["Namespace a"]);
        inventory.apply_namespace(namespace(&meta(&[(TRACKING_ID, "other:/Namespace:a/a")], &[])));
        assert!(marked(&inventory).is_empty());
        let owned = ObjectMeta { owner_references: vec![OwnerReference::default()], ..namespace(&named) };
        inventory.apply_namespace(owned);
        assert!(marked(&inventory).is_empty());
        inventory.apply_namespace(namespace(&named));
        inventory.remove_namespace("a");
        assert!(marked(&inventory).is_empty());
        inventory.mark(&object, &named);
        inventory.unmark(&object);
        assert!(marked(&inventory).is_empty());
    }

    #[test]
    fn label_that_becomes_the_marker_later_counts_on_namespaces() {
        let mut inventory = inventory();
        inventory.apply_namespace(ObjectMeta { name: "a".to_owned(), ..meta(&[], &[("example.com/app", "shop")]) });
        let settings = TrackingSettings {
            method: tracking::TrackingMethod::Label,
            label_key: "example.com/app".to_owned(),
            ..TrackingSettings::default()
        };
        inventory.set_settings("argocd", Some(settings));
        assert_eq!(marked(&inventory), ["Namespace a"]);
    }
}
