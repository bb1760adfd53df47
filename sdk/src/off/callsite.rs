//! Callsites that are always off.

use crate::vocabulary::Unit;

/// The session of an event. There is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {}

/// The kind of event that a callsite would record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsiteKind {
    /// A slice on one thread.
    Scope,
    /// An instant.
    Instant,
    /// The value of a counter.
    Counter,
    /// The end of a slice on a track.
    End,
}

/// The place of a callsite, and its other constants.
#[derive(Debug)]
pub struct Site {
    /// The path of the file.
    pub file: &'static str,
    /// The line in the file.
    pub line: u32,
    /// The path of the module.
    pub module: &'static str,
    /// The options of a counter.
    pub counter: CounterOptions,
}

/// The options of a counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterOptions {
    /// `unit:`.
    pub unit: Unit,
    /// `multiplier:`; 1 by default.
    pub multiplier: i64,
    /// `incremental:`.
    pub incremental: bool,
}

impl CounterOptions {
    /// Numbers without a unit.
    pub const NONE: Self = Self { unit: Unit::None, multiplier: 1, incremental: false };
}

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
