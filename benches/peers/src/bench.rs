//! What a peer's process measures: operations in batches, beside two bare clock reads.

use hairline_benches::machine::{self, clock_read};
use hairline_benches::timing::{Effort, Samples, batch};
use serde_json::{Value, json};

/// What is measured of a peer, if it has it.
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
    /// A span of `tracing`: made, entered, left, closed.
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

/// Measures, in a process of its own. Two threads and the caches are measured in files of their own.
#[derive(Debug)]
pub struct Bench {
    pub effort: Effort,
    /// All that the process may use, though it will soon be pinned to one.
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

    /// As [`row`](Self::row), with something to be done before each batch that does not count: whatever a peer wants so that its
    /// buffer neither overflows nor grows.
    pub fn row_between(&mut self, row: Row, between: impl FnMut(), operation: impl FnMut(u32)) {
        self.measure(row, self.effort, between, operation);
    }

    /// As [`row`](Self::row), in batches of 10,000, at whose begin the operation with number 0 may do what is to be done once for as
    /// many, and counts.
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
