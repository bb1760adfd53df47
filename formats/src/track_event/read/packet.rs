//! Reads packets.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{
    clock_reading, clock_snapshot, sequence_flags, trace_packet, trace_packet_defaults, track_event_defaults,
};
use crate::track_event::ids::{SequenceId, TrackUuid};
use crate::track_event::read::event::TrackEvent;
use crate::track_event::read::heap::HeapDumps;
use crate::track_event::read::interned::{Entries, InternedStrings};
use crate::track_event::read::repeated::TrackUuids;
use crate::track_event::read::samples::{self, InternedStacks, ModuleSymbols};
use crate::track_event::read::stream::{self, Processes, TraceAttributes};
use crate::track_event::read::track::TrackDescriptor;
use crate::track_event::samples::PerfSample;
use crate::track_event::stream::{SYNCHRONIZATION_MARKER, SystemInfo, TraceStats};
use crate::track_event::task_state::TaskStateEvent;

/// A packet that was read. Absent fields have the values that earlier packets of the sequence set.
///
/// ```
/// use hairline_formats::track_event::{
///     Event, EventType, Packet, PacketData, PacketReader, SequenceId, event,
/// };
///
/// let mut trace = Vec::new();
/// event(&mut trace, &Event::new(SequenceId(1), EventType::Instant, 1_000));
/// let mut reader = PacketReader::new(&trace[..]);
/// let (offset, message) = reader.next_message()?.unwrap(); // not read yet
/// let packet = Packet::decode(message)?;
/// assert_eq!((offset, packet.sequence, packet.timestamp), (0, SequenceId(1), Some(1_000)));
/// assert!(matches!(packet.data, Some(PacketData::Event(_))));
/// assert_eq!(packet.bytes(), &trace[2..]); // without tag and length
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// The packet's sequence; 0 if it is missing.
    pub sequence: SequenceId,
    /// Bits of [`sequence_flags`].
    pub flags: u32,
    /// The time, on the clock `clock_id`.
    pub timestamp: Option<u64>,
    /// The number of the timestamp's [clock](crate::track_event::fields::clock), unless it is the sequence's
    /// default.
    pub clock_id: Option<u32>,
    /// Whether the packet is marked as the first of its sequence.
    pub first: bool,
    /// Whether packets before this one were lost.
    pub dropped: bool,
    /// The defaults for the packets after it on the sequence.
    pub defaults: Option<PacketDefaults<'a>>,
    /// The packet's data; `None` if it only sets the sequence's state.
    pub data: Option<PacketData<'a>>,
    /// The number of unknown fields, including those of a trace's uuid, a system info and statistics.
    pub skipped: u32,
    message: Fields<'a>,
    has_interned: bool,
}

