//! What nobody can tell about the Argo CDs of a cluster, or what counts for less than people may expect, and what to do about
//! it: for the condition of the policy, for `doctor` and for the audit.

use std::collections::BTreeMap;

use super::{App, AppId, Inventory};
use crate::{
    argo::{TrackingMethod, tracking::TrackingSettings},
    object::ObjectRef,
    remedy::Remedy,
    text::{count, some},
};

/// What kind of gap it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapKind {
    /// An Argo CD that the policy does not name.
    Unnamed,
    /// A cluster that nobody can resolve.
    Unresolved,
    /// An Application that was never compared and that no Argo CD serves.
    NotServed,
    /// Two Applications that two Argo CDs cannot tell apart.
    Twins,
}

/// A gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its kind.
    pub kind: GapKind,
    /// The object that it is about.
    pub object: ObjectRef,
    /// What is so, in one sentence without a full stop.
    pub detail: String,
    /// What to do about it.
    pub remedy: Remedy,
}

/// So many are named where one sentence speaks of several.
const NAMED: usize = 3;

impl Inventory {
    /// Gaps that the policy can close, in order: Argo CDs that it does not name, and clusters that it can tell.
    pub fn gaps_in_policy(&self) -> Vec<Gap> {
        let unnamed = self.installations().unnamed().filter_map(|home| self.unnamed(home));
        unnamed.chain(self.unresolved()).collect()
    }

    /// All of this that goes into one sentence each: what the policy can close, and how many Applications no Argo CD serves.
    pub fn gaps_in_words(&self) -> Vec<String> {
        let words = |gap: Gap| format!("{}: {}", gap.detail, gap.remedy.text);
        let mut found: Vec<String> = self.gaps_in_policy().into_iter().map(words).collect();
        let lost: Vec<String> = self.not_served().iter().map(|gap| gap.object.path()).collect();
        if !lost.is_empty() {
            found.push(format!(
                "{} never compared, because no Argo CD serves the namespace: they claim nothing (the audit says more)",
                some(&lost, NAMED)
            ));
        }
        found
    }

    /// Applications that were never compared and that no Argo CD serves: nobody will ever compare them, so they are no unknown
    /// claimants. Whoever expects them to be deployed should know.
    pub fn not_served(&self) -> Vec<Gap> {
        let lost = |app: &&App| app.never_compared && app.terminating.is_none() && !self.is_served(&app.namespace);
        let mut found: Vec<&App> = self.wanting_unknown().filter_map(|id| self.app(id)).filter(lost).collect();
        found.sort_by_key(|app| app.path());
        found.into_iter().map(not_served).collect()
    }

    /// Applications that two Argo CDs take for the same one, because both have that name and no installation ids tell them
    /// apart.
    pub fn twins(&self) -> Vec<Gap> {
        let mut found = Vec::new();
        for namesakes in self.by_name.values().filter(|ids| ids.len() > 1) {
            let mut by_instance: BTreeMap<String, Vec<(AppId, &str)>> = BTreeMap::new();
            for id in namesakes {
                let Some(app) = self.app(*id) else { continue };
                for identity in self.identities_of(app) {
                    if self.belongs_to(app, identity.home) {
                        by_instance.entry(identity.instance).or_default().push((*id, identity.home));
                    }
                }
            }
            found.extend(by_instance.into_iter().filter_map(|(instance, apps)| self.twins_called(&instance, &apps)));
        }
        found.sort_by(|a, b| a.object.cmp(&b.object));
        found
    }

    fn twins_called(&self, instance: &str, apps: &[(AppId, &str)]) -> Option<Gap> {
        let mixed_up = |(id, home): &(AppId, &str)| {
            apps.iter().any(|(other, elsewhere)| {
                let on = |id: &AppId| self.app(*id).map(|app| app.cluster);
                id != other && on(id) == on(other) && !are_told_apart(self.settings(home), self.settings(elsewhere))
            })
        };
        let mut mixed: Vec<&App> =
            apps.iter().filter(|app| mixed_up(app)).filter_map(|(id, _)| self.app(*id)).collect();
        mixed.sort_by_key(|app| app.path());
        mixed.dedup_by_key(|app| app.path());
        let paths: Vec<String> = mixed.iter().map(|app| app.path()).collect();
        Some(Gap {
            kind: GapKind::Twins,
            object: mixed.first().filter(|_| mixed.len() > 1)?.object(),
            detail: format!(
                "{} are both {instance} to their Argo CDs, so each prunes and deletes what the other deploys",
                some(&paths, NAMED)
            ),
            remedy: Remedy::advice(
                "set another installationID in the argocd-cm of each Argo CD and sync both Applications, or rename one",
            ),
        })
    }

