//! Reads packets into the state.

use hairline_formats::DecodeError;
use hairline_formats::proto::{FieldValue, Fields, put_bytes, put_message, put_uint};
use hairline_formats::track_event::fields::{
    clock, process_descriptor, sequence_flags, thread_descriptor, trace, trace_packet, track_descriptor,
};
use hairline_formats::track_event::{
    Correlation, CounterValue, EventType, Location, Name, Packet, PacketData, SystemInfo, TaskStateEvent,
    TrackEvent, TrackUuid,
};

use crate::track_event::read::ahead::with_description;
use crate::track_event::read::current::TextRef;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::sequence::OwnedLocation;
use crate::track_event::read::state::State;
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::InternedText;
use crate::track_event::read::tracks::StateChange;
use crate::{Context, EventKind, Loss, Report};

/// Importers drop them.
const NO_TRACK: &str = "legacy events without a track, shown on the default track";

/// As in importers, a state that is set again lasts on, and an end of a state has only its time.
const NO_BEGIN: &str = "arguments and details of events that begin no state, left out";

/// The ids that follow are those of clocks.
const NO_CLOCK: &str = "events left out: no clock snapshot joins their clock to the trace's";

/// The field of `FtraceEventBundle`.
const FTRACE_EVENTS: u32 = 1;

impl State {
    /// Reads a packet: updates the state, and queues its items.
    pub(super) fn packet(&mut self, packet: &Packet<'_>, context: &mut Context) -> Result<(), DecodeError> {
        let Some(index) = self.sequence(packet.sequence) else {
            self.report.add_defects("packets of too many sequences", 1);
            return Ok(());
        };
        let sequence = &mut self.sequences[index];
        if packet.flags & sequence_flags::CLEARED != 0 {
            sequence.clear();
        } else if packet.dropped {
            sequence.is_valid = false;
        }
        let is_known = packet.flags & sequence_flags::NEEDS == 0 || sequence.is_valid;
        if is_known {
            if let Some(defaults) = &packet.defaults {
                sequence.set_defaults(defaults)?;
            }
            sequence.intern(packet, &mut self.texts, context, &mut self.report)?;
            sequence.intern_stacks(packet, &mut self.report)?;
        }
        if let Some(PacketData::Clocks(readings)) = &packet.data
            && self.clocks.snapshot(packet.sequence, readings.clone(), &mut self.report)?
        {
            self.pending.push_back(Pending::Clocks);
        }
        let time = match packet.timestamp {
            Some(timestamp) if is_known => self.time(index, packet.clock_id, timestamp)?,
            _ => None,
        };
        if packet.dropped && !packet.first {
            self.loss(index, time, context)?;
        }
        self.report.add_many("unknown fields", u64::from(packet.skipped));
        match &packet.data {
            None
            | Some(PacketData::Clocks(_) | PacketData::SynchronizationMarker | PacketData::SessionEnd) => {
                Ok(())
            }
            Some(_) if !is_known => {
                self.report.add_defects("packets that depend on missing packets", 1);
                Ok(())
            }
            Some(data) => self.data(index, data, packet, time, context),
        }
    }

    /// Queues a loss: packets of this sequence are missing.
    fn loss(&mut self, index: usize, time: Option<i64>, context: &mut Context) -> Result<(), DecodeError> {
        let track = Some(self.sequences[index].track_of(None)).filter(|uuid| *uuid != TrackUuid(0));
        let track = track.map(|uuid| self.track(uuid, context)).transpose()?;
        let track = track.map(|index| self.tracks.get(index).id());
        self.pending.push_back(Pending::Loss(Loss { track, time, events: 0 }));
        Ok(())
    }

