//! Streams the packets of a trace. Memory: a buffer of 64 KiB, or the largest packet, at most 64 MiB.

use std::io::Read;

use crate::input::Input;
use crate::proto::{Field, FieldValue, Fields, MAX_VARINT, Varint, WireType, split_tag, tag, varint};
use crate::track_event::fields::{trace, trace_packet};
use crate::track_event::read::interned_event::InternedEvent;
use crate::track_event::read::packet::Packet;
use crate::zeros::{Begin, Zeros};
use crate::{DecodeError, DecodeErrorKind};

/// The limit for a packet, in bytes. A reader has the whole packet in memory, and a compressed trace of some
/// KB can have one of any size. Recorders write packets of some KiB, and seldom of some MiB.
pub const MAX_PACKET: usize = 64 << 20;

/// Reads a trace, packet by packet.
///
/// ```
/// use hairline_formats::track_event::{self, PacketData, PacketReader, SequenceId};
///
/// let mut trace = Vec::new();
/// track_event::clock_snapshot(&mut trace, SequenceId(1), &[(6, 1_000)]);
///
/// let mut reader = PacketReader::new(&trace[..]);
/// while let Some((offset, packet)) = reader.next()? {
///     assert_eq!((offset, packet.sequence), (0, SequenceId(1)));
///     assert!(matches!(packet.data, Some(PacketData::Clocks(_))));
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct PacketReader<R> {
    input: Input<R>,
    /// The size of the packet that was returned last, in bytes.
    current: usize,
    skipped: u64,
    zeros: Zeros,
    ended: bool,
}

/// A packet's tag.
const PACKET: u8 = tag(trace::PACKET, WireType::Bytes) as u8;

/// The size of a packet's tag and length in bytes, if the length takes one byte.
const SHORT_HEAD: usize = 2;

/// The beginning of a field of the trace.
struct Head {
    field: u32,
    wire: WireType,
    /// The size of the tag and, if there is one, the length.
    len: usize,
    /// The number of bytes that follow.
    body: u64,
}

/// Whether a packet ends with a zero that a writer would not have written: if zeros follow too, as in a file
/// whose blocks were lost, the packet's last number was cut. Hairline's numbers of a fixed length end with
/// 0x80 and a zero.
#[inline]
#[must_use]
pub fn ends_like_cut(packet: &[u8]) -> bool {
    matches!(packet, [.., 0x81..=0xff, 0])
}

