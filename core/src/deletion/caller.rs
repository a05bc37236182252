//! Who deletes, where it is an Argo CD: for which Applications it acts, and whether the policy trusts it.
//!
//! Only identities that sync, prune and cascade are asked about. The API server of Argo CD and the controller of
//! ApplicationSets are callers like anyone.

use super::plan::Inputs;
use crate::inventory::{App, Inventory};

/// An identity that syncs, prunes and cascades.
#[derive(Debug)]
pub struct Caller<'a>(Vec<Duty<'a>>);

/// One reason why it does.
#[derive(Clone, Copy, Debug)]
struct Duty<'a> {
    /// Namespace of the Argo CD; `None` for one of another cluster, or an account that the policy names and that lives with
    /// no Argo CD.
    home: Option<&'a str>,
    /// The project for which it is impersonated; `None` for a controller itself.
    project: Option<&'a str>,
    /// Whether the policy names the user or the Argo CD.
    trusted: bool,
}

impl<'a> Caller<'a> {
    /// What `user` is to Argo CD: named by the policy, the controller of an Argo CD that was found, or impersonated by one of
    /// its AppProjects. An AppProject anywhere else names nobody. `None` for everybody else.
    pub fn of(inputs: Inputs<'a>, user: &str) -> Option<Self> {
        let installations = inputs.inventory.installations();
        let mut duties = Vec::new();
        let account = user.strip_prefix("system:serviceaccount:");
        let lives_in = account.and_then(|account| account.split_once(':'));
        let home = lives_in.and_then(|(namespace, _)| installations.homes().find(|home| *home == namespace));
        if inputs.policy.is_argocd(user) {
            duties.push(Duty { home, project: None, trusted: true });
        } else if let (Some(home), Some((_, name))) = (home, lives_in)
            && installations.is_controller(home, name)
        {
            duties.push(Duty { home: Some(home), project: None, trusted: installations.is_named(home) });
        }
        if let Some(account) = account {
            for project in inputs.inventory.projects() {
                let home = project.meta.namespace.as_str();
                let names = || project.spec.sync_accounts.iter().any(|pattern| same_account(pattern, account));
                if installations.is_home(home) && names() {
                    let trusted = installations.is_named(home);
                    duties.push(Duty { home: Some(home), project: Some(&project.meta.name), trusted });
                }
            }
        }
        (!duties.is_empty()).then_some(Self(duties))
    }

    /// Whether it deletes for an Application: one that its Argo CD really serves.
    pub fn acts_for(&self, inventory: &Inventory, app: &App) -> bool {
        self.duties_to(inventory, app).next().is_some()
    }

    /// Whether the policy trusts it with what it does for an Application.
    pub fn is_trusted_with(&self, inventory: &Inventory, app: &App) -> bool {
        self.duties_to(inventory, app).any(|duty| duty.trusted)
    }

    /// Whether the policy trusts it with anything. What it does for an Application that is not known is judged by this.
    pub fn is_trusted(&self) -> bool {
        self.0.iter().any(|duty| duty.trusted)
    }

    /// Whether it is none of the identities that look after an Application on this cluster.
    pub fn is_foreign_to(&self, inventory: &Inventory, app: &App) -> bool {
        self.duties_to(inventory, app).all(|duty| duty.home.is_none())
    }

    /// Anybody can make an Argo CD that says it serves every namespace. So one that the policy does not name has no say in
    /// what one serves that the policy names.
    fn duties_to(&self, inventory: &Inventory, app: &App) -> impl Iterator<Item = &Duty<'a>> {
        self.0.iter().filter(|duty| {
            (duty.trusted || !inventory.is_trusted(app))
                && duty.home.is_none_or(|home| inventory.belongs_to(app, home))
                && duty.project.is_none_or(|project| *app.project == *project)
        })
    }
}

/// Whether `user` syncs, prunes and cascades for some Argo CD. Anybody can make one of his own, so this alone allows nothing.
pub fn is_sync_identity(inputs: Inputs<'_>, user: &str) -> bool {
    Caller::of(inputs, user).is_some()
}

/// Compares `<namespace>:<name>` with a pattern of which the namespace may hold wildcards or be empty (any destination).
fn same_account(pattern: &str, account: &str) -> bool {
    let (Some((namespace, name)), Some((in_namespace, account_name))) =
        (pattern.split_once(':'), account.split_once(':'))
    else {
        return false;
    };
    name == account_name
        && (namespace.is_empty()
            || globset::Glob::new(namespace).is_ok_and(|glob| glob.compile_matcher().is_match(in_namespace)))
}