/// The data of a packet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PacketData<'a> {
    /// An event.
    Event(TrackEvent<'a>),
    /// A track.
    Track(Box<TrackDescriptor<'a>>),
    /// Readings of several clocks at one moment.
    Clocks(ClockReadings<'a>),
    /// The trace's uuid, the same in all its files.
    TraceUuid(u128),
    /// Attributes of the trace: names and values.
    Attributes(TraceAttributes<'a>),
    /// The machine. Missing fields are "" or 0.
    System(SystemInfo<'a>),
    /// Processes and their command lines.
    Processes(Processes<'a>),
    /// The state that a thread has from the packet's time on. Missing fields are `None`, "", 0 or
    /// [`TaskState::Unknown`](crate::track_event::TaskState). A state that the schema does not have is
    /// [`PacketData::Other`].
    TaskState(TaskStateEvent<'a>),
    /// Statistics: the sums of all buffers, saturating. Missing fields are 0.
    Stats(TraceStats),
    /// A sample of a call stack.
    Sample(PerfSample),
    /// The functions of a file's addresses.
    Symbols(ModuleSymbols<'a>),
    /// Dumps of heap profiles.
    HeapDumps(HeapDumps<'a>),
    /// The [marker](crate::track_event::SYNCHRONIZATION_MARKER) at which a reader can begin. Other bytes in
    /// its field are [`PacketData::Other`].
    SynchronizationMarker,
    /// The end of the session ([`session_end`](crate::track_event::session_end)). Other events of the service
    /// are [`PacketData::Other`].
    SessionEnd,
    /// Compressed packets, or hidden ones.
    ///
    /// The caller inflates them. The result is whole packets, tags and lengths included, which another
    /// [`PacketReader`](crate::track_event::PacketReader) reads. They take the place of this packet, in their
    /// order. A few bytes can inflate to a thousand times as many, and they can contain compressed packets
    /// again: limit both.
    Compressed {
        /// How they are compressed.
        by: Compression,
        /// The zlib stream, the zstd frames, or the packets.
        bytes: &'a [u8],
        /// The offset of its first byte in the input.
        offset: u64,
    },
    /// A message that this crate does not read.
    Other {
        /// The number of the field of TracePacket.
        field: u32,
        /// The value.
        bytes: &'a [u8],
        /// The offset of the value in the input.
        offset: u64,
    },
}

/// How packets are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// A zlib stream.
    Zlib,
    /// Frames of zstd, since Perfetto v58.
    Zstd,
    /// They are not: they are [hidden](crate::track_event::hidden_packets) from Perfetto.
    None,
}

/// `TracePacketDefaults`.
///
/// ```
/// use hairline_formats::track_event::{PacketReader, SequenceId, SequenceStart, TrackUuid, sequence_start};
///
/// let mut trace = Vec::new();
/// sequence_start(&mut trace, &SequenceStart {
///     sequence: SequenceId(1),
///     first: true,
///     dropped: false,
///     track_uuid: TrackUuid(71),
///     extra_counters: &[TrackUuid(72), TrackUuid(73)], // the tracks of the extra values of each event
///     timestamp_ns: 1_000,
/// });
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let defaults = packet.defaults.unwrap();
/// let tracks: Vec<_> = defaults.extra_counter_track_uuids().collect::<Result<_, _>>()?;
/// assert_eq!(tracks, [TrackUuid(72), TrackUuid(73)]);
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PacketDefaults<'a> {
    /// The default clock of timestamps.
    pub timestamp_clock_id: Option<u32>,
    /// The default track of events.
    pub track_uuid: Option<TrackUuid>,
    event: Fields<'a>,
}

impl<'a> Packet<'a> {
    /// Reads the packet with these fields.
    ///
    /// # Errors
    /// The packet is malformed.
    pub fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut packet = Self {
            sequence: SequenceId(0),
            flags: 0,
            timestamp: None,
            clock_id: None,
            first: false,
            dropped: false,
            defaults: None,
            data: None,
            skipped: 0,
            message: message.clone(),
            has_interned: false,
        };
        for field in message {
            let field = field?;
            packet.add(field.number, field.value)?;
        }
        Ok(packet)
    }

    fn add(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), DecodeError> {
        use FieldValue::{Bytes, Varint};
        match (number, value) {
            (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, Varint(v)) => self.sequence = SequenceId(v as u32),
            (trace_packet::SEQUENCE_FLAGS, Varint(v)) => self.flags |= v as u32,
            (trace_packet::INCREMENTAL_STATE_CLEARED, Varint(1..)) => self.flags |= sequence_flags::CLEARED,
            (trace_packet::INCREMENTAL_STATE_CLEARED, Varint(0)) => {}
            (trace_packet::TIMESTAMP, Varint(v)) => self.timestamp = Some(v),
            (trace_packet::TIMESTAMP_CLOCK_ID, Varint(v)) => self.clock_id = Some(v as u32),
            (trace_packet::FIRST_PACKET_ON_SEQUENCE, Varint(v)) => self.first = v != 0,
            (trace_packet::PREVIOUS_PACKET_DROPPED, Varint(v)) => self.dropped = v != 0,
            (trace_packet::TRUSTED_PID, Varint(_)) => {}
            (_, Bytes { bytes, offset }) => self.add_message(number, bytes, offset)?,
            _ => self.skipped += 1,
        }
        Ok(())
    }

    fn entries(&self) -> Entries<'a> {
        Entries::new(if self.has_interned { self.message.clone() } else { Fields::none() })
    }

    fn add_message(&mut self, number: u32, bytes: &'a [u8], offset: u64) -> Result<(), DecodeError> {
        let message = Fields::new(bytes, offset);
        let other = PacketData::Other { field: number, bytes, offset };
        self.data = Some(match number {
            trace_packet::TRACE_PACKET_DEFAULTS => {
                self.defaults = Some(PacketDefaults::decode(message)?);
                return Ok(());
            }
            trace_packet::INTERNED_DATA => {
                self.has_interned = true;
                return Ok(());
            }
            trace_packet::TRACK_EVENT => PacketData::Event(TrackEvent::decode(message)?),
            trace_packet::TRACK_DESCRIPTOR => PacketData::Track(Box::new(TrackDescriptor::decode(message)?)),
            trace_packet::CLOCK_SNAPSHOT => PacketData::Clocks(ClockReadings { snapshot: message }),
            trace_packet::TRACE_UUID => {
                PacketData::TraceUuid(stream::trace_uuid(message, &mut self.skipped)?)
            }
            trace_packet::TRACE_ATTRIBUTES => PacketData::Attributes(TraceAttributes(message)),
            trace_packet::SYSTEM_INFO => PacketData::System(stream::system_info(message, &mut self.skipped)?),
            trace_packet::PROCESS_TREE => PacketData::Processes(Processes::new(message)),
            trace_packet::GENERIC_KERNEL_TASK_STATE_EVENT => {
                stream::task_state(message)?.map_or(other, PacketData::TaskState)
            }
            trace_packet::TRACE_STATS => PacketData::Stats(stream::trace_stats(message, &mut self.skipped)?),
            trace_packet::PERF_SAMPLE => PacketData::Sample(samples::sample(message, &mut self.skipped)?),
            trace_packet::MODULE_SYMBOLS => PacketData::Symbols(ModuleSymbols::decode(message)?),
            trace_packet::PROFILE_PACKET => PacketData::HeapDumps(HeapDumps::decode(message)?),
            trace_packet::SYNCHRONIZATION_MARKER if bytes == SYNCHRONIZATION_MARKER => {
                PacketData::SynchronizationMarker
            }
            trace_packet::SERVICE_EVENT if stream::is_session_end(message.clone())? => PacketData::SessionEnd,
            trace_packet::COMPRESSED_PACKETS => {
                PacketData::Compressed { by: Compression::Zlib, bytes, offset }
            }
            trace_packet::ZSTD_COMPRESSED_PACKETS => {
                PacketData::Compressed { by: Compression::Zstd, bytes, offset }
            }
            trace_packet::HIDDEN_PACKETS => PacketData::Compressed { by: Compression::None, bytes, offset },
            // A packet has one kind of data. An unknown extension beside it must not replace it.
            _ if self.data.is_some() => {
                self.skipped += 1;
                return Ok(());
            }
            _ => other,
        });
        Ok(())
    }

    /// Returns the packet's bytes, without its tag and length.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.message.rest()
    }

    /// Returns the packet's fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        self.message.clone()
    }

    /// Returns the strings and source locations that the packet interns.
    #[must_use]
    pub fn interned(&self) -> InternedStrings<'a> {
        InternedStrings(self.entries())
    }

    /// Returns the interned parts of call stacks of the packet.
    #[must_use]
    pub fn interned_stacks(&self) -> InternedStacks<'a> {
        InternedStacks::new(self.entries())
    }
}

