//! Where the parts of a document stand: the same YAML read once more, and only where something was found in it.

use std::borrow::Cow;

use crate::{
    object::ObjectRef,
    yaml::{Build, Entries, Place, scalar::Scalar},
};

/// Part of a document.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub what: What,
    /// Where it stands; for an alias, the alias.
    pub place: Place,
    /// Where it is written down; for an alias, what that stands for.
    defined: Place,
}

/// What a part of a document is. Values that are no text do not matter here.
#[derive(Clone, Debug)]
pub enum What {
    /// Keys and values.
    Map(Entries<Node>),
    /// Items.
    List(Vec<Node>),
    /// A text.
    Text(String),
    /// A number, a boolean, nothing.
    Other,
}

impl Node {
    /// The value of a key: of several the last.
    fn get(&self, key: &str) -> Option<(Place, &Node)> {
        let What::Map(entries) = &self.what else { return None };
        entries.iter().rev().find(|(name, ..)| name == key).map(|(_, place, node)| (*place, node))
    }
}

/// Makes [`Node`]s.
#[derive(Clone, Copy, Debug)]
pub struct Tree;

impl Build for Tree {
    type Node = Node;

    fn scalar(&self, text: Cow<'_, str>, scalar: Scalar, place: Place) -> Node {
        let what = if scalar == Scalar::Text { What::Text(text.into_owned()) } else { What::Other };
        Node { what, place, defined: place }
    }

    fn list(&self, items: Vec<Node>, place: Place) -> Node {
        Node { what: What::List(items), place, defined: place }
    }

    fn mapping(&self, entries: Entries<Node>, place: Place) -> Node {
        Node { what: What::Map(entries), place, defined: place }
    }

    fn repeated(&self, node: Node, place: Place) -> Node {
        Node { place, ..node }
    }

    fn entries(&self, node: Node) -> Result<Entries<Node>, Node> {
        match node.what {
            What::Map(entries) => Ok(entries),
            _ => Err(node),
        }
    }

    /// An alias that stands for a key is not looked for.
    fn key(&self, node: Node) -> Option<String> {
        if let What::Text(text) = node.what { Some(text) } else { Some(String::new()) }
    }

    fn items(&self, node: Node) -> Option<Vec<Node>> {
        if let What::List(items) = node.what { Some(items) } else { None }
    }
}

/// The part of a document below `items`.
pub fn below<'a>(document: &'a Node, items: &[usize]) -> Option<&'a Node> {
    let mut found = document;
    for index in items {
        let What::List(list) = &found.get("items")?.1.what else { return None };
        found = list.get(*index)?;
    }
    Some(found)
}

/// Where a JSON pointer leads: the key of a field, the beginning of an item. Where the last steps lead nowhere, because a
/// field is missing that should be there, the place of what it is missing from.
pub fn locate(node: &Node, pointer: &str) -> Place {
    let (mut node, mut at) = (node, node.place);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let next = match &node.what {
            What::Map(_) => node.get(&token),
            What::List(items) => {
                token.parse::<usize>().ok().and_then(|index| items.get(index)).map(|item| (item.place, item))
            }
            What::Text(_) | What::Other => None,
        };
        let Some(found) = next else { break };
        (at, node) = found;
    }
    at
}

/// How a value that is neither text nor a collection is written in `text`, the document that `node` is a part of.
pub fn scalar<'a>(text: &'a str, node: &Node, path: &[&str]) -> Option<&'a str> {
    let mut node = node;
    for step in path {
        node = node.get(step)?.1;
    }
    let text = text.get(node.defined.start..node.defined.end)?.trim();
    (matches!(node.what, What::Other) && !text.is_empty() && !text.contains('\n')).then_some(text)
}

/// The field by which an object refers to another.
pub fn reference(node: &Node, to: &ObjectRef) -> Option<Place> {
    let hint = match to.kind.kind.as_str() {
        "Secret" => "secret",
        "ConfigMap" => "configmap",
        "PersistentVolumeClaim" => "claim",
        "ServiceAccount" => "serviceaccount",
        "PriorityClass" => "priorityclass",
        "RuntimeClass" => "runtimeclass",
        "StorageClass" => "storageclass",
        _ => "",
    };
    Search { name: &to.name, hint }.below(node, &mut Vec::new())
}

