//! Argo CD's three definitions. The API server removes the instances of one without a review (recording s24), and their
//! finalizers still act. One that is no longer served hides its instances instead: they stay in storage, and neither Argo CD
//! nor the guard can see what they claim.

use serde::Deserialize;

use super::Fallout;
use crate::{
    admission::Object,
    catalog::control_plane::{DEFINITION, DEFINITION_CHANGED},
    decision::{Finding, Severity},
    object::{ObjectRef, null_to_default},
    remedy::{Command, Remedy},
    rules::Context,
    text::count,
};

const APPLICATIONS: &str = "applications.argoproj.io";
const SETS: &str = "applicationsets.argoproj.io";
const PROJECTS: &str = "appprojects.argoproj.io";

/// The version that Argo CD reads and writes its objects in.
const VERSION: &str = "v1alpha1";

/// Whether this is one of the three.
pub(super) fn defines_argo_cd(object: &ObjectRef) -> bool {
    object.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
        && [APPLICATIONS, SETS, PROJECTS].contains(&object.name.as_str())
}

/// Refuses the delete of a definition while an instance exists, or may exist.
pub(super) fn deleted(cx: &Context<'_>, object: &ObjectRef, findings: &mut Vec<Finding>) {
    if !defines_argo_cd(object) {
        return;
    }
    let Instances { number, kind, follow } = Instances::of(cx, &object.name);
    // Nobody can list what is not served: nothing known means nothing there only where somebody could look.
    let unseen = || {
        let read = cx.stored.and_then(|stored| serde_json::from_str::<Body>(stored.raw().get()).ok());
        read.is_some_and(|body| body.spec.is_unserved())
    };
    let detail = match number {
        0 if unseen() => format!(
            "{object} is not served, so nobody can see how many objects of kind {kind} are stored and would go with it"
        ),
        0 => return,
        _ => format!("{object} takes {}{follow}", count(number, kind)),
    };
    findings.push(
        Finding::new(
            &DEFINITION,
            Severity::Deny,
            object.clone(),
            "a definition of Argo CD would take every object of its kind along, without a review",
        )
        .detail(detail)
        .remedy(Remedy::run(
            "delete these first, each is judged by itself",
            Command::new("kubectl get").words([&object.name, "-A"]),
        ))
        .remedy(renew("to renew a definition, apply it, without a delete")),
    );
}

/// Refuses a change of a definition after which its instances can no longer be seen, while there are some.
pub(super) fn changed(cx: &Context<'_>, findings: &mut Vec<Finding>) {
    let object = &cx.request.target;
    let (Some(old), Some(new)) = (&cx.request.old_object, &cx.request.object) else { return };
    if !defines_argo_cd(object) || old.meta.is_terminating() {
        return;
    }
    let loss = match (read(old), read(new)) {
        (Ok(old), Ok(new)) => old.loss(&new),
        (Err(error), _) | (_, Err(error)) => Some(format!("cannot be read ({error})")),
    };
    let Some(loss) = loss else { return };
    let Instances { number, kind, .. } = Instances::of(cx, &object.name);
    if number == 0 {
        return;
    }
    findings.push(
        Finding::new(
            &DEFINITION_CHANGED,
            Severity::Deny,
            object.clone(),
            "a definition of Argo CD would no longer show the objects of its kind",
        )
        .detail(format!(
            "{object} {loss}: neither Argo CD nor cascade-guard would see its {} any more, or what they claim",
            count(number, kind)
        ))
        .remedy(renew("keep the version, served and stored as it is, beside what is new"))
        .remedy(Remedy::run(
            "or delete these first, each is judged by itself",
            Command::new("kubectl get").words([&object.name, "-A"]),
        )),
    );
}

fn renew(text: &str) -> Remedy {
    Remedy::run(text, Command::new("kubectl apply --server-side -f CRD.yaml"))
}

/// The instances of a definition, as far as they are known.
struct Instances {
    number: usize,
    kind: &'static str,
    /// What follows their end, with the punctuation before it.
    follow: String,
}

impl Instances {
    fn of(cx: &Context<'_>, definition: &str) -> Self {
        let inventory = cx.inventory;
        let every = || inventory.applications().map(|(_, app)| app);
        match definition {
            SETS => {
                let generated = Fallout::of(every().filter(|app| app.generated_by.is_some()));
                let follow = match generated.apps {
                    0 => String::new(),
                    apps => format!(", then the {} they generated; {generated}", count(apps, "Application")),
                };
                Self { number: inventory.appsets().count(), kind: "ApplicationSet", follow }
            }
            PROJECTS => {
                let users = every().count();
                let follow = match users {
                    0 => String::new(),
                    _ => format!("; without them {} can neither be synced nor deleted", count(users, "Application")),
                };
                Self { number: inventory.projects().count(), kind: "AppProject", follow }
            }
            _ => {
                let fallout = Fallout::of(every());
                Self { number: fallout.apps, kind: "Application", follow: format!("; {fallout}") }
            }
        }
    }
}

fn read(definition: &Object<'_>) -> Result<Spec, serde_json::Error> {
    definition.decode::<Body>().map(|body| body.spec)
}

#[derive(Deserialize)]
struct Body {
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    group: String,
    scope: String,
    #[serde(deserialize_with = "null_to_default")]
    names: Names,
    #[serde(deserialize_with = "null_to_default")]
    versions: Vec<Version>,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Version {
    name: String,
    served: bool,
    storage: bool,
}

impl Spec {
    fn serves(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known.served && known.name == version)
    }

    /// Whether it says that no version is served.
    fn is_unserved(&self) -> bool {
        !self.versions.is_empty() && !self.versions.iter().any(|version| version.served)
    }

    /// What of the instances can no longer be seen once this is `new`, as the end of a sentence about the definition.
    fn loss(&self, new: &Self) -> Option<String> {
        if self.group != new.group || self.names != new.names {
            return Some("would define another kind".to_owned());
        }
        if self.scope != new.scope {
            return Some(format!("would be of scope {} instead of {}", new.scope, self.scope));
        }
        if self.serves(VERSION) && !new.serves(VERSION) {
            return Some(format!("would no longer serve version {VERSION}"));
        }
        if new.is_unserved() && !self.is_unserved() {
            return Some("would no longer serve any version".to_owned());
        }
        let stored = self.versions.iter().find(|version| version.storage)?;
        let is_kept = new.versions.iter().any(|version| version.name == stored.name);
        (!is_kept).then(|| format!("would drop version {}, in which its objects are stored", stored.name))
    }
}
