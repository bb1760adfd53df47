//! Values in JSON, decoded on demand.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::trace_event_json::tokens::plain_end;
use crate::trace_event_json::walk;
use crate::value::MAX_DEPTH;
use crate::{Entries, Value};

/// A JSON value of any kind. It borrows its text, so a copy is cheap; its content is decoded on demand.
///
/// ```
/// use hairline_formats::trace_event_json::Json;
///
/// let args = Json::new(r#"{"host": {"name": "a", "ports": [80, 443]}}"#).unwrap();
/// let mut flat = Vec::new();
/// args.with(|value| {
///     value.flatten(&mut "args".to_owned(), &mut |path, value| flat.push(format!("{path}={value:?}")));
/// });
/// assert_eq!(flat[0], r#"args.host.name=Str("a")"#);
/// assert_eq!(flat[1..], ["args.host.ports[0]=I64(80)", "args.host.ports[1]=I64(443)"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a> {
    /// A valid value without white space around it.
    text: &'a str,
    /// The number of values around it.
    depth: u8,
}

impl<'a> Json<'a> {
    /// Parses `text`. Returns `None` if it is no JSON value.
    #[must_use]
    pub fn new(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(|raw| Self::valid(raw.get()))
    }

    /// Creates the value from `text` that an earlier [`text`](Self::text) returned, without checking it.
    ///
    /// For other text, the methods return no or wrong content, but do not panic.
    #[must_use]
    pub fn valid(text: &'a str) -> Self {
        Self { text, depth: 0 }
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Returns the content of a string. A surrogate without its other half becomes U+FFFD.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        self.text.starts_with('"').then(|| unquoted(self.text))
    }

    /// Returns the member `name` of an object; the last, if there are several.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Self> {
        let mut found = None;
        self.each_member(|key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found
    }

    /// Calls `show` for each member of an object, in their order. Other values have no members.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::Json;
    ///
    /// let json = Json::new(r#"{"ports": [80, 443], "name": "a"}"#).unwrap();
    /// let mut names = Vec::new();
    /// json.each_member(|name, _| names.push(name.into_owned()));
    /// assert_eq!(names, ["ports", "name"]);
    ///
    /// let mut ports = Vec::new();
    /// json.get("ports").unwrap().each_element(|port| ports.push(port.text()));
    /// assert_eq!(ports, ["80", "443"]);
    /// ```
    pub fn each_member(self, mut show: impl FnMut(Cow<'a, str>, Self)) {
        if self.text.starts_with('{') {
            // Valid JSON does not fail.
            let _ = walk::members(self.text, |key, value| show(unquoted(key), self.inner(value)));
        }
    }

    /// Calls `show` for each element of an array, in their order. Other values have no elements.
    pub fn each_element(self, mut show: impl FnMut(Self)) {
        if self.text.starts_with('[') {
            let _ = walk::elements(self.text, |element| show(self.inner(element)));
        }
    }

    fn inner(self, text: &'a str) -> Self {
        Self { text, depth: self.depth.saturating_add(1) }
    }

    /// Passes the decoded value to `use_it` and returns its result.
    ///
    /// An integer that exceeds 64 bits becomes a floating point number. Values nested deeper than 32 levels
    /// become "...".
    ///
    /// ```
    /// use hairline_formats::Value;
    /// use hairline_formats::trace_event_json::Json;
    ///
    /// let json = Json::new("-3").unwrap();
    /// assert!(json.with(|value| matches!(value, Value::I64(-3))));
    /// ```
    pub fn with<T>(self, use_it: impl FnOnce(Value<'_>) -> T) -> T {
        match self.text.as_bytes().first() {
            Some(b'"') => use_it(Value::Str(&unquoted(self.text))),
            Some(b'{' | b'[') if usize::from(self.depth) >= MAX_DEPTH => use_it(Value::Str("...")),
            Some(b'{') => use_it(Value::Dict(&self)),
            Some(b'[') => use_it(Value::Array(&self)),
            Some(b't') => use_it(Value::Bool(true)),
            Some(b'f') => use_it(Value::Bool(false)),
            Some(b'-' | b'0'..=b'9') => use_it(number(self.text)),
            _ => use_it(Value::Null),
        }
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Entries for Json<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.each_member(|key, value| value.with(|value| show(&key, value)));
        self.each_element(|value| value.with(|value| show("", value)));
    }
}

/// Parses a number.
fn number(text: &str) -> Value<'static> {
    if text != "-0" {
        if let Ok(number) = text.parse() {
            return Value::I64(number);
        }
        if let Ok(number) = text.parse() {
            return Value::U64(number);
        }
    }
    text.parse().map_or(Value::Null, Value::F64)
}

/// Returns the content of a string that is valid JSON.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if plain_end(inner.as_bytes(), 0, &mut 0) == inner.len() || !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    Cow::Owned(serde_json::from_str::<Unescaped>(text).map_or_else(|_| inner.to_owned(), |text| text.0))
}

/// A string without its escapes. It is read as bytes, because half of a surrogate pair is no text.
struct Unescaped(String);

