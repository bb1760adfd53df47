//! Timestamps to trace time.
//!
//! ```text
//! timestamp ─ x multiplier, + the last if incremental ─> clock time ─ nearest snapshot ─> trace time
//! ```
//!
//! Clocks 64 to 127 belong to a packet sequence, the others to the trace. A timestamp is a signed number, as
//! in importers: the event of one above 2^63 is before time 0. A sum beyond 63 bits is no time.

use hairline_formats::DecodeError;
use hairline_formats::track_event::{ClockReading, ClockReadings, SequenceId, fields::clock};

use crate::track_event::read::sequence::Sequence;
use crate::{Clock, Index, Report};

/// The limit for snapshots of a clock before its latest. Without a dropped snapshot, the nearest other one is
/// used.
const MOST_EARLIER: usize = 63;

/// What reports say of readings that are negative, or beyond 63 bits in nanoseconds.
const NO_TIME: &str = "readings of clocks left out: they are beyond 292 years";

/// The clock's time and the trace time of a snapshot.
type Snapshot = (i64, i64);

/// There may be millions: a thread may have a sequence of its own, whose clock has one snapshot.
#[derive(Debug)]
struct ClockState {
    key: ClockKey,
    multiplier: i64,
    is_incremental: bool,
    /// The clock's time at the last packet or snapshot.
    last: i64,
    /// The snapshot of the latest time of the clock.
    latest: Snapshot,
    /// Those before it, sorted by the clock's time.
    #[allow(clippy::box_collection)] // most clocks have none, and a box has a third of a list's size
    earlier: Option<Box<Vec<Snapshot>>>,
}

/// The clocks of a trace.
#[derive(Debug)]
pub(super) struct Clocks {
    /// The clock of the trace time.
    primary: u32,
    states: Vec<ClockState>,
    /// The indices of the clocks in `states`, by their keys.
    places: Index,
    /// The latest snapshot of several builtin clocks, the trace's clock first.
    readings: Vec<Clock>,
}

impl Default for Clocks {
    fn default() -> Self {
        let (states, places, readings) = (Vec::new(), Index::default(), Vec::new());
        Self { primary: clock::BOOTTIME, states, places, readings }
    }
}

/// Identifies a clock: its packet sequence (0 for a clock of the trace), and its id.
pub(super) type ClockKey = (SequenceId, u32);

pub(super) fn key(sequence: SequenceId, id: u32) -> ClockKey {
    if (64..128).contains(&id) { (sequence, id) } else { (SequenceId(0), id) }
}

/// A reading in nanoseconds of its clock. Returns `None` if it has more than 63 bits.
fn at(reading: &ClockReading) -> Option<i64> {
    i64::try_from(reading.unit_multiplier_ns).ok()?;
    i64::try_from(reading.timestamp.checked_mul(reading.unit_multiplier_ns)?).ok()
}

impl Clocks {
    /// The latest readings of the builtin clocks.
    pub(super) fn readings(&self) -> &[Clock] {
        &self.readings
    }

