//! Packets to items.
//!
//! ```text
//! packet ── sequence: flags, defaults, strings ── time ── track ── event ──> items
//!             (sequence.rs, table.rs)        (clocks.rs) (tracks.rs) (event.rs, legacy.rs)
//! ```
//!
//! A packet first updates the state and queues the names of its items. Each item is then built from the state
//! and borrows from it. So no item borrows from a packet, and one packet may give several items.

mod ahead;
mod brief;
mod clocks;
mod current;
mod event;
mod heap;
mod interned;
mod kept;
mod legacy;
mod packet;
mod pending;
mod plain;
mod samples;
mod scheduling;
mod sequence;
mod stacks;
mod state;
mod table;
mod texts;
mod tracks;

use std::io::{self, Cursor, ErrorKind, Read};

use hairline_formats::proto::Fields;
use hairline_formats::track_event::{self, Compression, InternedEvent, Packet, PacketData, PlainEvent};
use hairline_formats::{DecodeError, DecodeErrorKind, Zeros};

use crate::report::{CUT_BY_HOLE, NOT_UTF8};
use crate::track_event::inflated::{Inflated, NOT_UNPACKED, has_hole, has_lost_content};
pub(crate) use crate::track_event::read::ahead::Again;
use crate::track_event::read::ahead::LookAhead;
use crate::track_event::read::current::Current;
use crate::track_event::read::pending::{Interned, Pending};
use crate::track_event::read::state::State;
use crate::{
    BriefEvent, BriefUse, Context, Copied, Error, Event, EventKind, Item, Report, Scheduling, Trace,
    TraceFormat,
};

const UNKNOWN_FIELDS: &str = "unknown fields";
const TOO_LARGE: &str = "compressed packets with more than 64 MiB, cut there";
const CUT: &str = "compressed packets whose content is cut";
const DAMAGED: &str = "compressed packets whose content is damaged, not read to its end";

/// The reader of compressed packets.
type Inner = track_event::PacketReader<Inflated<Cursor<Vec<u8>>>>;

/// Reads Perfetto's TracePackets.
///
/// ```
/// use hairline_convert::{Context, Item, TraceReader, TrackEventReader};
/// use hairline_formats::track_event::{
///     CustomTrack, Event, EventType, SequenceId, TrackUuid, custom_descriptor, event,
/// };
///
/// let mut trace = Vec::new();
/// let (uuid, sequence) = (TrackUuid(4), SequenceId(1));
/// let track = CustomTrack { uuid, name: "requests", ..CustomTrack::default() };
/// custom_descriptor(&mut trace, sequence, &track);
/// let begin = Event::new(sequence, EventType::SliceBegin, 1_000);
/// event(&mut trace, &Event { track_uuid: Some(uuid), needs_state: false, ..begin });
///
/// let (mut reader, mut context) = (TrackEventReader::new(&trace[..]), Context::new());
/// let (mut names, mut times) = (Vec::new(), Vec::new());
/// while let Some(item) = reader.next(&mut context)? {
///     match item {
///         Item::Track(track) => names.push(track.name),
///         Item::Event(event) => times.push(event.time),
///         _ => {}
///     }
/// }
/// assert_eq!((&*names[0], &times[..]), ("requests", &[1_000][..]));
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug)]
pub struct TrackEventReader<R> {
    packets: track_event::PacketReader<R>,
    /// The reader of the current compressed packet, and the offset of that packet.
    inner: Option<(Inner, u64)>,
    state: State,
    position: u64,
    /// The unknown fields that were counted already.
    skipped: u64,
    /// The zeros that were counted already.
    zeros: Zeros,
    ended: bool,
}

/// The result of reading a packet.
enum Step {
    /// The packet is an event with interned ids.
    Interned(Interned),
    /// The packet is a plain event, which is now the current one.
    Event,
    /// The items of the packet, if any, are pending.
    Noted,
    /// The end of the input.
    Ended,
}

impl<R: Read> TrackEventReader<R> {
    /// Creates a reader. `input` needs no buffer.
    pub fn new(input: R) -> Self {
        Self {
            packets: track_event::PacketReader::new(input),
            inner: None,
            state: State::default(),
            position: 0,
            skipped: 0,
            zeros: Zeros::default(),
            ended: false,
        }
    }

    /// Lets the reader read its input a second time, from the first byte, if descriptions of tracks follow
    /// the first event of their track. Without it, such a track is no thread before it is described. `again`
    /// is called at most once, at the first event of a track without a description. If it fails, the reader
    /// counts that in its report.
    #[must_use]
    pub fn reading_again(
        mut self,
        again: impl FnOnce() -> io::Result<Box<dyn Read>> + Send + 'static,
    ) -> Self {
        self.state.ahead = LookAhead::new(Box::new(again));
        self
    }

