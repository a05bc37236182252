//! The events of a document, put together.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span, Tag};

use super::{
    Build, Duplicate, Entries, Error, Fault, Limits, Place,
    scalar::{Scalar, resolve},
};

/// The tags that YAML itself defines.
const CORE: &str = "tag:yaml.org,2002:";

/// A document that was read.
#[derive(Clone, Debug)]
pub struct Loaded<N> {
    /// What was made of it; nothing where there is no document.
    pub node: Option<N>,
    /// Keys that were there before.
    pub duplicates: Vec<Duplicate>,
}

/// A collection that has not ended.
struct Open<N> {
    anchor: usize,
    place: Place,
    /// Nodes in it.
    size: usize,
    held: Held<N>,
}

enum Held<N> {
    List(Vec<N>),
    Mapping { entries: Entries<N>, key: Option<Key> },
}

enum Key {
    Named(String, Place),
    Merge,
}

struct Loader<'b, B: Build> {
    build: &'b B,
    limits: Limits,
    open: Vec<Open<B::Node>>,
    anchors: HashMap<usize, (B::Node, usize)>,
    from_aliases: usize,
    duplicates: Vec<Duplicate>,
    done: Option<B::Node>,
}

/// Reads the first document of a text.
///
/// # Errors
/// With the place where it is no YAML, or nothing that JSON could hold.
pub fn load<B: Build>(text: &str, build: &B, limits: Limits) -> Result<Loaded<B::Node>, Error> {
    let mut loader = Loader {
        build,
        limits,
        open: Vec::new(),
        anchors: HashMap::new(),
        from_aliases: 0,
        duplicates: Vec::new(),
        done: None,
    };
    let depth = limits.depth + 1;
    let options = granit_parser::options! {
        emit_comments: false,
        // A text at the end of a file ends as it is written.
        block_scalar_eof_without_line_feed: true,
        // The limit on depth shall be the one that is met.
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let at = error.marker();
            let fault = match error.kind() {
                ErrorKind::RecursionLimitExceeded => Fault::TooLarge,
                kind => Fault::Syntax(kind.to_string()),
            };
            Error { fault, line: narrow(at.line()), column: narrow(at.col() + 1) }
        })?;
        let ended = matches!(event, Event::DocumentEnd);
        loader.take(event, place(&span)).map_err(|fault| {
            let Place { line, column, .. } = place(&span);
            Error { fault, line, column }
        })?;
        if ended {
            break;
        }
    }
    Ok(Loaded { node: loader.done, duplicates: loader.duplicates })
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn place(span: &Span) -> Place {
    Place {
        line: narrow(span.start.line()),
        column: narrow(span.start.col() + 1),
        start: span.start.byte_offset().unwrap_or_default(),
        end: span.end.byte_offset().unwrap_or_default(),
    }
}

/// What a scalar that is written so stands for.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, Fault> {
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { resolve(text) } else { Scalar::Text });
    };
    let tag = tag.suffix_in_namespace(CORE);
    match (tag.as_deref(), resolve(text)) {
        (Some("bool"), found @ Scalar::Bool(_))
        | (Some("int"), found @ (Scalar::Int(_) | Scalar::Unsigned(_)))
        | (Some("float"), found @ Scalar::Float(_))
        | (Some("null"), found @ Scalar::Null) => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "the tag asks for it")]
        (Some("float"), Scalar::Int(value)) => Ok(Scalar::Float(value as f64)),
        (Some(wanted @ ("bool" | "int" | "float" | "null")), found) => {
            Err(Fault::NoJson(format!("`{text}` is tagged !!{wanted} and is a {}", found.name())))
        }
        _ => Ok(Scalar::Text),
    }
}