impl<'de> Deserialize<'de> for Unescaped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Unescaped;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Unescaped, E> {
                let mut text = String::with_capacity(bytes.len());
                for chunk in bytes.utf8_chunks() {
                    text.push_str(chunk.valid());
                    // Half of a surrogate pair is three bytes, of which each is a chunk.
                    let is_rest = matches!(chunk.invalid(), [0x80..=0xbf]) && chunk.valid().is_empty();
                    if !chunk.invalid().is_empty() && !is_rest {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                }
                Ok(Unescaped(text))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Calls `show` for each member of an object, with the JSON of its value.
pub(super) fn members<'a>(
    text: &'a str,
    show: impl FnMut(Cow<'a, str>, &'a str),
) -> Result<(), serde_json::Error> {
    struct Members<F>(F);
    impl<'de, F: FnMut(Cow<'de, str>, &'de str)> Visitor<'de> for Members<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                self.0(unquoted(key.get()), value.get());
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Members(show))
}

/// Checks that `text` is JSON.
pub(super) fn check(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<IgnoredAny>(text).map(drop)
}

/// What bytes are, as the begin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// A value that ends here. Its strings may not be UTF-8.
    End(usize),
    /// Perhaps the begin of a value.
    Cut,
    /// No JSON, whatever follows.
    Wrong,
}

/// Checks the object or array that begins at the first of `bytes`.
pub(super) fn first(bytes: &[u8]) -> Checked {
    // The parser takes a number that is cut for a wrong one.
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let len = bytes.iter().rposition(|byte| !is_of_number(byte)).map_or(0, |last| last + 1);
    let mut values = serde_json::Deserializer::from_slice(&bytes[..len]).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Checked::End(values.byte_offset()),
        Some(Err(e)) if !e.is_eof() => Checked::Wrong,
        _ => Checked::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Json::new(text).unwrap().with(|value| format!("{value:?}"))
    }

    #[test]
    fn a_number_has_the_first_type_that_holds_it() {
        for (text, value) in [
            ("-9223372036854775808", "I64(-9223372036854775808)"),
            ("18446744073709551615", "U64(18446744073709551615)"),
            ("18446744073709551616", "F64(1.8446744073709552e19)"),
            ("1.0", "F64(1.0)"),
            ("-0", "F64(-0.0)"),
            ("0.1", "F64(0.1)"),
            ("1e400", "F64(inf)"),
        ] {
            assert_eq!(shown(text), value);
        }
    }

    #[test]
    fn escapes_are_decoded_and_half_a_surrogate_pair_is_replaced() {
        assert_eq!(shown(r#""a\"\\\/\b\f\n\r\t\u00e9\ud834\udd1e""#), r#"Str("a\"\\/\u{8}\u{c}\n\r\té𝄞")"#);
        assert_eq!(shown(r#""a\ud834b\udc00\ud834""#), r#"Str("a�b��")"#);
    }

    #[test]
    fn a_text_that_is_no_single_value_is_none() {
        for text in ["", "{", "[1,]", "{} {}", "01", "NaN", "'a'", "\"\u{1}\"", "\"\\x\"", "nul"] {
            assert_eq!(Json::new(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_that_is_cut_is_not_wrong() {
        let object = r#"{"a":[-1.5e+7,true,{"\u00e9\\":""}],"b":null,"c":{}}"#;
        for cut in 0..object.len() {
            assert_eq!(first(&object.as_bytes()[..cut]), Checked::Cut, "{cut}");
        }
        assert_eq!(first(format!("{object},").as_bytes()), Checked::End(object.len()));
        for wrong in ["{\"a\":NaN", "{\"a\":01,", "{\"a\" 1,", "{\"a\":\"\n", "{\"a\":1}}"] {
            assert_eq!(first(wrong.as_bytes()) == Checked::Wrong, !wrong.ends_with("}}"), "{wrong}");
        }
    }

    #[test]
    fn deep_nesting_is_cut_off_without_using_the_stack() {
        let deep = format!("{}1{}", "[".repeat(500_000), "]".repeat(500_000));
        let bomb = Json::new(&deep).unwrap();
        let mut flat = Vec::new();
        bomb.with(|value| {
            value.flatten(&mut "v".to_owned(), &mut |path, value| flat.push(format!("{path}{value:?}")));
        });
        assert_eq!(flat, [format!("v{}Str(\"...\")", "[0]".repeat(MAX_DEPTH))]);
    }

    #[test]
    fn of_two_members_of_a_name_the_last_is_found() {
        let object = Json::new(r#" {"a": 1, "b": {"a": 2}, "\u0061": [3] } "#).unwrap();
        assert_eq!(object.get("a").unwrap().text(), "[3]");
        assert_eq!((object.get("c"), Json::new("[1]").unwrap().get("a")), (None, None));
    }

    #[test]
    fn a_name_with_half_a_surrogate_pair_hides_no_other_member() {
        let object = Json::new(r#"{"\ud834": 1, "a": 2}"#).unwrap();
        assert_eq!(object.get("a").unwrap().text(), "2");
    }
}