/// Keys whose items have names of their own.
const NAMED: [&str; 8] =
    ["containers", "initContainers", "ephemeralContainers", "volumes", "volumeMounts", "env", "ports", "metadata"];

struct Search<'a> {
    name: &'a str,
    /// What the key or one of the two above it holds.
    hint: &'a str,
}

impl Search<'_> {
    fn below<'a>(&self, node: &'a Node, path: &mut Vec<&'a str>) -> Option<Place> {
        match &node.what {
            What::Map(entries) => entries.iter().find_map(|(key, place, value)| {
                path.push(key);
                let found = match &value.what {
                    What::Text(text) => (text == self.name && self.fits(path)).then_some(*place),
                    _ => self.below(value, path),
                };
                path.pop();
                found
            }),
            What::List(items) => items.iter().find_map(|item| self.below(item, path)),
            What::Text(_) | What::Other => None,
        }
    }

    fn fits(&self, path: &[&str]) -> bool {
        let Some((key, above)) = path.split_last() else { return false };
        let names = *key == "name" || key.ends_with("Name") || key.ends_with("Class");
        let own = *key == "name" && above.last().is_none_or(|above| NAMED.contains(above));
        let near = &path[path.len().saturating_sub(3)..];
        // The subjects of a binding say what they are in another field.
        let hinted = near.iter().any(|key| key.to_lowercase().contains(self.hint) || *key == "subjects");
        names && !own && hinted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::document::documents;

    fn tree(text: &str) -> Node {
        documents(text).next().unwrap().tree().unwrap()
    }

    fn at(place: Place) -> (u32, u32) {
        (place.line, place.column)
    }

    const JOB: &str = "\
kind: Job
metadata:
  name: db
  annotations: {argocd.argoproj.io/sync-wave: five}
spec:
  template:
    spec:
      containers:
      - name: db
        env:
        - {name: A, value: db}
        - name: B
          valueFrom:
            secretKeyRef:
              key: x
              name: db
      volumes:
      - name: db
        configMap:
          name: db
";

    #[test]
    fn pointer_leads_to_a_key_or_as_near_as_possible() {
        let of = |pointer: &str| at(locate(&tree(JOB), pointer));
        assert_eq!(of("/metadata/annotations/argocd.argoproj.io~1sync-wave"), (4, 17));
        assert_eq!(of("/spec/template/spec/containers/0/env/1"), (12, 11));
        assert_eq!(of("/spec/activeDeadlineSeconds"), (5, 1));
        assert_eq!(of(""), (1, 1));
    }

    #[test]
    fn reference_is_found_by_name_and_kind() {
        let of = |kind: &str| at(reference(&tree(JOB), &ObjectRef::new("", kind, "shop", "db")).unwrap());
        assert_eq!(of("Secret"), (16, 15));
        assert_eq!(of("ConfigMap"), (20, 11));
    }

    #[test]
    fn number_is_known_as_it_is_written() {
        let text = "# é\nitems: [{}, {a: &n 010, b: *n, c: yes, d: text, e: [1], f: 1e3 }]\ng: 1.0 # one\n";
        let tree = tree(text);
        let of = |items: &[usize], key: &str| scalar(text, below(&tree, items).unwrap(), &[key]);
        assert_eq!(["a", "b", "c", "f"].map(|key| of(&[1], key).unwrap()), ["010", "010", "yes", "1e3"]);
        assert_eq!(of(&[], "g"), Some("1.0"));
        assert_eq!(["d", "e", "z"].map(|key| of(&[1], key)), [None, None, None]);
    }

    #[test]
    fn items_of_lists_are_found() {
        let text = "kind: List\nitems:\n- a: 1\n- kind: List\n  items: [{b: 2}]\n";
        let of = |items: &[usize]| at(below(&tree(text), items).unwrap().place);
        assert_eq!(of(&[0]), (3, 3));
        assert_eq!(of(&[1, 0]), (5, 11));
    }
}
