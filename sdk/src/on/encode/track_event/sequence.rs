//! The sequence of one thread, as TrackEvent packets: Perfetto's packet sequence.

use hairline_formats::Value;
use hairline_formats::track_event as te;
use hairline_formats::track_event::{CounterValue, SequenceId, TrackUuid};

use crate::builder::Detail;
use crate::on::base::memory::{Bytes, Table};
use crate::on::base::platform::process;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::encode::begin::{Begin, Note};
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::sequence::{Sequence, State, Tracks};
use crate::on::encode::track_event::location::{location_field, location_iid};
use crate::on::encode::track_event::packet::{Interning, Packet, cpu_time};
use crate::on::encode::track_event::repeat::{BeginTime, RepeatedPackets};
use crate::on::encode::track_event::tracks::{Descriptions, PlainIntervals, counter_track, put_thread};
use crate::on::encode::track_event::{message, strings};
use crate::on::event::{Action, Event, Moment};

/// The counter of a thread's CPU time.
const CPU_TIME: &str = "thread_time";

/// The most incremental counters of a sequence. The others are written as values.
const MAX_SUMS: usize = 4096;

/// The last value of an incremental counter.
#[derive(Debug)]
struct Sum {
    track: TrackUuid,
    value: CounterValue,
}

/// One thread's sequence of TrackEvent packets.
#[derive(Debug)]
pub(crate) struct TrackEventSequence {
    pub(crate) state: State,
    /// The last values of incremental counters, by their track: at most [`MAX_SUMS`].
    sums: Table<Sum>,
    /// Log messages so far. The body of each has an interned id of its own.
    bodies: u64,
    repeated: RepeatedPackets,
}

impl TrackEventSequence {
    pub(crate) fn new(epoch: Epoch, number: SequenceId, thread: process::Thread, detail: Detail) -> Self {
        let mut state = State::new(epoch, number, thread, detail);
        state.tracks = tracks_at_start(&state);
        Self { state, sums: Table::new(), bodies: 0, repeated: RepeatedPackets::default() }
    }

    fn forget_strings(&mut self) {
        self.state.forget_strings();
        self.sums.clear();
    }

    /// Writes the packet that starts the sequence's incremental state, and the track of the thread.
    fn put_state(&self, out: &mut Bytes, now: u64, after: After) {
        let State { number: sequence, track_uuid, detail, ref thread, .. } = self.state;
        let cpu_time = message::counter_uuid_on(track_uuid, CPU_TIME);
        let start = te::SequenceStart {
            sequence,
            first: after == After::Nothing,
            dropped: after == After::Loss,
            track_uuid,
            extra_counters: if detail.thread_time { &[cpu_time] } else { &[] },
            timestamp_ns: now,
        };
        te::sequence_start(out, &start);
        put_thread(out, sequence, track_uuid, thread);
        if detail.thread_time {
            let counter = te::CounterTrack {
                builtin: te::CounterType::ThreadTimeNs,
                unit: te::Unit::TimeNs,
                ..te::CounterTrack::new(cpu_time, track_uuid, CPU_TIME)
            };
            te::counter_descriptor(out, sequence, &counter);
        }
    }

    fn body_iid(&self) -> u64 {
        self.bodies + 1
    }

    /// Whether a counter's value is written as a difference. Its callsite asks for it, its value is an
    /// integer, and it is on the track of this thread, which no other sequence writes to. Differences of
    /// floats would take as many bytes as floats, and add up their errors.
    fn is_incremental(&self, event: &Event<'_>) -> bool {
        event.callsite.site().counter.incremental
            && event.track.is_some_and(|track| track.uuid() == self.state.track_uuid)
            && !matches!(event.values.first(), Some(Value::F64(_)))
            && (self.sums.len() < MAX_SUMS || self.last_of(counter_track(event, true)).is_some())
    }

    /// The last value of an incremental counter.
    fn last_of(&self, track: TrackUuid) -> Option<CounterValue> {
        self.sums.get(track.0, |sum| sum.track == track).map(|sum| sum.value)
    }

    /// The value of an incremental counter.
    fn sum(&self, event: &Event<'_>) -> Option<CounterValue> {
        let is_incremental = event.action == Action::Counter && self.is_incremental(event);
        is_incremental.then(|| event.values.first().and_then(message::counter_value)).flatten()
    }
}

impl Sequence for TrackEventSequence {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Nothing: each packet names its sequence.
    fn context(&self) -> Bytes {
        Bytes::new()
    }

    /// A tag and the longest varint.
    fn cpu_time_len(&self) -> i32 {
        11
    }

    /// The incremental state, and the track of the thread.
    fn put_start(&self, out: &mut Bytes, now: u64) {
        self.put_state(out, now, After::Nothing);
    }

    /// A new incremental state, marked as the start after dropped packets.
    fn put_loss(&self, out: &mut Bytes, now: u64, _lost: u64, _found_full: bool) {
        self.put_state(out, now, After::Loss);
    }

    /// The new incremental state has no strings.
    fn set_loss_written(&mut self) {
        self.forget_strings();
    }

