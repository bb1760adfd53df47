//! Arguments with nested values: arrays, slices, maps.
//!
//! The encoder visits the entries in the caller's own memory. Nothing is copied or allocated.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use hairline_formats::{Entries, Value};

use crate::map_key::MapKey;
use crate::on::callsite::{StringId, registry};
use crate::on::event::argument::{Argument, EntryVisitor, Flat, Held, Visitor};
use crate::wrapped::{Bytes, Interned, Koid};

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
            const IS_FLAT: bool = T::IS_OWN;
            fn value(&self) -> Value<'_> {
                Value::Array(self)
            }

            #[inline(always)]
            fn show<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
                if Self::IS_FLAT { visitor.visit_flat(at, self) } else { visitor.visit(at, self.value()) }
            }
        }

        impl<$($generics)*> Flat for Items<'_, $type> {
            const IS_MAP: bool = false;

            #[inline(always)]
            fn entry_count(&self) -> usize {
                self.0.len()
            }

            #[inline(always)]
            fn each_entry(&self, visitor: &mut impl EntryVisitor) {
                for value in self.0 {
                    visitor.entry("", value.hold().value());
                }
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
            const IS_FLAT: bool = K::IS_OWN && V::IS_OWN;
            fn value(&self) -> Value<'_> {
                Value::Dict(self)
            }

            #[inline(always)]
            fn show<'v>(&'v self, at: usize, visitor: &mut impl Visitor<'v>) {
                if Self::IS_FLAT { visitor.visit_flat(at, self) } else { visitor.visit(at, self.value()) }
            }
        }

        impl<$($generics)*> Flat for Pairs<'_, $type> {
            const IS_MAP: bool = true;

            #[inline(always)]
            fn entry_count(&self) -> usize {
                self.0.len()
            }

            #[inline(always)]
            fn each_entry(&self, visitor: &mut impl EntryVisitor) {
                for (key, value) in self.0 {
                    key.with_key(
                        #[inline(always)]
                        |key| visitor.entry(key, value.hold().value()),
                    );
                }
            }
        }
    )*};
}

maps! {
    [K: MapKey, V: Argument] BTreeMap<K, V>;
    [K: MapKey, V: Argument, S] HashMap<K, V, S>;
}

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

/// An interned string and its id.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    id: StringId,
    text: &'static str,
}

impl Argument for Interned {
    type Held<'a> = Numbered;
    fn hold(&self) -> Numbered {
        Numbered { id: registry::intern_unless_barred(self.0), text: self.0 }
    }
}

impl Held for Numbered {
    const COLD_ONLY: bool = true; // the hot path interns no strings
    fn value(&self) -> Value<'_> {
        match self.id {
            StringId::NONE => Value::Str(self.text),
            id => Value::Interned { iid: id.iid(), text: self.text },
        }
    }
}
