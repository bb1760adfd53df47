//! Arguments and options of events that are not recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use crate::map_key::MapKey;
use crate::off::track::{Flow, OnTrack, Track};
use crate::traceparent::Traceparent;
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
///
/// A type of your own implements it as with the feature `enable`; `hold` is never called.
///
/// ```
/// struct UserId(u64);
///
/// impl hairline::Argument for UserId {
///     type Held<'a> = u64;
///
///     fn hold(&self) -> u64 {
///         self.0
///     }
/// }
///
/// hairline::trace_instant!("chat", "sent", from = UserId(7));
/// ```
/// ```compile_fail,E0277
/// struct Peer;
///
/// impl hairline::Argument for Peer {
///     type Held<'a> = Peer;
///
///     fn hold(&self) -> Peer {
///         Peer
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trace argument",
    note = "write `key = %value` to record its `Display`, `key = ?value` for its `Debug`"
)]
pub trait Argument {
    /// The form that the value would have.
    type Held<'a>: Held
    where
        Self: 'a;

    /// Returns the value in that form.
    fn hold(&self) -> Self::Held<'_>;
}

/// The forms of arguments: the types that are one with the feature `enable`.
pub trait Held {}

/// The form of an argument that has a form without a name with the feature `enable`.
#[derive(Clone, Copy, Debug)]
pub struct Unrecorded;

impl Held for Unrecorded {}
impl Held for &str {}
impl Held for Bytes<'_> {}
impl<H: Held> Held for Option<H> {}

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
    ($held:ty, |$v:ident| $value:expr; $([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> Argument for $type {
            type Held<'a> = $held where Self: 'a;

            fn hold(&self) -> Self::Held<'_> {
                let $v = self;
                $value
            }
        }
    )*};
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        implement! { $type, |v| *v; [] $type; }
        impl Held for $type {}
        impl Number for $type {}
    )*};
}

numbers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, bool);

impl<T: Number + ?Sized> Number for &T {}

implement! { Koid, |v| *v; [] Koid; }
impl Held for Koid {}

implement! { &'a str, |v| v; [] str; [] String; [] Cow<'_, str>; }
implement! { &'a str, |v| v.as_str(); [] Traceparent; }
implement! { Bytes<'a>, |v| *v; [] Bytes<'_>; }
implement! { Option<T::Held<'a>>, |v| v.as_ref().map(Argument::hold); [T: Argument] Option<T>; }

implement! {
    T::Held<'a>, |v| (**v).hold();
    [T: Argument + ?Sized] &T;
    [T: Argument + ?Sized] &mut T;
    [T: Argument + ?Sized] Box<T>;
    [T: Argument + ?Sized] Rc<T>;
    [T: Argument + ?Sized] Arc<T>;
}

implement! {
    Unrecorded, |_v| Unrecorded;
    [] i128;
    [] u128;
    [] char;
    [T] *const T;
    [T] *mut T;
    [T: Argument] [T];
    [T: Argument] Vec<T>;
    [T: Argument] VecDeque<T>;
    [T: Argument, const N: usize] [T; N];
    [T: Argument] BTreeSet<T>;
    [T: Argument, S] HashSet<T, S>;
    [K: MapKey, V: Argument] BTreeMap<K, V>;
    [K: MapKey, V: Argument, S] HashMap<K, V, S>;
    [] Interned;
}

#[cfg(feature = "serde")]
implement! { Unrecorded, |_v| Unrecorded; [T: serde::Serialize + ?Sized] Serialized<'_, T>; }

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
