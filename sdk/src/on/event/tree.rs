//! Nested values that own their memory: one run of bytes, on the stack while it is short.
//!
//! ```text
//! scalar   TAG  8 bytes, or nothing
//! text     TAG  LENGTH  bytes
//! array    TAG  LENGTH  value value ...
//! map      TAG  LENGTH  name value name value ...      a name is a text
//! ```
//!
//! LENGTH counts the bytes after it, in 4 bytes. A reader believes none of it: a program's `Serialize` may
//! begin an array and not end it.

use hairline_formats::{Entries, Value};

use crate::on::base::buffer::Spilling;
#[cfg(feature = "serde")]
use crate::on::event::text::Text;

/// Bytes of a tree on the stack; larger ones move to the heap.
const INLINE: usize = 232;

/// Values nested deeper than this are omitted: a list that links to itself would not end.
pub(crate) const MAX_DEPTH: u32 = 32;

/// A value with the values nested in it.
#[derive(Debug)]
pub(crate) struct Tree(Spilling<INLINE>);

mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const I64: u8 = 3;
    pub(super) const U64: u8 = 4;
    pub(super) const F64: u8 = 5;
    pub(super) const POINTER: u8 = 6;
    pub(super) const KOID: u8 = 7;
    pub(super) const TEXT: u8 = 8;
    pub(super) const BLOB: u8 = 9;
    pub(super) const ARRAY: u8 = 10;
    pub(super) const MAP: u8 = 11;
}

/// The kinds of values that have others in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NestKind {
    Array,
    Map,
}

/// The place of an array or a map that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open(usize);

/// Bytes of a length.
const LENGTH: usize = 4;

