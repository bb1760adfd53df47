//! Events that FXT cannot express, as TrackEvent packets in Perfetto blobs. A packet has its strings inline
//! and its time on the trace's clock. Its tracks are described in the same blob.

use std::io::Write;

use hairline_formats::Value;
use hairline_formats::fxt::{self, StringRef};
use hairline_formats::proto::{put_message, put_str};
use hairline_formats::track_event::{
    self as te, EventType, LegacyEvent, Location, Name, SequenceId, SystemInfo, TrackUuid,
    fields::track_event as fields,
};

use crate::fxt::write::state::FxtWriter;
use crate::fxt::write::tracks::{OutputTrackKind, Tracks, mix};
use crate::nesting::BESIDE;
use crate::report::TOO_DEEP;
use crate::track_event::{binding, describe};
use crate::{
    Categories, Copied, Event, EventKind, Log, Sample, Trace, TraceFormat, Track, TrackId, TrackKind,
};

/// The packet sequence of all packets.
const SEQUENCE: SequenceId = SequenceId(1);

impl<W: Write> FxtWriter<W> {
    /// Writes the facts about the trace that have a packet.
    pub(super) fn put_about_trace(&mut self, trace: &Trace<'_>) {
        let out = &mut self.packets;
        if let Some(uuid) = trace.uuid {
            te::trace_uuid(out, SEQUENCE, uuid);
        }
        if let Some([sysname, release, version, machine]) = trace.system {
            let tracer = trace.writer.unwrap_or("");
            let system = SystemInfo { sysname, release, version, machine, tracer, ..SystemInfo::default() };
            te::system_info(out, SEQUENCE, &system);
        }
        if self.readings.are_later(trace.clocks) {
            let clocks: Vec<_> = trace.clocks.iter().map(|clock| (clock.id, clock.time)).collect();
            te::clock_snapshot(out, SEQUENCE, &clocks);
        }
        self.put_blob();
    }

    /// Writes the command line of a process. Importers read it from the process tree, where its first word is
    /// the process's name. The path of the program is in the track descriptor.
    pub(super) fn put_command_line(&mut self, track: &Track) {
        let uuids = (uuid(&self.tracks, track.id), None);
        describe(&mut self.packets, SEQUENCE, track, uuids, &[], self.last_time.unwrap_or(0));
        self.put_blob();
    }

    /// Writes a stack sample.
    pub(super) fn sample(&mut self, sample: &Sample<'_>) {
        if let Some(Copied { format: TraceFormat::Fxt, bytes }) = sample.copy {
            return self.output.bytes.extend_from_slice(bytes);
        }
        self.stacks.put(&mut self.packets, sample, &mut self.report);
        self.put_blob();
    }

    pub(super) fn blob_event(&mut self, event: &Event<'_>, time: u64) {
        let kind = match event.kind {
            EventKind::Begin | EventKind::Complete { .. } => EventType::SliceBegin,
            EventKind::End => EventType::SliceEnd,
            EventKind::Instant => EventType::Instant,
            EventKind::Counter(_) => EventType::Counter,
            EventKind::Flow { .. } => return self.report.add("flows without a thread left out"),
        };
        self.describe(event.track, event.categories);
        self.put_event(event, kind, time);
        if let EventKind::Complete { duration } = event.kind {
            let end = self.end_of(time, duration);
            self.put_event(&Event::new(event.time, event.track, EventKind::End), EventType::SliceEnd, end);
        }
        self.put_blob();
        // Importers find the role of these points themselves, but records of the same flows depend on them.
        for id in event.flows() {
            self.flow_kind(*id, event.time, false, None);
        }
        for id in event.ending_flows() {
            self.flow_kind(*id, event.time, true, None);
        }
    }

    /// Writes each value as an event of its own.
    pub(super) fn put_extra_counters(&mut self, event: &Event<'_>, time: u64) {
        for (track, value, passed) in event.counter_values() {
            self.describe(track, Categories::None);
            let sample = Event::new(event.time, track, EventKind::Counter(value));
            let time = self.end_of(time, passed);
            self.put_event(&sample, EventType::Counter, time);
        }
        self.put_blob();
    }

