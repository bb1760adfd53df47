//! A packet, as it is read.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::fields::{
    clock_reading, clock_snapshot, sequence_flags, trace_packet, trace_packet_defaults, track_event_defaults,
};
use crate::track_event::read::event::TrackEvent;
use crate::track_event::read::interned::InternedStrings;
use crate::track_event::read::repeated::Numbers;
use crate::track_event::read::stream::{self, Processes};
use crate::track_event::read::track::TrackDescriptor;
use crate::track_event::stream::{SYNCHRONIZATION_MARKER, SystemInfo, TraceStats};

/// A packet. What it leaves out holds as the packets of its sequence before it say.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Whose packet it is; 0 if it says nothing.
    pub sequence: u32,
    /// Bits of [`sequence_flags`].
    pub flags: u32,
    /// When, on the clock below.
    pub timestamp: Option<u64>,
    /// The timestamp's [clock](crate::track_event::fields::clock), if it is not the sequence's default.
    pub clock_id: Option<u32>,
    /// Whether it says that it is its sequence's first.
    pub first: bool,
    /// Whether it says that packets before it were lost.
    pub dropped: bool,
    /// What holds for the packets after it, on its sequence.
    pub defaults: Option<Defaults<'a>>,
    /// What it is about; None if it only changes the sequence's state.
    pub data: Option<Data<'a>>,
    /// Fields that were passed over, inside a trace's uuid, a machine's description and statistics too.
    pub skipped: u32,
    message: Fields<'a>,
    has_interned: bool,
}

