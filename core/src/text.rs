//! How texts for people are put together: lists that end in a count, numbers with their noun, and cuts.

use jiff::{SignedDuration, Span, SpanRound, Unit};
use unicode_segmentation::UnicodeSegmentation;

/// At most `max` characters, cut between what a reader takes for characters, with an ellipsis where something was cut.
pub fn clip(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut left = max.saturating_sub(1);
    let mut cut = String::new();
    for grapheme in text.graphemes(true) {
        let length = grapheme.chars().count();
        if length > left {
            break;
        }
        left -= length;
        cut.push_str(grapheme);
    }
    cut.push('…');
    cut
}

/// `1 Application`, `3 Applications`.
pub fn count(number: usize, noun: &str) -> String {
    // The crate knows irregular plurals and has no opinion on numbers beyond its own integer.
    pluralizer::pluralize(noun, isize::try_from(number).unwrap_or(isize::MAX), true)
}

/// The noun for this many of it.
pub fn plural(number: usize, noun: &str) -> String {
    pluralizer::pluralize(noun, isize::try_from(number).unwrap_or(isize::MAX), false)
}

/// `a, b and 4 more`: the first `most` items, then a count.
pub fn some<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A time span in the two largest units that say something: `45s`, `1h 41m`, `3d 4h`.
pub fn span(duration: SignedDuration) -> String {
    let seconds = duration.abs().as_secs();
    // Seconds matter within a minute, minutes within a day.
    let (smallest, largest) = match seconds {
        0..60 => (Unit::Second, Unit::Second),
        60..86_400 => (Unit::Minute, Unit::Hour),
        _ => (Unit::Hour, Unit::Day),
    };
    let rounding = SpanRound::new().smallest(smallest).largest(largest).days_are_24_hours();
    Span::new().seconds(seconds).round(rounding).map_or_else(|_| format!("{seconds}s"), |span| format!("{span:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_as_readers_see_them() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("too long", 5), "too …");
        // Two people in one character, of five code points.
        let family = "a👩‍👩‍👧b";
        assert_eq!(clip(family, 4), "a…");
        assert_eq!(clip("", 0), "");
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(count(1, "Application"), "1 Application");
        assert_eq!(count(0, "Ingress"), "0 Ingresses");
        assert_eq!(count(3, "policy"), "3 policies");
        assert_eq!(plural(2, "ServiceAccount"), "ServiceAccounts");
    }

    #[test]
    fn list_ends_in_a_count() {
        assert_eq!(some(&["a", "b"], 3), "a, b");
        assert_eq!(some(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn time_spans_are_told_in_two_units() {
        let told = |seconds| span(SignedDuration::from_secs(seconds));
        assert_eq!(told(45), "45s");
        assert_eq!(told(6_090), "1h 42m");
        assert_eq!(told(3 * 86_400 + 4 * 3_600 + 600), "3d 4h");
        assert_eq!(told(-7_200), "2h");
        assert_eq!(told(0), "0s");
    }
}