    /// Writes a complete slice on a track beside its thread.
    pub(super) fn put_beside(&mut self, event: &Event<'_>, time: u64, end: u64) {
        self.report.add(BESIDE);
        let (number, is_new) = self.nesting.lane(event.track, event.time, end.cast_signed());
        self.describe(event.track, Categories::None);
        let thread = uuid(&self.tracks, event.track);
        let lane = TrackUuid(mix(thread.0 ^ mix(number as u64 + 1)));
        if is_new {
            let track = Track { name: "overlapping".into(), ..Track::new(event.track, TrackKind::Slices) };
            describe(&mut self.packets, SEQUENCE, &track, (lane, Some(thread)), &[], 0);
        }
        self.put_event_on(lane, event, EventType::SliceBegin, time);
        let end_of = Event::new(event.time, event.track, EventKind::End);
        self.put_event_on(lane, &end_of, EventType::SliceEnd, end);
        self.put_blob();
    }

    fn put_event(&mut self, event: &Event<'_>, kind: EventType, time: u64) {
        self.put_event_on(uuid(&self.tracks, event.track), event, kind, time);
    }

    fn put_event_on(&mut self, track: TrackUuid, event: &Event<'_>, kind: EventType, time: u64) {
        let packet = te::Event {
            needs_state: false,
            name: (!event.name.text.is_empty()).then_some(Name::Text(event.name.text)),
            track_uuid: Some(track),
            counter: if let EventKind::Counter(value) = event.kind { Some(value) } else { None },
            flow_ids: event.flows(),
            terminating_flow_ids: event.ending_flows(),
            correlation: event.correlation().map(|name| te::Correlation::Name(Name::Text(name))),
            location: event.location().map(Location::At),
            callstack_weight: event.details().stack_weight,
            ..te::Event::new(SEQUENCE, kind, time)
        };
        let mut cut = 0;
        te::event_with(&mut self.packets, &packet, |out| {
            if kind != EventType::Counter {
                event.categories.each(&mut |category| put_str(out, fields::CATEGORIES, category.text));
            }
            if let Some(bind) = event.bound() {
                let legacy = LegacyEvent { bind: Some(binding(bind)), ..LegacyEvent::default() };
                put_message(out, fields::LEGACY_EVENT, |out| legacy.put(out));
            }
            event.args.each(&mut |name, value| match value {
                Value::Null => {}
                Value::Interned { text, .. } => te::put_named(out, Name::Text(name.text), &Value::Str(text)),
                value => {
                    cut += u64::from(value.is_too_deep());
                    te::put_named(out, Name::Text(name.text), &value);
                }
            });
            if let Some(log) = event.log() {
                te::put_named(out, Name::Text("message"), &Value::Str(log.body));
            }
        });
        self.report.add_many(TOO_DEEP, cut);
        self.report.add_many(Log::NO_TAG, u64::from(event.log().is_some_and(|log| log.tag.is_some())));
        self.report.add_many("log messages became arguments", u64::from(event.log().is_some()));
    }

    pub(super) fn put_blob(&mut self) {
        if !self.packets.is_empty() {
            let out = &mut self.output.bytes;
            fxt::blob(out, StringRef::Empty, fxt::BLOB_PERFETTO, &self.packets);
            self.packets.clear();
        }
    }

    /// Describes a track and its ancestors, from the root down, if that is not done. The categories of a
    /// counter's first value become those of its track.
    fn describe(&mut self, track: TrackId, categories: Categories<'_>) {
        let mut next = Some(track);
        // Each track is marked first, so a cycle of parents ends.
        while let Some(track) = next
            && let Some(kept) = self.tracks.get_mut(track)
            && !std::mem::replace(&mut kept.is_described, true)
        {
            next = kept.track.parent;
            self.branch.push(track);
        }
        if self.branch.is_empty() {
            return;
        }
        let Self { joined, branch, tracks, packets, .. } = self;
        categories.join(joined);
        let categories: Vec<&str> = joined.split(',').filter(|category| !category.is_empty()).collect();
        for kept in branch.drain(..).rev().filter_map(|track| tracks.get(track)) {
            let parent = kept.track.parent.filter(|parent| tracks.get(*parent).is_some());
            let uuids = (uuid(tracks, kept.track.id), parent.map(|parent| uuid(tracks, parent)));
            describe(packets, SEQUENCE, &kept.track, uuids, &categories, 0);
        }
    }
}

/// The UUID of a track in the whole output. A process or thread of several inputs has one UUID, because
/// importers take the later of two equal processes for a new one.
fn uuid(tracks: &Tracks, track: TrackId) -> TrackUuid {
    TrackUuid(match tracks.get(track).map(|kept| &kept.kind) {
        Some(OutputTrackKind::Process { pid, .. }) => mix(mix(*pid) ^ 1),
        Some(OutputTrackKind::Thread { pid, tid, .. }) => mix(mix(mix(*pid) ^ 2) ^ tid),
        _ => mix(u64::from(track.0)),
    })
}
