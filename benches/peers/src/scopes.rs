//! The loops in which a peer records its scopes: a flood, and the scopes before a kill.

use std::time::Instant;

use hairline_benches::machine::pin_to_last_core;
use hairline_benches::timing::{Samples, batch};

use crate::bench::two_clock_reads;

/// The scopes of a flood, and their times.
pub struct Run {
    scopes: u32,
    /// The batches of the floor.
    batches: u32,
    floor: Samples,
    began: Instant,
    recording_s: f64,
}

impl Run {
    /// A flood of `scopes` scopes.
    pub fn new(scopes: u32) -> Self {
        Self { scopes, batches: 100, floor: Samples::default(), began: Instant::now(), recording_s: f64::NAN }
    }

    /// A single scope, without a floor.
    pub fn of_one() -> Self {
        Self { batches: 0, ..Self::new(1) }
    }

    /// The number of scopes, for peers that reserve memory for them.
    pub fn count(&self) -> u32 {
        self.scopes
    }

    /// Records all scopes. The threads that the peer has started before are not bound to the core of this
    /// one.
    pub fn scopes(&mut self, mut scope: impl FnMut()) {
        pin_to_last_core();
        for _ in 0..self.batches {
            self.floor.push(batch(10_000, two_clock_reads));
        }
        self.began = Instant::now();
        for _ in 0..self.scopes {
            scope();
        }
        self.recording_s = self.began.elapsed().as_secs_f64();
    }

    /// Seconds since the first scope.
    pub fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Nanoseconds a scope, up to the end of the last one.
    pub fn scope_ns(&self) -> f64 {
        self.recording_s * 1e9 / f64::from(self.scopes)
    }

    /// The median of two clock reads in this process, in nanoseconds.
    pub fn floor_ns(&self) -> f64 {
        self.floor.median()
    }
}

/// The scopes that a process records before it is killed.
pub const BEFORE_THE_KILL: u32 = 1_000_000;

/// Records [`BEFORE_THE_KILL`] scopes. The next instruction kills the process.
pub fn scopes_and_die(mut scope: impl FnMut()) {
    for _ in 0..BEFORE_THE_KILL {
        scope();
    }
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}
