//! Where the parts of a document stand: the same YAML read once more, and only where something was found in it.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_saphyr::{Location, Spanned};

use crate::object::ObjectRef;

/// Part of a document. Values that are no text do not matter here.
#[derive(Debug)]
pub enum Node {
    /// Keys and values.
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
    /// Items.
    List(Vec<Spanned<Node>>),
    /// A text.
    Text(String),
    /// A number, a boolean, nothing.
    Other,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> de::Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}

/// The part of a document below `items`, and where it begins.
pub fn below<'a>(document: &'a Spanned<Node>, items: &[usize]) -> Option<(&'a Node, Location)> {
    let mut found = (&document.value, document.referenced);
    for index in items {
        let Node::Map(entries) = found.0 else { return None };
        let (_, list) = entries.iter().find(|(key, _)| key.value == "items")?;
        let Node::List(list) = &list.value else { return None };
        let item = list.get(*index)?;
        found = (&item.value, item.referenced);
    }
    Some(found)
}

/// Where a JSON pointer leads: the key of a field, the beginning of an item. Where the last steps lead nowhere, because a
/// field is missing that should be there, the place of what it is missing from.
pub fn locate(node: &Node, at: Location, pointer: &str) -> Location {
    let (mut node, mut at) = (node, at);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let next = match node {
            Node::Map(entries) => {
                entries.iter().find(|(key, _)| key.value == token).map(|(key, value)| (&value.value, key.referenced))
            }
            Node::List(items) => token
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index))
                .map(|item| (&item.value, item.referenced)),
            Node::Text(_) | Node::Other => None,
        };
        let Some(found) = next else { break };
        (node, at) = found;
    }
    at
}

/// How a value that is neither text nor a collection is written in `text`, the document that `node` is a part of.
pub fn scalar(text: &str, node: &Node, path: &[&str]) -> Option<String> {
    let (mut node, mut at) = (node, None);
    for step in path {
        let Node::Map(entries) = node else { return None };
        let (_, value) = entries.iter().find(|(key, _)| key.value == *step)?;
        // Where an alias stands for it, what it stands for.
        (node, at) = (&value.value, Some(value.defined.span()));
    }
    let at = at?;
    let start = usize::try_from(at.byte_offset()?).ok()?;
    let length = usize::try_from(at.byte_len()?).ok()?;
    let text = text.get(start..start.checked_add(length)?)?.trim();
    (matches!(node, Node::Other) && !text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
}

/// The field by which an object refers to another.
pub fn reference(node: &Node, to: &ObjectRef) -> Option<Location> {
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
    fn below<'a>(&self, node: &'a Node, path: &mut Vec<&'a str>) -> Option<Location> {
        match node {
            Node::Map(entries) => entries.iter().find_map(|(key, value)| {
                path.push(&key.value);
                let found = match &value.value {
                    Node::Text(text) => (text == self.name && self.fits(path)).then_some(key.referenced),
                    deeper => self.below(deeper, path),
                };
                path.pop();
                found
            }),
            Node::List(items) => items.iter().find_map(|item| self.below(&item.value, path)),
            Node::Text(_) | Node::Other => None,
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

    fn at(text: &str, find: impl FnOnce(&Node, Location) -> Option<Location>) -> (u64, u64) {
        let tree = documents(text).next().unwrap().tree().unwrap();
        let place = find(&tree.value, tree.referenced).unwrap();
        (place.line(), place.column())
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
        let of = |pointer: &str| at(JOB, |node, place| Some(locate(node, place, pointer)));
        assert_eq!(of("/metadata/annotations/argocd.argoproj.io~1sync-wave"), (4, 17));
        assert_eq!(of("/spec/template/spec/containers/0/env/1"), (12, 11));
        assert_eq!(of("/spec/activeDeadlineSeconds"), (5, 1));
        assert_eq!(of(""), (1, 1));
    }

    #[test]
    fn reference_is_found_by_name_and_kind() {
        let of = |kind: &str| at(JOB, |node, _| reference(node, &ObjectRef::new("", kind, "shop", "db")));
        assert_eq!(of("Secret"), (16, 15));
        assert_eq!(of("ConfigMap"), (20, 11));
    }

    #[test]
    fn number_is_known_as_it_is_written() {
        let text = "# é\nitems: [{}, {a: &n 010, b: *n, c: yes, d: text, e: [1], f: 1e3 }]\ng: 1.0 # one\n";
        let tree = documents(text).next().unwrap().tree().unwrap();
        let of = |items: &[usize], key: &str| scalar(text, below(&tree, items).unwrap().0, &[key]);
        assert_eq!(["a", "b", "c", "f"].map(|key| of(&[1], key).unwrap()), ["010", "010", "yes", "1e3"]);
        assert_eq!(of(&[], "g").as_deref(), Some("1.0"));
        assert_eq!(["d", "e", "z"].map(|key| of(&[1], key)), [None, None, None]);
    }

    #[test]
    fn items_of_lists_are_found() {
        let text = "kind: List\nitems:\n- a: 1\n- kind: List\n  items: [{b: 2}]\n";
        let of = |items: &[usize]| {
            at(text, |_, _| {
                let tree = documents(text).next().unwrap().tree().unwrap();
                below(&tree, items).map(|(_, place)| place)
            })
        };
        assert_eq!(of(&[0]), (3, 3));
        assert_eq!(of(&[1, 0]), (5, 11));
    }
}
