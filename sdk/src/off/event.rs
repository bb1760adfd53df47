//! Arguments and options of events that are not recorded.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::off::track::{Flow, OnTrack, Track};

/// A value that an event could have as an argument.
pub trait Argument {}
impl<T: ?Sized> Argument for T {}

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

/// The id that related events share.
#[derive(Clone, Copy, Debug)]
pub enum Correlation<'a> {
    /// A number.
    Id(u64),
    /// A string.
    Name(&'a str),
}

impl From<u64> for Correlation<'_> {
    fn from(id: u64) -> Self {
        Self::Id(id)
    }
}

impl<'a> From<&'a str> for Correlation<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for Correlation<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

/// A key of a map: a string, an integer, a bool or a char.
pub trait MapKey {
    /// Calls `f` with the text of the key.
    fn with_key(&self, f: impl FnOnce(&str));
}

macro_rules! text_keys {
    ($($type:ty),*) => {$(
        impl MapKey for $type {
            fn with_key(&self, f: impl FnOnce(&str)) {
                f(self);
            }
        }
    )*};
}

text_keys!(str, String, Cow<'_, str>);

impl<T: MapKey + ?Sized> MapKey for &T {
    fn with_key(&self, f: impl FnOnce(&str)) {
        (**self).with_key(f);
    }
}

macro_rules! shown_keys {
    ($($type:ty),*) => {$(
        impl MapKey for $type {
            fn with_key(&self, f: impl FnOnce(&str)) {
                f(&self.to_string());
            }
        }
    )*};
}

shown_keys!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, bool, char);

/// Bytes that are not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'b>(#[allow(dead_code)] &'b [u8]); // for `Debug`

/// Makes an argument of bytes.
#[must_use]
pub fn bytes(bytes: &[u8]) -> Bytes<'_> {
    Bytes(bytes)
}

/// The id of a kernel object that is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Koid(#[allow(dead_code)] u64); // for `Debug`

/// Makes an argument of the id of a kernel object.
#[must_use]
pub fn koid(number: u64) -> Koid {
    Koid(number)
}

/// A string that is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Interned(#[allow(dead_code)] &'static str); // for `Debug`

/// Makes an argument of a string that would be written once.
#[must_use]
pub fn interned(text: &'static str) -> Interned {
    Interned(text)
}

/// A value that is not serialized.
#[cfg(feature = "serde")]
#[derive(Debug)]
pub struct Serialized<'s, T: ?Sized>(#[allow(dead_code)] &'s T); // for `Debug`

/// Makes an argument of a value that would be serialized.
#[cfg(feature = "serde")]
pub fn serialize<T: serde::Serialize + ?Sized>(value: &T) -> Serialized<'_, T> {
    Serialized(value)
}
