//! Arguments that own their values. Nested values are kept as trees, or flattened into one argument for each
//! leaf. A list is reused, so that it keeps its memory.

use std::ops::Range;

use hairline_formats::Value;

use crate::on::base::few::Few;
use crate::on::base::memory::{Bytes, List, Text};
use crate::on::event::tree::Tree;

/// A list of arguments that owns its values.
#[derive(Debug, Default)]
pub(crate) struct OwnedArguments {
    text: Text,
    bytes: Bytes,
    path: Text,
    trees: List<Tree>,
    /// Number of `trees` in use; the others only keep their memory.
    tree_count: usize,
    all: List<(Name, Scalar)>,
}

#[derive(Debug)]
enum Name {
    Static(&'static str),
    /// In `text`.
    Text(Range<usize>),
}

/// A value that has all of its bytes in itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plain {
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Pointer(u64),
    Koid(u64),
}

impl Plain {
    /// Copies a value. Returns `None` if it is none of these.
    #[inline(always)]
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match *value {
            Value::Bool(v) => Self::Bool(v),
            Value::I64(v) => Self::I64(v),
            Value::U64(v) => Self::U64(v),
            Value::F64(v) => Self::F64(v),
            Value::Pointer(v) => Self::Pointer(v),
            Value::Koid(v) => Self::Koid(v),
            _ => return None,
        })
    }

    /// Returns the value.
    #[inline(always)]
    pub(crate) fn value(self) -> Value<'static> {
        match self {
            Self::Bool(v) => Value::Bool(v),
            Self::I64(v) => Value::I64(v),
            Self::U64(v) => Value::U64(v),
            Self::F64(v) => Value::F64(v),
            Self::Pointer(v) => Value::Pointer(v),
            Self::Koid(v) => Value::Koid(v),
        }
    }
}

/// A value. Its strings are in a text, its blobs in bytes beside it.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Plain(Plain),
    Str(Range<usize>),
    Blob(Range<usize>),
    /// In `trees`.
    Tree(usize),
}

impl Scalar {
    /// Copies a value that has all of its bytes in itself. Returns `None` for others.
    #[inline]
    pub(crate) fn of_plain(value: &Value<'_>) -> Option<Self> {
        Plain::of(value).map(Self::Plain)
    }

    /// Returns the value. Its string is in `text`. Returns null for a blob and a tree.
    #[inline]
    pub(crate) fn value<'t>(&self, text: &'t str) -> Value<'t> {
        match *self {
            Self::Plain(plain) => plain.value(),
            Self::Str(ref range) => Value::Str(text.get(range.clone()).unwrap_or_default()),
            Self::Blob(_) | Self::Tree(_) => Value::Null,
        }
    }
}

impl OwnedArguments {
    /// Removes all arguments and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.bytes.clear();
        self.tree_count = 0;
        self.all.clear();
    }

    /// Adds an argument, with its nested values as a tree. Null is omitted.
    pub(crate) fn add(&mut self, key: &'static str, value: &Value<'_>) {
        if let Value::Dict(_) | Value::Array(_) = value {
            let index = self.tree_count;
            if index == self.trees.len() {
                self.trees.push(Tree::new());
            }
            self.trees[index].set(value); // runs code of the program, which may panic
            self.tree_count += 1;
            self.all.push((Name::Static(key), Scalar::Tree(index)));
        } else if let Some(scalar) = self.scalar(value) {
            self.all.push((Name::Static(key), scalar));
        }
    }

    /// Adds a scalar whose name is not static. Null and nested values are omitted.
    #[cfg(feature = "subscriber")]
    pub(crate) fn add_named(&mut self, name: &str, value: &Value<'_>) {
        if let Some(scalar) = self.scalar(value) {
            let name = self.add_text(name);
            self.all.push((Name::Text(name), scalar));
        }
    }

    /// Adds each leaf of a nested value as an argument. Its name is the path to the leaf, which begins with
    /// `name`. Returns false for a scalar, which is not added.
    pub(crate) fn add_nested(&mut self, name: &str, value: &Value<'_>) -> bool {
        if !matches!(value, Value::Dict(_) | Value::Array(_)) {
            return false;
        }
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.push(name);
        value.flatten(&mut path, &mut |path, value| {
            if let Some(scalar) = self.scalar(&value) {
                let path = self.add_text(path);
                self.all.push((Name::Text(path), scalar));
            }
        });
        self.path = path;
        true
    }

    /// Returns the number of arguments.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Iterates over all arguments.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.all.iter().map(|(name, scalar)| {
            let name = match name {
                Name::Static(name) => name,
                Name::Text(range) => &self.text.as_str()[range.clone()],
            };
            let value = match scalar {
                Scalar::Blob(range) => Value::Blob(&self.bytes[range.clone()]),
                Scalar::Tree(index) => self.trees[*index].value(),
                scalar => scalar.value(self.text.as_str()),
            };
            (name, value)
        })
    }

    /// Calls `with` with the list of all arguments.
    pub(crate) fn with_list<R>(&self, with: impl FnOnce(&[(&str, Value<'_>)]) -> R) -> R {
        let mut few = Few::<_>::new(("", Value::Null));
        self.iter().for_each(|argument| few.push(argument));
        with(few.as_slice())
    }

    /// Copies a scalar into the list's memory; `None` for null and nested values.
    fn scalar(&mut self, value: &Value<'_>) -> Option<Scalar> {
        match *value {
            Value::Str(text) | Value::Interned { text, .. } => Some(Scalar::Str(self.add_text(text))),
            Value::Blob(bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Some(Scalar::Blob(start..self.bytes.len()))
            }
            ref value => Scalar::of_plain(value),
        }
    }

    /// Appends a text to `text`.
    fn add_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push(text);
        start..self.text.len()
    }
}