impl Tree {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(Spilling::new())
    }

    /// Replaces the tree by a copy of a value and all values nested in it. Runs code of the program, which
    /// may panic.
    pub(crate) fn set(&mut self, value: &Value<'_>) {
        self.truncate(0);
        self.put(value, 0);
    }

    fn put(&mut self, value: &Value<'_>, depth: u32) {
        match *value {
            Value::Dict(_) | Value::Array(_) if depth == MAX_DEPTH => self.put_too_deep(),
            Value::Dict(entries) => {
                let open = self.begin(NestKind::Map);
                entries.each(&mut |name, value| {
                    self.put_scalar(&Value::Str(name));
                    self.put(&value, depth + 1);
                });
                self.end(open);
            }
            Value::Array(entries) => {
                let open = self.begin(NestKind::Array);
                entries.each(&mut |_, value| self.put(&value, depth + 1));
                self.end(open);
            }
            ref scalar => self.put_scalar(scalar),
        }
    }

    /// Writes the placeholder for a value nested deeper than [`MAX_DEPTH`].
    pub(crate) fn put_too_deep(&mut self) {
        self.put_scalar(&Value::Str("…"));
    }

    /// Writes a scalar, or the name of an entry. A nested value becomes null.
    #[inline]
    pub(crate) fn put_scalar(&mut self, value: &Value<'_>) {
        match *value {
            Value::Null | Value::Dict(_) | Value::Array(_) => self.0.push(&[tag::NULL]),
            Value::Bool(v) => self.0.push(&[if v { tag::TRUE } else { tag::FALSE }]),
            Value::I64(v) => self.put_word(tag::I64, v.cast_unsigned()),
            Value::U64(v) => self.put_word(tag::U64, v),
            Value::F64(v) => self.put_word(tag::F64, v.to_bits()),
            Value::Pointer(v) => self.put_word(tag::POINTER, v),
            Value::Koid(v) => self.put_word(tag::KOID, v),
            Value::Str(text) | Value::Interned { text, .. } => self.put_bytes(tag::TEXT, text.as_bytes()),
            Value::Blob(bytes) => self.put_bytes(tag::BLOB, bytes),
        }
    }

    #[inline]
    fn put_word(&mut self, tag: u8, word: u64) {
        let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
        self.0.push(&[tag, a, b, c, d, e, f, g, h]);
    }

    #[inline]
    fn put_bytes(&mut self, tag: u8, bytes: &[u8]) {
        let [a, b, c, d] = length(bytes.len());
        self.0.push(&[tag, a, b, c, d]);
        self.0.push(&bytes[..bytes.len().min(u32::MAX as usize)]);
    }

    /// Begins an array or a map. The values follow, and then [`end`](Self::end).
    #[inline]
    pub(crate) fn begin(&mut self, kind: NestKind) -> Open {
        let tag = if kind == NestKind::Map { tag::MAP } else { tag::ARRAY };
        self.0.push(&[tag, 0, 0, 0, 0]);
        Open(self.0.len())
    }

    /// Ends the array or the map.
    #[inline]
    pub(crate) fn end(&mut self, open: Open) {
        let Some(len) = self.0.len().checked_sub(open.0) else { return };
        if let Some(place) = self.0.as_mut_slice().get_mut(open.0 - LENGTH..open.0) {
            place.copy_from_slice(&length(len));
        }
    }

    /// Returns the position of the next value.
    #[cfg(feature = "serde")]
    pub(crate) fn position(&self) -> usize {
        self.0.len()
    }

    /// Removes everything from this position on.
    pub(crate) fn truncate(&mut self, position: usize) {
        self.0.truncate(position);
    }

    /// Makes the value that was written last, at this position, the name of an entry.
    #[cfg(feature = "serde")]
    pub(crate) fn make_name(&mut self, position: usize) {
        let text = match self.0.as_slice().get(position..).and_then(Item::first) {
            Some((Item::Scalar(Value::Str(_)), _)) => return,
            Some((Item::Scalar(Value::Bool(v)), _)) => Text::display(&v),
            Some((Item::Scalar(Value::I64(v)), _)) => Text::display(&v),
            Some((Item::Scalar(Value::U64(v)), _)) => Text::display(&v),
            Some((Item::Scalar(Value::F64(v)), _)) => Text::display(&v),
            Some((Item::Scalar(other), _)) => Text::debug(&other),
            Some((Item::Nest(nest), _)) => Text::debug(&nest.value()),
            None => Text::display(""),
        };
        self.truncate(position);
        self.put_scalar(&text.value());
    }

    /// Returns the value, which borrows from the tree.
    #[inline]
    pub(crate) fn value(&self) -> Value<'_> {
        match Item::first(self.0.as_slice()) {
            None => Value::Null,
            Some((Item::Scalar(value), _)) => value,
            Some((Item::Nest(Nest { kind: NestKind::Array, .. }), _)) => Value::Array(self),
            Some((Item::Nest(Nest { kind: NestKind::Map, .. }), _)) => Value::Dict(self),
        }
    }
}

impl Entries for Tree {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        if let Some((Item::Nest(nest), _)) = Item::first(self.0.as_slice()) {
            nest.each(show);
        }
    }
}

fn length(len: usize) -> [u8; LENGTH] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

/// A value that was read.
enum Item<'b> {
    Scalar(Value<'b>),
    Nest(Nest<'b>),
}

/// An array or a map that was read.
struct Nest<'b> {
    kind: NestKind,
    content: &'b [u8],
}

impl<'b> Item<'b> {
    /// Reads the first value of `bytes`. Returns it and the bytes after it.
    #[inline]
    fn first(bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (&tag, rest) = bytes.split_first()?;
        let scalar = match tag {
            tag::FALSE | tag::TRUE => return Some((Self::Scalar(Value::Bool(tag == tag::TRUE)), rest)),
            tag::I64..=tag::KOID => {
                let (word, rest) = rest.split_first_chunk()?;
                let word = u64::from_le_bytes(*word);
                let value = match tag {
                    tag::I64 => Value::I64(word.cast_signed()),
                    tag::U64 => Value::U64(word),
                    tag::F64 => Value::F64(f64::from_bits(word)),
                    tag::POINTER => Value::Pointer(word),
                    _ => Value::Koid(word),
                };
                return Some((Self::Scalar(value), rest));
            }
            tag::TEXT..=tag::MAP => {
                let (len, rest) = rest.split_first_chunk()?;
                let (content, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                let item = match tag {
                    tag::TEXT => Self::Scalar(Value::Str(std::str::from_utf8(content).unwrap_or_default())),
                    tag::BLOB => Self::Scalar(Value::Blob(content)),
                    tag::ARRAY => Self::Nest(Nest { kind: NestKind::Array, content }),
                    _ => Self::Nest(Nest { kind: NestKind::Map, content }),
                };
                return Some((item, rest));
            }
            _ => Value::Null,
        };
        Some((Self::Scalar(scalar), rest))
    }
}

impl Nest<'_> {
    fn value(&self) -> Value<'_> {
        if self.kind == NestKind::Map { Value::Dict(self) } else { Value::Array(self) }
    }
}

