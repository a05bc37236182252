//! The objects of a stream.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    application::Application,
    document::{Document, Fault, LINT_IGNORE, Problem, UNRENDERED, documents},
    origin::{KUSTOMIZE, Origin},
    tree::{self, Node},
    volume::Storage,
};
use crate::{
    argo::hook::{ANNOTATIONS, Hook, Stage},
    needs::{
        Work,
        products::{self, Product, Remote},
    },
    object::{GroupKind, ObjectMeta, ObjectRef, group_of, is_builtin_cluster_scoped},
    rules::sync_wave::{self, Subject},
    yaml::Loaded,
};

/// A text with manifests.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name in findings: a path, or `stdin`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Where an object is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Index of the input.
    pub input: usize,
    /// Where its document begins, in bytes.
    pub start: usize,
    /// Length of its document, in bytes.
    pub length: usize,
    /// Lines before its document.
    pub lines_before: u32,
    /// Indices into the lists that it is in; empty for an object that is a document.
    pub items: Vec<usize>,
}

/// The kind that a CustomResourceDefinition defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Group and kind.
    pub kind: GroupKind,
    /// Whether it has no namespace.
    pub cluster_scoped: bool,
}

/// An object, decoded as far as its place in a sync and its needs go.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its identity.
    pub object: ObjectRef,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// What makes it a hook; `None` for an ordinary object.
    pub hook: Option<Hook>,
    /// Where it stands in a sync; `None` if Argo CD never applies it.
    pub stage: Option<Stage>,
    /// What it refers to, or why that cannot be read.
    pub work: Result<Work, String>,
    /// What its controller makes of it, and deletes with it.
    pub product: Option<Product>,
    /// What it has to do with stores outside the cluster.
    pub remote: Remote,
    /// What it says about storage.
    pub storage: Option<Storage>,
    /// The Application that it is the manifest of.
    pub describes: Option<Application>,
    /// The kind it defines.
    pub defines: Option<Definition>,
    /// Annotations whose values are no text.
    pub not_text: Vec<String>,
    /// What comments of its document say may be ignored.
    pub ignore_comments: Vec<String>,
    /// Where it is written.
    pub written: Written,
    /// Index of its Application.
    pub application: usize,
}

impl Manifest {
    /// What the rule judges.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            object: self.object.clone(),
            meta: &self.meta,
            hook: self.hook.clone(),
            stage: self.stage,
            work: self.work.clone(),
            product: self.product.clone(),
            origin: sync_wave::Origin::Manifest,
        }
    }

    /// Whether it is of a kind without a namespace, as far as built-in kinds go.
    pub fn is_builtin_cluster_scoped(&self) -> bool {
        is_builtin_cluster_scoped(&self.object.kind.group, &self.object.kind.kind)
    }

    /// Writes a namespace into everything that has none and needs one.
    pub fn move_into(&mut self, namespace: &str) {
        if self.object.namespace.is_empty() {
            namespace.clone_into(&mut self.object.namespace);
        }
        if let Some(Product { object, .. }) =
            self.product.as_mut().filter(|product| product.object.namespace.is_empty())
        {
            namespace.clone_into(&mut object.namespace);
        }
        for need in self.work.iter_mut().flat_map(|work| &mut work.needs) {
            let object = &mut need.object;
            if object.namespace.is_empty() && !is_builtin_cluster_scoped(&object.kind.group, &object.kind.kind) {
                namespace.clone_into(&mut object.namespace);
            }
        }
    }
}

/// Argo CD passes over files that hold this (`reposerver/repository/repository.go`, `skipFileRenderingMarker`).
const SKIP_FILE: &str = "+argocd:skip-file-rendering";

/// What there is to say about a text beside its objects.
#[derive(Debug, Default)]
pub struct Remarks {
    /// What cannot be judged.
    pub problems: Vec<Problem>,
    /// What is judged, and not as its author may think.
    pub warnings: Vec<Problem>,
}

