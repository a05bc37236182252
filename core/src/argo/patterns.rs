//! Lists of patterns as Argo CD writes them.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;

/// Globs, and regular expressions between slashes (`util/glob/list.go`, `MatchStringInList`).
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    globs: GlobSet,
    expressions: Vec<Regex>,
    opaque: bool,
}

impl Patterns {
    /// Reads patterns; blank ones are left out.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        let mut globs = GlobSetBuilder::new();
        let mut expressions = Vec::new();
        let mut opaque = false;
        for pattern in patterns.into_iter().map(str::trim).filter(|pattern| !pattern.is_empty()) {
            let inner = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
            match (inner.map(Regex::new), glob(pattern)) {
                (Some(Ok(expression)), _) => expressions.push(expression),
                (None, Some(glob)) => {
                    globs.add(glob);
                }
                // Argo CD's expressions can look ahead, which these cannot.
                (Some(Err(_)), _) | (None, None) => opaque = true,
            }
        }
        let globs = globs.build().unwrap_or_else(|_| {
            opaque = true;
            GlobSet::empty()
        });
        Self { globs, expressions, opaque }
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty() && self.expressions.is_empty() && !self.opaque
    }

    /// Whether there is a pattern that cannot be read here, so that nobody can tell what it matches.
    pub fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Whether one of them matches, those aside that cannot be read.
    pub fn match_text(&self, text: &str) -> bool {
        self.globs.is_match(text) || self.expressions.iter().any(|expression| expression.is_match(text))
    }
}

/// A glob in which `*` matches everything, slashes too (`util/glob/glob.go`); `None` for what is no glob.
pub(super) fn glob(pattern: &str) -> Option<globset::Glob> {
    GlobBuilder::new(pattern).literal_separator(false).backslash_escape(true).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_a_whole_and_expressions_anywhere() {
        let patterns = Patterns::new(["team-*", " apps ", "/^tenant-[0-9]+$/", "/mid/", ""]);
        for (text, matched) in [
            ("team-a", true),
            ("my-team-a", false),
            ("apps", true),
            ("apps-1", false),
            ("tenant-12", true),
            ("tenant-x", false),
            ("a-mid-b", true),
        ] {
            assert_eq!(patterns.match_text(text), matched, "{text}");
        }
        assert!(!patterns.is_opaque() && !patterns.is_empty());
        assert!(Patterns::new(["", " "]).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_opaque_and_not_nothing() {
        for pattern in ["team-[", "/(?!evil)/", "/(/"] {
            let patterns = Patterns::new([pattern]);
            assert!(patterns.is_opaque() && !patterns.is_empty() && !patterns.match_text("team-a"), "{pattern}");
        }
    }
}
