//! Annotations whose keys nobody reads, because they are not spelt as those that Argo CD reads.

use super::{
    manifest::Manifest,
    set::{Found, Set},
};
use crate::{
    argo::hook::{ANNOTATIONS, DELETE_POLICY, HELM_DELETE_POLICY, HELM_HOOK, HELM_WEIGHT, HOOK, SYNC_WAVE},
    catalog::sync_wave::MISSPELT,
    decision::{Finding, Fix, Severity},
    rules::sync_wave::fixes,
};

const ARGO: &str = "argocd.argoproj.io";
const HELM: &str = "helm.sh";

/// Keys that somebody may have meant.
const MEANT: [&str; 8] = [
    HOOK,
    SYNC_WAVE,
    DELETE_POLICY,
    "argocd.argoproj.io/sync-options",
    "argocd.argoproj.io/compare-options",
    HELM_HOOK,
    HELM_WEIGHT,
    HELM_DELETE_POLICY,
];

/// Other words for the same, by domain.
const WORDS: [(&str, &str, &str); 7] = [
    (ARGO, "wave", SYNC_WAVE),
    (ARGO, "hookweight", SYNC_WAVE),
    (ARGO, "hookwave", SYNC_WAVE),
    (ARGO, "deletepolicy", DELETE_POLICY),
    (HELM, "syncwave", SYNC_WAVE),
    (HELM, "weight", HELM_WEIGHT),
    (HELM, "deletepolicy", HELM_DELETE_POLICY),
];

/// Domains that people write for Argo CD's.
const DOMAINS: [&str; 3] = ["argoproj.io", "argocd.io", "argo-cd.argoproj.io"];

/// Looks for keys that are nearly right.
pub fn check(set: &Set<'_>, found: &mut Vec<Found>) {
    for (index, manifest) in set.manifests.iter().enumerate() {
        for key in manifest.meta.annotations.keys() {
            if let Some(meant) = meant(key) {
                found.push((index, misspelt(manifest, key, meant)));
            }
        }
        for key in manifest.meta.labels.keys().filter(|key| ANNOTATIONS.contains(&key.as_str())) {
            let mut finding = nothing(manifest, format!("{key} is a label here; Argo CD reads the annotation"));
            finding.field = format!("/metadata/labels/{}", key.replace('/', "~1"));
            found.push((index, finding.remedy(format!("move {key} to metadata.annotations"))));
        }
    }
}

fn nothing(manifest: &Manifest, detail: String) -> Finding {
    Finding::new(
        &MISSPELT,
        Severity::Warn,
        manifest.object.clone(),
        "a key that nobody reads: what it says has no effect",
    )
    .detail(detail)
}

fn misspelt(manifest: &Manifest, key: &str, meant: &'static str) -> Finding {
    nothing(manifest, format!("{key} is no annotation that Argo CD knows; did you mean {meant}?"))
        .remedy(format!("write {meant}"))
        .on_annotation(key)
        .fixed_by(renamed(manifest, key, meant))
}

/// The value under the key that was meant, unless that is there already.
fn renamed(manifest: &Manifest, key: &str, meant: &'static str) -> Option<Fix> {
    let value = manifest.meta.annotation(key).filter(|_| manifest.meta.annotation(meant).is_none())?;
    let mut fix = fixes::annotate(&manifest.meta, &[(meant, value.to_owned())], format!("write {meant}"));
    fix.patch.0.extend(fixes::without(&manifest.meta, &[key], "").patch.0);
    Some(fix)
}

