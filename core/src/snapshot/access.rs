//! Answers a SubjectAccessReview from the ClusterRoles and ClusterRoleBindings of a snapshot.
//!
//! RBAC is the only authorizer a snapshot can hold. Aggregated roles count with the rules that stand in them, as the
//! control plane wrote them.

use serde::Deserialize;

use super::Snapshot;
use crate::{
    admission::UserInfo,
    facts::{AccessQuestion, Reading},
    object::{RBAC_GROUP, null_to_default},
    rbac::{Binding, Grant, On, PolicyRule, RoleSubject},
};

/// Members of this group may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";

#[derive(Deserialize)]
struct Role {
    #[serde(default, deserialize_with = "null_to_default")]
    rules: Vec<PolicyRule>,
}

pub(super) fn access(snapshot: &Snapshot, question: &AccessQuestion) -> Reading<bool> {
    let AccessQuestion { user, verb, group, resource, name } = question;
    if user.groups.iter().any(|group| group == MASTERS) {
        return Reading::Found(true);
    }
    let mut bindings = snapshot.json_of_kind(RBAC_GROUP, "ClusterRoleBinding").peekable();
    if bindings.peek().is_none() {
        return Reading::Unreadable(format!(
            "the snapshot holds no ClusterRoleBinding, so it cannot tell whether {} may {verb} {resource}.{group}",
            user.username
        ));
    }
    let grant = Grant { verb, on: On::Resource { group, resource, name: Some(name) } };
    let held = bindings
        .filter_map(|raw| serde_json::from_str::<Binding>(raw).ok())
        .filter(|binding| binding.role_ref.kind == "ClusterRole" && binding.subjects.iter().any(|who| is(who, user)))
        .any(|binding| grants(snapshot, &binding.role_ref.name, grant));
    Reading::Found(held)
}

fn grants(snapshot: &Snapshot, role: &str, grant: Grant<'_>) -> bool {
    snapshot
        .of_kind(RBAC_GROUP, "ClusterRole")
        .filter(|stored| stored.identity.name == role)
        .filter_map(|stored| serde_json::from_str::<Role>(snapshot.raw(stored)).ok())
        .any(|role| role.rules.iter().any(|rule| rule.covers(grant)))
}

/// Mirrors `appliesToUser` of `plugin/pkg/auth/authorizer/rbac`.
fn is(subject: &RoleSubject, user: &UserInfo) -> bool {
    match subject.kind.as_str() {
        "User" => subject.name == user.username,
        "Group" => user.groups.contains(&subject.name),
        "ServiceAccount" => {
            user.username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
                == Some((subject.namespace.as_str(), subject.name.as_str()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: approvers}
rules: [{apiGroups: [cascade-guard.io], resources: [namespacedeletions], resourceNames: [shop], verbs: [approve]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: approvers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: approvers}
subjects: [{kind: User, name: alice}, {kind: Group, name: leads}, {kind: ServiceAccount, name: bot, namespace: ci}]
";

    fn ask(snapshot: &str, user: &str, groups: &[&str], name: &str) -> Reading<bool> {
        let user = UserInfo {
            username: user.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..UserInfo::default()
        };
        let question = AccessQuestion {
            user,
            verb: "approve".to_owned(),
            group: "cascade-guard.io".to_owned(),
            resource: "namespacedeletions".to_owned(),
            name: name.to_owned(),
        };
        access(&Snapshot::parse("test", snapshot.to_owned()).unwrap(), &question)
    }

    #[test]
    fn whoever_is_bound_to_the_role_holds_the_verb_on_that_name() {
        for (user, groups) in [("alice", &[][..]), ("x", &["leads"]), ("system:serviceaccount:ci:bot", &[])] {
            assert_eq!(ask(ROLES, user, groups, "shop"), Reading::Found(true), "{user}");
            assert_eq!(ask(ROLES, user, groups, "bank"), Reading::Found(false), "{user}");
        }
        assert_eq!(ask(ROLES, "mallory", &["system:authenticated"], "shop"), Reading::Found(false));
        assert_eq!(ask(ROLES, "root", &["system:masters"], "bank"), Reading::Found(true));
    }

    #[test]
    fn snapshot_without_bindings_cannot_tell() {
        assert!(matches!(ask("", "alice", &[], "shop"), Reading::Unreadable(_)));
    }
}