impl<'a> PacketDefaults<'a> {
    fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut defaults = Self { timestamp_clock_id: None, track_uuid: None, event: Fields::none() };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (trace_packet_defaults::TIMESTAMP_CLOCK_ID, FieldValue::Varint(v)) => {
                    defaults.timestamp_clock_id = Some(v as u32);
                }
                (trace_packet_defaults::TRACK_EVENT_DEFAULTS, FieldValue::Bytes { bytes, offset }) => {
                    defaults.event = Fields::new(bytes, offset);
                    for field in defaults.event.clone() {
                        let field = field?;
                        if let (track_event_defaults::TRACK_UUID, FieldValue::Varint(v)) =
                            (field.number, field.value)
                        {
                            defaults.track_uuid = Some(TrackUuid(v));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(defaults)
    }

    /// Returns the default tracks of the extra counters.
    #[must_use]
    pub fn extra_counter_track_uuids(&self) -> TrackUuids<'a> {
        TrackUuids::new(self.event.clone(), track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS)
    }
}

/// A reading of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The number of the [clock](crate::track_event::fields::clock).
    pub clock_id: u32,
    /// The reading, in ticks of the clock.
    pub timestamp: u64,
    /// Whether each timestamp is relative to the previous one of its sequence.
    pub is_incremental: bool,
    /// The length of a tick in ns.
    pub unit_multiplier_ns: u64,
}

/// `ClockSnapshot`: iterates over the readings of several clocks at one moment.
#[derive(Clone, Debug)]
pub struct ClockReadings<'a> {
    snapshot: Fields<'a>,
}

impl ClockReadings<'_> {
    /// Returns the clock of the trace's own time, if the snapshot has it.
    #[must_use]
    pub fn primary(&self) -> Option<u32> {
        let mut primary = None;
        for field in self.snapshot.clone().flatten() {
            if let (clock_snapshot::PRIMARY_TRACE_CLOCK, FieldValue::Varint(v)) = (field.number, field.value)
            {
                primary = Some(v as u32);
            }
        }
        primary
    }

    fn reading(message: Fields<'_>) -> Result<ClockReading, DecodeError> {
        let mut reading =
            ClockReading { clock_id: 0, timestamp: 0, is_incremental: false, unit_multiplier_ns: 1 };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (clock_reading::CLOCK_ID, FieldValue::Varint(v)) => reading.clock_id = v as u32,
                (clock_reading::TIMESTAMP, FieldValue::Varint(v)) => reading.timestamp = v,
                (clock_reading::IS_INCREMENTAL, FieldValue::Varint(v)) => reading.is_incremental = v != 0,
                (clock_reading::UNIT_MULTIPLIER_NS, FieldValue::Varint(v)) => reading.unit_multiplier_ns = v,
                _ => {}
            }
        }
        Ok(reading)
    }
}

impl Iterator for ClockReadings<'_> {
    type Item = Result<ClockReading, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.snapshot.next_message(clock_snapshot::CLOCKS)?.and_then(Self::reading))
    }
}
