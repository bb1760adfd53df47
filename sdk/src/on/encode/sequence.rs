//! What a thread's sequence says in either format, written the plain way: used by the cold path.
//!
//! The hot path writes the same records; only the time in its packets is padded to a fixed length.

use std::collections::HashMap;

use hairline_formats::track_event as te;
use hairline_formats::track_event::CounterValue;
use hairline_formats::{Value, fxt, truncate_utf8};

use crate::builder::Detail;
use crate::on::base::platform::process;
pub(crate) use crate::on::base::sets::Bits;
use crate::on::base::sets::Uuids;
use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, TRACK_EVENT, registry};
use crate::on::encode::fxt::record;
use crate::on::encode::fxt::record::{Form, Record};
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::track_event::message::TIME_LEN;
use crate::on::encode::track_event::packet::{Packet, Voice};
use crate::on::encode::track_event::tracks::{Descriptions, counter_track, put_thread};
use crate::on::encode::track_event::{message, packet};
use crate::on::encode::{FXT_THREAD, MAX_NAME};
use crate::on::event::on_track::TrackRef;
use crate::on::event::owned_arguments::OwnedArguments;
use crate::on::event::track::own_uuid;
use crate::on::event::{Action, Event, Moment};

/// The counter of a thread's CPU time.
const CPU_TIME: &str = "thread_time";

/// Tracks that a sequence remembers to have described.
const MAX_TRACKS: usize = 4096;

/// One thread's sequence in one session.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) epoch: u32,
    pub(crate) number: u32,
    pub(crate) thread: process::Thread,
    /// The track of the thread.
    pub(crate) track_uuid: u64,
    pub(crate) detail: Detail,
    /// Callsites that the hot path may write.
    pub(crate) seen_callsites: Bits,
    /// Callsites whose strings the sequence has.
    pub(crate) told_callsites: Bits,
    pub(crate) seen_strings: Bits,
    /// Strings that were told as the values of arguments.
    pub(crate) seen_values: Bits,
    /// Tracks that were described, and those that are being described.
    pub(crate) tracks: Uuids,
    pub(crate) new_tracks: Vec<u64>,
    /// The last values of incremental counters, of at most [`MAX_TRACKS`].
    pub(crate) sums: HashMap<u64, CounterValue>,
    /// Log messages so far: each body has a number of its own.
    pub(crate) bodies: u64,
    /// Where packets for blobs are put together.
    pub(crate) packet: Vec<u8>,
    /// Where nested values are taken apart.
    pub(crate) nested: OwnedArguments,
}

impl Sequence {
    pub(crate) fn new(epoch: u32, number: u32, thread: process::Thread, detail: Detail) -> Self {
        Self {
            epoch,
            number,
            thread,
            track_uuid: own_uuid(),
            detail,
            seen_callsites: Bits::default(),
            told_callsites: Bits::default(),
            seen_strings: Bits::default(),
            seen_values: Bits::default(),
            tracks: own_tracks(epoch),
            new_tracks: Vec::new(),
            sums: HashMap::new(),
            bodies: 0,
            packet: Vec::new(),
            nested: OwnedArguments::default(),
        }
    }

    pub(crate) fn is_track_event(&self) -> bool {
        self.epoch & TRACK_EVENT != 0
    }

    pub(crate) fn seen_callsites(&self) -> &Bits {
        &self.seen_callsites
    }

    /// What precedes any fragment of this sequence.
    pub(crate) fn context(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.is_track_event() {
            fxt::thread_record(&mut out, FXT_THREAD, u64::from(process::id()), u64::from(self.thread.tid));
        }
        out
    }

    /// Fills in what every packet of this sequence begins with.
    pub(crate) fn set_packet_constants(&self, hot: &Hot) {
        let mut bytes = vec![0x0a, 0];
        let field = te::fields::trace_packet::TRUSTED_PACKET_SEQUENCE_ID;
        hairline_formats::proto::put_uint(&mut bytes, field, u64::from(self.number));
        let len = bytes.len();
        let packet_base = len + TIME_LEN;
        bytes[1] = packet_base as u8 - 2; // at most 12
        bytes.resize(8, 0);
        let prefix = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        hot.prefix.set(prefix);
        hot.prefix_len.set(len);
        hot.packet_base.set(packet_base as u32);
        let end = u128::from(prefix + ((message::END_MESSAGE_LEN as u64) << 8))
            | u128::from(message::END_MESSAGE) << (8 * len);
        hot.end_packet.set([end as u64, (end >> 64) as u64]);
    }

