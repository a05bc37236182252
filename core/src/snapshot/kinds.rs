//! Where the objects of a kind are: an audit asks for lists once for each Namespace, and must not look at every object for
//! each of them.

use std::collections::{BTreeSet, HashMap};

use crate::object::{GroupKind, ObjectRef};

/// Places of objects, in order, by kind and by kind and namespace.
#[derive(Debug, Default)]
pub(super) struct Kinds(HashMap<GroupKind, Places>);

#[derive(Debug, Default)]
struct Places {
    everywhere: BTreeSet<usize>,
    in_namespace: HashMap<String, BTreeSet<usize>>,
}

impl Kinds {
    /// The objects of a kind in a namespace, or everywhere if that is empty.
    pub(super) fn of(&self, kind: &GroupKind, namespace: &str) -> impl Iterator<Item = usize> + use<'_> {
        let places = self.0.get(kind).and_then(|places| {
            if namespace.is_empty() { Some(&places.everywhere) } else { places.in_namespace.get(namespace) }
        });
        places.into_iter().flatten().copied()
    }

    pub(super) fn add(&mut self, object: &ObjectRef, place: usize) {
        let places = self.0.entry(object.kind.clone()).or_default();
        places.everywhere.insert(place);
        places.in_namespace.entry(object.namespace.clone()).or_default().insert(place);
    }

    pub(super) fn remove(&mut self, object: &ObjectRef, place: usize) {
        let Some(places) = self.0.get_mut(&object.kind) else { return };
        places.everywhere.remove(&place);
        if let Some(in_namespace) = places.in_namespace.get_mut(&object.namespace) {
            in_namespace.remove(&place);
            if in_namespace.is_empty() {
                places.in_namespace.remove(&object.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;
    use crate::{
        facts::{ListQuestion, Listing},
        object::{GroupKind, ObjectRef},
    };

    fn names(snapshot: &Snapshot, namespace: &str) -> Vec<String> {
        let question = ListQuestion {
            what: Listing::Every(GroupKind::new("", "Pod")),
            namespace: namespace.to_owned(),
            limit: 100,
        };
        let named = |raw: &str| serde_json::from_str::<serde_json::Value>(raw).unwrap()["metadata"]["name"].to_string();
        snapshot.list(&question).items.iter().map(|raw| named(raw.get())).collect()
    }

    #[test]
    fn list_is_selected_and_says_whether_it_is_complete() {
        let mut snapshot = Snapshot::default();
        for (name, account, phase) in [("a", "api", "Running"), ("b", "web", "Running"), ("c", "api", "Pending")] {
            let pod = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"shop","name":"{name}"}},
                    "spec":{{"serviceAccountName":"{account}"}},"status":{{"phase":"{phase}"}}}}"#
            );
            snapshot.put("test", pod).unwrap();
        }
        let listed = |what: Listing, limit| {
            let listed = snapshot.list(&ListQuestion { what, namespace: "shop".to_owned(), limit });
            (listed.items.len(), listed.complete)
        };
        let every = || Listing::Every(GroupKind::new("", "Pod"));
        assert_eq!([listed(every(), 2), listed(every(), 3)], [(2, false), (3, true)]);
        assert_eq!(listed(Listing::PodsOfAccount("api".to_owned()), 2), (2, true));
        assert_eq!(listed(Listing::RunningPods, 1), (1, false));
        assert_eq!(listed(Listing::PodsOfAccount("nobody".to_owned()), 1), (0, true));
    }

    fn pod(namespace: &str, name: &str) -> String {
        format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"{namespace}","name":"{name}"}}}}"#)
    }

    #[test]
    fn lists_follow_what_is_added_and_removed() {
        let mut snapshot = Snapshot::default();
        for (namespace, name) in [("a", "one"), ("b", "two"), ("a", "three"), ("a", "four")] {
            snapshot.put("test", pod(namespace, name)).unwrap();
        }
        assert_eq!(names(&snapshot, ""), [r#""one""#, r#""two""#, r#""three""#, r#""four""#]);
        assert_eq!(names(&snapshot, "a"), [r#""one""#, r#""three""#, r#""four""#]);
        // The last takes the place of the one that goes.
        snapshot.remove(&ObjectRef::new("", "Pod", "a", "one"));
        snapshot.put("test", pod("b", "five")).unwrap();
        assert_eq!(names(&snapshot, ""), [r#""four""#, r#""two""#, r#""three""#, r#""five""#]);
        assert_eq!(names(&snapshot, "a"), [r#""four""#, r#""three""#]);
        snapshot.remove(&ObjectRef::new("", "Pod", "b", "five"));
        snapshot.remove(&ObjectRef::new("", "Pod", "b", "two"));
        assert_eq!(names(&snapshot, "b"), [""; 0]);
        assert_eq!(names(&snapshot, "").len(), 2);
    }
}