/// What a packet is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Data<'a> {
    /// Something that happened.
    Event(TrackEvent<'a>),
    /// A track.
    Track(Box<TrackDescriptor<'a>>),
    /// What clocks showed at one moment.
    Clocks(ClockReadings<'a>),
    /// The trace's own number, the same in all its files.
    TraceUuid(u128),
    /// The machine. What is missing is "" or 0.
    System(SystemInfo<'a>),
    /// Processes and how they were started.
    Processes(Processes<'a>),
    /// What was lost and what was not: the sums of all buffers, saturating. What is missing is 0.
    Stats(TraceStats),
    /// The [marker](crate::track_event::SYNCHRONIZATION_MARKER) of a place where a reader can begin. Other bytes in its
    /// field are [`Data::Other`].
    SynchronizationMarker,
    /// Packets, compressed with zlib.
    ///
    /// This crate does not inflate them; the caller does. What comes of it is whole packets, tags and lengths included,
    /// which another [`Reader`](crate::track_event::Reader) reads. They take the place of this packet, in their order.
    /// A few bytes can inflate to a thousand times as many, and hold compressed packets again: limit both.
    Compressed {
        /// The zlib stream.
        bytes: &'a [u8],
        /// Where it begins in the input.
        offset: u64,
    },
    /// Something that this crate does not read.
    Other {
        /// The field of TracePacket.
        field: u32,
        /// Its value.
        bytes: &'a [u8],
        /// Where that begins in the input.
        offset: u64,
    },
}

/// `TracePacketDefaults`.
#[derive(Clone, Debug)]
pub struct Defaults<'a> {
    /// The clock of timestamps that name none.
    pub timestamp_clock_id: Option<u32>,
    /// The track of events that name none.
    pub track_uuid: Option<u64>,
    event: Fields<'a>,
}

impl<'a> Packet<'a> {
    /// What the packet of these fields says.
    ///
    /// # Errors
    /// A packet that contradicts itself.
    pub fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut packet = Self {
            sequence: 0,
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
            (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, Varint(v)) => self.sequence = v as u32,
            (trace_packet::SEQUENCE_FLAGS, Varint(v)) => self.flags |= v as u32,
            (trace_packet::INCREMENTAL_STATE_CLEARED, Varint(1..)) => self.flags |= sequence_flags::CLEARED,
            (trace_packet::INCREMENTAL_STATE_CLEARED, Varint(0)) => {}
            (trace_packet::TIMESTAMP, Varint(v)) => self.timestamp = Some(v),
            (trace_packet::TIMESTAMP_CLOCK_ID, Varint(v)) => self.clock_id = Some(v as u32),
            (trace_packet::FIRST_PACKET_ON_SEQUENCE, Varint(v)) => self.first = v != 0,
            (trace_packet::PREVIOUS_PACKET_DROPPED, Varint(v)) => self.dropped = v != 0,
            (trace_packet::TRACE_PACKET_DEFAULTS, Bytes { bytes, offset }) => {
                self.defaults = Some(Defaults::decode(Fields::new(bytes, offset))?);
            }
            (trace_packet::INTERNED_DATA, Bytes { .. }) => self.has_interned = true,
            (trace_packet::TRACK_EVENT, Bytes { bytes, offset }) => {
                self.data = Some(Data::Event(TrackEvent::decode(Fields::new(bytes, offset))?));
            }
            (trace_packet::TRACK_DESCRIPTOR, Bytes { bytes, offset }) => {
                let track = TrackDescriptor::decode(Fields::new(bytes, offset))?;
                self.data = Some(Data::Track(Box::new(track)));
            }
            (trace_packet::CLOCK_SNAPSHOT, Bytes { bytes, offset }) => {
                self.data = Some(Data::Clocks(ClockReadings { snapshot: Fields::new(bytes, offset) }));
            }
            (trace_packet::TRACE_UUID, Bytes { bytes, offset }) => {
                let uuid = stream::trace_uuid(Fields::new(bytes, offset), &mut self.skipped)?;
                self.data = Some(Data::TraceUuid(uuid));
            }
            (trace_packet::SYSTEM_INFO, Bytes { bytes, offset }) => {
                let info = stream::system_info(Fields::new(bytes, offset), &mut self.skipped)?;
                self.data = Some(Data::System(info));
            }
            (trace_packet::PROCESS_TREE, Bytes { bytes, offset }) => {
                self.data = Some(Data::Processes(Processes::new(Fields::new(bytes, offset))));
            }
            (trace_packet::TRACE_STATS, Bytes { bytes, offset }) => {
                let stats = stream::trace_stats(Fields::new(bytes, offset), &mut self.skipped)?;
                self.data = Some(Data::Stats(stats));
            }
            (trace_packet::SYNCHRONIZATION_MARKER, Bytes { bytes, .. })
                if bytes == SYNCHRONIZATION_MARKER =>
            {
                self.data = Some(Data::SynchronizationMarker);
            }
            (trace_packet::COMPRESSED_PACKETS, Bytes { bytes, offset }) => {
                self.data = Some(Data::Compressed { bytes, offset });
            }
            // A packet has one kind of data; an extension beside it must not take the place of what is known.
            (field, Bytes { bytes, offset }) if self.data.is_none() => {
                self.data = Some(Data::Other { field, bytes, offset });
            }
            _ => self.skipped += 1,
        }
        Ok(())
    }

    /// All of the packet, without its tag and length.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.message.rest()
    }

    /// All of the packet's fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        self.message.clone()
    }

    /// The numbers it gives to strings.
    #[must_use]
    pub fn interned(&self) -> InternedStrings<'a> {
        InternedStrings::new(if self.has_interned { self.message.clone() } else { Fields::none() })
    }
}

impl<'a> Defaults<'a> {
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
                            defaults.track_uuid = Some(v);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(defaults)
    }

    /// The tracks of the extra counters, for events that name none.
    #[must_use]
    pub fn extra_counter_track_uuids(&self) -> Numbers<'a> {
        Numbers::varints(self.event.clone(), track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS)
    }
}

/// What one clock showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Which [clock](crate::track_event::fields::clock).
    pub clock_id: u32,
    /// What it showed.
    pub timestamp: u64,
    /// Whether its timestamps count from one another.
    pub is_incremental: bool,
    /// ns of one of its ticks.
    pub unit_multiplier_ns: u64,
}

/// `ClockSnapshot`: what clocks showed at one moment.
#[derive(Clone, Debug)]
pub struct ClockReadings<'a> {
    snapshot: Fields<'a>,
}

impl ClockReadings<'_> {
    /// The clock that the trace's own time is on, if this says so.
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
        loop {
            match self.snapshot.next()? {
                Ok(field) if field.number == clock_snapshot::CLOCKS => {
                    if let Some(message) = field.value.message() {
                        return Some(Self::reading(message));
                    }
                }
                Ok(_) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