    fn data(
        &mut self,
        index: usize,
        data: &PacketData<'_>,
        packet: &Packet<'_>,
        time: Option<i64>,
        context: &mut Context,
    ) -> Result<(), DecodeError> {
        match data {
            PacketData::Event(event) => {
                let is_old = event.old_time.is_some();
                let clock_id = if is_old { Some(clock::MONOTONIC) } else { packet.clock_id };
                let old_time = event.old_time.and_then(|time| self.sequences[index].old_time(time));
                let time = match old_time {
                    Some(time) => self.time(index, clock_id, time)?,
                    None => time.filter(|_| !is_old),
                };
                let Some(time) = time else {
                    if is_old && old_time.is_none() {
                        let what = "events left out: the time since which theirs counts is not known";
                        self.report.add_defects(what, 1);
                    } else if packet.timestamp.is_none() && !is_old {
                        self.report.add_defects("events left out: they have no time", 1);
                    } else if let Some((_, clock)) = self.clocks.missing(&self.sequences[index], clock_id) {
                        self.report.add_undefined(NO_CLOCK, u64::from(clock));
                    } else {
                        self.report.add_defects("events left out: their time is beyond 292 years", 1);
                    }
                    return Ok(());
                };
                self.current.time = time;
                self.take_event(index, event, context)?;
            }
            PacketData::Track(track) => {
                if let (Some(thread), Some(uuid)) = (&track.thread, track.uuid) {
                    self.sequences[index].set_thread(uuid, thread);
                }
                let (texts, pending) = (&mut self.texts, &mut self.pending);
                self.tracks.describe(track, texts, context, pending, &mut self.report)?;
            }
            PacketData::Attributes(_) => self.foreign(trace_packet::TRACE_ATTRIBUTES, packet),
            PacketData::TraceUuid(uuid) => self.pending.push_back(Pending::Uuid(*uuid)),
            PacketData::System(system) => self.system(system),
            PacketData::Processes(processes) => {
                for process in processes.clone() {
                    self.tracks.describe_process(&process?, context, &mut self.pending, &mut self.report)?;
                }
                let mut has_threads = false;
                for thread in processes.threads() {
                    has_threads = true;
                    let thread = thread?;
                    self.scheduler.in_tree(&thread);
                    self.tracks.describe_thread(&thread, context, &mut self.pending, &mut self.report);
                }
                // Threads without a track are in other packets, which are copied too.
                if has_threads && self.copy(packet) {
                    self.pending.push_back(Pending::Copied);
                }
            }
            PacketData::Stats(stats) if stats.events_lost > self.lost => {
                let events = stats.events_lost - self.lost;
                self.lost = stats.events_lost;
                self.pending.push_back(Pending::Loss(Loss { events, ..Loss::default() }));
            }
            PacketData::TaskState(event) => self.task_state(event, packet, time),
            PacketData::Other { field: FTRACE_EVENTS, bytes, .. } => self.bundle(bytes, packet)?,
            PacketData::Other { field: trace_packet::THREAD_DESCRIPTOR, bytes, .. } => {
                self.old_descriptor(Some(index), track_descriptor::THREAD, bytes, context)?;
            }
            PacketData::Other { field: trace_packet::PROCESS_DESCRIPTOR, bytes, .. } => {
                self.old_descriptor(None, track_descriptor::PROCESS, bytes, context)?;
            }
            PacketData::Sample(sample) => self.sample(index, sample, time),
            PacketData::Symbols(symbols) => self.symbols(symbols)?,
            PacketData::HeapDumps(dumps) => self.heap_dumps(index, dumps, packet, time)?,
            PacketData::Other { field, .. } => self.foreign(*field, packet),
            _ => {}
        }
        Ok(())
    }