impl Entries for Nest<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        let mut rest = self.content;
        while !rest.is_empty() {
            let mut name = "";
            if self.kind == NestKind::Map {
                let Some((Item::Scalar(Value::Str(text)), after)) = Item::first(rest) else { return };
                (name, rest) = (text, after);
            }
            let Some((item, after)) = Item::first(rest) else { return };
            rest = after;
            match item {
                Item::Scalar(value) => show(name, value),
                Item::Nest(nest) => show(name, nest.value()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;
    impl Entries for Sample {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("null", Value::Null);
            show("yes", Value::Bool(true));
            show("no", Value::Bool(false));
            show("low", Value::I64(i64::MIN));
            show("high", Value::U64(u64::MAX));
            show("half", Value::F64(0.5));
            show("at", Value::Pointer(0xf00d));
            show("of", Value::Koid(7));
            show("", Value::Str(""));
            show("é", Value::Str(&"é".repeat(INLINE)));
            show("blob", Value::Blob(&[0xff; 3]));
            show("list", Value::Array(&Endless));
        }
    }

    struct Endless;
    impl Entries for Endless {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("", Value::U64(1));
            show("", Value::Array(&Endless));
        }
    }

    struct Two;
    impl Entries for Two {
        fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
            show("a", Value::I64(1));
            show("b", Value::Array(&Nothing));
        }
    }

    struct Nothing;
    impl Entries for Nothing {
        fn each(&self, _: &mut dyn FnMut(&str, Value<'_>)) {}
    }

    /// All leaves with their paths.
    fn leaves(value: &Value<'_>) -> Vec<String> {
        let mut all = Vec::new();
        value.flatten(&mut "v".to_owned(), &mut |path, value| all.push(format!("{path}={value:?}")));
        all
    }

    #[test]
    fn a_copy_has_all_values_whether_it_is_short_or_long() {
        let mut tree = Tree::new();
        for value in [Value::Dict(&Two), Value::Dict(&Sample), Value::Array(&Nothing), Value::Dict(&Two)] {
            tree.set(&value);
            let (copied, own) = (leaves(&tree.value()), leaves(&value));
            assert_eq!(copied[..own.len().min(20)], own[..own.len().min(20)]);
        }
        tree.set(&Value::U64(3));
        assert_eq!(tree.value(), Value::U64(3));
    }

    #[test]
    fn a_value_that_contains_itself_is_cut_off_with_a_mark() {
        let mut tree = Tree::new();
        tree.set(&Value::Array(&Endless));
        let mut deepest = tree.value();
        let mut depth = 0;
        let mut last = String::new();
        while let Value::Array(entries) | Value::Dict(entries) = deepest {
            depth += 1;
            let mut text = String::new();
            entries.each(&mut |_, value| text = format!("{value:?}"));
            last = text;
            deepest = Value::Null;
        }
        assert_eq!(depth, 1);
        assert_eq!(last.matches("U64(1)").count(), MAX_DEPTH as usize - 1);
        assert!(last.contains('…'));
    }

    #[test]
    fn whatever_the_bytes_are_nothing_panics() {
        let mut whole = Tree::new();
        whole.set(&Value::Dict(&Two));
        let bytes = whole.0.as_slice().to_vec();
        for at in 0..bytes.len() {
            for wrong in [0, 1, tag::TEXT, tag::MAP, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = wrong;
                for end in [at, damaged.len()] {
                    let mut tree = Tree::new();
                    tree.0.push(&damaged[..end]);
                    leaves(&tree.value());
                }
            }
        }
    }
}
