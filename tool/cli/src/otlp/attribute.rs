//! The values of attributes.

use std::collections::HashSet;

use hairline_formats::Value;

/// Deeper values are cut. Readers cut and count them already.
const DEEPEST: usize = 32;
/// What a value takes in memory beside its text, about.
const VALUE: usize = 64;

/// A value that OTLP has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    None,
    Text(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Array(Vec<Attribute>),
    Map(Vec<(String, Attribute)>),
    Bytes(Vec<u8>),
}

/// Names and values.
pub(super) type Attributes = Vec<(String, Attribute)>;

/// The memory for names and values. A text that is in the trace once may belong to millions of events.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    is_full: bool,
    /// The number of values whose name comes again, later.
    pub(super) doubles: u64,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes, is_full: false, doubles: 0 }
    }

    /// Whether something did not fit.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes memory for a value with so many bytes of text. Returns false from the first one on that does not
    /// fit.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        match self.bytes.checked_sub(bytes.saturating_add(VALUE)) {
            Some(left) if !self.is_full => self.bytes = left,
            _ => self.is_full = true,
        }
        !self.is_full
    }
}

impl Attribute {
    /// Copies a value. `None` if there is no room.
    pub(super) fn of(value: &Value<'_>, room: &mut Room) -> Self {
        Self::at(value, 0, room)
    }

    fn at(value: &Value<'_>, depth: usize, room: &mut Room) -> Self {
        let bytes = match value {
            Value::Str(text) | Value::Interned { text, .. } => text.len(),
            Value::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        if depth > DEEPEST || !room.take(bytes) {
            return Self::None;
        }
        match *value {
            Value::Null => Self::None,
            Value::Bool(v) => Self::Bool(v),
            Value::I64(v) => Self::Int(v),
            // Larger numbers have no type in OTLP.
            Value::U64(v) | Value::Koid(v) => {
                i64::try_from(v).map_or_else(|_| Self::Text(v.to_string()), Self::Int)
            }
            Value::F64(v) => Self::Double(v),
            Value::Str(text) | Value::Interned { text, .. } => Self::Text(text.to_owned()),
            Value::Pointer(v) => Self::Text(format!("{v:#x}")),
            Value::Blob(bytes) => Self::Bytes(bytes.to_owned()),
            Value::Array(entries) => {
                let mut all = Vec::new();
                entries.each(&mut |_, value| all.push(Self::at(&value, depth + 1, room)));
                Self::Array(all)
            }
            Value::Dict(entries) => {
                let mut all = Vec::new();
                entries.each(&mut |name, value| {
                    if room.take(name.len()) {
                        all.push((name.to_owned(), Self::at(&value, depth + 1, room)));
                    }
                });
                room.doubles += unique(&mut all);
                Self::Map(all)
            }
        }
    }
}

/// Keeps the last value of each name: OTLP allows a name once. Returns the number of the others.
pub(super) fn unique(attributes: &mut Attributes) -> u64 {
    if attributes.len() < 2 {
        return 0;
    }
    let mut known = HashSet::with_capacity(attributes.len());
    let is_last: Vec<bool> = attributes.iter().rev().map(|(name, _)| known.insert(name.as_str())).collect();
    let (before, mut is_last) = (attributes.len(), is_last.into_iter().rev());
    attributes.retain(|_| is_last.next().unwrap_or(true));
    (before - attributes.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_not_copied() {
        let mut room = Room::new(2 * VALUE + 3);
        assert_eq!(Attribute::of(&Value::Str("abc"), &mut room), Attribute::Text("abc".to_owned()));
        assert!(!room.is_full());
        assert_eq!(Attribute::of(&Value::Str("a"), &mut room), Attribute::None);
        assert_eq!(Attribute::of(&Value::I64(1), &mut room), Attribute::None, "also what is smaller");
        assert!(room.is_full() && !room.take(usize::MAX));
    }

    #[test]
    fn the_last_value_of_a_name_is_kept() {
        let of = |name: &str, value| (name.to_owned(), Attribute::Int(value));
        let mut all = vec![of("a", 1), of("b", 2), of("a", 3), of("c", 4), of("a", 5)];
        assert_eq!(unique(&mut all), 2);
        assert_eq!(all, [of("b", 2), of("c", 4), of("a", 5)]);
    }
}
