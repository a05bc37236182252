//! Audits the cluster on a timer and writes the findings as reports, in the form whose definitions are installed.

mod object;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use tokio::time::sleep;

pub use self::object::{Form, LABEL, NAME, ReportObject, reports};
use super::{Kinds, LiveSource, client::in_words, status::FIELD_MANAGER};
use crate::{
    audit::{self, AuditInput, Options},
    state::{LiveInventory, LivePolicy, Readiness, Requirement},
};
use cascade_guard_core::{
    inventory::Inventory,
    object::{ARGO_GROUP, GroupKind, KnownObject, ObjectRef},
    report::ReportFinding,
};

/// The first audit comes this long after the start, if not sooner by its interval.
const FIRST: Duration = Duration::from_secs(60);

/// So many reports are written at a time.
const AT_A_TIME: usize = 4;

/// Writes reports for ever.
pub struct Reporter {
    /// The connection.
    pub client: Client,
    /// Which form of reports there is.
    pub kinds: Arc<Kinds>,
    /// Who answers what the inventory does not know.
    pub source: LiveSource,
    /// What is audited.
    pub inventory: Arc<LiveInventory>,
    /// What it is judged by.
    pub policy: Arc<LivePolicy>,
    /// Whether there is anything to audit yet.
    pub readiness: Arc<Readiness>,
    /// The time from one audit to the next.
    pub every: Duration,
    /// What has been terminating for this long is stuck.
    pub stuck_after: SignedDuration,
}

/// Why a turn came to nothing.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error("{0}")]
    Applications(String),
    #[error("{what}: {}", in_words(source))]
    Request { what: String, source: kube::Error },
    #[error("the audit broke down: {0}")]
    Audit(#[from] tokio::task::JoinError),
}

impl Reporter {
    /// Audits and reports for ever.
    ///
    /// # Errors
    /// Never; it has the type of a background task.
    pub async fn run(self) -> anyhow::Result<()> {
        self.readiness.wait_for(Requirement::Claims).await;
        // Replicas begin one after the other when a new version is rolled out; the audit can wait until that is over.
        sleep(self.every.min(FIRST)).await;
        let this = Arc::new(self);
        let mut trouble: Option<String> = None;
        loop {
            match this.clone().turn().await {
                Ok(()) => trouble = None,
                Err(error) => {
                    let reason = error.to_string();
                    if trouble.as_ref() != Some(&reason) {
                        tracing::warn!(reason, "the reports in the cluster are not up to date");
                    }
                    trouble = Some(reason);
                }
            }
            sleep(this.every).await;
        }
    }

    fn is_served(&self, form: Form) -> bool {
        let group = form.group_version().0;
        [true, false].into_iter().all(|scope| self.kinds.known(&GroupKind::new(group, form.kind(scope).0)).is_some())
    }

    /// One audit, and its reports in the form that is preferred among those installed. Reports of ours that are no
    /// longer true go, those in the other form included.
    async fn turn(self: Arc<Self>) -> Result<(), ReportError> {
        let served: Vec<Form> = Form::ALL.into_iter().filter(|form| self.is_served(*form)).collect();
        let Some(preferred) = served.first().copied() else { return Ok(()) };
        let findings = self.clone().findings().await?;
        let wanted = {
            let inventory = self.inventory.read();
            let takes = |name: &str| inventory.namespace(name).is_some_and(|meta| !meta.is_terminating());
            reports(preferred, &findings, takes, |kind| self.kinds.known(kind).map(|served| served.version))
        };
        let mut first_problem = None;
        let writes: Vec<_> = wanted.iter().map(|report| self.write(preferred, report)).collect();
        let mut written = stream::iter(writes).buffer_unordered(AT_A_TIME);
        while let Some(result) = written.next().await {
            // One Namespace that takes no report must not keep the others from theirs.
            first_problem = first_problem.or(result.err());
        }
        for form in served {
            for scope in [true, false] {
                let keep =
                    |namespace: &str| form == preferred && wanted.iter().any(|report| report.namespace() == namespace);
                if let Err(error) = self.tidy(form, scope, keep).await {
                    first_problem = first_problem.or(Some(error));
                }
            }
        }
        tracing::debug!(reports = wanted.len(), findings = findings.len(), "reports are up to date");
        first_problem.map_or(Ok(()), Err)
    }

