//! Which namespaces the Argo CD installations serve: an Application anywhere else is never compared.

use std::collections::HashMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Inventory;

/// The namespaces one installation serves besides its own.
#[derive(Clone, Debug)]
pub enum Served {
    /// What it serves cannot be seen, so every namespace counts as served.
    Unseen,
    /// Its own namespace only.
    Own,
    /// Namespaces that match these patterns too.
    Matching(GlobSet),
}

impl Served {
    /// Reads `application.namespaces` of `argocd-cmd-params-cm`, or the same setting of a controller: patterns with commas
    /// between them (`util/glob/list.go`). A regular expression between slashes, or what is no pattern, cannot be seen
    /// through.
    pub fn parse(setting: &str) -> Self {
        let mut patterns = GlobSetBuilder::new();
        for pattern in setting.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()) {
            match GlobBuilder::new(pattern).literal_separator(false).build() {
                Ok(glob) if !pattern.starts_with('/') => patterns.add(glob),
                _ => return Self::Unseen,
            };
        }
        match patterns.build() {
            Ok(set) if set.is_empty() => Self::Own,
            Ok(set) => Self::Matching(set),
            Err(_) => Self::Unseen,
        }
    }

    fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::Unseen => true,
            Self::Own => false,
            Self::Matching(patterns) => patterns.is_match(namespace),
        }
    }
}

/// What each installation serves, by its namespace.
pub(super) type Serving = HashMap<String, Served>;

impl Inventory {
    /// Says what the installation in `namespace` serves.
    pub fn set_served(&mut self, namespace: &str, served: Served) {
        self.serving.insert(namespace.to_owned(), served);
    }

    /// Whether some installation serves Applications in `namespace`. Where no installation is known, or what one of them
    /// serves cannot be seen, every namespace counts as served.
    pub fn is_served(&self, namespace: &str) -> bool {
        let mut installations = self.settings.keys().peekable();
        installations.peek().is_none()
            || self.settings.contains_key(namespace)
            || installations.any(|home| self.serving.get(home).is_none_or(|served| served.covers(namespace)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argo::{Clusters, tracking::TrackingSettings};

    #[test]
    fn namespace_is_served_unless_every_installation_is_seen_not_to_serve_it() {
        let mut inventory = Inventory::new((1, 2), "argocd", Clusters::default());
        assert!(inventory.is_served("team"), "no installation is known");
        inventory.set_settings("argocd", Some(TrackingSettings::default()));
        assert!(inventory.is_served("team"), "what it serves is not seen");
        inventory.set_served("argocd", Served::parse("apps-*, team"));
        for (namespace, served) in [("argocd", true), ("apps-1", true), ("team", true), ("other", false)] {
            assert_eq!(inventory.is_served(namespace), served, "{namespace}");
        }
        inventory.set_served("argocd", Served::parse(""));
        assert!(!inventory.is_served("team") && inventory.is_served("argocd"));
        inventory.set_settings("gitops", Some(TrackingSettings::default()));
        assert!(inventory.is_served("team"), "the second one may serve it");
    }

    #[test]
    fn setting_that_is_no_list_of_patterns_cannot_be_seen_through() {
        for setting in ["/^team-[a-z]+$/", "team-[", "a,/b/"] {
            assert!(matches!(Served::parse(setting), Served::Unseen), "{setting}");
        }
    }
}
