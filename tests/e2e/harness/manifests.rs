//! The manifests that ship, as the API server of the test gets them.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, GroupVersionKind, Patch, PatchParams},
    discovery::{Scope, pinned_kind},
};
use serde::Deserialize;

use super::wait::eventually;

/// Objects of the base, in its order.
pub fn base() -> Result<Vec<DynamicObject>> {
    #[derive(Deserialize)]
    struct Kustomization {
        resources: Vec<String>,
    }
    let folder = root().join("manifests");
    let text = fs::read_to_string(folder.join("kustomization.yaml"))?;
    // The base only lists files; were it to transform them, this would no longer be what kubectl applies.
    let Kustomization { resources } = serde_saphyr::from_str(&text).context("manifests/kustomization.yaml")?;
    let mut objects = Vec::new();
    for file in resources {
        objects.extend(read(&format!("manifests/{file}"))?);
    }
    Ok(objects)
}

/// Objects of one file of the repository.
pub fn read(file: &str) -> Result<Vec<DynamicObject>> {
    let text = fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
    serde_saphyr::from_multiple(&text).with_context(|| format!("{file} is not YAML of Kubernetes objects"))
}

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Applies an object, server-side, refusing unknown fields; gives what came of it.
pub async fn apply(client: &Client, object: &DynamicObject) -> Result<DynamicObject> {
    let types = object.types.as_ref().context("an object without apiVersion and kind")?;
    let kind: GroupVersionKind = types.try_into()?;
    // A kind whose definition has just been applied takes a moment to appear.
    let (resource, capabilities) = eventually(&types.kind, async || Ok(pinned_kind(client, &kind).await?)).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
        (Scope::Namespaced, None) => anyhow::bail!("{} {} has no namespace", types.kind, object.name_any()),
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("cascade-guard-tests").force().validation_strict();
    api.patch(&object.name_any(), &parameters, &Patch::Apply(object))
        .await
        .with_context(|| format!("the API server does not take {} {}", types.kind, object.name_any()))
}

/// Whether it is the configuration that tells the API server when to ask the guard.
pub fn is_webhook_configuration(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "ValidatingWebhookConfiguration")
}

/// Points every entry of the webhook configuration to a guard on this machine instead of the Service.
pub fn point_to(configuration: &mut DynamicObject, port: u16, ca_bundle: &str) -> Result<()> {
    let entries = configuration.data["webhooks"].as_array_mut().context("no webhooks")?;
    ensure!(!entries.is_empty(), "no webhooks");
    for entry in entries {
        let path = entry["clientConfig"]["service"]["path"].as_str().context("an entry without a path")?;
        let url = format!("https://localhost:{port}{path}");
        entry["clientConfig"] = serde_json::json!({"url": url, "caBundle": ca_bundle});
    }
    Ok(())
}
