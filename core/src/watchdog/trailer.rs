//! The trailer by which a commit asks to be watched: `Watchdog: app=payments deadline=900 mode=shadow expect=Healthy`.
//!
//! Which lines of a message are trailers is Git's decision (`git interpret-trailers --no-divider`, or `%(trailers)` of
//! `git log`, which is the same code). Here their values are read, and a line that looks like one but stands in no block of
//! trailers is found: Git says nothing about it.

use std::collections::BTreeSet;

use super::schema::{AppRef, Expect, Mode};

/// Shortest and longest deadline, in seconds.
pub const DEADLINES: (u32, u32) = (30, 86_400);
/// The deadline of a trailer that names none, in seconds.
pub const DEADLINE: u32 = 900;
/// How long it must stay well where the trailer says nothing, in seconds.
pub const STABLE: u32 = 120;

/// What a commit asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The Application.
    pub app: AppRef,
    /// Seconds to reach the cluster, and again to become well.
    pub deadline: u32,
    /// Seconds that it must stay well.
    pub stable: u32,
    /// Whether it may be reverted.
    pub mode: Mode,
    /// What has to be well.
    pub expect: Expect,
}

/// A line that cannot be acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The Application, where the line names a usable one.
    pub app: Option<AppRef>,
    /// The line.
    pub line: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The message of a commit and what Git says about it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Subject and body.
    pub text: &'a str,
    /// The trailers of the last paragraph, unfolded, one a line: `Key: value`.
    pub trailers: &'a str,
}

/// Everything a message asks for, and everything that looks as if it did. `keys` are the keys that count, in any case;
/// `namespace` is that of an Application without one.
pub fn wishes(message: Message<'_>, keys: &[String], namespace: &str) -> Vec<Result<Wish, Malformed>> {
    let found: Vec<(&str, &str)> =
        message.trailers.lines().filter_map(|line| Some((line.trim(), value_of(line, keys)?))).collect();
    let mut wishes: Vec<_> = found.iter().map(|(line, value)| read(line, value, namespace)).collect();
    refuse_repeated(&mut wishes);
    if reverted_by(message.text).is_empty() {
        let mut rest: Vec<&str> = found.iter().map(|(_, value)| *value).collect();
        for line in message.text.lines() {
            let Some(value) = stray_value(line, keys) else { continue };
            // A folded trailer begins with what stands on its first line.
            match rest.iter().position(|known| known.starts_with(value)) {
                Some(at) => drop(rest.swap_remove(at)),
                None => wishes.push(Err(stray(line, value, namespace))),
            }
        }
    }
    wishes
}

/// The commits that a message says it reverts, as `git revert` writes it: full object ids in lower case.
pub fn reverted_by(text: &str) -> Vec<String> {
    let sentence = "This reverts commit ";
    let ends = text.match_indices(sentence).map(|(at, _)| &text[at + sentence.len()..]);
    ends.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let id = rest[..end].to_ascii_lowercase();
        super::facts::is_object_id(&id).then_some(id)
    })
    .collect()
}

/// The value of a line `key: value` with one of the keys.
fn value_of<'a>(line: &'a str, keys: &[String]) -> Option<&'a str> {
    let (key, value) = line.split_once(':')?;
    keys.iter().any(|known| known.eq_ignore_ascii_case(key.trim_end())).then(|| value.trim())
}

/// The same for a line that is no trailer. A list of messages that were squashed into one is indented; there the line must
/// also name an Application, because prose may begin with any word.
fn stray_value<'a>(line: &'a str, keys: &[String]) -> Option<&'a str> {
    let value = value_of(line.trim_start(), keys)?;
    (!line.starts_with(char::is_whitespace) || value.contains("app=")).then_some(value)
}

fn stray(line: &str, value: &str, namespace: &str) -> Malformed {
    let app = read(line, value, namespace).map_or_else(|malformed| malformed.app, |wish| Some(wish.app));
    let problem = "it stands in no block of trailers, so Git does not see it: move it into the last paragraph of the \
                   message, among lines that are all trailers"
        .to_owned();
    Malformed { app, line: line.trim().to_owned(), problem }
}

/// One Application is watched once for a commit.
fn refuse_repeated(wishes: &mut [Result<Wish, Malformed>]) {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for wish in wishes.iter().flatten() {
        if !seen.insert(wish.app.clone()) {
            twice.insert(wish.app.clone());
        }
    }
    for wish in wishes {
        if let Ok(found) = wish
            && twice.contains(&found.app)
        {
            let problem = "this commit names the Application twice".to_owned();
            *wish = Err(Malformed { app: Some(found.app.clone()), line: format!("app={}", found.app), problem });
        }
    }
}

fn read(line: &str, value: &str, namespace: &str) -> Result<Wish, Malformed> {
    let mut app = None;
    let mut wish = Wish {
        app: AppRef::default(),
        deadline: DEADLINE,
        stable: STABLE,
        mode: Mode::Shadow,
        expect: Expect::Healthy,
    };
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for word in value.split_whitespace() {
        let (field, given) = word.split_once('=').unwrap_or((word, ""));
        if !seen.insert(field) {
            problems.push(format!("{field} stands there twice"));
            continue;
        }
        let outcome = match field {
            "app" => AppRef::parse(given, namespace).map(|parsed| app = Some(parsed)),
            "deadline" => seconds(given, DEADLINES).map(|number| wish.deadline = number),
            "stable" => seconds(given, (1, DEADLINES.1)).map(|number| wish.stable = number),
            "mode" => Mode::parse(given).map(|mode| wish.mode = mode),
            "expect" => Expect::parse(given).map(|expect| wish.expect = expect),
            _ => Err(format!("there is no field `{field}`; use app, deadline, mode, expect and stable")),
        };
        problems.extend(outcome.err());
    }
    match &app {
        None if !seen.contains("app") => problems.push("it names no Application: app=NAME is missing".to_owned()),
        _ => {}
    }
    if problems.is_empty() && wish.stable >= wish.deadline {
        problems.push(format!("stable ({} s) must be less than deadline ({} s)", wish.stable, wish.deadline));
    }
    match app {
        Some(app) if problems.is_empty() => Ok(Wish { app, ..wish }),
        app => Err(Malformed { app, line: line.trim().to_owned(), problem: problems.join("; ") }),
    }
}

fn seconds(text: &str, (least, most): (u32, u32)) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(number) if (least..=most).contains(&number) && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(format!("`{text}` is no number of seconds from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests;
