//! Arguments that name the object and the user of a request.

use anyhow::{Context as _, ensure};
use kube::Client;

use super::cluster_access;
use cascade_guard_core::{
    admission::UserInfo,
    object::{ARGO_GROUP, ObjectRef},
    snapshot::Snapshot,
};

/// The object of a request, as a person names it.
#[derive(Debug, clap::Args)]
pub struct ObjectArgs {
    /// Kind of the object: application, applicationset, namespace, crd, role, …
    kind: String,
    /// Name of the object, alone or after its namespace
    #[arg(value_name = "[NAMESPACE/]NAME")]
    name: String,
    /// Namespace of the object; an Application, ApplicationSet or AppProject is looked for in that of Argo CD without
    /// it
    #[arg(short, long, default_value = "", hide_default_value = true)]
    namespace: String,
}

/// The parts of such a name. The name of an object holds no slash.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Kind, plural or short name, alone or followed by `.group`.
    pub kind: &'a str,
    /// Namespace; empty where none is named.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl ObjectArgs {
    /// Splits the name into its parts.
    pub fn wanted(&self) -> anyhow::Result<Wanted<'_>> {
        let own = self.namespace.as_str();
        let (namespace, name) = self.name.split_once('/').unwrap_or((own, &self.name));
        ensure!(own.is_empty() || own == namespace, "{} and -n {own} name two namespaces; leave one away", self.name);
        ensure!(!name.is_empty() && !name.contains('/'), "{} is no name; write it as NAMESPACE/NAME", self.name);
        Ok(Wanted { kind: &self.kind, namespace, name })
    }
}

impl Wanted<'_> {
    /// Finds the object in a snapshot. Where no namespace is named, an object of Argo CD is looked for in its own namespace,
    /// `argocd`. A namespace beside the name of a cluster-scoped object is ignored.
    pub fn find(&self, snapshot: &Snapshot, argocd: &str) -> Option<ObjectRef> {
        let named = || snapshot.named(self.kind, self.name);
        let at_home = |object: &&ObjectRef| {
            self.namespace.is_empty() && object.kind.group == ARGO_GROUP && object.namespace == argocd
        };
        let exact = named().find(|object| object.namespace == self.namespace);
        exact.or_else(|| named().find(|object| object.namespace.is_empty() || at_home(object))).cloned()
    }

    /// One line that says why nothing was found. `place` says where it was looked for.
    pub fn missing(&self, snapshot: &Snapshot, place: &str) -> String {
        let Self { kind, namespace, name } = self;
        let elsewhere: Vec<String> = snapshot.named(kind, name).take(5).map(ObjectRef::path).collect();
        let own = ObjectRef::new("", "", namespace, name).path();
        match (elsewhere.is_empty(), namespace.is_empty()) {
            (true, _) => format!("there is no {kind} {own}{place}"),
            (false, true) => format!("say which {kind} {name} is meant: {}", elsewhere.join(" or ")),
            (false, false) => format!("there is no {kind} {own}{place}, but there is {}", elsewhere.join(" and ")),
        }
    }
}

/// The user of a request.
#[derive(Debug, clap::Args)]
pub struct UserArgs {
    /// User whose request it is; by default the current user, and without a cluster `kubectl-user`
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// A group of that user; may be given several times
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
}

/// The user where none is named and no cluster can be asked.
const SOMEBODY: &str = "kubectl-user";

impl UserArgs {
    /// The user, with groups. Everybody whom the API server knows is in `system:authenticated`.
    pub async fn user(&self, client: Option<&Client>) -> anyhow::Result<UserInfo> {
        let mut user = match (&self.user, client) {
            (Some(username), _) => UserInfo { username: username.clone(), ..UserInfo::default() },
            (None, None) => UserInfo { username: SOMEBODY.to_owned(), ..UserInfo::default() },
            (None, Some(client)) => cluster_access::current_user(client).await.context("name a user with --user")?,
        };
        if !self.groups.is_empty() {
            user.groups.clone_from(&self.groups);
        }
        let everybody = "system:authenticated";
        if !user.groups.iter().any(|group| group == everybody) {
            user.groups.push(everybody.to_owned());
        }
        Ok(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> Snapshot {
        let objects = [
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
            "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, namespace: argocd}, spec: {}}",
            "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: b, namespace: team}, spec: {}}",
            "{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: p, namespace: argocd}}",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: argocd}}",
        ];
        Snapshot::parse("test", format!("---\n{}", objects.join("\n---\n"))).unwrap()
    }

    fn found(kind: &str, name: &str, namespace: &str) -> Result<String, String> {
        let world = world();
        let args = ObjectArgs { kind: kind.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() };
        let wanted = args.wanted().map_err(|error| error.to_string())?;
        let found = wanted.find(&world, "argocd").map(|object| object.to_string());
        found.ok_or_else(|| wanted.missing(&world, " in the snapshot"))
    }

    #[test]
    fn object_is_named_with_its_namespace_before_or_beside_it() {
        for (name, namespace) in [("argocd/a", ""), ("a", "argocd"), ("argocd/a", "argocd"), ("a", "")] {
            assert_eq!(found("application", name, namespace).unwrap(), "Application argocd/a", "{name} {namespace}");
        }
        assert_eq!(found("app", "team/b", "").unwrap(), "Application team/b");
        assert_eq!(found("appproject", "p", "").unwrap(), "AppProject argocd/p");
    }

    #[test]
    fn namespace_beside_what_has_none_does_no_harm() {
        for (name, namespace) in [("shop", ""), ("shop", "argocd"), ("argocd/shop", "")] {
            assert_eq!(found("ns", name, namespace).unwrap(), "Namespace shop");
        }
    }

    #[test]
    fn what_is_not_found_is_said_in_one_line() {
        let said = |kind, name, namespace| found(kind, name, namespace).unwrap_err();
        assert_eq!(said("app", "b", ""), "say which app b is meant: team/b");
        assert_eq!(said("app", "argocd/b", ""), "there is no app argocd/b in the snapshot, but there is team/b");
        assert_eq!(said("role", "r", ""), "say which role r is meant: argocd/r");
        assert_eq!(said("role", "nothing", "argocd"), "there is no role argocd/nothing in the snapshot");
        assert_eq!(said("app", "team/a", "argocd"), "team/a and -n argocd name two namespaces; leave one away");
        assert_eq!(said("app", "argocd/a/b", ""), "argocd/a/b is no name; write it as NAMESPACE/NAME");
    }

    #[test]
    fn user_who_is_named_counts_with_the_groups_that_are_named() {
        let user = |user: Option<&str>, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let args = UserArgs { user: user.map(str::to_owned), groups };
            let user = futures::executor::block_on(args.user(None)).unwrap();
            (user.username, user.groups.join(","))
        };
        let pair = |name: &str, groups: &str| (name.to_owned(), groups.to_owned());
        assert_eq!(user(None, &[]), pair("kubectl-user", "system:authenticated"));
        assert_eq!(user(Some("alice"), &["oncall"]), pair("alice", "oncall,system:authenticated"));
    }
}