/// A key of a mapping as JSON names it.
fn key(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Result<Key, Fault> {
    let merges = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) => tag.suffix_in_namespace(CORE).as_deref() == Some("merge"),
    };
    if merges && text == "<<" {
        return Ok(Key::Merge);
    }
    let name = match scalar(&text, style, tag)? {
        Scalar::Text => text.into_owned(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => key_of_float(value),
        Scalar::Null | Scalar::Unsigned(_) => {
            return Err(Fault::NoJson(format!("Argo CD cannot use `{text}` as a key; put it into quotes")));
        }
    };
    Ok(Key::Named(name, place))
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`, with YAML's words for what is no number.
fn key_of_float(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Argo CD writes such a key in single precision")]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

impl<B: Build> Loader<'_, B> {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if self.wants_key() {
                    let key = key(text, style, tag.as_deref(), place)?;
                    if anchor > 0
                        && let Key::Named(name, _) = &key
                    {
                        let node = self.build.scalar(name.as_str().into(), Scalar::Text, place);
                        self.anchors.insert(anchor, (node, 1));
                    }
                    self.start_entry(key);
                    return Ok(());
                }
                let scalar = scalar(&text, style, tag.as_deref())?;
                if let Scalar::Float(value) = scalar
                    && !value.is_finite()
                {
                    return Err(Fault::NoJson(format!("`{text}` is a number that JSON cannot hold")));
                }
                let node = self.build.scalar(text, scalar, place);
                self.finish(node, anchor, 1)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(anchor, place, Held::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                self.begin(anchor, place, Held::Mapping { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, place, size, held }) = self.open.pop() else { return Ok(()) };
                let node = match held {
                    Held::List(items) => self.build.list(items, place),
                    Held::Mapping { entries, .. } => {
                        self.duplicates.extend(repeated(&entries));
                        self.build.mapping(entries, place)
                    }
                };
                self.finish(node, anchor, size)
            }
            Event::Alias(anchor) => self.alias(anchor, place),
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last().map(|open| &open.held), Some(Held::Mapping { key: None, .. }))
    }

    fn start_entry(&mut self, name: Key) {
        if let Some(Held::Mapping { key, .. }) = self.open.last_mut().map(|open| &mut open.held) {
            *key = Some(name);
        }
    }

    fn begin(&mut self, anchor: usize, place: Place, held: Held<B::Node>) -> Result<(), Fault> {
        if self.wants_key() {
            return Err(Fault::NoJson("a key is a list or a mapping".to_owned()));
        }
        if self.open.len() >= self.limits.depth {
            return Err(Fault::TooLarge);
        }
        self.open.push(Open { anchor, place, size: 1, held });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Result<(), Fault> {
        // The parser refuses a name that no anchor has; this one has not ended.
        let Some((node, size)) = self.anchors.get(&anchor) else { return Err(Fault::Recursive) };
        let size = *size;
        self.from_aliases += size;
        if self.from_aliases > self.limits.from_aliases {
            return Err(Fault::TooLarge);
        }
        let node = self.build.repeated(node.clone(), place);
        if self.wants_key() {
            let Some(text) = self.build.key(node) else {
                return Err(Fault::NoJson("an alias that stands for a key is no text".to_owned()));
            };
            self.start_entry(Key::Named(text, place));
            return Ok(());
        }
        self.put(node, size, true)
    }

    fn finish(&mut self, node: B::Node, anchor: usize, size: usize) -> Result<(), Fault> {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.put(node, size, false)
    }

    /// Hands a node to what is around it.
    fn put(&mut self, node: B::Node, size: usize, is_alias: bool) -> Result<(), Fault> {
        let Some(Open { held, size: sum, .. }) = self.open.last_mut() else {
            self.done = Some(node);
            return Ok(());
        };
        *sum += size;
        match held {
            Held::List(items) => items.push(node),
            Held::Mapping { entries, key, .. } => match key.take() {
                Some(Key::Named(name, place)) => entries.push((name, place, node)),
                Some(Key::Merge) => entries.extend(merged(self.build, node, is_alias)?),
                None => {}
            },
        }
        Ok(())
    }
}

/// Keys that were written before in the same mapping. What was merged into it was not written there.
fn repeated<N>(entries: &[(String, Place, N)]) -> Vec<Duplicate> {
    let written = || entries.iter().filter(|(_, place, _)| place.line > 0);
    let duplicate = |(key, place, _): &(String, Place, N)| Duplicate { key: key.clone(), place: *place };
    // Most mappings are small.
    if entries.len() <= 8 {
        let twice = |(index, entry): (usize, &(String, Place, N))| {
            written().take(index).any(|(key, ..)| *key == entry.0).then(|| duplicate(entry))
        };
        return written().enumerate().filter_map(twice).collect();
    }
    let mut seen = HashSet::with_capacity(entries.len());
    written().filter(|(key, ..)| !seen.insert(key.as_str())).map(duplicate).collect()
}

/// The entries of what stands behind `<<`: of a mapping, or of several, where the first counts. They count before what
/// stands above them in the mapping that they are merged into, and after what stands below.
fn merged<B: Build>(build: &B, node: B::Node, is_alias: bool) -> Result<Entries<B::Node>, Fault> {
    let wrong = || Fault::NoJson("`<<` wants a mapping or a list of mappings".to_owned());
    let node = match build.entries(node) {
        Ok(entries) => return Ok(entries),
        Err(node) => node,
    };
    if is_alias {
        return Err(wrong());
    }
    let items = build.items(node).ok_or_else(wrong)?;
    let mut entries = Vec::new();
    for item in items.into_iter().rev() {
        entries.append(&mut build.entries(item).map_err(|_| wrong())?);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::Values, *};

    const LIMITS: Limits = Limits { from_aliases: 100, depth: 20 };

    fn read(text: &str) -> Value {
        load(text, &Values, LIMITS).unwrap().node.unwrap_or_default()
    }

    fn fault(text: &str) -> Fault {
        load(text, &Values, LIMITS).unwrap_err().fault
    }

    #[test]
    fn scalars_are_what_json_makes_of_them() {
        let text = "{a: 0755, b: 1e3, c: 1.5, d: yes, e: 'yes', f: 2001-12-14, g: , h: !!str 12, i: !custom 12, j: 1_000, \
                    k: \"0755\", l: !!int '7', m: !!float 3, N: ! 12, o: 1e20, p: '~', q: -0.0}";
        assert_eq!(
            read(text),
            json!({"a": 493, "b": 1000, "c": 1.5, "d": true, "e": "yes", "f": "2001-12-14", "g": null, "h": "12",
                "i": "12", "j": 1000, "k": "0755", "l": 7, "m": 3, "false": "12", "o": 1e20, "p": "~", "q": 0})
        );
    }

    #[test]
    fn keys_are_texts() {
        assert_eq!(
            read("{on: 1, 0755: 2, 1.5: 3, 1.0: 4, 1e7: 5, 'no': 6, .inf: 7, 0.00001: 8}"),
            json!({"true": 1, "493": 2, "1.5": 3, "1": 4, "1e+07": 5, "no": 6, ".inf": 7, "1e-05": 8})
        );
        for text in ["{~: 1}", "{? [a] : 1}", "{? {a: 1} : 1}", "{18446744073709551615: 1}", "{: 2}"] {
            assert!(matches!(fault(text), Fault::NoJson(_)), "{text}");
        }
    }

    #[test]
    fn last_of_several_keys_counts() {
        let loaded = load("a: 1\nb: 2\na: {c: 1, c: 2}\n", &Values, LIMITS).unwrap();
        assert_eq!(loaded.node, Some(json!({"a": {"c": 2}, "b": 2})));
        let places: Vec<_> = loaded.duplicates.iter().map(|it| (it.key.as_str(), it.place.line)).collect();
        assert_eq!(places, [("c", 3), ("a", 3)]);
        let many: Vec<String> = (0..20).map(|number| format!("k{}: 1\n", number % 19)).collect();
        assert_eq!(load(&many.concat(), &Values, LIMITS).unwrap().duplicates.len(), 1);
        // What is merged over is no second key.
        let merged = load("x: &x {a: 1}\ny: {a: 2, <<: *x}\n", &Values, LIMITS).unwrap();
        assert!(merged.duplicates.is_empty());
    }

    #[test]
    fn mappings_are_merged_where_the_key_stands() {
        let base = "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\n";
        let of = |rest: &str| read(&format!("{base}z: {rest}"))["z"].clone();
        assert_eq!(of("{<<: *x, a: 5}"), json!({"a": 5, "b": 2}));
        // What stands above the merge is merged over.
        assert_eq!(of("{a: 5, <<: *x}"), json!({"a": 1, "b": 2}));
        assert_eq!(of("{<<: [*x, *y]}"), json!({"a": 1, "b": 2, "c": 4}));
        assert_eq!(of("{<<: {d: 1}, <<: *y}"), json!({"b": 3, "c": 4, "d": 1}));
        assert_eq!(of("{'<<': 1}"), json!({"<<": 1}));
        assert_eq!(of("{!!merge <<: *x}"), json!({"a": 1, "b": 2}));
        for wrong in ["{<<: 1}", "{<<: [1]}", "{<<: }"] {
            assert!(matches!(fault(&format!("{base}z: {wrong}")), Fault::NoJson(_)), "{wrong}");
        }
        assert!(matches!(fault("l: &l [{a: 1}]\nz: {<<: *l}"), Fault::NoJson(_)));
    }

    #[test]
    fn what_no_json_can_hold_is_a_fault() {
        for text in ["a: .inf", "a: .nan", "a: !!int x", "a: !!bool 1", "a: !!null x", "a: !!float yes"] {
            assert!(matches!(fault(text), Fault::NoJson(_)), "{text}");
        }
        assert!(matches!(fault("a: ["), Fault::Syntax(_)));
        assert!(matches!(fault("a: *b"), Fault::Syntax(_)));
        assert_eq!(fault("a: &a [*a]"), Fault::Recursive);
    }

    #[test]
    fn anchors_stand_for_what_they_name() {
        assert_eq!(read("a: &a 010\nb: *a\n*a : c\n")["b"], json!(8));
        assert_eq!(read("&k key: &v [1]\nb: *k\nc: *v\n"), json!({"key": [1], "b": "key", "c": [1]}));
        assert_eq!(read("a: &a 1\nb: &a 2\nc: *a\n")["c"], json!(2));
    }

    #[test]
    fn depth_and_aliases_have_limits() {
        assert_eq!(fault(&"[".repeat(30)), Fault::TooLarge);
        let deep: Vec<String> = (0..30).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert_eq!(fault(&deep.concat()), Fault::TooLarge);
        assert_eq!(fault("a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b]"), Fault::TooLarge);
    }

    #[test]
    fn text_at_the_end_of_a_file_ends_as_it_is_written() {
        assert_eq!(read("a: |\n  x"), json!({"a": "x"}));
        assert_eq!(read("a: |\n  x\n"), json!({"a": "x\n"}));
    }

    #[test]
    fn only_the_first_document_is_read() {
        assert_eq!(read("a: 1\n---\nb: 2\n"), json!({"a": 1}));
        assert_eq!(read("# nothing\n"), Value::Null);
    }
}
