//! Argument values, independent of the format.

use std::fmt;

/// The value of an argument, which TrackEvent calls a debug annotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A floating point number.
    F64(f64),
    /// Text.
    Str(&'a str),
    /// Interned text: in TrackEvent an [`AnnotationText`](crate::track_event::InternedKind::AnnotationText),
    /// in FXT the index of a String record. An id above the largest FXT index is written inline.
    Interned {
        /// The id on the sequence, from 1.
        iid: u64,
        /// The text.
        text: &'a str,
    },
    /// An address in the traced process. Viewers show it in hexadecimal.
    Pointer(u64),
    /// The id of a kernel object, for example of a process or a thread.
    Koid(u64),
    /// Bytes that are not text.
    Blob(&'a [u8]),
    /// Names and values.
    Dict(&'a dyn Entries),
    /// Values without names.
    Array(&'a dyn Entries),
}

/// The content of a [`Value::Dict`] or [`Value::Array`].
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{AnnotationValue, Annotations, Name, put_named};
/// use hairline_formats::{Entries, Value};
///
/// struct Ports(Vec<u64>);
/// impl Entries for Ports {
///     fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
///         self.0.iter().for_each(|port| show("", Value::U64(*port)));
///     }
/// }
///
/// let mut event = Vec::new(); // the bytes of a `TrackEvent`
/// put_named(&mut event, Name::Text("ports"), &Value::Array(&Ports(vec![80, 443])));
/// let annotation = Annotations::of_event(&event).next().unwrap()?;
/// let AnnotationValue::Array(ports) = annotation.value else { panic!() };
/// assert_eq!(ports.count(), 2);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub trait Entries {
    /// Calls `show` for each entry in their order, with its name and value. The name is "" in an array.
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>));
}

impl fmt::Debug for dyn Entries + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.each(&mut |name, value| {
            map.entry(&name, &value);
        });
        map.finish()
    }
}

impl PartialEq for dyn Entries + '_ {
    /// Whether both have the same names and values.
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// The path of a value that is taken apart, as text that grows and shrinks. `String` implements it. A caller
/// with memory of its own can keep the text there.
pub trait Path {
    /// Returns the text.
    fn text(&self) -> &str;

    /// Appends `part`.
    fn push(&mut self, part: &str);

    /// Cuts the text to `len` bytes, an earlier length.
    fn truncate(&mut self, len: usize);
}

impl Path for String {
    fn text(&self) -> &str {
        self
    }

