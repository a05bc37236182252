//! What the watchdog reads of an Application: where it comes from, what was compared, what was deployed, how it is.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    facts::is_object_id,
    repository,
    schema::AppRef,
    source::{Source, sources_in},
};
use crate::{
    argo::{Application, Entry},
    object::{ARGO_GROUP, ObjectRef},
    text::clip,
};

/// Annotation that names the images of Argo CD Image Updater before 1.0.
const IMAGE_LIST: &str = "argocd-image-updater.argoproj.io/image-list";
/// Annotation that says how it writes back.
const WRITE_BACK: &str = "argocd-image-updater.argoproj.io/write-back-method";
/// Annotation with the paths that manifests are generated from.
const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";
/// What kubectl and Argo CD applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// So many resources that are not well are named.
const MAX_ILL: usize = 3;
/// So much of a message of an operation is kept.
const MAX_MESSAGE: usize = 300;

/// One deployment: which sources, at which revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deployed {
    /// The sources that it was made of.
    pub sources: Arc<[Source]>,
    /// One revision for each.
    pub revisions: Vec<String>,
    /// What tells it from any other.
    pub key: String,
}

/// The current or last operation, if it is a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// `Running`, `Succeeded`, …
    pub phase: String,
    /// Whether it is of everything, and no dry run.
    pub whole: bool,
    /// What it deploys.
    pub deploys: Deployed,
    /// When it began.
    pub started: Option<Timestamp>,
    /// What it says.
    pub message: String,
}

/// An Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Which one.
    pub app: AppRef,
    /// Its UID.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its sources as the spec names them now.
    pub sources: Arc<[Source]>,
    /// Why the comparison is not to be believed; `None` if it is.
    pub distrust: Option<String>,
    /// Whether it was compared at all.
    pub compared: bool,
    /// What was compared.
    pub comparison: Deployed,
    /// `Synced`, `OutOfSync` or `Unknown`.
    pub sync: String,
    /// Its health.
    pub health: String,
    /// When its health last changed.
    pub health_since: Option<Timestamp>,
    /// Whether an operation is asked for or running.
    pub busy: bool,
    /// The current or last sync.
    pub operation: Operation,
    /// Successful syncs, oldest first.
    pub history: Vec<Deployed>,
    /// The first resources that are not well, where it lists their health.
    pub ill: Vec<String>,
    /// Its child Applications.
    pub children: Arc<[AppRef]>,
    /// What it lists, where it prunes by itself.
    pub objects: Option<Arc<[ObjectRef]>>,
    /// Whether Image Updater, by its annotations, writes into the Application instead of into Git.
    pub updated_in_place: bool,
    /// Which parameters or images its spec carries that what was applied last does not; empty if none.
    pub only_live: Vec<&'static str>,
    /// Which it carries at all.
    pub overrides: Vec<&'static str>,
}