    /// Reads the descriptor of a process, or of a sequence's thread, that is not in that of a track, as older
    /// writers have it.
    fn old_descriptor(
        &mut self,
        sequence: Option<usize>,
        field: u32,
        bytes: &[u8],
        context: &mut Context,
    ) -> Result<(), DecodeError> {
        let number = |number: u32| {
            let fields = Fields::new(bytes, 0).map_while(Result::ok);
            let values = fields.filter_map(|field| match field.value {
                FieldValue::Varint(value) if field.number == number => Some(value),
                _ => None,
            });
            values.last().unwrap_or(0)
        };
        let tid = if field == track_descriptor::THREAD { number(thread_descriptor::TID) } else { 0 };
        let pid = number(process_descriptor::PID); // that of a thread has the same field
        let uuid = ((pid << 32 ^ tid) << 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut packet = Vec::new();
        put_message(&mut packet, trace::PACKET, |packet| {
            put_message(packet, trace_packet::TRACK_DESCRIPTOR, |descriptor| {
                put_uint(descriptor, track_descriptor::UUID, uuid);
                put_bytes(descriptor, field, bytes);
            });
        });
        let Self { tracks, texts, pending, report, sequences, .. } = self;
        with_description(&packet, |track| {
            if let (Some(index), Some(thread)) = (sequence, &track.thread) {
                sequences[index].set_thread(TrackUuid(uuid), thread);
            }
            tracks.describe(track, texts, context, pending, report)
        })
    }

    fn system(&mut self, system: &SystemInfo<'_>) {
        let words = [system.sysname, system.release, system.version, system.machine];
        self.system = words.map(str::to_owned);
        system.tracer.clone_into(&mut self.writer);
        self.pending.push_back(Pending::System);
    }

    /// Queues the change of a thread's state.
    fn task_state(&mut self, event: &TaskStateEvent<'_>, packet: &Packet<'_>, time: Option<i64>) {
        let Some(time) = time else {
            self.report.add_defects("thread states left out: their time is unknown", 1);
            return;
        };
        self.scheduler.task_state(event, time);
        self.scheduling(packet);
    }

    /// Queues the changes of thread states in a bundle of ftrace events.
    fn bundle(&mut self, bytes: &[u8], packet: &Packet<'_>) -> Result<(), DecodeError> {
        if !self.scheduler.bundle(bytes)? || self.scheduler.changes.is_empty() {
            self.foreign(FTRACE_EVENTS, packet);
            return Ok(());
        }
        if self.scheduler.is_lossy {
            self.pending.push_back(Pending::Loss(Loss::default()));
        }
        self.scheduling(packet);
        Ok(())
    }

    fn scheduling(&mut self, packet: &Packet<'_>) {
        let malformed = self.scheduler.malformed;
        if malformed > 0 {
            self.report.add_defects("thread states left out: they are malformed", malformed);
        }
        self.copy(packet);
        if !self.scheduler.changes.is_empty() {
            self.pending.push_back(Pending::Scheduling);
        }
    }

    /// Stores a packet, if it does not depend on the state of its sequence. Returns whether it does not.
    fn copy(&mut self, packet: &Packet<'_>) -> bool {
        self.foreign.clear();
        let is_free = packet.flags & sequence_flags::NEEDS == 0 && packet.clock_id.is_none_or(|id| id < 64);
        if is_free {
            self.foreign.extend_from_slice(packet.bytes());
        }
        is_free
    }

    /// Queues a packet that other formats cannot express, without its bytes if it depends on the state of its
    /// sequence.
    pub(super) fn foreign(&mut self, field: u32, packet: &Packet<'_>) {
        let what = match field {
            FTRACE_EVENTS => "bundles of ftrace events",
            7 | 9 => "statistics of the system",
            33 => "configurations of tracing",
            trace_packet::PROFILE_PACKET | 54 | 135 => "profiles",
            69 => "events of the tracing service",
            trace_packet::TRACE_ATTRIBUTES => "attributes of the trace",
            _ => "packets of other kinds",
        };
        self.copy(packet);
        self.pending.push_back(Pending::Foreign(what));
    }

    fn take_event(
        &mut self,
        index: usize,
        event: &TrackEvent<'_>,
        context: &mut Context,
    ) -> Result<(), DecodeError> {
        self.report.add_many("unknown fields", u64::from(event.skipped));
        let mut skipped = 0;
        let legacy = event.legacy(&mut skipped)?;
        self.report.add_many("unknown fields", u64::from(skipped));
        let sequence = &self.sequences[index];
        let uuid = sequence.track_of(event.track_uuid);
        let overridden = legacy
            .as_ref()
            .filter(|_| sequence.has_no_track(event.track_uuid))
            .and_then(|legacy| self.tracks.overridden(uuid, legacy, context, &mut self.pending));
        // Importers drop values of a counter that is not described before them.
        let track = match (overridden, event.kind) {
            (Some(thread), _) => thread,
            (None, Some(EventType::Counter)) => self.tracks.used(uuid, context, &mut self.pending),
            (None, kind) => {
                let track = self.track(uuid, context)?;
                self.tracks.beside(track, kind == Some(EventType::State), context, &mut self.pending)
            }
        };
        self.current.clear();
        self.current.track = self.tracks.get(track).id();
        self.current.name = match (event.name_iid, event.name) {
            (Some(iid), _) => TextRef::Iid(iid),
            (None, Some(name)) => self.current.keep(name),
            (None, None) => TextRef::None,
        };
        self.current.take_lists(event, context)?;
        self.take_details(index, event);
        self.take_stack(index, event)?;
        self.take_extra_counters(index, event)?;
        if let Some(legacy) = &legacy {
            self.report.add_many(NO_TRACK, u64::from(uuid == TrackUuid(0) && overridden.is_none()));
            self.bind(legacy, context);
        }
        if let Some(legacy) = legacy.filter(|legacy| legacy.phase != 0) {
            if !self.legacy(track, &legacy, context) {
                return Ok(());
            }
        } else {
            let value = event.counter.filter(|_| event.kind == Some(EventType::Counter));
            let value = value.and_then(|value| self.counter(index, track, uuid, value));
            self.current.kind = match (event.kind, value) {
                (Some(EventType::SliceBegin), _) => EventKind::Begin,
                (Some(EventType::SliceEnd), _) => EventKind::End,
                (Some(EventType::Instant), _) => EventKind::Instant,
                (Some(EventType::State), _) => {
                    if !self.state(index, track) {
                        return Ok(());
                    }
                    EventKind::Begin
                }
                (Some(EventType::Counter), Some(value)) => {
                    self.current.counter = Some(track);
                    EventKind::Counter(value)
                }
                (Some(EventType::Counter), None) => {
                    self.report.add_defects("counter events without a counter, or without a value", 1);
                    return Ok(());
                }
                _ => {
                    self.report.add_defects("events of unknown types", 1);
                    return Ok(());
                }
            };
        }
        self.count_undefined(index);
        self.pending.push_back(Pending::Event);
        Ok(())
    }

    /// Takes the name of the current event for the state of its track from now on. Queues the end of the state
    /// that lasted until then. Returns whether a new one begins.
    fn state(&mut self, index: usize, track: u32) -> bool {
        let Self { current, sequences, texts, tracks, .. } = self;
        let name = current.text(&current.name, &sequences[index].names, texts).text;
        let StateChange { ends, begins } = tracks.change_state(track, name);
        if ends {
            self.pending.push_back(Pending::StateEnd);
        }
        let has_more =
            !current.bytes.is_empty() || !current.extra_counters.is_empty() || current.has_details();
        self.report.add_many(NO_BEGIN, u64::from(!begins && has_more));
        begins
    }

    fn take_details(&mut self, index: usize, event: &TrackEvent<'_>) {
        let Self { sequences, report, .. } = self;
        let location = |iid, report: &mut Report| {
            let known = sequences[index].rest().locations.get(iid).cloned();
            if known.is_none() && iid != 0 {
                report.add_undefined("events whose source location has an undefined id", iid);
            }
            known
        };
        self.current.location = match &event.location {
            Some(Location::Iid(iid)) => location(*iid, report),
            Some(Location::At(at)) => Some(OwnedLocation::of(at, report)),
            None => None,
        };
        if let Some(log) = event.log {
            self.current.log = Some((log.body_iid, log.priority));
            self.current.tag = location(log.source_location_iid, report);
        }
        self.current.correlation = match event.correlation {
            Some(Correlation::Id(id)) => self.current.keep(&id.to_string()),
            Some(Correlation::Name(Name::Iid(iid))) => TextRef::Iid(iid),
            Some(Correlation::Name(Name::Text(text))) => self.current.keep(text),
            None => TextRef::None,
        };
    }

    /// Counts the strings of the current event whose interning ids are not defined.
    fn count_undefined(&mut self, index: usize) {
        let Self { sequences, report, current, .. } = self;
        let sequence = &sequences[index];
        let mut check = |text: &TextRef, table: &Table<InternedText>, what| match text {
            // Importers take 0 for a missing id.
            TextRef::Iid(iid) if *iid != 0 && table.get(*iid).is_none() => report.add_undefined(what, *iid),
            _ => {}
        };
        check(&current.name, &sequence.names, "events whose name has an undefined id");
        for category in &current.categories {
            check(category, &sequence.categories, "events whose category has an undefined id");
        }
        let correlation = "events whose correlation has an undefined id";
        check(&current.correlation, &sequence.rest().correlations, correlation);
        if let Some((body, _)) = current.log {
            let what = "log messages whose text has an undefined id";
            check(&TextRef::Iid(body), &sequence.rest().log_bodies, what);
        }
    }

    fn take_extra_counters(&mut self, index: usize, event: &TrackEvent<'_>) -> Result<(), DecodeError> {
        let mut uuids = event.extra_counter_track_uuids().peekable();
        let mut defaults = uuids.peek().is_none().then_some(0..);
        for value in event.extra_counters() {
            let uuid = match &mut defaults {
                None => uuids.next().transpose()?,
                Some(places) => places
                    .next()
                    .and_then(|n: usize| self.sequences[index].rest().extra_counters.get(n).copied()),
            };
            self.extra_counter(index, uuid, CounterValue::Int(value?));
        }
        let mut uuids = event.extra_double_track_uuids();
        for value in event.extra_doubles() {
            let uuid = uuids.next().transpose()?;
            self.extra_counter(index, uuid, CounterValue::Double(value?));
        }
        Ok(())
    }

    fn extra_counter(&mut self, index: usize, uuid: Option<TrackUuid>, value: CounterValue) {
        let track = uuid.and_then(|uuid| Some((uuid, self.tracks.find(uuid)?)));
        match track.and_then(|(uuid, track)| Some((track, self.counter(index, track, uuid, value)?))) {
            Some((track, value)) => {
                self.current.extra_counters.push((self.tracks.get(track).id(), value));
            }
            None => self.report.add_defects("counter events without a counter, or without a value", 1),
        }
    }
}
