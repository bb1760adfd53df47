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
mod tracks;

use std::io::{self, Cursor, Read};

use hairline_formats::track_event::{self, InternedEvent, Packet, PacketData, PlainEvent};
use hairline_formats::{DecodeError, DecodeErrorKind};

use crate::track_event::inflated::{Inflated, is_too_large};
pub(crate) use crate::track_event::read::ahead::Again;
use crate::track_event::read::ahead::LookAhead;
use crate::track_event::read::interned::Interned;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::state::State;
use crate::{BriefEvent, BriefUse, Context, Copied, Error, Item, Report, Scheduling, Trace, TraceFormat};

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
            Pending::Symbols(index) => Item::Symbols(state.current_symbols(index)),
            Pending::Foreign(what) => {
                Item::Foreign { what, format: TraceFormat::TrackEvent, bytes: &state.foreign }
            }
        }
    }

    /// Reads the next packet.
    #[inline]
    fn packet(&mut self, context: &mut Context) -> Result<Step, DecodeError> {
        if self.inner.is_some() {
            return self.inner_packet(context);
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
        let packet = Packet::decode(message)?;
        if let Some(PacketData::Compressed { bytes, .. }) = packet.data {
            let inflated = Inflated::new(Cursor::new(bytes.to_vec()));
            self.inner = Some((track_event::PacketReader::new(inflated), offset));
        } else {
            self.state.packet(&packet, context)?;
        }
        Ok(Step::Noted)
    }

    /// Reads the next of the packets in a compressed one.
    fn inner_packet(&mut self, context: &mut Context) -> Result<Step, DecodeError> {
        if let Some((inner, offset)) = &mut self.inner {
            let at = |e: DecodeError| DecodeError { offset: *offset, kind: e.kind };
            let next = match inner.next() {
                Err(e) if is_too_large(&e) => {
                    self.state.report.add_defects("compressed packets with more than 64 MiB, cut there", 1);
                    None
                }
                next => next.map_err(at)?,
            };
            match next {
                Some((_, packet)) => match packet.data {
                    Some(PacketData::Compressed { .. }) => {
                        self.state.report.add("compressed packets inside compressed packets");
                    }
                    _ => self.state.packet(&packet, context).map_err(at)?,
                },
                None => self.inner = None,
            }
        }
        Ok(Step::Noted)
    }
}

impl State {
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
                return Ok(Some(Self::item(&self.state, pending)));
            }
            if self.ended {
                return Ok(None);
            }
            self.ended = true;
            let step = self.packet(context)?;
            self.ended = false;
            match step {
                Step::Interned(event) => return Ok(Some(Item::Event(self.state.interned_event(event)))),
                Step::Event => return Ok(Some(Item::Event(self.state.event()))),
                Step::Noted => {}
                Step::Ended => {
                    // The next call may read more, because packets in FXT arrive in pieces.
                    let skipped = self.packets.skipped();
                    self.state.report.add_many("unknown fields", skipped - self.skipped);
                    self.skipped = skipped;
                    return Ok(None);
                }
            }
        }
    }

    fn briefs(&mut self, wanted: BriefUse, _: &mut Context, briefs: &mut Vec<BriefEvent>) {
        briefs.clear();
        self.state.settle_undefined();
        if self.state.pending.is_empty() && !self.ended && self.inner.is_none() {
            let (offset, trace) = self.packets.buffered();
            let (size, last) = self.state.briefs(trace, wanted, briefs);
            self.packets.pass(size);
            if size > 0 {
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
