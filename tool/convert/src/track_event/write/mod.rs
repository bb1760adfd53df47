//! Items to packets.
//!
//! Each thread has a packet sequence, as in the SDK: an incremental clock, the thread's track as default, and
//! strings interned at first use. Events on other tracks use the sequence of the latest thread, because its
//! clock is near and its strings are interned.

mod brief;
mod crossing;
mod emitted;
mod event;
mod flow_names;
mod flows;
mod scheduled;
mod scheduling;
mod sequence;
mod short;
mod state;
mod tracks;

use std::io::{self, Write};

use hairline_formats::proto::{Fields, put_field, put_message, put_uint};
use hairline_formats::track_event::fields::{clock, trace, trace_packet};
use hairline_formats::track_event::{self as te, SequenceId, SystemInfo, TraceStats, TrackUuid};

use crate::track_event::write::crossing::CROSSING;
use crate::track_event::write::sequence::Sequence;
use crate::track_event::write::state::{GATHERED, State};
use crate::track_event::write::tracks::GENERAL_SEQUENCE;
use crate::{BriefEvent, Copied, Item, Loss, Report, Strings, Trace, TraceFormat, TrackKind};

/// The sequence of copied packets.
const COPIED: SequenceId = SequenceId(u32::MAX);

/// Writes Perfetto's TracePackets.
///
/// ```
/// use hairline_convert::{Event, EventKind, Item, Track, TrackEventWriter, TrackId, TrackKind, TraceWriter};
/// use hairline_formats::track_event::PacketReader;
///
/// let mut packets = Vec::new();
/// let mut writer = TrackEventWriter::new(&mut packets);
/// let track = TrackId(0);
/// writer.write(&Item::Track(Track::new(track, TrackKind::Slices)))?;
/// writer.write(&Item::Event(Event::new(1_000, track, EventKind::Instant)))?;
/// writer.finish()?;
/// drop(writer);
/// assert!(PacketReader::new(&packets[..]).next()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TrackEventWriter<W> {
    output: W,
    state: State,
}

impl<W: Write> TrackEventWriter<W> {
    /// Creates a writer. `output` needs no buffer.
    pub fn new(output: W) -> Self {
        let (out, general) =
            (Vec::with_capacity(2 * GATHERED), Sequence::new(GENERAL_SEQUENCE, TrackUuid(0)));
        Self { output, state: State { out, sequences: vec![general], ..State::default() } }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.output.write_all(&self.state.out)?;
        self.state.out.clear();
        Ok(())
    }
}

impl<W: Write> crate::stream::TraceWriter for TrackEventWriter<W> {
    fn write(&mut self, item: &Item<'_>) -> io::Result<()> {
        let state = &mut self.state;
        match item {
            Item::Event(event) => state.event(event),
            Item::Track(track) => {
                state.tracks.add(track, &mut state.report);
                if let TrackKind::Thread { tid, .. } = track.kind {
                    state.scheduled.tracks.insert(tid, track.id);
                }
            }
            Item::Trace(trace) => state.trace(trace),
            Item::Loss(loss) => state.loss(*loss),
            Item::Scheduling(scheduling) => state.scheduling(scheduling),
            Item::Sample(sample) => match sample.copy {
                Some(Copied { format: TraceFormat::TrackEvent, bytes }) => state.copy(bytes),
                _ => state.stacks.put(&mut state.out, sample, &mut state.report),
            },
            Item::Heap(_) => state.report.add("call stacks of heap profiles left out"),
            Item::Symbols(symbols) => state.stacks.put_symbols(&mut state.out, symbols),
            Item::Copied(Copied { format: TraceFormat::TrackEvent, bytes }) => state.copy(bytes),
            Item::Copied(_) => {}
            Item::Foreign { format: TraceFormat::TrackEvent, bytes: bytes @ [_, ..], .. } => {
                state.copy(bytes);
            }
            Item::Foreign { what, .. } => state.report.add(what),
        }
        if self.state.out.len() >= GATHERED { self.pass_on() } else { Ok(()) }
    }