    /// A pending item.
    fn item(state: &State, pending: Pending) -> Item<'_> {
        match pending {
            Pending::Event => Item::Event(state.event()),
            Pending::StateEnd => {
                let Current { time, track, .. } = state.current;
                Item::Event(Event::new(time, track, EventKind::End))
            }
            Pending::Track(index) => Item::Track(state.tracks.item(index)),
            Pending::Loss(loss) => Item::Loss(loss),
            Pending::Uuid(uuid) => Item::Trace(Trace { uuid: Some(uuid), ..Trace::default() }),
            Pending::Clocks => Item::Trace(Trace { clocks: state.clocks.readings(), ..Trace::default() }),
            Pending::System => Item::Trace(Trace {
                writer: Some(&*state.writer).filter(|writer| !writer.is_empty()),
                system: Some(state.system.each_ref().map(String::as_str)),
                ..Trace::default()
            }),
            Pending::Scheduling => Item::Scheduling(Scheduling {
                changes: &state.scheduler.changes,
                copy: (!state.foreign.is_empty())
                    .then_some(Copied { format: TraceFormat::TrackEvent, bytes: &state.foreign }),
                others: state.scheduler.others,
            }),
            Pending::Sample => Item::Sample(state.current_sample()),
            Pending::Heap(index) => Item::Heap(state.current_sums(index)),
            Pending::Symbols(index) => Item::Symbols(state.current_symbols(index)),
            Pending::Copied => {
                Item::Copied(Copied { format: TraceFormat::TrackEvent, bytes: &state.foreign })
            }
            Pending::Foreign(what) => {
                Item::Foreign { what, format: TraceFormat::TrackEvent, bytes: &state.foreign }
            }
        }
    }

    /// Reads the next packet.
    #[inline]
    fn packet(&mut self, context: &mut Context) -> Result<Step, DecodeError> {
        if self.inner.is_some() {
            return Ok(self.inner_packet(context));
        }
        let (offset, message) = match self.packets.next_message() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Step::Ended),
            Err(e) => return self.state.pass_over(e),
        };
        self.position = offset;
        let interned = InternedEvent::decode(&message);
        if let Some(event) = interned.and_then(|event| self.state.interned_too(&event)) {
            return Ok(Step::Interned(event));
        }
        if PlainEvent::decode(&message).and_then(|event| self.state.plain(&event, context)).is_some() {
            return Ok(Step::Event);
        }
        self.inner = self.state.long_packet(message, offset, false, context)?.map(|inner| (inner, offset));
        Ok(Step::Noted)
    }

    /// Adds what the readers of packets have counted, after the last one or the error that ends the trace.
    #[cold]
    fn end(&mut self) {
        self.end_inner();
        let skipped = self.packets.skipped();
        self.state.report.add_many(UNKNOWN_FIELDS, skipped - self.skipped);
        self.skipped = skipped;
        self.state.report.add_zeros(&mut self.zeros, self.packets.zeros());
    }

    /// As `end`, for the packets in a compressed one.
    fn end_inner(&mut self) {
        if let Some((inner, _)) = self.inner.take() {
            self.state.report.add_many(UNKNOWN_FIELDS, inner.skipped());
            self.state.report.add_zeros(&mut Zeros::default(), inner.zeros());
        }
    }

    /// Reads the next of the packets in a compressed one. A fault among them is no fault of the packets after
    /// it.
    fn inner_packet(&mut self, context: &mut Context) -> Step {
        let Some((inner, offset)) = &mut self.inner else { return Step::Noted };
        let read = match inner.next_message() {
            Ok(Some((_, message))) => self.state.long_packet(message, *offset, true, context).map(|_| false),
            Ok(None) => Ok(true),
            Err(e) => Err(e),
        };
        if let Err(e) = &read {
            self.state.report.add_defects(damage(e), 1);
        }
        if read.unwrap_or(true) {
            self.end_inner();
        }
        Step::Noted
    }
}

/// What reports say of a compressed packet whose content is not read to its end.
#[cold]
fn damage(error: &DecodeError) -> &'static str {
    match &error.kind {
        DecodeErrorKind::Truncated { .. } => CUT,
        DecodeErrorKind::Io(e) if e.kind() == ErrorKind::UnexpectedEof => CUT,
        DecodeErrorKind::Io(e) if e.kind() == ErrorKind::FileTooLarge => TOO_LARGE,
        // What comes out of damaged bytes may be malformed before the decoder finds the damage.
        _ => DAMAGED,
    }
}

/// Whether a packet is malformed because it has a hole, whose zeros are no fields.
fn is_in_hole(error: &DecodeError, packet: &[u8]) -> bool {
    matches!(error.kind, DecodeErrorKind::FieldNumber(0)) && has_hole(packet)
}