    /// The sequence's first records.
    pub(crate) fn put_start(&self, out: &mut Vec<u8>, now: u64) {
        if self.is_track_event() {
            self.put_state(out, now, false);
            self.put_thread_track(out);
        } else {
            let process = (fxt::StringRef::Inline("process"), Value::Koid(u64::from(process::id())));
            let name = fxt::StringRef::Inline(truncate_utf8(&self.thread.name, MAX_NAME));
            fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(self.thread.tid), name, &[process]);
        }
    }

    /// What follows a loss of `scopes_and_events`: in FXT an event that shows it, in TrackEvent a fresh state that
    /// says so, after which every string is told again.
    pub(crate) fn put_loss(&self, out: &mut Vec<u8>, now: u64, scopes_and_events: u64, full: bool) {
        if self.is_track_event() {
            self.put_state(out, now, true);
            self.put_thread_track(out);
        } else {
            if full {
                fxt::provider_event(out, process::id(), fxt::PROVIDER_EVENT_BUFFER_FULL);
            }
            let lost = (fxt::StringRef::Inline("lost"), Value::U64(scopes_and_events));
            fxt::event(
                out,
                &fxt::Event {
                    kind: fxt::EventKind::Instant,
                    timestamp: now,
                    thread: fxt::ThreadRef::Index(FXT_THREAD),
                    category: fxt::StringRef::Inline("hairline"),
                    name: fxt::StringRef::Inline("events lost"),
                    args: &[lost],
                    payload: None,
                },
            );
        }
    }

    /// The loss stands in the trace; a TrackEvent sequence knows no string any more.
    pub(crate) fn loss_told(&mut self) {
        if self.is_track_event() {
            self.forget_strings();
        }
    }

    /// What follows is read without what went before: nothing was told.
    pub(crate) fn forget_all(&mut self) {
        self.forget_strings();
        self.tracks = own_tracks(self.epoch);
    }

    fn forget_strings(&mut self) {
        self.seen_callsites.clear();
        self.told_callsites.clear();
        self.seen_strings.clear();
        self.seen_values.clear();
        self.sums.clear();
    }

    fn put_state(&self, out: &mut Vec<u8>, now: u64, dropped: bool) {
        let cpu_time = message::counter_uuid_on(self.track_uuid, CPU_TIME);
        let extra_counters: &[u64] = if self.detail.thread_time { &[cpu_time] } else { &[] };
        let start = te::SequenceStart {
            sequence: self.number,
            first: !dropped,
            dropped,
            track_uuid: self.track_uuid,
            extra_counters,
            timestamp_ns: now,
        };
        te::sequence_start(out, &start);
    }

    fn put_thread_track(&self, out: &mut Vec<u8>) {
        put_thread(out, self.number, self.track_uuid, &self.thread);
        if self.detail.thread_time {
            let counter = te::CounterTrack {
                builtin: te::CounterType::ThreadTimeNs,
                unit: te::Unit::TimeNs,
                ..te::CounterTrack::new(
                    message::counter_uuid_on(self.track_uuid, CPU_TIME),
                    self.track_uuid,
                    CPU_TIME,
                )
            };
            te::counter_descriptor(out, self.number, &counter);
        }
    }

    /// Whether the event is written in full, with all its strings in it.
    pub(crate) fn writes_in_full(&self, event: &Event<'_>) -> bool {
        !self.is_track_event() && record::form(event) == Form::Blob
    }

    /// An event's records. Gives the number of arguments for which they have no room.
    ///
    /// # Errors
    /// When the format has no room for values as long as these.
    pub(crate) fn put_event(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        at: &Moment,
        in_slice: bool,
    ) -> Result<u64, NoRoom> {
        if self.is_track_event() {
            self.put_packet(out, event, at, Voice::Sequence);
            return Ok(0);
        }
        if record::form(event) == Form::Record {
            let (epoch, own_track, located) = (self.epoch, self.track_uuid, self.is_located(event));
            let record = Record { epoch, voice: Voice::Sequence, own_track, in_slice, located, at };
            return record.put(out, event, &mut self.nested);
        }
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        self.put_packet(&mut packet, event, at, Voice::Full);
        fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, &packet);
        self.packet = packet;
        Ok(0)
    }

    /// The begin or the end of a slice on a track, standing for itself: with the descriptions of its tracks, its strings and
    /// its time in full. Gives the number of arguments for which it has no room.
    pub(crate) fn put_alone(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        now: u64,
    ) -> Result<u64, NoRoom> {
        let at = Moment { now, delta: 0, cpu: None };
        let event = &Event { past: Some(now), values: event.values, ..*event };
        if !self.is_track_event() && record::form(event) == Form::Record {
            let located = self.detail.source_locations && event.action == Action::Begin;
            let (epoch, own_track) = (self.epoch, self.track_uuid);
            let record = Record { epoch, voice: Voice::Full, own_track, in_slice: false, located, at: &at };
            return record.put(out, event, &mut self.nested);
        }
        let mut packets = std::mem::take(&mut self.packet);
        packets.clear();
        if event.action == Action::Begin {
            let (sequence, epoch, in_blob) = (self.number, self.epoch, !self.is_track_event());
            let out = &mut packets;
            Descriptions { out, sequence, epoch, in_blob, is_new: |_| true }.put_for(event, false);
        }
        self.put_packet(&mut packets, event, &at, Voice::Full);
        if self.is_track_event() {
            out.extend_from_slice(&packets);
        } else {
            fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, &packets);
        }
        self.packet = packets;
        Ok(0)
    }

    fn put_packet(&self, out: &mut Vec<u8>, event: &Event<'_>, at: &Moment, voice: Voice) {
        let counter = (event.action == Action::Counter && self.is_incremental(event))
            .then(|| event.values.first().and_then(message::counter_value))
            .flatten()
            .map(|value| difference(value, self.sums.get(&counter_track(event, true)).copied()));
        let location = self.is_located(event).then(|| match voice {
            Voice::Sequence => te::Location::Iid(location_iid(event.callsite)),
            Voice::Full => te::Location::At(packet::location(event.callsite)),
        });
        // Only the slices of its own thread have its CPU time.
        let cpu =
            at.cpu.filter(|_| event.track.is_none() && matches!(event.action, Action::Begin | Action::End));
        let at = &Moment { cpu, ..*at };
        let packet = Packet {
            sequence: self.number,
            voice,
            epoch: self.epoch,
            counter,
            location,
            body_iid: self.bodies + 1,
            at,
        };
        packet.put(out, event);
    }

    /// Whether the event says its place in the source.
    fn is_located(&self, event: &Event<'_>) -> bool {
        self.detail.source_locations && matches!(event.action, Action::Begin | Action::Instant)
    }

    /// The event is in the trace.
    pub(crate) fn recorded(&mut self, event: &Event<'_>) {
        event.extras.flows(self.epoch).for_each(|(flow, _)| flow.set_begun(self.epoch));
        if event.action == Action::Counter
            && self.is_incremental(event)
            && let Some(value) = event.values.first().and_then(message::counter_value)
        {
            self.sums.insert(counter_track(event, true), value);
        }
        if event.log.is_some() && self.is_track_event() {
            self.bodies += 1;
        }
    }

    /// Whether a counter's value is written as a difference: a whole number, where its callsite asks for it, on the one kind
    /// of track that only this sequence writes to. Floats would take as many bytes, and add up their errors.
    fn is_incremental(&self, event: &Event<'_>) -> bool {
        event.callsite.site().counter.incremental
            && self.is_track_event()
            && event.track.is_some_and(|track| track.uuid() == self.track_uuid)
            && !matches!(event.values.first(), Some(Value::F64(_)))
            && (self.sums.len() < MAX_TRACKS || self.sums.contains_key(&counter_track(event, true)))
    }

    /// The descriptions of the tracks that the event needs and this sequence does not have yet.
    pub(crate) fn put_tracks(&mut self, out: &mut Vec<u8>, event: &Event<'_>) {
        self.new_tracks.clear();
        if event.track.is_none() && event.action != Action::Counter {
            return;
        }
        let in_blob = self.writes_in_full(event);
        if !in_blob && !self.is_track_event() {
            return;
        }
        let incremental = self.is_incremental(event);
        let mut packets = std::mem::take(&mut self.packet);
        packets.clear();
        let (known, new) = (&self.tracks, &mut self.new_tracks);
        let is_new = |uuid| {
            let is_new = !known.contains(&uuid) && !new.contains(&uuid);
            if is_new {
                new.push(uuid);
            }
            is_new
        };
        let (sequence, epoch) = (self.number, self.epoch);
        Descriptions { out: &mut packets, sequence, epoch, in_blob, is_new }.put_for(event, incremental);
        if in_blob && !packets.is_empty() {
            fxt::blob(out, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, &packets);
        } else {
            out.extend_from_slice(&packets);
        }
        self.packet = packets;
    }

    /// What [`put_tracks`](Self::put_tracks) wrote stands in the sequence.
    pub(crate) fn tracks_told(&mut self) {
        if self.new_tracks.is_empty() {
            return;
        }
        if self.tracks.len() + self.new_tracks.len() > MAX_TRACKS {
            self.tracks.clear(); // to tell them again does no harm
        }
        self.tracks.extend(self.new_tracks.drain(..));
    }

    /// Whether the event's record says itself where it is: those of FXT do.
    pub(crate) fn describes_no_track_of(&self, event: &Event<'_>) -> bool {
        !self.is_track_event() && record::form(event) == Form::Record
    }

    /// Whether the track was described here. One on which a slice ends may have been on another thread, where it began.
    pub(crate) fn has_described(&self, track: TrackRef<'_>) -> bool {
        self.tracks.contains(&track.uuid())
    }

    /// The record of a scope's end, of at most the length that its begin kept.
    pub(crate) fn put_end(&self, out: &mut Vec<u8>, callsite: &'static Callsite, at: &Moment) {
        if self.is_track_event() {
            let cpu = at.cpu.map(u64::cast_signed);
            let end = te::Event::new(self.number, te::EventType::SliceEnd, at.delta);
            te::event(out, &te::Event { extra_counters: cpu.as_slice(), ..end });
        } else {
            // Nothing inline but the CPU time: where the strings have no index the end goes without them.
            let cpu = at.cpu.map(|cpu| (fxt::StringRef::Inline("cpu_end_ns"), Value::U64(cpu)));
            let end = fxt::Event {
                kind: fxt::EventKind::DurationEnd,
                timestamp: at.now,
                thread: fxt::ThreadRef::Index(FXT_THREAD),
                category: record::index_only(callsite.category_id()),
                name: record::index_only(callsite.name_id()),
                args: cpu.as_slice(),
                payload: None,
            };
            fxt::event(out, &end);
        }
    }
}

/// The tracks that the stream begins with, and the sequence.
fn own_tracks(epoch: u32) -> Uuids {
    if epoch & TRACK_EVENT == 0 {
        Uuids::default()
    } else {
        Uuids::from_iter([process::track_uuid(), own_uuid()])
    }
}

/// Bytes by which CPU time lengthens a scope's end, at most.
pub(crate) fn cpu_time_len(is_track_event: bool) -> i32 {
    // A tag and the longest varint; an argument with its name of 10 bytes and a word.
    if is_track_event { 11 } else { 8 + 16 + 8 }
}

/// The number of a callsite's place in the source, on every sequence.
pub(crate) fn location_iid(callsite: &'static Callsite) -> u64 {
    u64::from(callsite.serial()) + 1
}

/// The callsite whose place in the source has this number.
pub(crate) fn location_callsite(iid: u64) -> Option<&'static Callsite> {
    registry::callsite_with(u32::try_from(iid.checked_sub(1)?).ok()?)
}

/// What an incremental counter says, whose last value was `last`.
fn difference(value: CounterValue, last: Option<CounterValue>) -> CounterValue {
    #[allow(clippy::cast_precision_loss)] // a double is what the mix of both is shown as
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
