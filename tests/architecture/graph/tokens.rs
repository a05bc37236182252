//! Finds paths where there is no syntax tree: in the arguments of macros and attributes, and in what `syn` passes over.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{ItemUse, Lit};

use super::{notes::Written, reader::Reader};

/// What string literals hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    AreText,
    /// Behind some keys of an attribute they are code, as in `#[serde(with = "crate::times")]`.
    MayBePaths,
}

/// Keys of attributes whose strings are code.
const PATH_KEYS: &[&str] = &[
    "bound",
    "crate",
    "default",
    "deserialize_with",
    "from",
    "getter",
    "into",
    "remote",
    "schema_with",
    "serialize_with",
    "skip_serializing_if",
    "try_from",
    "with",
];

/// Words that no path begins with. So `::` behind one of them begins a path; behind any other name it goes on with one.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "dyn", "else", "enum", "extern", "fn", "for", "if", "impl", "in",
    "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "trait", "type",
    "unsafe", "use", "where", "while", "yield",
];

/// A path found at some place among the tokens.
struct Sighting {
    /// Nothing, if what looks like a path is part of something else.
    written: Option<Written>,
    line: usize,
    /// Where to read on.
    next: usize,
}

impl Reader<'_> {
    /// Notes the paths in `tokens`. What a `use` among them brings in holds for all of them.
    pub(super) fn scan(&mut self, tokens: TokenStream, strings: Strings) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        self.in_block(|reader| {
            let mut at = 0;
            while at < trees.len() {
                at = reader.scan_at(&trees, at, strings);
            }
        });
    }

    /// Notes what begins at `at`, and says where the next thing begins.
    fn scan_at(&mut self, trees: &[TokenTree], at: usize, strings: Strings) -> usize {
        if let Some((item, next)) = use_at(trees, at) {
            self.note_use(&item);
            return next;
        }
        if let Some(Sighting { written, line, next }) = path_at(trees, at) {
            if let Some(written) = written {
                self.note(written, false, line);
            }
            return next;
        }
        if let TokenTree::Group(group) = &trees[at] {
            self.scan(group.stream(), strings);
        }
        if strings == Strings::MayBePaths
            && let Some(code) = code_at(trees, at)
        {
            self.scan(code, Strings::AreText);
        }
        at + 1
    }
}

/// The `use` that begins at `at`, and what is behind its semicolon.
fn use_at(trees: &[TokenTree], at: usize) -> Option<(ItemUse, usize)> {
    if !is_word(trees.get(at), "use") {
        return None;
    }
    let end = at + trees[at..].iter().position(|tree| is_punct(Some(tree), ';'))?;
    let item: TokenStream = trees[at..=end]
        .iter()
        .enumerate()
        .filter(|(index, tree)| !(is_punct(Some(tree), '$') && is_word(trees.get(at + index + 1), "crate")))
        .map(|(_, tree)| tree.clone())
        .collect();
    syn::parse2(item).ok().map(|item| (item, end + 1))
}

/// The code in the string at `at`, if it is the value of a key whose values are code.
fn code_at(trees: &[TokenTree], at: usize) -> Option<TokenStream> {
    let TokenTree::Literal(literal) = &trees[at] else { return None };
    let key = word(trees.get(at.checked_sub(2)?))?;
    let Lit::Str(text) = Lit::new(literal.clone()) else { return None };
    let is_code = is_punct(trees.get(at - 1), '=') && PATH_KEYS.contains(&key.as_str());
    is_code.then(|| text.parse().ok()).flatten()
}

/// The path that begins at `at`, with a segment or with `::`.
fn path_at(trees: &[TokenTree], at: usize) -> Option<Sighting> {
    let colons = is_colons(trees, at);
    let first = if colons { at + 2 } else { at };
    let head = word(trees.get(first))?;
    if !colons && KEYWORDS.contains(&head.as_str()) {
        return None;
    }
    let mut segments = vec![head];
    let mut next = first + 1;
    while is_colons(trees, next)
        && let Some(segment) = word(trees.get(next + 2))
    {
        segments.push(segment);
        next += 3;
    }
    let begins = if colons { is_start(trees, at) } else { !is_variable(trees, at) };
    let counts = begins && (segments.len() > 1 || (is_colons(trees, next) && leads_on(trees.get(next + 2), &segments)));
    let line = trees[first].span().start().line;
    Some(Sighting { written: counts.then_some(Written { global: colons, segments }), line, next })
}

/// Tells whether the `::` at `at` begins a path, and does not go on behind a type or a repetition.
fn is_start(trees: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|index| trees.get(index));
    match before(1) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Brace || !is_punct(before(2), '$'),
        Some(TokenTree::Punct(punct)) if punct.as_char() == '>' => is_punct(before(2), '-') || is_punct(before(2), '='),
        _ => true,
    }
}

/// Tells whether the name at `at` is a variable of a macro.
fn is_variable(trees: &[TokenTree], at: usize) -> bool {
    at > 0 && is_punct(trees.get(at - 1), '$') && !is_word(trees.get(at), "crate")
}

/// Tells whether a path of one segment names a crate or module all the same, because a macro fills in the rest.
fn leads_on(next: Option<&TokenTree>, segments: &[String]) -> bool {
    let braces = matches!(next, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace);
    let relative = ["crate", "self", "super", "Self"].contains(&segments[0].as_str());
    !relative && (braces || is_punct(next, '$'))
}

fn is_colons(trees: &[TokenTree], at: usize) -> bool {
    is_punct(trees.get(at), ':') && is_punct(trees.get(at + 1), ':')
}

fn is_punct(tree: Option<&TokenTree>, expected: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn is_word(tree: Option<&TokenTree>, expected: &str) -> bool {
    matches!(tree, Some(TokenTree::Ident(ident)) if ident == expected)
}

fn word(tree: Option<&TokenTree>) -> Option<String> {
    let Some(TokenTree::Ident(ident)) = tree else { return None };
    let word = ident.to_string();
    Some(word.strip_prefix("r#").map_or(word.clone(), str::to_owned))
}