    fn unnamed(&self, home: &str) -> Option<Gap> {
        let apps = self.applications().filter(|(_, app)| self.belongs_to(app, home)).count();
        (apps > 0).then(|| Gap {
            kind: GapKind::Unnamed,
            object: ObjectRef::namespace(home),
            detail: format!(
                "the policy does not name the Argo CD in {home} ({}): what is waived for an Application is refused in its \
                 cascade, and so is what it replaces if others claim it",
                count(apps, "Application")
            ),
            remedy: Remedy::advice(format!(
                "if that Argo CD is to be trusted, add {home} to spec.argocd.installations of the GuardPolicy"
            )),
        })
    }

    fn unresolved(&self) -> impl Iterator<Item = Gap> {
        self.unresolved_clusters().into_iter().filter_map(|cluster| {
            let on = |id: &AppId| self.app(*id).is_some_and(|app| app.cluster == cluster);
            let mut apps: Vec<&App> = self.somewhere().filter(on).filter_map(|id| self.app(id)).collect();
            apps.sort_by_key(|app| app.path());
            let paths: Vec<String> = apps.iter().map(|app| app.path()).collect();
            let name = self.cluster_name(cluster);
            Some(Gap {
                kind: GapKind::Unresolved,
                object: apps.first()?.object(),
                detail: format!(
                    "nobody can tell whether {name}, where {} deploy, is this cluster",
                    some(&paths, NAMED)
                ),
                remedy: resolve(name),
            })
        })
    }
}

/// How it is settled which cluster a name means.
pub fn resolve(cluster: &str) -> Remedy {
    Remedy::advice(format!(
        "say which cluster {cluster} is: a list with that name under spec.argocd.clusterAliases of the GuardPolicy (with \
         in-cluster in it if it is this one), or install components/read-cluster-names"
    ))
}

fn not_served(app: &App) -> Gap {
    let (path, namespace) = (app.path(), &app.namespace);
    Gap {
        kind: GapKind::NotServed,
        object: app.object(),
        detail: format!("{path} was never compared and no Argo CD serves {namespace}, so it claims nothing"),
        remedy: Remedy::advice(format!(
            "add {namespace} to application.namespaces in the argocd-cmd-params-cm of its Argo CD, or delete {path}"
        )),
    }
}

/// Whether two Argo CDs tell their objects apart by installation ids, which only tracking ids carry.
fn are_told_apart(one: Option<&TrackingSettings>, other: Option<&TrackingSettings>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let carries = |of: &TrackingSettings| of.method != TrackingMethod::Label && !of.installation_id.is_empty();
    carries(one) && carries(other) && one.installation_id != other.installation_id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::argo::{Application, Clusters};

    fn inventory(ids: [&str; 2]) -> Inventory {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        for (home, id) in ["argocd", "gitops"].into_iter().zip(ids) {
            let settings = TrackingSettings { installation_id: id.to_owned(), ..TrackingSettings::default() };
            inventory.set_settings(home, Some(settings));
            inventory.set_parameters(home, Some(String::new()));
        }
        inventory
    }

    fn apply(inventory: &mut Inventory, path: &str, destination: &serde_json::Value) {
        let (namespace, name) = path.split_once('/').unwrap();
        let text = json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"destination": destination}});
        inventory.apply_application(&serde_json::from_str::<Application<'_>>(&text.to_string()).unwrap());
    }

    fn details(gaps: &[Gap]) -> String {
        gaps.iter().map(|gap| gap.detail.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn namesakes_are_twins_unless_ids_or_clusters_tell_them_apart() {
        let here = json!({"server": "https://kubernetes.default.svc"});
        for (ids, twins) in [(["", ""], 1), (["a", ""], 1), (["a", "a"], 1), (["a", "b"], 0)] {
            let mut inventory = inventory(ids);
            apply(&mut inventory, "argocd/web", &here);
            apply(&mut inventory, "gitops/web", &here);
            apply(&mut inventory, "gitops/other", &here);
            assert_eq!(inventory.twins().len(), twins, "{ids:?}");
        }
        let mut apart = inventory(["", ""]);
        apply(&mut apart, "argocd/web", &here);
        apply(&mut apart, "gitops/web", &json!({"server": "https://east"}));
        apply(&mut apart, "elsewhere/web", &here);
        assert!(apart.twins().is_empty(), "{}", details(&apart.twins()));
    }

    #[test]
    fn policy_is_told_what_it_can_say() {
        let mut inventory = inventory(["", ""]);
        assert!(inventory.gaps_in_policy().is_empty(), "an Argo CD without Applications is nobody's concern");
        apply(&mut inventory, "gitops/web", &json!({"name": "prod"}));
        apply(&mut inventory, "team/lost", &json!({"name": "in-cluster"}));
        let said = details(&inventory.gaps_in_policy());
        assert!(said.contains("does not name the Argo CD in gitops (1 Application)"), "{said}");
        assert!(said.contains("whether prod, where gitops/web deploy"), "{said}");
        let said = details(&inventory.not_served());
        assert!(said.contains("team/lost was never compared and no Argo CD serves team"), "{said}");
        let words = inventory.gaps_in_words();
        assert!(words.len() == 3 && words[2].starts_with("team/lost never compared"), "{words:?}");
    }
}
