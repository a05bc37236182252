//! Who takes part in the deletion of a Namespace, besides Argo CD and the platform engineer, and what they ask for.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use kube::{Client, config::AuthInfo};
use serde_json::json;

use super::{manifests, world::World};

/// Somebody with a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    pub name: &'static str,
    group: &'static str,
}

/// Holds the role for approvers that ships, and no other.
pub const APPROVER: Person = Person { name: "alice@example.com", group: "approvers" };
/// May delete Namespaces and not write to them.
pub const DELETER: Person = Person { name: "bob@example.com", group: "deleters" };
/// May write to Namespaces in every way, and neither approve nor delete them.
pub const OUTSIDER: Person = Person { name: "mallory@example.com", group: "patchers" };
/// May approve and delete: the one whom only four eyes stop.
pub const BOTH: Person = Person { name: "carol@example.com", group: "approvers-and-deleters" };
/// May do anything, and is in the group that a policy may let break the glass.
pub const ON_CALL: Person = Person { name: "dave@example.com", group: "on-call" };

impl Person {
    /// This person's client.
    pub fn client(self, world: &World) -> Result<Client> {
        world.plane.person(self.name, self.group)
    }

    /// Runs the binary as this person; gives what it said.
    pub fn runs(self, world: &World, arguments: &[&str]) -> Result<Said> {
        run(world, &world.plane.certificate(self.name, self.group)?, arguments)
    }
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// That it ended like this and said all of these words somewhere.
    pub fn ended(&self, code: i32, words: &[&str]) -> Result<()> {
        ensure!(self.code == code, "it ended with {} instead of {code}: {self:?}", self.code);
        for word in words {
            ensure!(self.out.contains(word) || self.err.contains(word), "no {word:?} in {self:?}");
        }
        Ok(())
    }
}

fn run(world: &World, user: &AuthInfo, arguments: &[&str]) -> Result<Said> {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, world.plane.kubeconfig(user))?;
    let output = Command::new(env!("CARGO_BIN_EXE_cascade-guard"))
        .args(arguments)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .env_remove("CASCADE_GUARD_MODE_CEILING")
        .output()?;
    let code = output.status.code().context("it was killed")?;
    Ok(Said { code, out: String::from_utf8(output.stdout)?, err: String::from_utf8(output.stderr)? })
}

/// Gives everybody their rights.
pub async fn give_rights(admin: &Client) -> Result<()> {
    let approver = "cascade-guard-namespace-approver";
    let roles = [
        ("deleters", json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "delete"]}])),
        (
            "patchers",
            json!([
                {"apiGroups": [""], "resources": ["namespaces", "namespaces/status"], "verbs": ["get", "patch", "update"]},
                {"apiGroups": [""], "resources": ["namespaces/finalize"], "verbs": ["update"]},
            ]),
        ),
    ];
    for (name, rules) in roles {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("test-{name}")}, "rules": rules,
        });
        manifests::apply(admin, &serde_json::from_value(role)?).await?;
    }
    for (person, role) in [
        (APPROVER, approver),
        (DELETER, "test-deleters"),
        (OUTSIDER, "test-patchers"),
        (BOTH, approver),
        (BOTH, "test-deleters"),
        (ON_CALL, "cluster-admin"),
    ] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("test-{}-{role}", person.group)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": person.group}],
        });
        manifests::apply(admin, &serde_json::from_value(binding)?).await?;
    }
    Ok(())
}