    fn push(&mut self, part: &str) {
        self.push_str(part);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

/// Appends `[index]`. The traced program waits while nested values are written, so this does without
/// `core::fmt`.
fn push_index(path: &mut impl Path, index: usize) {
    const DIGITS: &str = "0123456789";
    const ONE_DIGIT: [&str; 10] = ["[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]", "[8]", "[9]"];
    if let Some(short) = ONE_DIGIT.get(index) {
        return path.push(short);
    }
    let mut place = 1;
    while index / place >= 10 {
        place *= 10;
    }
    path.push("[");
    while place > 0 {
        let digit = index / place % 10;
        path.push(&DIGITS[digit..=digit]);
        place /= 10;
    }
    path.push("]");
}

impl Value<'_> {
    /// Calls `show` for each scalar in the value, with its path in Perfetto's form.
    ///
    /// The path begins with `path` and continues with `.name` for a dict and `[index]` for an array. An empty
    /// dict or array is the text "{}" or "[]". A null is dropped, except in an array, where it is the text
    /// "null". `path` is unchanged afterwards.
    ///
    /// ```
    /// use hairline_formats::{Entries, Value};
    ///
    /// struct Host;
    /// impl Entries for Host {
    ///     fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
    ///         show("name", Value::Str("a"));
    ///         show("port", Value::U64(80));
    ///     }
    /// }
    ///
    /// let mut paths = Vec::new();
    /// Value::Dict(&Host).flatten(&mut "host".to_owned(), &mut |path, _| paths.push(path.to_owned()));
    /// assert_eq!(paths, ["host.name", "host.port"]);
    /// ```
    #[inline]
    pub fn flatten(&self, path: &mut impl Path, show: &mut (impl FnMut(&str, Value<'_>) + ?Sized)) {
        flatten(self, path, 0, show);
    }
}

impl Value<'_> {
    /// Returns the number of bytes of a text or a blob; `None` for other values.
    #[inline(always)]
    #[must_use]
    pub fn text_len(&self) -> Option<usize> {
        match self {
            Value::Str(text) | Value::Interned { text, .. } => Some(text.len()),
            Value::Blob(bytes) => Some(bytes.len()),
            _ => None,
        }
    }

    /// Returns the value as an entry of a dict or an array, of scalars. `None` for a null in a dict, which is
    /// omitted. In an array it is the text "null", so that the others keep their indices.
    #[inline(always)]
    #[must_use]
    pub fn in_flat(self, is_dict: bool) -> Option<Self> {
        match self {
            Value::Null if is_dict => None,
            Value::Null => Some(Value::Str("null")),
            value => Some(value),
        }
    }

    /// Whether the value is nested more than 32 levels deep. Writers cut off deeper levels.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        is_deeper(self, MAX_DEPTH)
    }
}

fn is_deeper(value: &Value<'_>, than: usize) -> bool {
    let (Value::Dict(entries) | Value::Array(entries)) = value else { return false };
    let mut is_deep = than == 0;
    if !is_deep {
        entries.each(&mut |_, value| is_deep = is_deep || is_deeper(&value, than - 1));
    }
    is_deep
}

/// The depth at which nested values are cut off.
pub(crate) const MAX_DEPTH: usize = 32;

fn flatten<P: Path, S: FnMut(&str, Value<'_>) + ?Sized>(
    value: &Value<'_>,
    path: &mut P,
    depth: usize,
    show: &mut S,
) {
    let len = path.text().len();
    match value {
        Value::Null => {}
        Value::Dict(_) | Value::Array(_) if depth == MAX_DEPTH => {}
        Value::Dict(entries) => {
            let mut empty = true;
            entries.each(&mut |name, value| {
                empty = false;
                path.push(".");
                path.push(name);
                flatten_inner(&value, path, depth + 1, show);
                path.truncate(len);
            });
            if empty {
                show(path.text(), Value::Str("{}"));
            }
        }
        Value::Array(entries) => {
            let mut index = 0_usize;
            entries.each(&mut |_, value| {
                push_index(path, index);
                // A null is shown, so that the others keep their indices.
                let value = if matches!(value, Value::Null) { Value::Str("null") } else { value };
                flatten_inner(&value, path, depth + 1, show);
                path.truncate(len);
                index += 1;
            });
            if index == 0 {
                show(path.text(), Value::Str("[]"));
            }
        }
        Value::Interned { text, .. } if depth > 0 => show(path.text(), Value::Str(text)),
        scalar => show(path.text(), *scalar),
    }
}

/// As [`flatten`] for a value in another one. Nearly all are numbers or text, which need no call.
#[inline]
fn flatten_inner(
    value: &Value<'_>,
    path: &mut impl Path,
    depth: usize,
    show: &mut (impl FnMut(&str, Value<'_>) + ?Sized),
) {
    let scalar = match *value {
        Value::Null => return,
        Value::Dict(_) | Value::Array(_) => return flatten(value, path, depth, show),
        Value::Interned { text, .. } => Value::Str(text),
        scalar => scalar,
    };
    show(path.text(), scalar);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host;
    impl Entries for Host {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("name", Value::Str("a"));
            show("ports", Value::Array(&Ports));
            show("none", Value::Null);
        }
    }

    struct Ports;
    impl Entries for Ports {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("", Value::U64(80));
            show("", Value::U64(443));
        }
    }

    struct Endless;
    impl Entries for Endless {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("", Value::U64(1));
            show("", Value::Array(&Endless));
        }
    }

    fn flat(value: Value<'_>) -> Vec<String> {
        let mut all = Vec::new();
        value.flatten(&mut "v".to_owned(), &mut |path, value| all.push(format!("{path}={value:?}")));
        all
    }

    #[test]
    fn nested_values_have_paths() {
        assert_eq!(flat(Value::I64(1)), ["v=I64(1)"]);
        assert_eq!(
            flat(Value::Dict(&Host)),
            ["v.name=Str(\"a\")", "v.ports[0]=U64(80)", "v.ports[1]=U64(443)"]
        );
    }

    #[test]
    fn an_index_in_a_path_has_all_its_digits() {
        for index in [0, 9, 10, 11, 99, 100, 101, 1000, usize::MAX] {
            let mut path = "v".to_owned();
            push_index(&mut path, index);
            assert_eq!(path, format!("v[{index}]"));
        }
    }

    #[test]
    fn endless_nesting_is_cut_off() {
        assert_eq!(flat(Value::Array(&Endless)).len(), MAX_DEPTH);
    }
}
