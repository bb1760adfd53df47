//! Common parts of the tests: arbitrary values, and inputs that are slow or fail.

#![allow(dead_code)] // each test file uses its own part

use std::io::{self, Read};

use hairline_formats::{DecodeError, Value};
use proptest::prelude::*;

/// A value that owns its content.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    /// A value that borrows nothing.
    Plain(Value<'static>),
    Str(String),
    Blob(Vec<u8>),
}

impl Owned {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Str(text) => Value::Str(text),
            Self::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

/// Integers at which an encoding changes its length or type.
const EDGES: [i128; 16] = [
    0,
    1,
    -1,
    0x7f,
    0x80,
    0x3fff,
    0x4000,
    i32::MAX as i128,
    i32::MAX as i128 + 1,
    i32::MIN as i128,
    i32::MIN as i128 - 1,
    u32::MAX as i128,
    u32::MAX as i128 + 1,
    i64::MIN as i128,
    i64::MAX as i128,
    u64::MAX as i128,
];

pub(crate) fn unsigned() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), prop::sample::select(EDGES.to_vec()).prop_map(|v| v as u64)]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    // Lengths around a word, and characters of every length.
    prop::collection::vec(prop::sample::select(vec!['a', 'é', '€', '𝄞', '\0']), 0..12)
        .prop_map(|chars| chars.into_iter().collect())
}

pub(crate) fn value() -> impl Strategy<Value = Owned> {
    prop_oneof![
        Just(Owned::Plain(Value::Null)),
        any::<bool>().prop_map(|v| Owned::Plain(Value::Bool(v))),
        unsigned().prop_map(|v| Owned::Plain(Value::I64(v as i64))),
        unsigned().prop_map(|v| Owned::Plain(Value::U64(v))),
        unsigned().prop_map(|v| Owned::Plain(Value::Pointer(v))),
        unsigned().prop_map(|v| Owned::Plain(Value::Koid(v))),
        // NaN is not equal to itself.
        unsigned()
            .prop_map(f64::from_bits)
            .prop_filter("a number", |v| !v.is_nan())
            .prop_map(|v| Owned::Plain(Value::F64(v))),
        text().prop_map(Owned::Str),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Owned::Blob),
    ]
}

/// Lengths at which padding, the size of a length, or a limit changes.
pub(crate) const LENGTHS: [usize; 11] = [0, 1, 7, 8, 9, 127, 128, 16_384, 31_999, 32_000, 32_001];

/// Returns one byte at a time, and is interrupted before each.
pub(crate) struct Slow<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl<'a> Slow<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, interrupted: false }
    }
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.bytes.len().min(buffer.len()).min(1);
        buffer[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = &self.bytes[len..];
        Ok(len)
    }
}

/// Checks that a trace of `count` items reads the same byte by byte, and up to each place at which it is cut.
/// `read` returns the items with their offsets.
pub(crate) fn check_pieces(
    trace: &[u8],
    count: usize,
    read: impl Fn(&mut dyn Read) -> Vec<Result<(u64, String), DecodeError>>,
) {
    let whole: Vec<_> = read(&mut &*trace).into_iter().map(Result::unwrap).collect();
    let slow: Vec<_> = read(&mut Slow::new(trace)).into_iter().map(Result::unwrap).collect();
    assert_eq!((&whole, whole.len()), (&slow, count));
    for len in 0..trace.len() {
        let mut cut = read(&mut &trace[..len]);
        let end = cut.pop_if(|last| last.is_err());
        let items: Vec<_> = cut.into_iter().map(Result::unwrap).collect();
        assert_eq!(items, whole[..items.len()]);
        let next = whole[items.len()].0;
        match end {
            Some(Err(e)) => assert!(e.is_truncated() && e.offset == next, "{len}: {e}"),
            _ => assert_eq!(len as u64, next),
        }
    }
}

/// Fails at the first read.
pub(crate) struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

/// A trace with a few changed bytes. Most of it is still valid, so that readers get deep into it.
pub(crate) fn damaged(trace: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let len = trace.len();
    prop::collection::vec((0..len, any::<u8>()), 1..8).prop_map(move |changes| {
        let mut trace = trace.clone();
        for (at, byte) in changes {
            trace[at] = byte;
        }
        trace
    })
}
