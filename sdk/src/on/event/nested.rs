//! Arguments with nested values: arrays, slices, maps.
//!
//! The encoder visits the entries in the caller's own memory. Nothing is copied or allocated.

use crate::map_key::MapKey;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use hairline_formats::{Entries, Value};

use crate::on::callsite::registry;
use crate::on::event::argument::{Argument, Held};

/// The values of an array.
#[derive(Debug)]
pub struct Items<'a, C: ?Sized>(&'a C);

/// The names and values of a map.
#[derive(Debug)]
pub struct Pairs<'a, C: ?Sized>(&'a C);

/// Passes one entry of an array or a map to `show`.
fn show_entry(name: &str, value: &impl Argument, show: &mut dyn FnMut(&str, Value<'_>)) {
    show(name, value.hold().value());
}

macro_rules! rows {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Argument for $type {
            type Held<'a> = Items<'a, Self> where Self: 'a;
            fn hold(&self) -> Items<'_, Self> {
                Items(self)
            }
        }

        impl<$($generics)*> Entries for Items<'_, $type> {
            fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
                self.0.iter().for_each(|value| show_entry("", value, show));
            }
        }

        impl<$($generics)*> Held for Items<'_, $type> {
            const COLD_ONLY: bool = true;
            fn value(&self) -> Value<'_> {
                Value::Array(self)
            }
        }
    )*};
}

rows! {
    [T: Argument] [T];
    [T: Argument] Vec<T>;
    [T: Argument] VecDeque<T>;
    [T: Argument, const N: usize] [T; N];
    [T: Argument] BTreeSet<T>;
    [T: Argument, S] HashSet<T, S>;
}

macro_rules! maps {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Argument for $type {
            type Held<'a> = Pairs<'a, Self> where Self: 'a;
            fn hold(&self) -> Pairs<'_, Self> {
                Pairs(self)
            }
        }

        impl<$($generics)*> Entries for Pairs<'_, $type> {
            fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
                self.0.iter().for_each(|(key, value)| key.with_key(|key| show_entry(key, value, show)));
            }
        }

        impl<$($generics)*> Held for Pairs<'_, $type> {
            const COLD_ONLY: bool = true;
            fn value(&self) -> Value<'_> {
                Value::Dict(self)
            }
        }
    )*};
}

maps! {
    [K: MapKey, V: Argument] BTreeMap<K, V>;
    [K: MapKey, V: Argument, S] HashMap<K, V, S>;
}

/// Makes an argument of bytes, recorded as a blob and not as an array of numbers.
///
/// ```
/// # use hairline::{bytes, trace_instant};
/// trace_instant!("net", "packet", head = bytes(&[0xde, 0xad]));
/// ```
#[must_use]
pub fn bytes(bytes: &[u8]) -> Bytes<'_> {
    Bytes(bytes)
}

/// See [`bytes`].
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'b>(&'b [u8]);

impl Argument for Bytes<'_> {
    type Held<'a>
        = Bytes<'a>
    where
        Self: 'a;
    #[inline(always)]
    fn hold(&self) -> Bytes<'_> {
        *self
    }
}

impl Held for Bytes<'_> {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        Value::Blob(self.0)
    }
}

/// Makes an argument of a kernel object's id: a process's or a thread's id.
#[must_use]
pub fn koid(number: u64) -> Koid {
    Koid(number)
}

/// See [`koid`].
#[derive(Clone, Copy, Debug)]
pub struct Koid(u64);

impl Argument for Koid {
    type Held<'a> = Koid;
    #[inline(always)]
    fn hold(&self) -> Koid {
        *self
    }
}

impl Held for Koid {
    #[inline(always)]
    fn value(&self) -> Value<'_> {
        Value::Koid(self.0)
    }
}

/// Makes an argument of a string that many events carry. Each thread writes the string once, and refers to it
/// by its id from then on. That saves bytes of the trace but takes time, so it is for long strings.
///
/// ```
/// # use hairline::{interned, trace_instant};
/// trace_instant!("db", "query", sql = interned("select name, age from people where id = ?"));
/// ```
#[must_use]
pub fn interned(text: &'static str) -> Interned {
    Interned(text)
}

/// See [`interned`].
#[derive(Clone, Copy, Debug)]
pub struct Interned(&'static str);

/// An interned string and its id.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    iid: u32,
    text: &'static str,
}

impl Argument for Interned {
    type Held<'a> = Numbered;
    fn hold(&self) -> Numbered {
        Numbered { iid: registry::intern_unless_barred(self.0), text: self.0 }
    }
}

impl Held for Numbered {
    const COLD_ONLY: bool = true; // the hot path interns no strings
    fn value(&self) -> Value<'_> {
        match self.iid {
            0 => Value::Str(self.text),
            iid => Value::Interned { iid: u64::from(iid), text: self.text },
        }
    }
}