/// The key that someone who wrote this most likely meant; `None` for keys that mean something, or something else.
fn meant(key: &str) -> Option<&'static str> {
    if MEANT.contains(&key) {
        return None;
    }
    let (domain, name) = key.split_once('/').unwrap_or(("", key));
    // Most keys are of another domain, and there may be very many.
    let bare = domain.is_empty();
    if bare && !["wave", "Wave", "olic"].iter().any(|part| name.contains(part)) {
        return None;
    }
    if !bare && domain != HELM && !DOMAINS.contains(&domain) && domain.len().abs_diff(ARGO.len()) > 3 {
        return None;
    }
    let name = squeezed(name);
    // Without a domain only names that mean nothing else are near enough.
    if bare {
        let known = [SYNC_WAVE, DELETE_POLICY];
        return known.into_iter().find(|meant| squeezed(own_name(meant)) == name);
    }
    let domain = if domain == HELM {
        HELM
    } else if DOMAINS.contains(&domain) || strsim::levenshtein(domain, ARGO) <= 3 {
        ARGO
    } else {
        return None;
    };
    let word = WORDS.iter().find(|(of, word, _)| *of == domain && *word == name).map(|(.., meant)| *meant);
    word.or_else(|| {
        let near = MEANT.into_iter().filter(|meant| meant.starts_with(domain)).filter_map(|meant| {
            let right = squeezed(own_name(meant));
            let distance = strsim::osa_distance(&right, &name);
            (distance <= if right.len() > 5 { 2 } else { 1 }).then_some((distance, meant))
        });
        near.min().map(|(_, meant)| meant)
    })
}

fn own_name(key: &str) -> &str {
    key.split_once('/').map_or(key, |(_, name)| name)
}

/// Small letters alone, and one word for each of several.
fn squeezed(name: &str) -> String {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    letters.to_ascii_lowercase().replace("deletion", "delete").replace("policies", "policy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_nearly_right_are_known() {
        for (key, wanted) in [
            ("argocd.argoproj.io/syncwave", SYNC_WAVE),
            ("argocd.argoproj.io/sync-waves", SYNC_WAVE),
            ("argocd.argoproj.io/syncWave", SYNC_WAVE),
            ("argocd.argoproj.io/sync_wave", SYNC_WAVE),
            ("argocd.argoproj.io/snyc-wave", SYNC_WAVE),
            ("argocd.argoproj.io/wave", SYNC_WAVE),
            ("argocd.argoproj.io/hook-weight", SYNC_WAVE),
            ("argoproj.io/sync-wave", SYNC_WAVE),
            ("argocd.argoproj.com/sync-wave", SYNC_WAVE),
            ("argocd.argoprj.io/sync-wave", SYNC_WAVE),
            ("helm.sh/sync-wave", SYNC_WAVE),
            ("sync-wave", SYNC_WAVE),
            ("argocd.argoproj.io/hook-deletion-policy", DELETE_POLICY),
            ("argocd.argoproj.io/hook-delete-policies", DELETE_POLICY),
            ("argocd.argoproj.io/delete-policy", DELETE_POLICY),
            ("hook-deletion-policy", DELETE_POLICY),
            ("argocd.argoproj.io/hooks", HOOK),
            ("argocd.argoproj.io/Hook", HOOK),
            ("argocd.argoproj.io/sync-option", "argocd.argoproj.io/sync-options"),
            ("helm.sh/hooks", HELM_HOOK),
            ("helm.sh/hook-weights", HELM_WEIGHT),
            ("helm.sh/hook-deletion-policy", HELM_DELETE_POLICY),
        ] {
            assert_eq!(meant(key), Some(wanted), "{key}");
        }
    }

    #[test]
    fn keys_that_mean_something_are_left_alone() {
        for key in [
            HOOK,
            SYNC_WAVE,
            HELM_WEIGHT,
            "argocd.argoproj.io/tracking-id",
            "argocd.argoproj.io/installation-id",
            "argocd.argoproj.io/refresh",
            "argocd.argoproj.io/hydrate",
            "argocd.argoproj.io/managed-by",
            "argocd.argoproj.io/skip-reconcile",
            "argocd.argoproj.io/manifest-generate-paths",
            "argocd.argoproj.io/ignore-healthcheck",
            "argocd.argoproj.io/application-set-refresh",
            "notifications.argoproj.io/subscribe.on-sync-succeeded.slack",
            "link.argocd.argoproj.io/external-link",
            "rollouts.argoproj.io/hook",
            "workflows.argoproj.io/hook",
            "helm.sh/chart",
            "helm.sh/resource-policy",
            "helm.sh/hook-output-log-policy",
            "meta.helm.sh/release-name",
            "hook",
            "example.com/sync-wave",
        ] {
            assert_eq!(meant(key), None, "{key}");
        }
    }
}