    /// Stores a snapshot. Returns whether it has several builtin clocks.
    pub(super) fn snapshot(
        &mut self,
        sequence: SequenceId,
        readings: ClockReadings<'_>,
        report: &mut Report,
    ) -> Result<bool, DecodeError> {
        let moment = self.moment(sequence, readings.clone())?;
        let mut others = Vec::new();
        for reading in readings {
            let reading = reading?;
            let Some(time) = at(&reading) else {
                report.add_defects(NO_TIME, 1);
                continue;
            };
            let Some(now) = moment else { continue };
            if reading.clock_id < 64 && reading.clock_id != self.primary {
                others.push(Clock { id: reading.clock_id, time: time.unsigned_abs() });
            }
            self.set(key(sequence, reading.clock_id), &reading, (time, now));
        }
        // The trace's clock may be before 0 where another one says the moment.
        match moment.map(u64::try_from) {
            Some(Ok(time)) if !others.is_empty() => {
                self.readings.clear();
                self.readings.push(Clock { id: self.primary, time });
                self.readings.append(&mut others);
                Ok(true)
            }
            Some(Err(_)) => {
                report.add_defects(NO_TIME, others.len() as u64);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Stores the reading of one clock in a snapshot that is still to come. The other clocks are not that far
    /// yet: increments count from where they are.
    pub(super) fn reading_ahead(
        &mut self,
        sequence: SequenceId,
        readings: ClockReadings<'_>,
        wanted: ClockKey,
    ) -> Result<(), DecodeError> {
        if let Some(now) = self.moment(sequence, readings.clone())? {
            for reading in readings {
                let reading = reading?;
                if key(sequence, reading.clock_id) == wanted
                    && let Some(time) = at(&reading)
                {
                    self.set(wanted, &reading, (time, now));
                }
            }
        }
        Ok(())
    }

    /// The trace time of a snapshot: from the trace's clock, or from the first clock with a known snapshot.
    fn moment(
        &mut self,
        sequence: SequenceId,
        readings: ClockReadings<'_>,
    ) -> Result<Option<i64>, DecodeError> {
        if let Some(primary) = readings.primary().filter(|_| self.states.is_empty()) {
            self.primary = primary;
        }
        let mut now = None;
        for reading in readings {
            let reading = reading?;
            let Some(time) = at(&reading) else { continue };
            if reading.clock_id == self.primary {
                now = Some(time);
            } else if now.is_none() && !reading.is_incremental {
                now = self.trace_time(sequence, reading.clock_id, time);
            }
        }
        Ok(now)
    }

    fn set(&mut self, clock: ClockKey, reading: &ClockReading, (time, now): (i64, i64)) {
        let snapshot = (time, now);
        let state = match self.place(clock) {
            Some(place) => &mut self.states[place as usize],
            None => {
                let place = self.states.len() as u32; // a clock has several bytes of input
                let (multiplier, is_incremental, earlier) = (0, false, None);
                let new =
                    ClockState { key: clock, multiplier, is_incremental, last: 0, latest: snapshot, earlier };
                self.states.push(new);
                self.places.insert(place, |place| self.states[place as usize].key);
                &mut self.states[place as usize]
            }
        };
        state.multiplier = i64::try_from(reading.unit_multiplier_ns).unwrap_or(i64::MAX);
        (state.is_incremental, state.last) = (reading.is_incremental, time);
        state.add(snapshot);
    }

    /// The index of a clock in `states`.
    fn place(&self, clock: ClockKey) -> Option<u32> {
        self.places.find(&clock, |place| self.states[place as usize].key)
    }

    /// The trace time of a packet, on clock `id` or on the sequence's default clock. Returns `None` for an
    /// unknown clock, and for a time of more than 63 bits.
    #[inline]
    pub(super) fn time(&mut self, of: &mut Sequence, id: Option<u32>, timestamp: u64) -> Option<i64> {
        self.of(of, id)?.time(timestamp)
    }

    /// The clock `id`, or the sequence's default clock. Returns `None` for an unknown clock.
    #[inline]
    pub(super) fn of(&mut self, of: &mut Sequence, id: Option<u32>) -> Option<ClockInUse<'_>> {
        let id = id.or(of.clock).unwrap_or(self.primary);
        if id == self.primary {
            return Some(ClockInUse(None));
        }
        let index = match of.last_clock {
            Some((last, index)) if last == id => index as usize,
            _ => {
                let place = self.place(key(of.number, id))?;
                of.last_clock = Some((id, place));
                place as usize
            }
        };
        Some(ClockInUse(Some(&mut self.states[index])))
    }

    /// The clock that a packet needs and that has no snapshot yet.
    pub(super) fn missing(&self, of: &Sequence, id: Option<u32>) -> Option<ClockKey> {
        let key = key(of.number, id.or(of.clock).filter(|id| *id != self.primary)?);
        self.place(key).is_none().then_some(key)
    }

    fn trace_time(&self, sequence: SequenceId, id: u32, own: i64) -> Option<i64> {
        self.states[self.place(key(sequence, id))? as usize].trace_time(own)
    }
}

/// A clock of packets, or the clock of the trace time.
pub(super) struct ClockInUse<'a>(Option<&'a mut ClockState>);

impl ClockInUse<'_> {
    /// The trace time of a packet. Returns `None` if it has more than 63 bits.
    #[inline(always)] // for every event
    pub(super) fn time(&mut self, timestamp: u64) -> Option<i64> {
        let timestamp = timestamp.cast_signed();
        let Some(state) = &mut self.0 else { return Some(timestamp) };
        let mut own = timestamp.checked_mul(state.multiplier)?;
        if state.is_incremental {
            own = own.checked_add(state.last)?;
        }
        let time = state.trace_time(own)?;
        if state.is_incremental {
            state.last = own; // only of a time: without one, the caller asks again
        }
        Some(time)
    }
}

impl ClockState {
    /// Adds a snapshot. One with the clock's time of another replaces that.
    fn add(&mut self, snapshot: Snapshot) {
        if snapshot.0 == self.latest.0 {
            self.latest = snapshot;
            return;
        }
        let earlier = self.earlier.get_or_insert_default();
        let added =
            if snapshot.0 > self.latest.0 { std::mem::replace(&mut self.latest, snapshot) } else { snapshot };
        if earlier.len() == MOST_EARLIER {
            earlier.drain(..=MOST_EARLIER / 2);
        }
        let place = earlier.partition_point(|(clock, _)| *clock < added.0);
        match earlier.get_mut(place) {
            Some(same) if same.0 == added.0 => *same = added,
            _ => earlier.insert(place, added),
        }
    }

    #[inline]
    fn trace_time(&self, own: i64) -> Option<i64> {
        let (clock, trace) = if self.latest.0 <= own { self.latest } else { self.snapshot_before(own) };
        trace.checked_add(own.checked_sub(clock)?)
    }

    /// The last snapshot before a time that is before the latest, or the first of all.
    #[cold]
    fn snapshot_before(&self, own: i64) -> Snapshot {
        let earlier = self.earlier.as_deref().map_or(&[][..], |earlier| earlier);
        let place = earlier.partition_point(|(clock, _)| *clock <= own);
        earlier.get(place.saturating_sub(1)).copied().unwrap_or(self.latest)
    }
}