impl State {
    /// Reads any packet. Returns the reader of a compressed one.
    fn long_packet(
        &mut self,
        message: Fields<'_>,
        offset: u64,
        is_inner: bool,
        context: &mut Context,
    ) -> Result<Option<Inner>, DecodeError> {
        let valid = self.valid_texts(&message);
        let fields = valid.as_ref().map_or(message.clone(), |valid| Fields::new(valid, offset));
        let read = Packet::decode(fields).and_then(|packet| match packet.data {
            Some(PacketData::Compressed { .. }) if is_inner => {
                // To read both could take time without end.
                self.report.add("compressed packets inside compressed packets");
                Ok(None)
            }
            Some(PacketData::Compressed { by, bytes, .. }) => Ok(self.unpacked(by, bytes)),
            _ => self.packet(&packet, context).map(|_| None),
        });
        match read {
            // The zeros after the packet are counted with those in it.
            Err(e) if is_in_hole(&e, message.rest()) => {
                self.report.add_defects(CUT_BY_HOLE, 1);
                Ok(None)
            }
            read => read,
        }
    }

    /// The reader of a compressed packet.
    fn unpacked(&mut self, by: Compression, bytes: &[u8]) -> Option<Inner> {
        if has_lost_content(by, bytes) {
            self.report.add_defects(CUT_BY_HOLE, 1);
            return None;
        }
        let inflated = Inflated::new(by, Cursor::new(bytes.to_vec()));
        self.report.add_defects(NOT_UNPACKED, u64::from(!inflated.is_read()));
        Some(track_event::PacketReader::new(inflated))
    }

    /// Returns the fields of a packet with texts that are not UTF-8, as importers show them. Counts them.
    fn valid_texts(&mut self, message: &Fields<'_>) -> Option<Vec<u8>> {
        let (valid, wrong) = track_event::valid_texts(message)?;
        self.report.add_many(NOT_UTF8, wrong);
        Some(valid)
    }

    /// Counts a packet that is passed over.
    ///
    /// # Errors
    /// The error, if it ends the trace.
    #[cold]
    fn pass_over(&mut self, error: DecodeError) -> Result<Step, DecodeError> {
        if !matches!(error.kind, DecodeErrorKind::TooLarge { .. }) {
            return Err(error);
        }
        self.report.add_defects("packets of more than 64 MiB left out", 1);
        Ok(Step::Noted)
    }
}

impl<R: Read> crate::stream::TraceReader for TrackEventReader<R> {
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, Error> {
        self.state.settle_undefined();
        if let Some((event, offset)) = self.state.ready.take() {
            self.position = offset;
            return Ok(Some(Item::Event(self.state.interned_event(event))));
        }
        let is_between = self.state.pending.is_empty() && !self.ended && self.inner.is_none();
        if is_between
            && let Some((offset, event, size)) = self.packets.peek_interned()
            && let Some(event) = self.state.interned(&event)
        {
            self.packets.pass(size);
            self.position = offset;
            return Ok(Some(Item::Event(self.state.interned_event(event))));
        }
        loop {
            if let Some(pending) = self.state.pending.pop_front() {
                if let Pending::Heap(index) = pending {
                    self.state.select_sums(index);
                }
                return Ok(Some(Self::item(&self.state, pending)));
            }
            if self.ended {
                return Ok(None);
            }
            self.ended = true;
            let step = match self.packet(context) {
                Ok(step) => step,
                Err(e) => {
                    self.end();
                    return Err(e.into());
                }
            };
            self.ended = false;
            match step {
                Step::Interned(event) => return Ok(Some(Item::Event(self.state.interned_event(event)))),
                Step::Event => return Ok(Some(Item::Event(self.state.event()))),
                Step::Noted => {}
                Step::Ended => {
                    self.end(); // the next call may read more, because packets in FXT arrive in pieces
                    return Ok(None);
                }
            }
        }
    }

    fn briefs(&mut self, wanted: BriefUse, _: &mut Context, briefs: &mut Vec<BriefEvent>) {
        briefs.clear();
        self.state.settle_undefined();
        let is_between = self.state.pending.is_empty() && self.state.ready.is_none();
        if is_between && !self.ended && self.inner.is_none() {
            let (offset, trace) = self.packets.buffered();
            let (size, last) = self.state.briefs((offset, trace), wanted, briefs);
            self.packets.pass(size);
            if !briefs.is_empty() {
                self.position = offset + last as u64;
            }
        }
    }

    fn report(&self) -> &Report {
        &self.state.report
    }

    fn position(&self) -> u64 {
        self.position
    }
}