impl View {
    /// Reads an Application.
    ///
    /// # Errors
    /// When it is no JSON of an Application.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let application: Application<'_> = serde_json::from_str(json)?;
        let object: Value = serde_json::from_str(json)?;
        Ok(Self::read(&application, &object))
    }

    fn read(application: &Application<'_>, object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let annotation = |key: &str| object["metadata"]["annotations"][key].as_str();
        let app = AppRef::new(&text("/metadata/namespace"), &text("/metadata/name"));
        let status = &object["status"];
        let types = SourceTypes::of(status);
        let hydrated = Hydrated::of(object);
        let read = |holder: &Value| -> Arc<[Source]> {
            let mut sources = sources_in(holder, annotation(GENERATE_PATHS));
            types.mark(&mut sources);
            hydrated.as_ref().map_or(sources, |hydrated| vec![hydrated.dry.clone()]).into()
        };
        let deployed = |sources: &Value, revisions: &Value, key: &Value| Deployed {
            sources: read(sources),
            revisions: hydrated.as_ref().map_or_else(|| revisions_in(revisions), |hydrated| hydrated.dry_of(revisions)),
            key: format!("{} {}", key["deployedAt"].as_str().unwrap_or_default(), key["id"]),
        };
        let state = &status["operationState"];
        let result = if state["syncResult"].is_object() { &state["syncResult"] } else { &state["operation"]["sync"] };
        let asked = &state["operation"]["sync"];
        let distrust = application.list_distrust().map(str::to_owned);
        let (ill, children) = (ill_resources(status), children_of(status, &app));
        let prunes = application.prunes_by_itself();
        let overrides = overrides_in(object);
        Self {
            uid: text("/metadata/uid"),
            labels: serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default(),
            sources: read(&object["spec"]),
            distrust: application.trouble().or(distrust),
            compared: !application.never_compared(),
            comparison: deployed(&status["sync"]["comparedTo"], &status["sync"], &Value::Null),
            sync: text("/status/sync/status"),
            health: text("/status/health/status"),
            health_since: time(&status["health"]["lastTransitionTime"]),
            busy: application.running_sync().is_some(),
            operation: Operation {
                phase: text("/status/operationState/phase"),
                whole: asked["resources"].as_array().is_none_or(Vec::is_empty)
                    && asked["dryRun"] != Value::Bool(true)
                    && asked["manifests"].as_array().is_none_or(Vec::is_empty),
                deploys: deployed(result, result, &Value::Null),
                started: time(&state["startedAt"]),
                message: clip(state["message"].as_str().unwrap_or_default(), MAX_MESSAGE),
            },
            history: status["history"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|entry| deployed(entry, entry, entry))
                .collect(),
            ill,
            children,
            objects: prunes.then(|| application.status.resources.iter().map(Entry::object).collect()),
            updated_in_place: annotation(IMAGE_LIST).is_some_and(|list| !list.trim().is_empty())
                && !annotation(WRITE_BACK).is_some_and(|method| method.trim().starts_with("git")),
            only_live: only_live(&overrides, annotation(LAST_APPLIED)),
            overrides: overrides.into_keys().collect(),
            app,
        }
    }

    /// Whether the comparison is to be believed.
    pub fn is_valid(&self) -> bool {
        self.distrust.is_none()
    }

    /// Whether it removes by itself what left Git.
    pub fn prunes(&self) -> bool {
        self.objects.is_some()
    }

    /// What was deployed last, as far as a sync says.
    pub fn last_deployed(&self) -> Option<&Deployed> {
        let operation = &self.operation;
        let finished = operation.phase == "Succeeded" && operation.whole && !operation.deploys.revisions.is_empty();
        self.history.last().or_else(|| finished.then_some(&operation.deploys))
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// `revisions`, or `revision` alone.
fn revisions_in(holder: &Value) -> Vec<String> {
    let several = holder["revisions"].as_array().filter(|several| !several.is_empty());
    let texts = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match several {
        Some(several) => several.iter().map(texts).collect(),
        None => vec![texts(&holder["revision"])],
    }
}

/// `Directory`, `Helm`, `Kustomize` or `Plugin` for each source, as the last comparison found.
struct SourceTypes(Vec<String>);

impl SourceTypes {
    fn of(status: &Value) -> Self {
        let several = status["sourceTypes"].as_array().filter(|several| !several.is_empty());
        let one = || vec![status["sourceType"].as_str().unwrap_or_default().to_owned()];
        Self(several.map_or_else(one, |several| {
            several.iter().map(|kind| kind.as_str().unwrap_or_default().to_owned()).collect()
        }))
    }

    fn mark(&self, sources: &mut [Source]) {
        for (index, source) in sources.iter_mut().enumerate() {
            source.is_plugin |= self.0.get(index).is_some_and(|kind| kind == "Plugin");
        }
    }
}

/// A hydrated source: what Argo CD deploys is derived from the dry commit.
struct Hydrated {
    dry: Source,
    dry_sha: String,
    hydrated_sha: String,
}

impl Hydrated {
    fn of(object: &Value) -> Option<Self> {
        let hydrator = object.pointer("/spec/sourceHydrator").filter(|hydrator| hydrator.is_object())?;
        let annotation = object["metadata"]["annotations"][GENERATE_PATHS].as_str();
        let dry = sources_in(&serde_json::json!({"source": hydrator["drySource"]}), annotation).pop()?;
        let last = &object["status"]["sourceHydrator"]["lastSuccessfulOperation"];
        let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
        Some(Self { dry, dry_sha: text("drySHA"), hydrated_sha: text("hydratedSHA") })
    }

    /// The dry commit of what was deployed; an empty revision where nobody can tell.
    fn dry_of(&self, holder: &Value) -> Vec<String> {
        let deployed = revisions_in(holder);
        let known = is_object_id(&self.hydrated_sha) && deployed.first() == Some(&self.hydrated_sha);
        vec![if known { self.dry_sha.clone() } else { String::new() }]
    }
}

fn ill_resources(status: &Value) -> Vec<String> {
    let ill = status["resources"].as_array().into_iter().flatten().filter_map(|resource| {
        let health = resource["health"]["status"].as_str()?;
        let text = |key: &str| resource[key].as_str().unwrap_or_default();
        matches!(health, "Degraded" | "Missing").then(|| {
            let object = ObjectRef::new(text("group"), text("kind"), text("namespace"), text("name"));
            format!("{object}: {health}")
        })
    });
    ill.take(MAX_ILL).collect()
}

fn children_of(status: &Value, parent: &AppRef) -> Arc<[AppRef]> {
    let listed = status["resources"].as_array().into_iter().flatten().filter_map(|resource| {
        if resource["group"] != ARGO_GROUP || resource["kind"] != "Application" || resource["hook"] == true {
            return None;
        }
        let namespace = resource["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        Some(AppRef::new(namespace.unwrap_or(&parent.namespace), resource["name"].as_str()?))
    });
    listed.collect()
}

/// Parameters and images in the spec, by what they are called.
fn overrides_in(object: &Value) -> BTreeMap<&'static str, Vec<Value>> {
    let spec = &object["spec"];
    let several = spec["sources"].as_array().filter(|several| !several.is_empty());
    let sources = several.map_or_else(|| vec![&spec["source"]], |several| several.iter().collect());
    let mut found: BTreeMap<&'static str, Vec<Value>> = BTreeMap::new();
    for source in sources {
        for (name, pointer) in [("helm.parameters", "/helm/parameters"), ("kustomize.images", "/kustomize/images")] {
            if let Some(list) =
                source.pointer(pointer).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
            {
                found.entry(name).or_default().push(list.clone());
            }
        }
    }
    found
}

/// Those that the manifest which was applied last does not carry in the same way.
fn only_live(overrides: &BTreeMap<&'static str, Vec<Value>>, last_applied: Option<&str>) -> Vec<&'static str> {
    let applied: Value = last_applied.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let applied = overrides_in(&applied);
    overrides.iter().filter(|(name, lists)| applied.get(*name) != Some(lists)).map(|(name, _)| *name).collect()
}

/// Whether a source is of the repository.
pub fn is_of(source: &Source, repository_url: &str) -> bool {
    !source.is_chart && repository::same(&source.repository, repository_url)
}

#[cfg(test)]
mod tests;