/// Reads every object of a text. `index` is its index.
pub fn read(index: usize, input: &Input, manifests: &mut Vec<Manifest>, remarks: &mut Remarks) {
    let text = input.text.as_str();
    if text.contains(SKIP_FILE) {
        return;
    }
    let origin = Origin::of(&input.name);
    for document in documents(text) {
        let value = match document.read() {
            Ok(Loaded { node, duplicates }) => {
                remarks.warnings.extend(duplicates.iter().map(|duplicate| document.twice(duplicate)));
                node.unwrap_or_default()
            }
            Err(problem) => {
                remarks.problems.push(origin.explain(&document, problem));
                continue;
            }
        };
        let written = Written {
            input: index,
            start: document.text.as_ptr() as usize - text.as_ptr() as usize,
            length: document.text.len(),
            lines_before: document.lines_before,
            items: Vec::new(),
        };
        if !value.is_null() {
            let (mut problems, known) = (Vec::new(), origin.knows(&value));
            objects(&mut Source::new(document), value, &written, manifests, &mut problems);
            let explained = problems.into_iter().map(|problem| match &known {
                Some(text) if problem.check == Fault::NoObject => {
                    Problem { check: Fault::Source, text: text.clone(), ..problem }
                }
                _ => origin.explain(&document, problem),
            });
            remarks.problems.extend(explained);
        }
    }
}

/// Where the parts of a document stand.
enum Tree {
    NotAsked,
    Unreadable,
    Parsed(Node),
}

/// A document, and where its parts stand once somebody asked. A large list asks for many of its items.
struct Source<'a> {
    document: Document<'a>,
    tree: Tree,
}

impl<'a> Source<'a> {
    fn new(document: Document<'a>) -> Self {
        Self { document, tree: Tree::NotAsked }
    }

    /// The object below `items`.
    fn below(&mut self, items: &[usize]) -> Option<&Node> {
        let Self { document, tree } = self;
        if let Tree::NotAsked = tree {
            *tree = document.tree().map_or(Tree::Unreadable, Tree::Parsed);
        }
        let Tree::Parsed(tree) = tree else { return None };
        tree::below(tree, items)
    }
}

fn objects(
    source: &mut Source<'_>,
    mut value: Value,
    written: &Written,
    manifests: &mut Vec<Manifest>,
    problems: &mut Vec<Problem>,
) {
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(Value::Array(items)) = value.get_mut("items") {
        for (index, item) in std::mem::take(items).into_iter().enumerate() {
            let mut written = written.clone();
            written.items.push(index);
            objects(source, item, &written, manifests, problems);
        }
        return;
    }
    // The API server takes a list of nothing for an empty one.
    let nothing = match value.get("items") {
        None => value["kind"] == "List",
        Some(items) => is_list && items.is_null(),
    };
    if nothing && value.pointer("/metadata/name").is_none() {
        return;
    }
    match manifest(source, value, written) {
        Ok(found) => manifests.push(found),
        Err((field, text)) => problems.push(problem(source, written, field, text)),
    }
}

fn problem(source: &mut Source<'_>, written: &Written, field: &str, text: String) -> Problem {
    let lines_before = source.document.lines_before;
    if let Some((line, column)) = source.document.unrendered() {
        return Problem { check: Fault::Template, text: UNRENDERED.to_owned(), line, column };
    }
    let place = source.below(&written.items).map(|node| tree::locate(node, field));
    let (line, column) = place.map_or((1, 1), |place| (place.line, place.column));
    Problem { check: Fault::NoObject, text, line: lines_before.saturating_add(line), column }
}

