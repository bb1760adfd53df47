//! The fixed properties of a callsite, as the macros state them.

use crate::vocabulary::Unit;

/// The kind of event that a callsite records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsiteKind {
    /// A slice, begun and ended on one thread.
    Scope,
    /// A point in time.
    Instant,
    /// A value over time.
    Counter,
    /// The end of a slice on a track, on for every filter: the slice may have any category.
    End,
}

/// The place of a callsite in the source, and its other fixed properties.
#[derive(Debug)]
pub struct Site {
    /// The path of the file.
    pub file: &'static str,
    /// The line in the file.
    pub line: u32,
    /// The path of the module.
    pub module: &'static str,
    /// The meaning of a counter's values.
    pub counter: CounterOptions,
    /// `slow:`, in ns; 0 without the option.
    pub slow_after: u64,
    /// `stack:`.
    pub stack: bool,
}

/// The constants of the options `slow:` and `stack:`, as the macros collect them.
#[cfg(feature = "enable")]
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// `slow:`, in ns; 0 without the option.
    pub slow_after: u64,
    /// `stack:`.
    pub stack: bool,
}

#[cfg(feature = "enable")]
impl Looks {
    /// Neither.
    pub const NONE: Self = Self { slow_after: 0, stack: false };

    /// Adds `slow:`.
    #[must_use]
    pub const fn slow(self, limit: std::time::Duration) -> Self {
        Self { slow_after: nanoseconds(limit), ..self }
    }

    /// Adds `stack:`.
    #[must_use]
    pub const fn stack(self, on: bool) -> Self {
        Self { stack: on, ..self }
    }

    /// Those of an instant.
    ///
    /// # Panics
    /// With a limit, while the program is compiled.
    #[must_use]
    pub const fn of_instant(self) -> Self {
        assert!(self.slow_after == 0, "an instant has no duration, and so no option `slow`");
        self
    }

    /// Those of an interval.
    ///
    /// # Panics
    /// With a stack, while the program is compiled.
    #[must_use]
    pub const fn of_interval(self) -> Self {
        assert!(!self.stack, "an interval is no thread's, and so has no option `stack`");
        self
    }
}

/// Returns the ns of the option `slow:`, at least 1.
#[cfg(feature = "enable")]
const fn nanoseconds(limit: std::time::Duration) -> u64 {
    match limit.as_nanos() {
        0 => 1,
        ns if ns > u64::MAX as u128 => u64::MAX,
        ns => ns as u64,
    }
}

#[cfg(feature = "enable")]
impl Site {
    /// For callsites of this crate's own.
    pub(crate) const NOWHERE: Self = Self::of_unit(Unit::None);

    /// As [`NOWHERE`](Self::NOWHERE), for a counter with this unit.
    pub(crate) const fn of_unit(unit: Unit) -> Self {
        let counter = CounterOptions { unit, ..CounterOptions::NONE };
        Self { file: "", line: 0, module: "", counter, slow_after: 0, stack: false }
    }
}

/// The meaning of a counter's values.
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
    /// Plain numbers without a unit.
    pub const NONE: Self = Self { unit: Unit::None, multiplier: 1, incremental: false };

    /// Whether FXT can express the options: FXT has no unit and no multiplier.
    #[cfg(feature = "enable")]
    pub(crate) fn is_plain(&self) -> bool {
        self.unit == Unit::None && self.multiplier == 1
    }
}
