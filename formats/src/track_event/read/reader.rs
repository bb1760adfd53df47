//! Streams the packets of a trace, in memory for one packet and a buffer.

use std::io::Read;

use crate::input::Input;
use crate::proto::{Fields, MAX_VARINT, Varint, WireType, split_tag, tag, varint};
use crate::track_event::fields::trace;
use crate::track_event::read::packet::Packet;
use crate::{DecodeError, DecodeErrorKind};

/// Reads a trace, packet by packet.
///
/// ```
/// use hairline_formats::track_event::{self, Data, Reader};
///
/// let mut trace = Vec::new();
/// track_event::clock_snapshot(&mut trace, 1, &[(6, 1_000)]);
///
/// let mut reader = Reader::new(&trace[..]);
/// while let Some((offset, packet)) = reader.next()? {
///     assert_eq!((offset, packet.sequence), (0, 1));
///     assert!(matches!(packet.data, Some(Data::Clocks(_))));
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    /// Bytes of the packet that was given out last.
    given: usize,
    skipped: u64,
    ended: bool,
}

/// A packet's tag.
const PACKET: u8 = tag(trace::PACKET, WireType::Bytes) as u8;

/// Bytes of a packet's tag and its length, if that takes one byte.
const SHORT_HEAD: usize = 2;

/// What stands at the beginning of a field of the trace.
struct Head {
    field: u32,
    wire: WireType,
    /// Bytes of the tag and, if there is one, the length.
    len: usize,
    /// Bytes that follow.
    body: u64,
}

impl<R: Read> Reader<R> {
    /// Reads from `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self { input: Input::new(reader), given: 0, skipped: 0, ended: false }
    }

    /// Fields of the trace itself that are no packets, and were passed over so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next packet, and the byte its tag stands at; None at the end, after which it goes on if there is more by then.
    ///
    /// # Errors
    /// A packet that contradicts itself: the next call goes on with the one after it. An input that ends inside a packet
    /// ([`DecodeError::is_truncated`]), is no trace at all, or cannot be read: the next call gives None.
    #[allow(clippy::should_implement_trait)] // the packet borrows from the reader, which an Iterator's item cannot
    pub fn next(&mut self) -> Result<Option<(u64, Packet<'_>)>, DecodeError> {
        match self.next_message()? {
            Some((offset, message)) => Ok(Some((offset, Packet::decode(message)?))),
            None => Ok(None),
        }
    }

    /// As [`next`](Self::next), for whom a look at the packet's bytes may do: [`PlainEvent::decode`] or [`Packet::decode`] says what
    /// stands in them.
    ///
    /// # Errors
    /// Those of the trace itself: what is inside of the packet is not looked at.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<(u64, Fields<'_>)>, DecodeError> {
        self.input.consume(std::mem::take(&mut self.given));
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
        self.given = head + len;
        let offset = self.input.offset();
        let body = &self.input.available()[head..self.given];
        Ok(Some((offset, Fields::new(body, offset + head as u64))))
    }

    /// The length of the packet that stands next, if it is all in memory and its length takes one byte: so it is with nearly all.
    #[inline]
    fn short_packet(&self) -> Option<usize> {
        match self.input.available() {
            [PACKET, len @ 0..0x80, body @ ..] if usize::from(*len) <= body.len() => Some(usize::from(*len)),
            _ => None,
        }
    }

    /// Passes over what stands before the next packet, and brings that into memory: the bytes of its tag and length, and those that
    /// follow.
    fn find_packet(&mut self) -> Result<Option<(usize, usize)>, DecodeError> {
        self.ended = true; // unless a packet is found, whose end is the beginning of the next
        let head = loop {
            let Some(head) = self.head()? else {
                self.ended = false; // there may be more by the next call
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
        let size = (head.len as u64).saturating_add(head.body);
        let available = self.input.fill(size)?.len();
        if (available as u64) < size {
            return Err(DecodeError::truncated(self.input.offset(), "a packet"));
        }
        self.ended = false;
        // `size` is at most what is in memory, and so a usize.
        Ok(Some((head.len, size as usize - head.len)))
    }

    /// Looks at the next tag and length without passing them; None at the end.
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

    /// The varint `skip` bytes ahead; None if the input ends there.
    fn varint_at(&mut self, skip: usize) -> Result<Option<(u64, usize)>, DecodeError> {
        let field = self.input.offset();
        let bytes = self.input.fill((skip + MAX_VARINT) as u64)?;
        let bytes = bytes.get(skip..).unwrap_or_default();
        match varint(bytes) {
            Varint::Complete(value, len) => Ok(Some((value, len))),
            Varint::Cut if bytes.is_empty() => Ok(None),
            // All before a truncation's offset is good: it is the field that is cut, not only its length.
            Varint::Cut => Err(DecodeError::truncated(field, "a field of the trace")),
            Varint::TooLong => Err(DecodeError::new(field + skip as u64, DecodeErrorKind::LongVarint)),
        }
    }
}
