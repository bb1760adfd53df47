//! Samples of call stacks of the process's threads.
//!
//! The kernel interrupts a thread and copies its registers and the first 8 to 32 KiB of its stack into a
//! ring. Where it refuses that, and in a flight recorder, a signal interrupts the thread, whose handler
//! does the same. The session's own thread reads the rings, unwinds, and writes the samples beside the
//! events. When the session ends, it looks up the functions of all frames. A flight recorder keeps the
//! last samples for its snapshots instead, and so does a rotated output for the end of each file. The
//! stacks of events take the same way; threads take these themselves (`base/stacks`).
//!
//! Unwinding needs packages that not every program should build: the feature `sampling`. Without it the twin
//! has the same functions, and says so.

#[cfg(not(feature = "sampling"))]
mod absent;
#[cfg(feature = "sampling")]
mod events;
#[cfg(feature = "sampling")]
mod looks;
#[cfg(feature = "sampling")]
mod present;
#[cfg(feature = "sampling")]
mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::filter::Filter;
use crate::sampling::{OwnStacks, Sampling as Wished};

/// What a session takes stacks at.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) samples: Option<Wished>,
    #[cfg_attr(feature = "sampling", allow(dead_code))] // threads know it by their callsites
    pub(crate) of_events: bool,
    pub(crate) of_slow_slices: bool,
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    pub(crate) own: OwnStacks,
    /// In a flight recorder, and in an output of several files.
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    pub(crate) keeps_last: bool,
    /// In a flight recorder, which stays on.
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    pub(crate) stays_on: bool,
}

/// What a session does not take, or not as it was asked for: sentences that say why, and what helps.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Why there are no samples.
    pub(crate) no_samples: Option<String>,
    /// All else.
    pub(crate) notes: Vec<String>,
    /// The threads that are sampled by the clock.
    pub(crate) threads: Option<SampledThreads>,
}

/// The names of the threads that are sampled by the clock.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "sampling"), allow(dead_code))]
pub(crate) struct SampledThreads {
    names: Filter,
    /// Whether a thread has such a name.
    are_there: Arc<AtomicBool>,
}

#[cfg_attr(not(feature = "sampling"), allow(dead_code))]
impl SampledThreads {
    fn new(names: Filter) -> Self {
        Self { names, are_there: Arc::default() }
    }

    /// Whether a thread of this name is sampled.
    fn has(&self, name: &str) -> bool {
        let is_one = self.names.matches(name);
        if is_one {
            self.are_there.store(true, Ordering::Relaxed); // it guards no memory
        }
        is_one
    }

    /// Returns what is to be said if no thread had such a name.
    pub(crate) fn note(&self) -> Option<String> {
        let names = self.names.to_string();
        (!self.are_there.load(Ordering::Relaxed)).then(|| {
            format!("no thread was sampled by the clock: none had a name like {names:?}; names have 15 bytes")
        })
    }
}

#[cfg(not(feature = "sampling"))]
impl Wanted {
    fn has_events(&self) -> bool {
        self.of_events || self.of_slow_slices
    }
}

#[cfg(not(feature = "sampling"))]
pub(crate) use absent::{Sampling, put_window, tape_bytes};
#[cfg(feature = "sampling")]
pub(crate) use present::{Sampling, put_window, tape_bytes};
