//! From what a packet says to the trace's own time.
//!
//! ```text
//! timestamp ── x multiplier, + the last one if it counts from that ──> the clock's time ── the nearest snapshot ──> trace time
//! ```
//!
//! Clocks 64 to 127 are of a sequence, the others of the trace.

use std::collections::HashMap;

use hairline_formats::DecodeError;
use hairline_formats::track_event::{ClockReading, ClockReadings, fields::clock};

use crate::model::Clock;
use crate::track_event::read::sequence::Sequence;

/// The snapshots that are kept of a clock. Of those that are left out, the nearest one that is there does as well.
const MOST_SNAPSHOTS: usize = 64;

#[derive(Debug, Default)]
struct ClockState {
    multiplier: u64,
    is_incremental: bool,
    /// The clock's time of the last packet, or of the snapshot.
    last: u64,
    /// What the clock and the trace's clock showed at one moment, by the former.
    snapshots: Vec<(u64, i64)>,
}

/// What is known of clocks.
#[derive(Debug)]
pub(super) struct Clocks {
    /// That of the trace's own time.
    primary: u32,
    known: HashMap<(u32, u32), usize>,
    states: Vec<ClockState>,
    /// What builtin clocks showed, the trace's first, in the last snapshot of several of them.
    readings: Vec<Clock>,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { primary: clock::BOOTTIME, known: HashMap::new(), states: Vec::new(), readings: Vec::new() }
    }
}

/// The number under which a clock is known: whose it is, and its id.
fn key(sequence: u32, id: u32) -> (u32, u32) {
    if (64..128).contains(&id) { (sequence, id) } else { (0, id) }
}

impl Clocks {
    /// What the trace's builtin clocks showed at the last snapshot.
    pub(super) fn readings(&self) -> &[Clock] {
        &self.readings
    }

    /// Takes note of a snapshot; says whether it tells of several builtin clocks.
    pub(super) fn snapshot(
        &mut self,
        sequence: u32,
        readings: ClockReadings<'_>,
    ) -> Result<bool, DecodeError> {
        if let Some(primary) = readings.primary().filter(|_| self.known.is_empty()) {
            self.primary = primary;
        }
        let at = |reading: &ClockReading| reading.timestamp.wrapping_mul(reading.unit_multiplier_ns);
        // When it was: by the trace's own clock if that is there, else by the first one that is known already.
        let mut now = None;
        for reading in readings.clone() {
            let reading = reading?;
            if reading.clock_id == self.primary {
                now = Some(at(&reading).cast_signed());
            } else if now.is_none() && !reading.is_incremental {
                now = self.trace_time(sequence, reading.clock_id, at(&reading));
            }
        }
        let Some(now) = now else {
            return Ok(false);
        };
        let mut others = Vec::new();
        for reading in readings {
            let reading = reading?;
            let time = at(&reading);
            if reading.clock_id < 64 && reading.clock_id != self.primary {
                others.push(Clock { id: reading.clock_id, time });
            }
            let place = *self.known.entry(key(sequence, reading.clock_id)).or_insert(self.states.len());
            if place == self.states.len() {
                self.states.push(ClockState::default());
            }
            let state = &mut self.states[place];
            (state.multiplier, state.is_incremental, state.last) =
                (reading.unit_multiplier_ns, reading.is_incremental, time);
            if state.snapshots.len() == MOST_SNAPSHOTS {
                state.snapshots.drain(..MOST_SNAPSHOTS / 2);
            }
            let place = state.snapshots.partition_point(|(clock, _)| *clock < time);
            match state.snapshots.get_mut(place) {
                Some(same) if same.0 == time => same.1 = now,
                _ => state.snapshots.insert(place, (time, now)),
            }
        }
        let tells = !others.is_empty();
        if tells {
            self.readings.clear();
            self.readings.push(Clock { id: self.primary, time: now.cast_unsigned() });
            self.readings.append(&mut others);
        }
        Ok(tells)
    }

    /// The time of a packet of the sequence, on a clock or the sequence's own. None: nothing is known of that.
    #[inline]
    pub(super) fn time(&mut self, of: &mut Sequence, id: Option<u32>, timestamp: u64) -> Option<i64> {
        let id = id.or(of.clock).unwrap_or(self.primary);
        if id == self.primary {
            return Some(timestamp.cast_signed());
        }
        let place = match of.last_clock {
            Some((last, place)) if last == id => place,
            _ => {
                let place = *self.known.get(&key(of.number, id))?;
                of.last_clock = Some((id, place));
                place
            }
        };
        let state = &mut self.states[place];
        let mut own = timestamp.wrapping_mul(state.multiplier);
        if state.is_incremental {
            own = own.wrapping_add(state.last);
            state.last = own;
        }
        state.trace_time(own)
    }

    fn trace_time(&self, sequence: u32, id: u32, own: u64) -> Option<i64> {
        self.states[*self.known.get(&key(sequence, id))?].trace_time(own)
    }
}

impl ClockState {
    fn trace_time(&self, own: u64) -> Option<i64> {
        let (clock, trace) = match self.snapshots.last()? {
            last if last.0 <= own => *last,
            _ => {
                let place = self.snapshots.partition_point(|(clock, _)| *clock <= own);
                self.snapshots[place.saturating_sub(1)]
            }
        };
        Some(trace.wrapping_add(own.wrapping_sub(clock).cast_signed()))
    }
}
