//! Arguments and options of events that are not recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use crate::map_key::MapKey;
use crate::off::track::{Flow, OnTrack, Track};
use crate::vocabulary::Correlation;
#[cfg(feature = "serde")]
use crate::wrapped::Serialized;
use crate::wrapped::{Bytes, Interned, Koid};

/// A value that an event could have as an argument: the types that can be one with the feature `enable`.
///
/// ```compile_fail
/// struct Peer;
/// hairline::trace_instant!("net", "connected", peer = Peer);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trace argument",
    note = "write `key = %value` to record its `Display`, `key = ?value` for its `Debug`"
)]
pub trait Argument {}

/// A value that a counter could have.
///
/// ```compile_fail
/// hairline::trace_counter!("net", "peers", "seven");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a counter's value",
    note = "use an integer, a float or a bool"
)]
pub trait Number {}

macro_rules! implement {
    ($trait:ident: $([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> $trait for $type {}
    )*};
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Argument for $type {}
        impl Number for $type {}
    )*};
}

numbers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, bool);

implement! { Number: [T: Number + ?Sized] &T; }

implement! {
    Argument:
    [] str;
    [] String;
    [] Cow<'_, str>;
    [] i128;
    [] u128;
    [] char;
    [T] *const T;
    [T] *mut T;
    [T: Argument] Option<T>;
    [T: Argument + ?Sized] &T;
    [T: Argument + ?Sized] &mut T;
    [T: Argument + ?Sized] Box<T>;
    [T: Argument + ?Sized] Rc<T>;
    [T: Argument + ?Sized] Arc<T>;
    [T: Argument] [T];
    [T: Argument] Vec<T>;
    [T: Argument] VecDeque<T>;
    [T: Argument, const N: usize] [T; N];
    [T: Argument] BTreeSet<T>;
    [T: Argument, S] HashSet<T, S>;
    [K: MapKey, V: Argument] BTreeMap<K, V>;
    [K: MapKey, V: Argument, S] HashMap<K, V, S>;
    [] Bytes<'_>;
    [] Koid;
    [] Interned;
}

#[cfg(feature = "serde")]
implement! { Argument: [T: serde::Serialize + ?Sized] Serialized<'_, T>; }

/// Checks the type of an argument.
pub fn argument(_: &(impl Argument + ?Sized)) {}

/// Checks the type of a counter's value.
pub fn number(_: &(impl Number + ?Sized)) {}

/// The arguments of an event.
pub trait Values {}
impl<T: ?Sized> Values for T {}

/// The options of an event.
#[derive(Default)]
pub struct Extras<'a>(PhantomData<&'a ()>);

impl<'a> Extras<'a> {
    /// No options.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `name:`.
    #[inline]
    #[must_use]
    pub fn name(self, _: &'a (impl AsRef<str> + ?Sized)) -> Self {
        self
    }

    /// `track:`.
    #[inline]
    #[must_use]
    pub fn track(self, _: &'a impl OnTrack) -> Self {
        self
    }

    /// `track:` of a slice that nests on the track.
    #[inline]
    #[must_use]
    pub fn own_track(self, _: &'a impl AsRef<Track>) -> Self {
        self
    }

    /// `flow:`.
    #[inline]
    #[must_use]
    pub fn flow(self, _: &'a impl AsRef<Flow>) -> Self {
        self
    }

    /// `end_flow:`.
    #[inline]
    #[must_use]
    pub fn end_flow(self, _: &'a impl AsRef<Flow>) -> Self {
        self
    }

    /// `correlation:`.
    #[inline]
    #[must_use]
    pub fn correlation(self, _: impl Into<Correlation<'a>>) -> Self {
        self
    }
}
