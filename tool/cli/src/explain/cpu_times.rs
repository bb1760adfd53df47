//! The CPU time of threads, as a program records it at the begins and ends of its slices
//! (`HAIRLINE_THREAD_TIME`). It needs no permission, so it stands in where a trace has no scheduling.

use std::collections::{HashMap, HashSet};

use hairline_convert::{Event, EventKind, Item, TrackId, TrackKind};
use hairline_formats::Value;
use hairline_formats::track_event::{CounterType, CounterValue};

/// The limit for readings: 64 MiB.
const MOST_READINGS: usize = 1 << 22;

/// The arguments of FXT that are readings: at the begin of a slice, and at its end.
pub(super) const CLOCK_ARGUMENTS: [&str; 2] = ["cpu_begin_ns", "cpu_end_ns"];

/// The readings of the threads' CPU clocks.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    /// The counters that are such clocks.
    clocks: HashSet<TrackId>,
    /// The times of readings and the CPU times, in nanoseconds, by the track of the thread.
    readings: HashMap<TrackId, Vec<(i64, i64)>>,
    count: usize,
    /// The readings beyond the limit.
    pub(super) left_out: u64,
}

impl CpuTimes {
    pub(super) fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => match &track.kind {
                TrackKind::Counter(counter) if counter.builtin == CounterType::ThreadTimeNs => {
                    self.clocks.insert(track.id);
                }
                _ => {}
            },
            Item::Event(event) => self.event(event),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let duration = match event.kind {
            EventKind::Begin | EventKind::End => 0,
            EventKind::Complete { duration } => duration,
            _ => return,
        };
        let (begin, end) = (event.time, event.time.saturating_add(duration));
        // Of a complete slice, the second value is that at the end.
        let mut time = begin;
        for (counter, value) in event.extra_counters {
            if let CounterValue::Int(value) = value
                && self.clocks.contains(counter)
            {
                self.add(event.track, (time, *value));
                time = end;
            }
        }
        event.args.each(&mut |name, value| {
            let at = CLOCK_ARGUMENTS.iter().position(|of| *of == name.text);
            if let (Some(at), Value::U64(value)) = (at, value) {
                self.add(event.track, ([begin, end][at], i64::try_from(value).unwrap_or(i64::MAX)));
            }
        });
    }

    fn add(&mut self, track: TrackId, reading: (i64, i64)) {
        if self.count >= MOST_READINGS {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.readings.entry(track).or_default().push(reading);
    }

    /// Sorts the readings. Call it before the first question.
    pub(super) fn finish(&mut self) {
        self.readings.values_mut().for_each(|readings| readings.sort_unstable());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How long the thread of a track ran from `start` to `end`, if it read its clock at both.
    pub(super) fn running(&self, track: TrackId, start: i64, end: i64) -> Option<i64> {
        let readings = self.readings.get(&track)?;
        let at = |time: i64| {
            let first = readings.partition_point(|reading| reading.0 < time);
            readings.get(first).filter(|reading| reading.0 == time).map(|reading| reading.1)
        };
        Some(at(end)?.saturating_sub(at(start)?).clamp(0, end.saturating_sub(start).max(0)))
    }
}
