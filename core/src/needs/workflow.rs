//! Argo Workflows: what every run of one refers to.
//!
//! Steps with a condition may never run. What only they refer to is worth a warning, never a refusal.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::{
    Force, Needs,
    pod::{Container, PRIORITY_CLASS, SERVICE_ACCOUNT, VolumeClaim},
    shape::{Named, Volume},
};
use crate::object::{ARGO_GROUP, null_to_default};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WorkflowSpec {
    #[serde(deserialize_with = "null_to_default")]
    entrypoint: String,
    #[serde(deserialize_with = "null_to_default")]
    service_account_name: String,
    #[serde(deserialize_with = "null_to_default")]
    pod_priority_class_name: String,
    #[serde(deserialize_with = "null_to_default")]
    executor: Executor,
    #[serde(deserialize_with = "null_to_default")]
    workflow_template_ref: TemplateRef,
    #[serde(deserialize_with = "null_to_default")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "null_to_default")]
    volume_claim_templates: Vec<VolumeClaim>,
    #[serde(deserialize_with = "null_to_default")]
    image_pull_secrets: Vec<Named>,
    #[serde(deserialize_with = "null_to_default")]
    templates: Vec<Template>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Executor {
    #[serde(deserialize_with = "null_to_default")]
    service_account_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TemplateRef {
    #[serde(deserialize_with = "null_to_default")]
    name: String,
    #[serde(deserialize_with = "null_to_default")]
    cluster_scope: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Template {
    #[serde(deserialize_with = "null_to_default")]
    name: String,
    container: Option<Container>,
    script: Option<Container>,
    #[serde(deserialize_with = "null_to_default")]
    container_set: ContainerSet,
    #[serde(deserialize_with = "null_to_default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "null_to_default")]
    sidecars: Vec<Container>,
    #[serde(deserialize_with = "null_to_default")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "null_to_default")]
    service_account_name: String,
    #[serde(deserialize_with = "null_to_default")]
    priority_class_name: String,
    #[serde(deserialize_with = "null_to_default")]
    steps: Vec<Vec<Step>>,
    #[serde(deserialize_with = "null_to_default")]
    dag: Dag,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerSet {
    #[serde(deserialize_with = "null_to_default")]
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Dag {
    #[serde(deserialize_with = "null_to_default")]
    tasks: Vec<Step>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Step {
    #[serde(deserialize_with = "null_to_default")]
    template: String,
    #[serde(deserialize_with = "null_to_default")]
    when: String,
    #[serde(deserialize_with = "null_to_default")]
    depends: String,
}

impl Step {
    /// Whether it runs in every Workflow that succeeds. A `depends` with a status (`a.Failed`) is a condition.
    fn always_runs(&self) -> bool {
        self.when.is_empty() && !self.depends.contains('.')
    }
}

pub(super) fn read(spec: &WorkflowSpec, needs: &mut Needs<'_>) {
    let always = reachable(spec);
    let (sometimes, certain): (Vec<&Template>, Vec<&Template>) =
        spec.templates.iter().partition(|template| !always.contains(template.name.as_str()));
    for template in sometimes {
        needs.template(template);
    }
    needs.weaken("a step with a condition refers to it");
    for template in certain {
        needs.template(template);
    }
    needs.add(SERVICE_ACCOUNT, &spec.service_account_name, Force::Creation, "serviceAccountName", false);
    needs.add(SERVICE_ACCOUNT, &spec.executor.service_account_name, Force::Creation, "serviceAccountName", false);
    needs.add_cluster(PRIORITY_CLASS, &spec.pod_priority_class_name, Force::Creation, "podPriorityClassName");
    let reference = &spec.workflow_template_ref;
    if reference.cluster_scope {
        let kind = (ARGO_GROUP, "ClusterWorkflowTemplate");
        needs.add_cluster(kind, &reference.name, Force::Creation, "workflowTemplateRef");
    } else {
        let kind = (ARGO_GROUP, "WorkflowTemplate");
        needs.add(kind, &reference.name, Force::Creation, "workflowTemplateRef", false);
    }
    needs.volumes(&spec.volumes);
    for claim in &spec.volume_claim_templates {
        needs.claim(claim);
    }
    needs.pull_secrets(&spec.image_pull_secrets);
}

/// Names of the templates that run whatever happens: the entrypoint, and what it calls without a condition.
fn reachable(spec: &WorkflowSpec) -> HashSet<&str> {
    let mut by_name: HashMap<&str, Vec<&Template>> = HashMap::new();
    for template in &spec.templates {
        by_name.entry(&template.name).or_default().push(template);
    }
    let mut reached = HashSet::from([spec.entrypoint.as_str()]);
    let mut queue = vec![spec.entrypoint.as_str()];
    while let Some(name) = queue.pop() {
        for template in by_name.get(name).into_iter().flatten() {
            let steps = template.steps.iter().flatten().chain(&template.dag.tasks);
            let always = steps.filter(|step| step.always_runs()).map(|step| step.template.as_str());
            queue.extend(always.filter(|name| reached.insert(name)));
        }
    }
    reached
}

impl Needs<'_> {
    fn template(&mut self, template: &Template) {
        let containers = template.init_containers.iter().chain(&template.sidecars);
        let containers = containers.chain(&template.container_set.containers);
        for container in containers.chain(&template.container).chain(&template.script) {
            self.container(container);
        }
        self.volumes(&template.volumes);
        let account = &template.service_account_name;
        self.add(SERVICE_ACCOUNT, account, Force::Creation, "serviceAccountName", false);
        self.add_cluster(PRIORITY_CLASS, &template.priority_class_name, Force::Creation, "priorityClassName");
    }
}
