//! Trees of values that own their nested values.

use hairline_formats::{Entries, Value};

/// A value and its nested values.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Pointer(u64),
    Koid(u64),
    Str(String),
    Bytes(Vec<u8>),
    Row(Row),
    Dict(Dict),
}

/// The values of an array.
#[derive(Debug, Default)]
pub(crate) struct Row(pub(crate) Vec<Node>);

/// The names and values of a map.
#[derive(Debug, Default)]
pub(crate) struct Dict(pub(crate) Vec<(String, Node)>);

/// Values nested deeper than this are omitted: a list that links to itself would not end.
pub(crate) const MAX_DEPTH: u32 = 32;

impl Node {
    /// Copies a value and all values nested in it.
    pub(crate) fn copy_of(value: &Value<'_>) -> Self {
        Self::copy_at(value, 0)
    }

    fn copy_at(value: &Value<'_>, depth: u32) -> Self {
        match *value {
            Value::Null => Self::Null,
            Value::Bool(v) => Self::Bool(v),
            Value::I64(v) => Self::I64(v),
            Value::U64(v) => Self::U64(v),
            Value::F64(v) => Self::F64(v),
            Value::Pointer(v) => Self::Pointer(v),
            Value::Koid(v) => Self::Koid(v),
            Value::Str(text) | Value::Interned { text, .. } => Self::Str(text.to_owned()),
            Value::Blob(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Dict(_) | Value::Array(_) if depth == MAX_DEPTH => Self::too_deep(),
            Value::Dict(entries) => {
                let mut dict = Dict::default();
                entries.each(&mut |name, value| {
                    dict.0.push((name.to_owned(), Self::copy_at(&value, depth + 1)));
                });
                Self::Dict(dict)
            }
            Value::Array(entries) => {
                let mut row = Row::default();
                entries.each(&mut |_, value| row.0.push(Self::copy_at(&value, depth + 1)));
                Self::Row(row)
            }
        }
    }

    /// Returns the placeholder for a value nested deeper than [`MAX_DEPTH`].
    pub(crate) fn too_deep() -> Self {
        Self::Str("…".to_owned())
    }

    /// Returns the value, which borrows from the node.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(*v),
            Self::I64(v) => Value::I64(*v),
            Self::U64(v) => Value::U64(*v),
            Self::F64(v) => Value::F64(*v),
            Self::Pointer(v) => Value::Pointer(*v),
            Self::Koid(v) => Value::Koid(*v),
            Self::Str(v) => Value::Str(v),
            Self::Bytes(v) => Value::Blob(v),
            Self::Row(row) => Value::Array(row),
            Self::Dict(dict) => Value::Dict(dict),
        }
    }

    /// Returns the node as the name of an entry.
    #[cfg(feature = "serde")]
    pub(crate) fn into_name(self) -> String {
        match self {
            Self::Str(text) => text,
            Self::Bool(v) => v.to_string(),
            Self::I64(v) => v.to_string(),
            Self::U64(v) => v.to_string(),
            Self::F64(v) => v.to_string(),
            other => format!("{other:?}"),
        }
    }
}

impl Entries for Row {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|node| show("", node.value()));
    }
}

impl Entries for Dict {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|(name, node)| show(name, node.value()));
    }
}
