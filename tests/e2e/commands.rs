//! Commands that look at the live cluster: they see what the guard sees.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{
    harness::{
        argo::{Application, CASCADE, Entry, entry},
        world::World,
    },
    tests,
};

tests!(
    commands_over_the_cluster_see_who_claims_what,
    doctor_tells_protection_from_its_absence,
    lint_asks_the_cluster_what_exists,
);

/// Runs the binary against the cluster as its administrator.
fn run(folder: &Path, arguments: &[&str]) -> Result<(i32, String)> {
    let kubeconfig = folder.join("admin.kubeconfig").display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_cascade-guard"))
        .args(arguments)
        .args(["--kubeconfig", &kubeconfig])
        .env_remove("CASCADE_GUARD_MODE_CEILING")
        .output()?;
    let code = output.status.code().unwrap_or(-1);
    ensure!(code < 2, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok((code, String::from_utf8(output.stdout)?))
}

async fn commands_over_the_cluster_see_who_claims_what(world: &World) -> Result<()> {
    world.namespace("commands").await?;
    let list =
        [entry("rbac.authorization.k8s.io", "Role", "commands", "api"), entry("", "ConfigMap", "commands", "own")];
    let old = Application::create(world, "commands-old", "commands", &[CASCADE], &list).await?;
    old.sync(&list).await?;
    Application::create(world, "commands-new", "commands", &[CASCADE], &[list[0].clone().out_of_sync()]).await?;

    let folder = tempfile::tempdir()?;
    let admin = world.plane.administrator()?;
    fs::write(folder.path().join("admin.kubeconfig"), world.plane.kubeconfig(&admin))?;
    let policy = folder.path().join("policy.yaml").display().to_string();
    fs::write(
        &policy,
        "{apiVersion: cascade-guard.io/v1alpha1, kind: GuardPolicy, spec: {rules: {sharedClaim: {mode: enforce}}}}",
    )?;

    let plan = ["plan", "application", "commands-old", "-n", "argocd", "--policy", &policy, "-o", "json"];
    let (code, text) = run(folder.path(), &plan)?;
    let plan: Value = serde_json::from_str(&text)?;
    let fate = |name: &str| {
        plan["objects"].as_array().into_iter().flatten().find(|row| row["name"] == name).map(|row| row["fate"].clone())
    };
    ensure!(code == 1, "the plan ended with {code}: {text}");
    ensure!(fate("api") == Some("contested".into()) && fate("own") == Some("deleted".into()), "{text}");

    // A kind that is not listed beforehand is read when somebody asks for it.
    let (_, text) = run(folder.path(), &["plan", "role", "api", "-n", "commands", "--policy", &policy])?;
    ensure!(text.contains("argocd/commands-new"), "{text}");

    let (code, text) = run(folder.path(), &["overlap", "commands-old", "commands-new", "--policy", &policy])?;
    ensure!(code == 1 && text.contains("Role commands/api"), "{text}");

    let (code, text) = run(folder.path(), &["audit", "-o", "json", "--policy", &policy])?;
    ensure!(
        code == 1 && text.contains("commands-old") && text.contains("commands-new"),
        "the audit missed the overlap"
    );
    Ok(())
}

async fn doctor_tells_protection_from_its_absence(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("admin.kubeconfig"), world.plane.kubeconfig(&world.plane.administrator()?))?;
    let policy = |mode: &str| -> Result<String> {
        let path = folder.path().join(format!("{mode}.yaml"));
        let text = format!(
            "{{apiVersion: cascade-guard.io/v1alpha1, kind: GuardPolicy, spec: {{rules: {{namespaceApproval: {{mode: {mode}}}}}}}}}"
        );
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let (code, text) = run(folder.path(), &["doctor", "--policy", &policy("enforce")?])?;
    ensure!(code == 0 && text.contains("was refused by the guard"), "{text}");
    let (code, text) = run(folder.path(), &["doctor", "--policy", &policy("audit")?])?;
    ensure!(code == 1 && text.contains("PROBLEM  policy"), "{text}");
    let (code, text) = run(folder.path(), &["doctor", "--policy", &policy("enforce")?, "--configuration", "other"])?;
    ensure!(code == 1 && text.contains("there is no ValidatingWebhookConfiguration other"), "{text}");
    Ok(())
}

async fn lint_asks_the_cluster_what_exists(world: &World) -> Result<()> {
    world.namespace("linted").await?;
    let list = [entry("", "ConfigMap", "linted", "settings")];
    let application =
        Application::create(world, "linted", "linted", &[CASCADE], &list.clone().map(Entry::out_of_sync)).await?;
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("admin.kubeconfig"), world.plane.kubeconfig(&world.plane.administrator()?))?;
    let manifests = folder.path().join("rendered.yaml").display().to_string();
    fs::write(
        &manifests,
        "apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  activeDeadlineSeconds: 60
  template: {spec: {restartPolicy: Never, containers: [{name: m, image: m, envFrom: [{configMapRef: {name: settings}}]}]}}
",
    )?;
    let arguments = ["lint", &manifests, "--app", "linted", "--live"];
    let (code, text) = run(folder.path(), &arguments)?;
    ensure!(code == 1 && text.contains("depends-on-later"), "{text}");
    application.sync(&list).await?;
    let (code, text) = run(folder.path(), &arguments)?;
    ensure!(code == 0 && text.contains("settings"), "what exists only deserves a warning: {text}");
    Ok(())
}