    /// Audits what is there now, on a thread of its own: it is work for a processor, and reviews must not wait for it.
    async fn findings(self: Arc<Self>) -> Result<Vec<ReportFinding>, ReportError> {
        let application = GroupKind::new(ARGO_GROUP, "Application");
        let mut objects = match self.kinds.known(&application) {
            Some(_) => self.source.subjects(&application, "").await.map_err(ReportError::Applications)?,
            None => Vec::new(),
        };
        let policy = self.policy.load();
        objects.retain(|subject| policy.watches_applications_in(&subject.object.namespace));
        objects.extend(known(&self.inventory.read()));
        let going = |subject: &&KnownObject| subject.object.is_namespace() && subject.meta.is_terminating();
        let going: Vec<String> = objects.iter().filter(going).map(|subject| subject.object.name.clone()).collect();
        for namespace in going {
            objects.extend(self.source.held_in(&namespace).await);
        }
        let runtime = tokio::runtime::Handle::current();
        let audit = tokio::task::spawn_blocking(move || {
            let input = AuditInput {
                view: &*self.inventory,
                source: &self.source,
                policy: &policy,
                now: Timestamp::now(),
                objects: &objects,
            };
            let options = Options { stuck_after: self.stuck_after, ..Options::default() };
            runtime.block_on(audit::scan(&input, &options, &|_| {}))
        });
        Ok(audit.await?.findings())
    }

    fn api(&self, form: Form, namespaced: bool, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = form.group_version();
        let (kind, plural) = form.kind(namespaced);
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    async fn write(&self, form: Form, report: &ReportObject) -> Result<(), ReportError> {
        let namespace = report.namespace();
        let api = self.api(form, !namespace.is_empty(), namespace);
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(NAME, &parameters, &Patch::Apply(report)).await;
        let what = || match namespace {
            "" => "writing the report of the cluster".to_owned(),
            namespace => format!("writing the report of Namespace {namespace}"),
        };
        applied.map(|_| ()).map_err(|source| ReportError::Request { what: what(), source })
    }

    /// Removes the reports of ours that `keep` does not name.
    async fn tidy(&self, form: Form, namespaced: bool, keep: impl Fn(&str) -> bool) -> Result<(), ReportError> {
        let request = |what: &str| {
            let what = format!("{what} {}", form.kind(namespaced).1);
            move |source| ReportError::Request { what, source }
        };
        // All of ours have one name, which is all that the guard may list.
        let ours =
            ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1)).fields(&format!("metadata.name={NAME}"));
        let all = self.api(form, namespaced, "");
        for report in all.list_metadata(&ours).await.map_err(request("listing"))? {
            let namespace = report.namespace().unwrap_or_default();
            if keep(&namespace) {
                continue;
            }
            match self.api(form, namespaced, &namespace).delete(NAME, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                result => drop(result.map_err(request("removing"))?),
            }
        }
        Ok(())
    }
}

/// Namespaces and ApplicationSets, as the watches know them.
fn known(inventory: &Inventory) -> Vec<KnownObject> {
    let namespaces = inventory
        .namespaces()
        .map(|meta| KnownObject { object: ObjectRef::namespace(&meta.name), meta: Arc::new(meta.clone()) });
    let sets = inventory.appsets().map(|set| KnownObject {
        object: ObjectRef::new(ARGO_GROUP, "ApplicationSet", &set.meta.namespace, &set.meta.name),
        meta: Arc::new(set.meta.clone()),
    });
    namespaces.chain(sets).collect()
}
