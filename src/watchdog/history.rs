//! What a repository says about its commits: new ones with a trailer, and the answers to what the judgement asks.

use std::collections::BTreeSet;

use super::git::Git;
use cascade_guard_core::watchdog::{
    facts::{Answer, Change, OwnOrForeign, Question, is_object_id},
    message::made_for,
    trailer::reverted_by,
};

/// More commits than this between two revisions are not looked through: nobody is to blame then.
const MAX_COMMITS: usize = 2000;
/// So many files that may name others are read below one path.
const MAX_FILES: usize = 300;

/// A commit whose message may ask for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its object id.
    pub commit: String,
    /// Its message.
    pub text: String,
    /// Its trailers, as git finds them.
    pub trailers: String,
}

/// The commits in `tip` and not in `since` whose message holds one of the keys, oldest first.
///
/// # Errors
/// When git cannot say.
pub async fn candidates(git: &Git, since: Option<&str>, tip: &str, keys: &[String]) -> anyhow::Result<Vec<Candidate>> {
    let greps: Vec<String> = keys.iter().map(|key| format!("--grep={key}")).collect();
    let not = since.map(|since| format!("^{since}"));
    let mut arguments = vec![
        "log",
        "-z",
        "--reverse",
        "--no-color",
        "--format=%H%x00%B%x00%(trailers:only=true,unfold=true)",
        "--fixed-strings",
        "--regexp-ignore-case",
    ];
    arguments.extend(greps.iter().map(String::as_str));
    arguments.extend(["--end-of-options", tip]);
    arguments.extend(not.as_deref());
    if since.is_none() {
        // One commit alone.
        arguments.insert(1, "--no-walk");
    }
    let out = git.offline(&arguments).await?.checked(&arguments)?;
    let out = String::from_utf8_lossy(&out);
    let fields: Vec<&str> = out.split('\0').collect();
    let records = fields.chunks_exact(3);
    Ok(records
        .map(|record| Candidate {
            commit: record[0].to_owned(),
            text: record[1].to_owned(),
            trailers: record[2].to_owned(),
        })
        .collect())
}

/// Answers one question. What git cannot say is [`Answer::Unknown`].
pub async fn answer(git: &Git, question: &Question) -> Answer {
    let answered = match question {
        Question::Contains { revision, commit } => contains(git, revision, commit).await,
        Question::Change(commit) => change(git, commit).await,
        Question::Others { tip, deployed, commit } => others(git, tip, deployed, commit).await,
        Question::Reverts { tip, commit } => reverts(git, tip, commit).await,
        Question::Outside { revision, path } => outside(git, revision, path).await,
        Question::Removal(_) => Ok(Answer::Unknown),
    };
    answered.unwrap_or_else(|error| {
        tracing::warn!(?question, %error, "git does not answer");
        Answer::Unknown
    })
}

async fn is_ancestor(git: &Git, commit: &str, revision: &str) -> anyhow::Result<Option<bool>> {
    Ok(match git.offline(&["merge-base", "--is-ancestor", commit, revision]).await?.code {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    })
}

async fn contains(git: &Git, revision: &str, commit: &str) -> anyhow::Result<Answer> {
    if !is_object_id(revision) || !is_object_id(commit) {
        return Ok(Answer::Unknown);
    }
    Ok(is_ancestor(git, commit, revision).await?.map_or(Answer::Unknown, Answer::Is))
}

async fn parents(git: &Git, commit: &str) -> anyhow::Result<Vec<String>> {
    let line = git.text(&["rev-list", "--parents", "--max-count=1", "--end-of-options", commit]).await?;
    Ok(line.split_whitespace().skip(1).map(str::to_owned).collect())
}

async fn change(git: &Git, commit: &str) -> anyhow::Result<Answer> {
    if !is_object_id(commit) {
        return Ok(Answer::Unknown);
    }
    let parents = parents(git, commit).await?;
    let mut arguments = vec!["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", "--root"];
    arguments.extend(parents.first().map(String::as_str));
    arguments.push(commit);
    let out = git.offline(&arguments).await?.checked(&arguments)?;
    let paths = split(&out);
    Ok(Answer::Change(Change { commit: commit.to_owned(), parents, paths }))
}

