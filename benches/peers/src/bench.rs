//! The measurements of a peer's process: operations in batches, beside two bare clock reads.

use hairline_benches::machine::{self, clock_read};
use hairline_benches::timing::{Effort, Samples, batch};
use serde_json::{Value, json};

/// An operation that is measured, if the peer has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A scope while nothing is recorded.
    Disabled,
    /// A scope: begin and end.
    Scope,
    /// A scope at one of 64 callsites, at random.
    Anywhere,
    /// A scope with an i64 and a `&str` of 16 bytes.
    Arguments,
    /// A scope with a name of ten bytes that is made at run time.
    Named,
    /// A scope with an i64 that is added before its end.
    Late,
    /// A scope with an array of two i32.
    Nested,
    Instant,
    Counter,
    /// A span of `tracing`: created, entered, exited, closed.
    Span,
}

impl Row {
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Scope => "scope",
            Self::Anywhere => "one of 64 scopes",
            Self::Arguments => "scope + i64 + &str",
            Self::Named => "named at run time",
            Self::Late => "scope + i64 at the end",
            Self::Nested => "scope + [i32; 2]",
            Self::Instant => "instant",
            Self::Counter => "counter",
            Self::Span => "tracing span",
        }
    }
}

/// The text of [`Row::Arguments`].
pub const TEXT: &str = "sixteen bytes ..";

/// The name of [`Row::Named`].
pub const NAME: &str = "ten bytes.";

/// The floor of a scope.
pub fn two_clock_reads(_: u32) {
    clock_read();
    clock_read();
}

/// The measurements of one process. Those of two threads and of the caches are in `threads.rs` and
/// `footprint.rs`.
#[derive(Debug)]
pub struct Bench {
    pub effort: Effort,
    /// The cores that the process may use before it is pinned to one.
    pub cores: Vec<usize>,
    /// Whether only one thread is measured, and not the caches.
    pub only_rows: bool,
    rows: Vec<Value>,
    pub threads: Vec<Value>,
    pub footprint: Vec<Value>,
}

impl Bench {
    pub fn new(effort: Effort, only_rows: bool) -> Self {
        let (rows, threads, footprint) = Default::default();
        Self { effort, cores: machine::cores(), only_rows, rows, threads, footprint }
    }

    pub fn row(&mut self, row: Row, operation: impl FnMut(u32)) {
        self.row_between(row, || {}, operation);
    }

    /// As [`row`](Self::row), and calls `between` before each batch, without measuring it. Peers use it to
    /// keep their buffers from overflowing or growing.
    pub fn row_between(&mut self, row: Row, between: impl FnMut(), operation: impl FnMut(u32)) {
        self.measure(row, self.effort, between, two_clock_reads, operation);
    }

    /// As [`row`](Self::row), in batches of 10,000. The operation with number 0 may do the work that is
    /// needed once for that many operations, and is measured too.
    pub fn row_of_ten_thousand(&mut self, row: Row, operation: impl FnMut(u32)) {
        self.measure(row, self.of_ten_thousand(), || {}, two_clock_reads, operation);
    }

    /// As much effort, in batches of 10,000.
    pub fn of_ten_thousand(&self) -> Effort {
        Effort { batches: self.effort.batches.div_ceil(5), operations: 10_000 }
    }

    /// Measures an operation and its floor, in turn.
    pub fn measure(
        &mut self,
        row: Row,
        effort: Effort,
        mut between: impl FnMut(),
        mut floor: impl FnMut(u32),
        mut operation: impl FnMut(u32),
    ) {
        let (mut floors, mut samples) = (Samples::default(), Samples::default());
        let warm_up = effort.batches / 10;
        for round in 0..effort.batches + warm_up {
            let reads = batch(effort.operations, &mut floor);
            between();
            let sample = batch(effort.operations, &mut operation);
            if round >= warm_up {
                floors.push(reads);
                samples.push(sample);
            }
        }
        self.rows.push(json!({
            "row": row.name(), "ns_min": samples.min(), "ns_median": samples.median(),
            "floor_ns_min": floors.min(), "floor_ns_median": floors.median(),
        }));
    }

    pub fn finish(self) -> Value {
        json!({ "rows": self.rows, "threads": self.threads, "footprint": self.footprint })
    }
}
