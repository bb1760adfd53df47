//! Callsites that are always off.

use crate::site::{CallsiteKind, Site};

/// The session of an event. There is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {}

/// The name of an argument.
#[derive(Debug)]
pub struct Key(());

impl Key {
    /// A key.
    #[must_use]
    pub const fn new(_: &'static str) -> Self {
        Self(())
    }
}

/// A place in the code that would record events.
#[derive(Debug)]
pub struct Callsite(());

impl Callsite {
    /// The callsite of all guards that the macros return.
    pub const OFF: Self = Self(());

    /// A callsite.
    #[must_use]
    pub const fn new(
        _: CallsiteKind,
        _: &'static str,
        _: &'static str,
        _: &'static [Key],
        _: &'static Site,
    ) -> Self {
        Self(())
    }

    /// Returns `None`: the callsite is off.
    #[inline(always)]
    #[must_use]
    pub fn epoch(&'static self) -> Option<Epoch> {
        None
    }

    /// Returns `None`: the callsite is off.
    #[inline(always)]
    #[must_use]
    pub fn registered_epoch(&'static self) -> Option<Epoch> {
        None
    }
}