/// Decodes one object; where that fails, the field at fault and why.
fn manifest(source: &mut Source<'_>, mut value: Value, written: &Written) -> Result<Manifest, (&'static str, String)> {
    if !value.is_object() {
        return Err(("", "it is no Kubernetes object: no keys at all".to_owned()));
    }
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (text(&value, "kind"), text(&value, "apiVersion"));
    if kind.is_empty() || api_version.is_empty() {
        let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
        let text =
            format!("it is no Kubernetes object: it has no {missing}; lint rendered manifests, not their sources");
        return Err((if kind.is_empty() { "/kind" } else { "/apiVersion" }, text));
    }
    let group = group_of(&api_version);
    if group == "kustomize.config.k8s.io" {
        return Err(("", format!("a {kind} is no manifest; {KUSTOMIZE}")));
    }
    let not_text = mend_annotations(source, &mut value, written);
    mend_labels(&mut value);
    let meta = value.get_mut("metadata").map(Value::take).unwrap_or_default();
    if meta.is_array() {
        // Serde would take its items for the fields in order.
        return Err(("/metadata", format!("the metadata of this {kind} is a list")));
    }
    let meta = Option::<ObjectMeta>::deserialize(meta)
        .map_err(|error| ("/metadata", format!("the metadata of this {kind} cannot be read: {error}")))?
        .unwrap_or_default();
    if meta.name.is_empty() && meta.generate_name.is_empty() {
        return Err(("/metadata", format!("this {kind} has no name")));
    }
    if [&meta.name, &meta.namespace, &kind].iter().any(|text| text.contains("{{")) {
        return Err(("/metadata/name", UNRENDERED.to_owned()));
    }
    if ANNOTATIONS.iter().any(|key| meta.annotation(key).is_some_and(|value| value.contains("{{"))) {
        return Err(("/metadata/annotations", UNRENDERED.to_owned()));
    }
    let object = ObjectRef::new(group, &kind, &meta.namespace, &meta.name).or_generated(&meta);
    let defines = definition(&object, &value);
    let describes = object.is_application().then(|| describes(&meta, &value)).flatten();
    let (storage, remote) = (Storage::of(&object, &meta, &value), products::remote(&object, &value));
    let raw = RawValue::from_string(value.to_string())
        .map_err(|error| ("", format!("{object} cannot be written down again: {error}")))?;
    let Subject { object, hook, stage, work, product, .. } =
        Subject::new(object, &meta, &raw, sync_wave::Origin::Manifest);
    let written = written.clone();
    // A comment in a list would be about one of its items, and nobody knows which.
    let ignore_comments = if written.items.is_empty() { source.document.comments(LINT_IGNORE) } else { Vec::new() };
    Ok(Manifest {
        object,
        meta,
        hook,
        stage,
        work,
        product,
        remote,
        storage,
        describes,
        defines,
        not_text,
        ignore_comments,
        written,
        application: 0,
    })
}

/// Makes texts of annotations that are none, so that their meaning can be judged all the same, and names those that place
/// an object in a sync. The API server reads nothing as an empty text; it refuses everything else.
fn mend_annotations(source: &mut Source<'_>, value: &mut Value, written: &Written) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(Value::Object(annotations)) = value.pointer_mut("/metadata/annotations") else { return wrong };
    for (key, value) in annotations.iter_mut().filter(|(_, value)| !value.is_string()) {
        let mut text = if value.is_null() { String::new() } else { value.to_string() };
        if !value.is_null() && ANNOTATIONS.contains(&key.as_str()) {
            // A parser makes 10.0 of `010` and `true` of `yes`: people know what they wrote.
            let whole = source.document.text;
            let own = source
                .below(&written.items)
                .and_then(|node| tree::scalar(whole, node, &["metadata", "annotations", key]));
            if let Some(own) = own {
                own.clone_into(&mut text);
            }
            wrong.push(key.clone());
        }
        *value = Value::String(text);
    }
    wrong
}

/// Makes texts of labels that are none: the API server refuses them, and the rest of the object says what is meant.
fn mend_labels(value: &mut Value) {
    let Some(Value::Object(labels)) = value.pointer_mut("/metadata/labels") else { return };
    for value in labels.values_mut().filter(|value| !value.is_string()) {
        *value = if value.is_null() { Value::String(String::new()) } else { Value::String(value.to_string()) };
    }
}

/// The Application of a manifest whose metadata was taken out of it.
fn describes(meta: &ObjectMeta, value: &Value) -> Option<Application> {
    let mut whole = value.clone();
    whole["metadata"] = serde_json::to_value(meta).ok()?;
    Application::read(&whole.to_string()).ok()
}

fn definition(object: &ObjectRef, value: &Value) -> Option<Definition> {
    if !object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
    Some(Definition { kind, cluster_scoped: text("/spec/scope") == Some("Cluster") })
}
