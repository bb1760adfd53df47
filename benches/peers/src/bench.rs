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
    /// A scope with an i64 and a `&str` of 16 bytes.
    Arguments,
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
            Self::Arguments => "scope + i64 + &str",
            Self::Instant => "instant",
            Self::Counter => "counter",
            Self::Span => "tracing span",
        }
    }
}

/// The text of [`Row::Arguments`].
pub const TEXT: &str = "sixteen bytes ..";

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
    rows: Vec<Value>,
    pub threads: Vec<Value>,
    pub footprint: Vec<Value>,
}

impl Bench {
    pub fn new(effort: Effort) -> Self {
        Self { effort, cores: machine::cores(), rows: Vec::new(), threads: Vec::new(), footprint: Vec::new() }
    }

    pub fn row(&mut self, row: Row, operation: impl FnMut(u32)) {
        self.row_between(row, || {}, operation);
    }

    /// As [`row`](Self::row), and calls `between` before each batch, without measuring it. Peers use it to
    /// keep their buffers from overflowing or growing.
    pub fn row_between(&mut self, row: Row, between: impl FnMut(), operation: impl FnMut(u32)) {
        self.measure(row, self.effort, between, operation);
    }

    /// As [`row`](Self::row), in batches of 10,000. The operation with number 0 may do the work that is
    /// needed once for that many operations, and is measured too.
    pub fn row_of_ten_thousand(&mut self, row: Row, operation: impl FnMut(u32)) {
        let effort = Effort { batches: self.effort.batches.div_ceil(5), operations: 10_000 };
        self.measure(row, effort, || {}, operation);
    }

    fn measure(
        &mut self,
        row: Row,
        effort: Effort,
        mut between: impl FnMut(),
        mut operation: impl FnMut(u32),
    ) {
        let (mut floors, mut samples) = (Samples::default(), Samples::default());
        let warm_up = effort.batches / 10;
        for round in 0..effort.batches + warm_up {
            let floor = batch(effort.operations, two_clock_reads);
            between();
            let sample = batch(effort.operations, &mut operation);
            if round >= warm_up {
                floors.push(floor);
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
