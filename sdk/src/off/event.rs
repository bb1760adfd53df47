//! Arguments and options of events that are not recorded.

use crate::vocabulary::Correlation;
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