    fn write_briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) -> io::Result<()> {
        for mut of_track in briefs.chunk_by(|one, next| one.track == next.track) {
            while let Some(brief) = of_track.first() {
                let written = self.state.briefs(of_track);
                of_track = &of_track[written..];
                if written == 0 {
                    of_track = &of_track[1..];
                    brief.event(strings).iter().for_each(|event| self.state.event(event));
                }
                if self.state.out.len() >= GATHERED {
                    self.pass_on()?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.state.finish();
        self.pass_on()?;
        self.output.flush()
    }

    fn report(&self) -> &Report {
        &self.state.report
    }
}

impl State {
    fn trace(&mut self, trace: &Trace<'_>) {
        if let Some(uuid) = trace.uuid.filter(|_| !self.has_uuid) {
            te::trace_uuid(&mut self.out, GENERAL_SEQUENCE, uuid);
            self.has_uuid = true;
        }
        if trace.writer.is_some() || trace.system.is_some() {
            let [sysname, release, version, machine] = trace.system.unwrap_or_default();
            let tracer = trace.writer.unwrap_or_default();
            let info = SystemInfo { sysname, release, version, machine, tracer, ..SystemInfo::default() };
            te::system_info(&mut self.out, GENERAL_SEQUENCE, &info);
        }
        match trace.clocks {
            [first, _, ..] if first.id == clock::BOOTTIME => {
                if !self.readings.are_later(trace.clocks) {
                    return;
                }
                let clocks: Vec<_> = trace.clocks.iter().map(|clock| (clock.id, clock.time)).collect();
                te::clock_snapshot(&mut self.out, GENERAL_SEQUENCE, &clocks);
                self.time = self.time.max(first.time);
            }
            [_, _, ..] => self.report.add("clock snapshots without the boot clock"),
            _ => {}
        }
    }

    fn loss(&mut self, loss: Loss) {
        self.lost = self.lost.saturating_add(loss.events);
        let track = loss.track.map_or(0, |track| self.tracks.get(track).sequence);
        if loss.events == 0 || track != 0 {
            self.sequences[track].drop_state();
        }
    }

    /// Copies a packet to a sequence without state.
    fn copy(&mut self, packet: &[u8]) {
        put_message(&mut self.out, trace::PACKET, |out| {
            for field in Fields::new(packet, 0).map_while(Result::ok) {
                match field.number {
                    trace_packet::TRUSTED_PACKET_SEQUENCE_ID
                    | trace_packet::SEQUENCE_FLAGS
                    | trace_packet::INCREMENTAL_STATE_CLEARED
                    | trace_packet::PREVIOUS_PACKET_DROPPED
                    | trace_packet::FIRST_PACKET_ON_SEQUENCE
                    | trace_packet::TRACE_PACKET_DEFAULTS => {}
                    _ => put_field(out, &field),
                }
            }
            put_uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(COPIED.0));
        });
    }

    fn finish(&mut self) {
        for id in self.tracks.ids() {
            self.end_slices(id, i64::MAX);
            let without_end =
                self.tracks.get(id).crossing.as_ref().map_or(0, |crossing| crossing.without_end());
            self.report.add_many(CROSSING, without_end);
            self.tracks.describe(&mut self.out, id, &[], self.time);
        }
        for sequence in &mut self.sequences {
            sequence.emit_loss(&mut self.out, self.time);
            let what = "names of arguments with . or [ ] in them, for which importers show _";
            self.report.add_many(what, sequence.names_shown_otherwise);
        }
        if self.lost > 0 {
            let stats = TraceStats { events_lost: self.lost, ..TraceStats::default() };
            te::trace_stats(&mut self.out, GENERAL_SEQUENCE, &stats);
        }
    }
}