fn split(out: &[u8]) -> Vec<String> {
    let texts = out.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

async fn others(git: &Git, tip: &str, deployed: &[String], commit: &str) -> anyhow::Result<Answer> {
    let limit = format!("--max-count={}", MAX_COMMITS + 1);
    let not: Vec<String> = deployed.iter().map(|deployed| format!("^{deployed}")).collect();
    let mut arguments = vec!["log", "-z", "-c", "--name-only", "--no-renames", "--no-color", &limit];
    arguments.extend(["--format=%x00%x00%H%x00%P%x00", "--end-of-options", tip]);
    arguments.extend(not.iter().map(String::as_str));
    let out = git.offline(&arguments).await?.checked(&arguments)?;
    let mut found = changes(&String::from_utf8_lossy(&out));
    if found.len() > MAX_COMMITS {
        return Ok(Answer::Unknown);
    }
    let mut own = BTreeSet::from([commit.to_owned()]);
    let parents = parents(git, commit).await?;
    if let [first, _, ..] = parents.as_slice() {
        let not = format!("^{first}");
        let brought = git.text(&["rev-list", &limit, "--end-of-options", commit, &not]).await?;
        own.extend(brought.lines().map(str::to_owned));
    }
    found.retain(|change| !own.contains(&change.commit));
    Ok(Answer::Others(found))
}

/// What `git log -z --name-only` prints with the format above. No path is empty, so an empty field ends a list of paths; the
/// first path of a list has a line break before it.
fn changes(out: &str) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let mut in_paths = false;
    let mut fields = out.split('\0');
    while let Some(field) = fields.next() {
        if field.is_empty() {
            in_paths = false;
        } else if let (Some(path), Some(change)) = (field.strip_prefix('\n').filter(|_| !in_paths), found.last_mut()) {
            in_paths = true;
            change.paths.push(path.to_owned());
        } else if let (true, Some(change)) = (in_paths, found.last_mut()) {
            change.paths.push(field.to_owned());
        } else {
            let parents = fields.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
            found.push(Change { commit: field.to_owned(), parents, paths: Vec::new() });
        }
    }
    found
}

async fn reverts(git: &Git, tip: &str, commit: &str) -> anyhow::Result<Answer> {
    let not = format!("^{commit}");
    let arguments = [
        "log",
        "-z",
        "--no-color",
        "--format=%H%x00%B",
        "--fixed-strings",
        "--grep=This reverts commit",
        "--end-of-options",
        tip,
        &not,
    ];
    let out = git.offline(&arguments).await?.checked(&arguments)?;
    let out = String::from_utf8_lossy(&out);
    let fields: Vec<&str> = out.split('\0').collect();
    let mut found = Vec::new();
    for record in fields.chunks_exact(2) {
        for reverted in reverted_by(record[1]) {
            if reverted == commit || brought(git, &reverted, commit).await? {
                found.push(OwnOrForeign { commit: record[0].to_owned(), watch: made_for(record[1]).to_owned() });
                break;
            }
        }
    }
    Ok(Answer::Reverts(found))
}

/// Whether a commit is a merge that brought another.
async fn brought(git: &Git, merge: &str, commit: &str) -> anyhow::Result<bool> {
    if is_ancestor(git, commit, merge).await? != Some(true) {
        return Ok(false);
    }
    let parents = parents(git, merge).await?;
    match parents.as_slice() {
        [first, _, ..] => Ok(is_ancestor(git, commit, first).await? == Some(false)),
        _ => Ok(false),
    }
}

/// Files that may name others, and what in them leads out of their folder.
const NAMING: [(&str, &[&str]); 8] = [
    ("kustomization.yaml", &["..", "//", "git@", "?ref="]),
    ("kustomization.yml", &["..", "//", "git@", "?ref="]),
    ("Kustomization", &["..", "//", "git@", "?ref="]),
    ("Chart.yaml", &["..", "file:"]),
    ("requirements.yaml", &["..", "file:"]),
    (".jsonnet", &["../", "import '/", "import \"/"]),
    (".libsonnet", &["../", "import '/", "import \"/"]),
    (".argocd-source.yaml", &[".."]),
];

async fn outside(git: &Git, revision: &str, path: &str) -> anyhow::Result<Answer> {
    if !is_object_id(revision) {
        return Ok(Answer::Unknown);
    }
    let mut arguments = vec!["--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", revision];
    if !path.is_empty() {
        arguments.extend(["--", path]);
    }
    let listed = git.offline(&arguments).await?.checked(&arguments)?;
    let mut wanted = Vec::new();
    for line in split(&listed) {
        let Some((head, file)) = line.split_once('\t') else { continue };
        let mut words = head.split(' ');
        let (mode, id) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        // Symbolic links and submodules lead elsewhere.
        if mode == "120000" || mode == "160000" {
            return Ok(Answer::Is(true));
        }
        let named = NAMING.iter().find(|(name, _)| file.ends_with(name));
        wanted.extend(named.map(|(_, signs)| (id.to_owned(), *signs)));
    }
    if wanted.len() > MAX_FILES {
        return Ok(Answer::Unknown);
    }
    for (id, signs) in wanted {
        let arguments = ["cat-file", "blob", id.as_str()];
        // The cache may not hold the content yet.
        let content = git.online(&arguments, &[], super::git::CONTENT_PATIENCE).await?.checked(&arguments)?;
        let content = String::from_utf8_lossy(&content);
        if signs.iter().any(|sign| content.contains(sign)) {
            return Ok(Answer::Is(true));
        }
    }
    Ok(Answer::Is(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_changes_is_read_whatever_the_files_are_called() {
        let id = |letter: char| letter.to_string().repeat(40);
        let (a, b, c) = (id('a'), id('b'), id('c'));
        let out = format!("\0\0{a}\0{b}\0\0\nx\0{c}\0\ny\0\0\0{b}\0{c}\0\0\0\0{c}\0\0\0\nz\0");
        let found = changes(&out);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].paths, ["x", &c, "\ny"]);
        assert_eq!((found[1].paths.len(), found[1].parents.as_slice()), (0, &[c.clone()][..]));
        assert_eq!((found[2].parents.len(), found[2].paths.as_slice()), (0, &["z".to_owned()][..]));
    }
}
