//! What a scalar stands for, by the rules of `sigs.k8s.io/yaml` (`goyaml.v2/resolve.go`): YAML 1.1 with Go's numbers.

/// A scalar that is not quoted, or that carries a tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number that fits into 64 bits with a sign.
    Int(i64),
    /// A larger one that fits into 64 bits without a sign.
    Unsigned(u64),
    /// Any other number.
    Float(f64),
    /// The text itself. Timestamps are among them: JSON has none.
    Text,
}

impl Scalar {
    /// The tag it would have, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) | Self::Unsigned(_) => "whole number",
            Self::Float(_) => "number",
            Self::Text => "text",
        }
    }
}

/// What a plain scalar stands for.
pub fn resolve(text: &str) -> Scalar {
    match text.as_bytes().first() {
        None => Scalar::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => number(text, text),
        Some(b'+' | b'-' | b'0'..=b'9') => match word(text) {
            Scalar::Text if text.contains('_') => number(text, &text.replace('_', "")),
            Scalar::Text => number(text, text),
            found => found,
        },
        Some(_) => Scalar::Text,
    }
}

/// The words that stand for something. Only these spellings count.
fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => Scalar::Text,
    }
}

/// `plain` is `text` without underscores.
fn number(text: &str, plain: &str) -> Scalar {
    if text.starts_with('.') {
        return match text {
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
            _ => float(text),
        };
    }
    match integer(plain) {
        Some(value) if i64::try_from(value).is_ok() => i64::try_from(value).map_or(Scalar::Text, Scalar::Int),
        Some(value) if u64::try_from(value).is_ok() && !plain.starts_with('+') => {
            u64::try_from(value).map_or(Scalar::Text, Scalar::Unsigned)
        }
        // A decimal number that is too large is a float; one with a prefix is a text.
        _ => float(plain),
    }
}

/// `strconv.ParseInt(text, 0, …)`: decimal, or with one of the prefixes `0b`, `0o`, `0x` and `0`.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let prefix = digits.as_bytes().get(1).filter(|_| digits.len() > 2 && digits.starts_with('0'));
    let (radix, digits) = match prefix {
        Some(b'b' | b'B') => (2, &digits[2..]),
        Some(b'o' | b'O') => (8, &digits[2..]),
        Some(b'x' | b'X') => (16, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // The parser would take a second sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|value| sign * value)
}

/// A decimal number with a point or an exponent.
fn float(text: &str) -> Scalar {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = digits(rest);
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if whole == 0 && count == 0 {
            return Scalar::Text;
        }
        rest = &fraction[count..];
    } else if whole == 0 {
        return Scalar::Text;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.is_empty() || digits(exponent) != exponent.len() {
            return Scalar::Text;
        }
    } else if !rest.is_empty() {
        return Scalar::Text;
    }
    // What is too large for one is a text.
    text.parse().ok().filter(|value: &f64| value.is_finite()).map_or(Scalar::Text, Scalar::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_as_kubernetes_reads_them() {
        use Scalar::{Bool, Float, Int, Null, Text, Unsigned};
        let table: &[(&str, Scalar)] = &[
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("NULL", Null),
            ("nULL", Text),
            ("yes", Bool(true)),
            ("Yes", Bool(true)),
            ("yEs", Text),
            ("y", Bool(true)),
            ("on", Bool(true)),
            ("oN", Text),
            ("off", Bool(false)),
            ("N", Bool(false)),
            ("no", Bool(false)),
            ("nope", Text),
            ("true", Bool(true)),
            ("tRUE", Text),
            ("0", Int(0)),
            ("00", Int(0)),
            ("-0", Int(0)),
            ("12", Int(12)),
            ("+12", Int(12)),
            ("-12", Int(-12)),
            ("0755", Int(493)),
            ("-0755", Int(-493)),
            ("0o17", Int(15)),
            ("0O17", Int(15)),
            ("0x1F", Int(31)),
            ("0X1f", Int(31)),
            ("0b101", Int(5)),
            ("-0b101", Int(-5)),
            ("0789", Float(789.0)),
            ("08", Float(8.0)),
            ("0x", Text),
            ("0b2", Text),
            ("1_000", Int(1000)),
            ("1__000", Int(1000)),
            ("1_", Int(1)),
            ("_1", Text),
            ("0_7", Int(7)),
            ("1_000.5", Float(1000.5)),
            ("1e3", Float(1000.0)),
            ("1E+3", Float(1000.0)),
            ("1e", Text),
            ("1e3x", Text),
            ("1e999", Text),
            ("1.", Float(1.0)),
            (".5", Float(0.5)),
            ("-.5", Float(-0.5)),
            (".", Text),
            ("..", Text),
            ("._5", Text),
            ("1.2.3", Text),
            ("+", Text),
            ("-", Text),
            ("--1", Text),
            ("+-1", Text),
            ("190:20:30", Text),
            ("2001-12-14", Text),
            ("2001-12-14T21:59:43Z", Text),
            ("10.0.0.1", Text),
            ("100m", Text),
            (".inf", Float(f64::INFINITY)),
            ("-.INF", Float(f64::NEG_INFINITY)),
            ("+.inf", Float(f64::INFINITY)),
            ("inf", Text),
            ("nan", Text),
            ("9223372036854775807", Int(i64::MAX)),
            ("9223372036854775808", Unsigned(1 << 63)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
            ("0xFFFFFFFFFFFFFFFF", Unsigned(u64::MAX)),
            ("0x1FFFFFFFFFFFFFFFFF", Text),
            ("<<", Text),
            ("=", Text),
            ("name", Text),
            ("é", Text),
        ];
        for (text, wanted) in table {
            assert_eq!(resolve(text), *wanted, "{text}");
        }
        assert!(matches!(resolve(".nan"), Float(value) if value.is_nan()));
    }
}
