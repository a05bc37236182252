//! Whether an Application can be watched for a commit at all: an answer that comes at once, not after the deadline.

use super::{
    facts::is_object_id,
    repository::without_credentials,
    source::Source,
    view::{View, is_of},
};

/// Why it cannot, with what to do instead; `None` if it can, or if nobody knows yet.
pub fn unwatchable(view: &View, repository: &str, branch: &str, is_default_branch: bool) -> Option<String> {
    let app = &view.app;
    let of: Vec<(usize, &Source)> =
        view.sources.iter().enumerate().filter(|(_, source)| is_of(source, repository)).collect();
    if of.is_empty() {
        let sources: Vec<String> = view.sources.iter().map(|source| without_credentials(&source.repository)).collect();
        return Some(format!(
            "no source of {app} is {}, it is made of {}; put the trailer into a commit of one of these, or watch the \
             Application that deploys {app}",
            without_credentials(repository),
            crate::text::some(&sources, 3)
        ));
    }
    if let Some((_, source)) = of.iter().find(|(_, source)| !source.tracks(branch, is_default_branch)) {
        return Some(format!(
            "{app} follows `{}`, and the commit is on `{branch}`; watch it where that revision is set, or let the source \
             follow the branch",
            source.target
        ));
    }
    // Where manifests cannot be rendered, Argo CD writes the name of the branch: only a valid comparison tells.
    if !view.is_valid() || view.comparison.sources.len() != view.comparison.revisions.len() {
        return None;
    }
    let compared = view.comparison.sources.iter().zip(&view.comparison.revisions);
    let odd = compared
        .filter(|(source, _)| is_of(source, repository))
        .find_map(|(_, revision)| (!revision.is_empty() && !is_object_id(revision)).then_some(revision))?;
    Some(format!(
        "{app} was compared at `{odd}`, which is no commit, so nobody can say whether it holds one; watch an Application whose \
         source is a Git repository"
    ))
}