    fn forget_all(&mut self) {
        self.forget_strings();
        self.state.tracks = tracks_at_start(&self.state);
    }

    fn is_self_contained(&self, _event: &Event<'_>) -> bool {
        false
    }

    fn put_strings(&self, out: &mut Bytes, callsite: &'static Callsite, which: Option<usize>) {
        if !self.state.written_callsites.contains(callsite.serial()) {
            strings::put(out, &self.state, callsite, which);
        }
    }

    fn string_count(&self, callsite: &'static Callsite) -> usize {
        strings::count(callsite)
    }

    fn set_strings_written(&mut self, hot: &Hot, callsite: &'static Callsite) {
        self.state.written_callsites.insert(callsite.serial());
        if callsite.has_constants() {
            self.state.seen_callsites.insert(callsite.serial());
            let field = location_field(callsite).filter(|_| self.state.detail.source_locations);
            field.into_iter().for_each(|field| callsite.set_location_field(field));
            hot.set_seen(callsite.serial(), field.is_some());
        }
    }

    fn put_values(&self, out: &mut Bytes, event: &Event<'_>) {
        strings::put_values(out, &self.state, event, self.body_iid());
    }

    fn put_tracks(&mut self, out: &mut Bytes, event: &Event<'_>) {
        self.state.tracks.clear_new();
        if event.track.is_none() && event.action != Action::Counter {
            return;
        }
        let incremental = self.is_incremental(event);
        let by = self.state.describer();
        let is_new = |uuid| self.state.tracks.add(uuid);
        Descriptions { out, by, plain_intervals: PlainIntervals::Tracks, is_new }.put_for(event, incremental);
    }

    fn describes_no_track_of(&self, _event: &Event<'_>) -> bool {
        false
    }

    fn put_event(
        &mut self,
        out: &mut Bytes,
        event: &Event<'_>,
        at: &Moment,
        _in_slice: bool,
    ) -> Result<u64, NoRoom> {
        let last = || self.last_of(counter_track(event, true));
        let located = self.state.is_located(event);
        let packet = Packet {
            sequence: self.state.number,
            interning: Interning::Interned,
            counter: self.sum(event).map(|value| difference(value, last())),
            location: located.then(|| te::Location::Iid(location_iid(event.callsite))),
            body_iid: self.body_iid(),
            cpu: cpu_time(event, at),
            at,
        };
        packet.put(out, event);
        Ok(0)
    }

    fn put_self_contained(&mut self, out: &mut Bytes, event: &Event<'_>, now: u64) -> Result<u64, NoRoom> {
        let at = Moment::alone(now, event.extras.new_flows(self.state.epoch).0);
        let event = &Event { past: Some(now), values: event.values, ..*event };
        if event.action == Action::Begin {
            let by = self.state.describer();
            let (plain_intervals, out) = (PlainIntervals::Tracks, &mut *out);
            Descriptions { out, by, plain_intervals, is_new: |_| true }.put_for(event, false);
        }
        Packet::self_contained(&self.state, event, &at).put(out, event);
        Ok(0)
    }

    fn set_event_written(&mut self, event: &Event<'_>) {
        if let Some(value) = self.sum(event) {
            let track = counter_track(event, true);
            match self.sums.get_mut(track.0, |sum| sum.track == track) {
                Some(sum) => sum.value = value,
                None => self.sums.insert(track.0, Sum { track, value }),
            }
        }
        if event.log.is_some() {
            self.bodies += 1;
        }
    }

    fn put_end(&self, out: &mut Bytes, _callsite: &'static Callsite, at: &Moment) {
        let cpu = at.cpu.map(u64::cast_signed);
        let end = te::Event::new(self.state.number, te::EventType::SliceEnd, at.delta);
        te::event(out, &te::Event { extra_counters: cpu.as_slice(), ..end });
    }

    fn note_of_begin(&self, _event: &Event<'_>, now: u64) -> Note {
        BeginTime(now).into()
    }

    fn repeat_begins(&mut self, out: &mut Bytes, chunk: &[u8], begins: &mut [Begin], room: usize) {
        self.repeated.repeat(out, &self.state, chunk, begins, room);
    }
}

/// The cause of a new incremental state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The sequence or its chunk starts.
    Nothing,
    Loss,
}

/// The tracks that the stream and the sequence describe at their start.
fn tracks_at_start(state: &State) -> Tracks {
    Tracks::with([process::track_uuid(), state.track_uuid])
}

/// The increment of a counter whose last value was `last`.
fn difference(value: CounterValue, last: Option<CounterValue>) -> CounterValue {
    #[allow(clippy::cast_precision_loss)] // readers show a mix of integers and floats as a double
    let float = |v: CounterValue| match v {
        CounterValue::Int(v) => v as f64,
        CounterValue::Double(v) => v,
    };
    let Some(last) = last else { return value };
    let whole = match (value, last) {
        (CounterValue::Int(value), CounterValue::Int(last)) => value.checked_sub(last),
        _ => None,
    };
    whole.map_or_else(|| CounterValue::Double(float(value) - float(last)), CounterValue::Int)
}
