//! The counters of a trace: how many values each has, and which.

use std::sync::Arc;

use hairline_convert::{ByTrack, CounterTrack, Event, EventKind, Track, TrackId, TrackKind};
use hairline_formats::track_event::CounterValue;

/// The limit for counters. The values of further ones are counted together.
const MOST_COUNTERS: usize = 1 << 16;

/// The counters of a trace: the first 65,536 of them, and the place of each track.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The place of each track's counter, plus 1.
    places: ByTrack<u32>,
    pub(super) all: Vec<Counter>,
    /// The number of values of counters beyond the limit.
    left_out: u64,
}

/// The values of a counter, without its multiplier.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) track: TrackId,
    pub(super) name: Arc<str>,
    pub(super) about: CounterTrack,
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) last: f64,
    /// The time of the last value.
    time: i64,
}

impl Counters {
    /// Stores the description of a track, if it is that of a counter.
    pub(super) fn set(&mut self, track: &Track) {
        let TrackKind::Counter(about) = &track.kind else { return };
        let (name, about) = (Arc::clone(&track.name), (**about).clone());
        let place = *self.places.at(track.id);
        if let Some(counter) = place.checked_sub(1).and_then(|place| self.all.get_mut(place as usize)) {
            (counter.name, counter.about) = (name, about); // a track may be described again
        } else if self.all.len() < MOST_COUNTERS {
            self.all.push(Counter {
                track: track.id,
                name,
                about,
                count: 0,
                sum: 0.0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
                last: 0.0,
                time: i64::MIN,
            });
            *self.places.at(track.id) = self.all.len() as u32; // at most MOST_COUNTERS
        }
    }

    /// Adds a value. Values may come in any order; of values with one time, the later one in the trace is the
    /// last.
    pub(super) fn add(&mut self, track: TrackId, time: i64, value: f64) {
        let place = self.places.get(track).and_then(|place| place.checked_sub(1));
        let Some(counter) = place.and_then(|place| self.all.get_mut(place as usize)) else {
            self.left_out += 1;
            return;
        };
        counter.count += 1;
        counter.sum += value;
        (counter.min, counter.max) = (counter.min.min(value), counter.max.max(value));
        if time >= counter.time {
            (counter.last, counter.time) = (value, time);
        }
    }

    /// Adds the values of an event.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if let EventKind::Counter(value) = event.kind {
            self.add(event.track, event.time, double(value));
        }
        for (track, value, passed) in event.counter_values() {
            self.add(track, event.time.saturating_add(passed), double(value));
        }
    }

    /// The number of values that belong to no row.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[allow(clippy::cast_precision_loss)] // as in trace_processor, whose values are all floating point
fn double(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
