//! Spans, before they are written.

use crate::otlp::attribute::Attributes;

/// An instant or a message in a span.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) time: i64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
}

/// Where a span stands to other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Internal = 1,
    /// A request came in.
    Server = 2,
    /// A request went out.
    Client = 3,
}

/// A trace id, in two halves.
pub(super) type TraceId = [u64; 2];

/// A slice that becomes a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    /// The index of its process in [`Spans::processes`].
    pub(super) process: usize,
    /// The number of the event that begins it.
    pub(super) number: u64,
    /// The enclosing span.
    pub(super) parent: Option<usize>,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) points: Vec<Point>,
    /// The flows through the span and its points, with the time, and whether the flow begins there, if known.
    pub(super) flows: Vec<(u64, i64, bool)>,
    pub(super) is_failed: bool,

    pub(super) trace: TraceId,
    pub(super) id: u64,
    /// The span id of the parent, in this process or another; 0 for a root.
    pub(super) parent_id: u64,
    pub(super) kind: Kind,
    pub(super) links: Vec<(TraceId, u64)>,
    pub(super) is_kept: bool,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) pid: Option<u64>,
    pub(super) name: String,
}

/// All spans.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) processes: Vec<Process>,
    /// A parent precedes its children.
    pub(super) all: Vec<Span>,
    /// What is added to a time of the trace for one since 1970.
    pub(super) since_1970: i64,
    /// Distinguishes the spans of this trace from those of others.
    pub(super) salt: u64,
}

/// Spreads a number over 64 bits: splitmix64's finaliser.
pub(super) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
