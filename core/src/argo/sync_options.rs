//! `argocd.argoproj.io/sync-options` and the syncOptions lists of Applications and operations.

use crate::object::ObjectMeta;

/// Annotation with an object's own sync options.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// Annotation by which Helm keeps an object; Argo CD honours it on a cascade, not on a prune.
pub const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Value of `key` in a comma-separated annotation: the first `key=…` item wins, items are trimmed, values compared
/// exactly. Mirrors section 9, `option(k,o,x)`, of the Argo CD facts (`sync_options.go` upstream).
pub fn in_annotation<'a>(annotation: Option<&'a str>, key: &str) -> Option<&'a str> {
    annotation?.split(',').find_map(|item| value_of(item.trim(), key))
}

/// Value of `key` in a list of options.
pub fn in_list<'a>(options: &'a [String], key: &str) -> Option<&'a str> {
    options.iter().find_map(|item| value_of(item, key))
}

/// Whether a cascade leaves an object alone. The annotations of the object win over the sync options of its Application;
/// `by_application` says whether those hold `Delete=false`.
pub fn is_kept(meta: &ObjectMeta, by_application: bool) -> bool {
    let own = in_annotation(meta.annotation(SYNC_OPTIONS), "Delete");
    own.map_or(by_application, |value| value == "false") || meta.annotation(HELM_RESOURCE_POLICY) == Some("keep")
}

fn value_of<'a>(item: &'a str, key: &str) -> Option<&'a str> {
    item.strip_prefix(key)?.strip_prefix('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_item_of_a_key_wins() {
        assert_eq!(in_annotation(Some("Prune=false, Delete=false"), "Delete"), Some("false"));
        assert_eq!(in_annotation(Some("Delete=confirm,Delete=false"), "Delete"), Some("confirm"));
        assert_eq!(in_annotation(Some("DeleteX=false"), "Delete"), None);
        assert_eq!(in_annotation(None, "Delete"), None);
        assert_eq!(in_list(&["Replace=true".to_owned()], "Replace"), Some("true"));
    }

    #[test]
    fn annotation_of_the_object_wins_over_its_application() {
        let annotated = |key: &str, value: &str| ObjectMeta {
            annotations: [(key.to_owned(), value.to_owned())].into(),
            ..ObjectMeta::default()
        };
        assert!(is_kept(&annotated(SYNC_OPTIONS, "Delete=false"), false));
        assert!(!is_kept(&annotated(SYNC_OPTIONS, "Delete=true"), true));
        assert!(is_kept(&annotated(HELM_RESOURCE_POLICY, "keep"), false));
        assert!(is_kept(&ObjectMeta::default(), true) && !is_kept(&ObjectMeta::default(), false));
    }
}