impl<R: Read> PacketReader<R> {
    /// Creates a reader of `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self { input: Input::new(reader), current: 0, skipped: 0, zeros: Zeros::default(), ended: false }
    }

    /// Returns the number of fields of the trace that were no packets and were passed over so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the stretches of zeros between packets that were passed over so far, and the packets that end in
    /// them and were left out. The zeros of a trace are
    /// not its first bytes.
    #[must_use]
    pub fn zeros(&self) -> Zeros {
        self.zeros
    }

    /// Returns the next packet and the offset of its tag.
    ///
    /// Returns `None` at the end. If the input has grown since, a later call returns further packets.
    ///
    /// # Errors
    /// * The packet is malformed, or larger than [`MAX_PACKET`]. The next call returns the packet after it.
    /// * The input ends inside a packet ([`DecodeError::is_truncated`]), is no trace, or cannot be read. The
    ///   next call returns `None`.
    #[allow(clippy::should_implement_trait)] // an Iterator's item cannot borrow from the reader
    pub fn next(&mut self) -> Result<Option<(u64, Packet<'_>)>, DecodeError> {
        match self.next_message()? {
            Some((offset, message)) => Ok(Some((offset, Packet::decode(message)?))),
            None => Ok(None),
        }
    }

    /// Returns the next packet's fields and the offset of its tag, without reading the packet.
    ///
    /// [`PlainEvent::decode`](crate::track_event::PlainEvent::decode) or [`Packet::decode`] reads it.
    ///
    /// # Errors
    /// Those of [`next`](Self::next), except for malformed packets.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<(u64, Fields<'_>)>, DecodeError> {
        let head = loop {
            self.input.consume(std::mem::take(&mut self.current));
            if self.ended {
                return Ok(None);
            }
            let found = match self.short_packet() {
                Some(len) => Some((SHORT_HEAD, len)),
                None => self.find_packet()?,
            };
            let Some((head, len)) = found else {
                return Ok(None);
            };
            self.current = head + len;
            if !ends_like_cut(&self.input.available()[..self.current]) || !self.is_cut_by_zeros()? {
                break head;
            }
            self.zeros.cut += 1;
        };
        let offset = self.input.offset();
        let body = &self.input.available()[head..self.current];
        Ok(Some((offset, Fields::new(body, offset + head as u64))))
    }

    /// Whether the last number of a packet that ends like a cut one continues in zeros that follow it.
    #[cold]
    fn is_cut_by_zeros(&mut self) -> Result<bool, DecodeError> {
        Ok(self.input.fill(self.current as u64 + 1)?.get(self.current) == Some(&0))
    }

    /// Returns the next packet's offset, its event and its size, if the packet is in memory, and has a slice
    /// or an instant as Hairline writes them. It remains the next one until [`pass`](Self::pass).
    #[inline]
    pub fn peek_interned(&mut self) -> Option<(u64, InternedEvent<'_>, usize)> {
        self.input.consume(std::mem::take(&mut self.current));
        if self.ended {
            return None;
        }
        let (event, size) = InternedEvent::decode_short(self.input.available())?;
        Some((self.input.offset(), event, size))
    }

    /// The offset of the next packet, and the bytes in memory from there on. They remain the next ones until
    /// [`pass`](Self::pass). None after an error.
    #[inline]
    pub fn buffered(&mut self) -> (u64, &[u8]) {
        self.input.consume(std::mem::take(&mut self.current));
        (self.input.offset(), if self.ended { &[] } else { self.input.available() })
    }

    /// Passes over the packet that [`peek_interned`](Self::peek_interned) returned with that size, or over
    /// whole packets that [`buffered`](Self::buffered) returned.
    #[inline]
    pub fn pass(&mut self, size: usize) {
        self.current = size.min(self.input.available().len());
    }

    /// Returns the length of the next packet if it is in memory and its length takes one byte, as nearly
    /// always.
    #[inline]
    fn short_packet(&self) -> Option<usize> {
        match self.input.available() {
            [PACKET, len @ 0..0x80, body @ ..] if usize::from(*len) <= body.len() => Some(usize::from(*len)),
            _ => None,
        }
    }

    /// Passes over fields before the next packet and reads the packet into memory. Returns the size of its
    /// tag and length, and of its content.
    fn find_packet(&mut self) -> Result<Option<(usize, usize)>, DecodeError> {
        self.ended = true; // until a whole packet is found
        let head = loop {
            if self.input.offset() > 0 && self.input.fill(1)?.first() == Some(&0) {
                self.zeros.pass(&mut self.input, 1, begin)?;
            }
            let Some(head) = self.head()? else {
                self.ended = false; // the input can grow before the next call
                return Ok(None);
            };
            if head.field == trace::PACKET && head.wire == WireType::Bytes {
                break head;
            }
            let offset = self.input.offset();
            self.input.consume(head.len);
            if !self.input.skip(head.body)? {
                return Err(DecodeError::truncated(offset, "a field of the trace"));
            }
            self.skipped += 1;
        };
        if head.body > MAX_PACKET as u64 {
            return Err(self.pass_over(&head));
        }
        let size = head.len as u64 + head.body;
        let available = self.input.fill(size)?.len();
        if (available as u64) < size {
            return Err(DecodeError::truncated(self.input.offset(), "a packet"));
        }
        self.ended = false;
        // `size` bytes are in memory, so `size` fits a usize.
        Ok(Some((head.len, size as usize - head.len)))
    }

    /// Passes over a packet that is too large. Returns the error for it.
    #[cold]
    fn pass_over(&mut self, head: &Head) -> DecodeError {
        let offset = self.input.offset();
        self.input.consume(head.len);
        match self.input.skip(head.body) {
            Ok(true) => {
                self.ended = false;
                let kind = DecodeErrorKind::TooLarge { what: "a packet", limit: MAX_PACKET };
                DecodeError::new(offset, kind)
            }
            Ok(false) => DecodeError::truncated(offset, "a packet"),
            Err(e) => e,
        }
    }

    /// Reads the next tag and length without consuming them. Returns `None` at the end.
    fn head(&mut self) -> Result<Option<Head>, DecodeError> {
        let offset = self.input.offset();
        let Some((tag, tag_len)) = self.varint_at(0)? else {
            return Ok(None);
        };
        let (field, wire) = split_tag(tag, offset)?;
        let (len, body) = match wire {
            WireType::Fixed64 => (tag_len, 8),
            WireType::Fixed32 => (tag_len, 4),
            WireType::Varint | WireType::Bytes => {
                let truncated = || DecodeError::truncated(offset, "a field of the trace");
                let (value, value_len) = self.varint_at(tag_len)?.ok_or_else(truncated)?;
                (tag_len + value_len, if wire == WireType::Bytes { value } else { 0 })
            }
        };
        Ok(Some(Head { field, wire, len, body }))
    }

    /// Reads the varint `skip` bytes ahead. Returns `None` if the input ends there.
    fn varint_at(&mut self, skip: usize) -> Result<Option<(u64, usize)>, DecodeError> {
        let field = self.input.offset();
        let bytes = self.input.fill((skip + MAX_VARINT) as u64)?;
        let bytes = bytes.get(skip..).unwrap_or_default();
        match varint(bytes) {
            Varint::Complete(value, len) => Ok(Some((value, len))),
            Varint::Cut if bytes.is_empty() => Ok(None),
            // Everything before a truncation's offset is valid, so the offset is that of the field.
            Varint::Cut => Err(DecodeError::truncated(field, "a field of the trace")),
            Varint::TooLong => Err(DecodeError::new(field + skip as u64, DecodeErrorKind::LongVarint)),
        }
    }
}

