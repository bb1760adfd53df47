//! Timing in batches, a subject and its floor in turn.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hairline::{Error, Session, SessionBuilder};

/// The ns of one operation, for each batch.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// No samples.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The fastest batch.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The median of the batches.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Multiplies each sample by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|ns| ns * factor).collect())
    }

    /// Adds all samples of another one.
    pub fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Adds a time.
    pub fn push(&mut self, ns: f64) {
        self.0.push(ns);
    }
}

/// The amount of measuring.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The batches of each subject.
    pub batches: usize,
    /// The operations in a batch.
    pub operations: u32,
}

/// Starts a session, and waits until its drain thread has refined the clock and allocated the ring ahead of
/// its use.
///
/// # Errors
/// If the session cannot be started.
pub fn started(builder: SessionBuilder) -> Result<Session, Error> {
    let session = builder.start()?;
    std::thread::sleep(Duration::from_millis(100));
    Ok(session)
}

/// Times one batch. Returns the ns of one operation.
#[inline(never)]
pub fn batch(operations: u32, mut operation: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    for i in 0..operations {
        operation(black_box(i));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(operations)
}

/// Times `floor` and `subject` in turn.
pub fn beside(effort: Effort, floor: impl FnMut(u32), subject: impl FnMut(u32)) -> (Samples, Samples) {
    beside_with(effort, || {}, floor, subject)
}

/// The same, and calls `between` before each pair of batches, without measuring it.
pub fn beside_with(
    effort: Effort,
    mut between: impl FnMut(),
    mut floor: impl FnMut(u32),
    mut subject: impl FnMut(u32),
) -> (Samples, Samples) {
    let (mut floors, mut subjects) = (Samples::default(), Samples::default());
    for round in 0..effort.batches + effort.batches / 10 {
        between();
        let (f, s) = (batch(effort.operations, &mut floor), batch(effort.operations, &mut subject));
        if round >= effort.batches / 10 {
            floors.push(f); // the first tenth only warms up
            subjects.push(s);
        }
    }
    (floors, subjects)
}
