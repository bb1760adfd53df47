//! What a trace has of the program's memory: large allocations of threads, and the heap profile.

use std::collections::HashMap;

use hairline_convert::{Event, EventKind, TrackId};
use hairline_formats::Value;

use crate::heap_sums::HeapProfile;

/// The instant of an allocation above the limit of `Heap`, on the thread that allocates.
const CATEGORY: &str = "heap";
const LARGE: &str = "large allocation";
const BYTES: &str = "bytes";

/// The limit for these: 64 MiB.
const MOST_LARGE: usize = 1 << 22;

/// What the trace has of the program's memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Times and bytes, by the track of the thread.
    large: HashMap<TrackId, Vec<(i64, u64)>>,
    count: usize,
    /// The large allocations beyond the limit.
    pub(super) left_out: u64,
    pub(super) profile: HeapProfile,
}

/// A number of allocations, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allocations {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Memory {
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if event.name.text != LARGE || event.kind != EventKind::Instant {
            return;
        }
        let mut is_own = false;
        event.categories.each(&mut |category| is_own |= category.text == CATEGORY);
        let mut bytes = None;
        event.args.each(&mut |name, value| match value {
            Value::U64(value) if name.text == BYTES => bytes = Some(value),
            Value::I64(value) if name.text == BYTES => bytes = u64::try_from(value).ok(),
            _ => {}
        });
        let Some(bytes) = bytes.filter(|_| is_own) else { return };
        if self.count >= MOST_LARGE {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.large.entry(event.track).or_default().push((event.time, bytes));
    }

    /// Sorts. Call it before the first question.
    pub(super) fn finish(&mut self) {
        self.large.values_mut().for_each(|all| all.sort_unstable());
        self.profile.end_dump();
    }

    /// The large allocations of a thread, from `start` to `end`.
    pub(super) fn large(&self, track: TrackId, start: i64, end: i64) -> Allocations {
        let all = self.large.get(&track).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|(time, _)| *time < start);
        let inside = all[from..].iter().take_while(|(time, _)| *time < end);
        inside
            .fold(Allocations::default(), |sum, (_, bytes)| sum.and(Allocations { count: 1, bytes: *bytes }))
    }
}

impl Allocations {
    pub(super) fn and(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), bytes: self.bytes.saturating_add(other.bytes) }
    }
}