/// Whether bytes begin with a packet that has a time, a sequence or compressed packets, as nearly all have,
/// and another packet, more zeros or the end of the input follows. Interned strings have the tag of a packet
/// too, but none of these.
fn begin(bytes: &[u8], is_end: bool) -> Begin {
    let size = match whole_packet(bytes) {
        Ok((body, size)) if is_told(body.clone()) => size,
        Ok(_) => return Begin::Other,
        Err(begin) => return begin,
    };
    match bytes.get(size..).unwrap_or_default() {
        [] if is_end => Begin::Record,
        [] => Begin::Needs(size + 1),
        [0, ..] => Begin::Record,
        next => match whole_packet(next) {
            Ok(_) => Begin::Record,
            Err(Begin::Needs(len)) => Begin::Needs(size + len),
            Err(begin) => begin,
        },
    }
}

/// So many fields at the begin of a packet show that it is one, and how it was written. In a made file, each
/// byte may begin a packet of millions.
const SHOWN: usize = 64;

/// The content of the packet that bytes begin with, and the size of the packet.
fn whole_packet(bytes: &[u8]) -> Result<(Fields<'_>, usize), Begin> {
    let [PACKET, rest @ ..] = bytes else { return Err(Begin::Other) };
    let (len, head) = match varint(rest) {
        Varint::Complete(len, size) => (len, size + 1),
        Varint::Cut => return Err(Begin::Needs(bytes.len() + 1)),
        Varint::TooLong => return Err(Begin::Other),
    };
    let Some(len) = usize::try_from(len).ok().filter(|len| *len <= MAX_PACKET) else {
        return Err(Begin::Other);
    };
    let body = &bytes[head..bytes.len().min(head + len)];
    let is_cut = body.len() < len;
    for field in Fields::new(body, 0).take(SHOWN) {
        match field {
            Ok(_) => {}
            Err(DecodeError { kind: DecodeErrorKind::PastEnd { .. }, .. }) if is_cut => break,
            Err(_) => return Err(Begin::Other),
        }
    }
    if is_cut { Err(Begin::Needs(head + len)) } else { Ok((Fields::new(body, 0), head + len)) }
}

/// Whether a packet says when or where it was written, or has compressed packets.
fn is_told(packet: Fields<'_>) -> bool {
    packet.take(SHOWN).any(|field| match field {
        Ok(Field { number, value: FieldValue::Varint(_), .. }) => {
            matches!(number, trace_packet::TIMESTAMP | trace_packet::TRUSTED_PACKET_SEQUENCE_ID)
        }
        Ok(Field { number, value: FieldValue::Bytes { .. }, .. }) => {
            matches!(number, trace_packet::COMPRESSED_PACKETS | trace_packet::ZSTD_COMPRESSED_PACKETS)
        }
        _ => false,
    })
}
