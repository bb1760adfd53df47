//! Records that are composed as they are written: with a name made at run time, with nested arguments, and
//! ends with arguments.
//!
//! The room is checked once, for the most bytes that the record may have. Then name and arguments are stored
//! into the chunk, and the lengths in front of them last. Arguments that are read by code of the program come
//! as bytes that were encoded before (`encoded.rs`). Nothing here depends on the types of the arguments, so a
//! program has each of these functions once. Their checks and their commit are those of the other records on
//! the hot path.

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::proto::varint_len;
use hairline_formats::{fxt, proto, track_event};
use hairline_shm::Lease;

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::encode::MAX_NAME;
use crate::on::encode::track_event::message::{
    END_MESSAGE, END_MESSAGE_LEN, FIELDS_AT, LENGTH_AT, own_name_len,
};
use crate::on::event::argument::Values;
use crate::on::thread::hot::encoded::{Encoded, Keyed};
use crate::on::thread::hot::packet::TIME_LEN;
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END, fxt as fxt_hot, packet};
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::raw::Raw;
use crate::options::Format;
use crate::site::CallsiteKind;

/// Writes the begin of a scope or an instant with arguments, and with a name made at run time if there is
/// one. Returns its time, `None` if nothing was written.
#[inline]
pub(crate) fn event<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: Option<&str>,
) -> Option<u64> {
    let keys = callsite.keys();
    if keys.len() != values.count() {
        return None;
    }
    let mut encoded = Encoded::new(epoch.format());
    values.each(0, &mut Keyed { keys, encoded: &mut encoded });
    match name {
        None => encoded_event(callsite, epoch, &encoded),
        Some(name) => encoded_named(callsite, epoch, &encoded, name),
    }
}

#[inline(never)]
fn encoded_event(callsite: &'static Callsite, epoch: Epoch, encoded: &Encoded) -> Option<u64> {
    let arguments = encoded.get()?;
    Record { callsite, what: What::of(callsite)?, name: "", arguments }.write(epoch.get())
}

#[inline(never)]
fn encoded_named(callsite: &'static Callsite, epoch: Epoch, encoded: &Encoded, name: &str) -> Option<u64> {
    let arguments = encoded.get().filter(|_| is_short(name))?;
    Record { callsite, what: What::of(callsite)?, name, arguments }.write(epoch.get())
}

/// Writes the begin of a scope with a name made at run time and no arguments.
#[inline(always)]
pub(crate) fn begin_named(callsite: &'static Callsite, name: &str) -> Option<OpenScope> {
    // The epoch once more, like a begin without a name.
    let hot = this_thread::hot();
    let (taken, epoch) = hot.take_for(callsite)?;
    if !is_short(name) || callsite.kind() != CallsiteKind::Scope || !callsite.keys().is_empty() {
        return taken.put_back();
    }
    let record = Record { callsite, what: What::Begin, name, arguments: (&[], 0) };
    record.write_taken(hot, epoch.format(), taken).map(|now| OpenScope::new(epoch, now))
}

/// The cold path cuts a long name, and gives an event an empty one.
#[inline(always)]
fn is_short(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
}

/// Writes the end of a recorded scope with arguments, if that is the innermost and not timed. Returns false
/// if nothing was written.
#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope, arguments: &Encoded) -> bool {
    let Some(arguments) = arguments.get() else { return false };
    let what = What::End { id: open.id };
    Record { callsite, what, name: "", arguments }.write(open.recorded_in.number()).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Begin,
    /// The end of the begin with this id.
    End {
        id: u32,
    },
    Instant,
}

impl What {
    /// Returns the record of an event at the callsite.
    #[inline(always)]
    fn of(callsite: &'static Callsite) -> Option<Self> {
        match callsite.kind() {
            CallsiteKind::Scope => Some(Self::Begin),
            CallsiteKind::Instant => Some(Self::Instant),
            CallsiteKind::Counter | CallsiteKind::End => None,
        }
    }

    #[inline(always)]
    fn is_end(self) -> bool {
        matches!(self, Self::End { .. })
    }

    /// Returns the bytes that the record takes from the room beside its own: a begin reserves its end, and an
    /// end uses what its begin has reserved.
    #[inline(always)]
    fn reserves(self, end: i32) -> i32 {
        match self {
            Self::Begin => end,
            Self::End { .. } => -end,
            Self::Instant => 0,
        }
    }
}

/// A record that is about to be written.
struct Record<'a> {
    callsite: &'static Callsite,
    what: What,
    /// The name made at run time; "" if the record has the name of its callsite.
    name: &'a str,
    /// The bytes of [`Encoded`] arguments, and their number.
    arguments: (&'a [u8], u64),
}

impl Record<'_> {
    /// Writes the record in the session whose epoch has this number. Returns its time, `None` if nothing was
    /// written.
    #[inline(always)]
    fn write(&self, number: u32) -> Option<u64> {
        let format = Epoch::format_of(number);
        let hot = this_thread::hot();
        let session = if self.what.is_end() { Lease::end_epoch } else { Lease::epoch };
        let taken = hot.take_number(session, number)?;
        self.write_taken(hot, format, taken)
    }

    /// As [`write`](Self::write), with the chunk writer.
    #[inline(always)]
    fn write_taken(&self, hot: &Hot, format: Format, taken: Taken) -> Option<u64> {
        // An end follows its begin in the same sequence.
        if !self.what.is_end() && !hot.has_seen::<true>(self.callsite) {
            return taken.put_back();
        }
        if let What::End { id } = self.what
            && !taken.is_innermost(taken.last_commit(), taken.room(), id)
        {
            return taken.put_back();
        }
        if format == Format::Fxt { self.put_fxt(hot, taken) } else { self.put_packet(hot, taken) }
    }

    /// ```text
    /// HEADER | TIME | name | arguments
    /// ```
    #[inline(always)]
    fn put_fxt(&self, hot: &Hot, taken: Taken) -> Option<u64> {
        use fxt::layout::string_ref;
        const NAME: fxt::layout::Field = fxt::layout::event::NAME;
        let reserved = self.what.reserves(FXT_END);
        let (arguments, count) = self.arguments;
        let most = 16 + self.name.len().next_multiple_of(8) + arguments.len();
        if taken.room() - reserved < most as i32 {
            return taken.put_back();
        }
        let Some((now, _)) = hot.tick::<true>(&taken) else { return taken.put_back() };
        let commit = taken.last_commit();
        // SAFETY: room for `most` bytes.
        let mut raw = unsafe { taken.raw(commit) };
        let start = raw.position();
        let own_header = self.callsite.fxt_header();
        if self.what == What::Begin {
            taken.note_at_limit::<false>(start, commit, reserved, now);
            // Without a name of its own, the begin's record has the strings of the end.
            if !self.name.is_empty() {
                taken.note_strings_at_limit(start, reserved, own_header);
            }
        }
        let mut header = own_header;
        if self.what.is_end() {
            header += fxt_hot::BEGIN_TO_END;
        }
        if !self.name.is_empty() {
            header -= NAME.set(NAME.get(header));
            // Not `StringRef::bits`, which cuts a long string.
            header += NAME.set(string_ref::INLINE.set(1) | string_ref::LENGTH.set(self.name.len() as u64));
        }
        raw.two_words_of([header, now], 16);
        raw.stream_short(self.name.as_bytes());
        raw.copy_short(arguments);
        let bytes = raw.distance(start);
        header += fxt::layout::record::SIZE.set(bytes as u64 / 8 - 2) + fxt::layout::event::ARGS.set(count);
        // SAFETY: the first word of the record.
        unsafe { Raw::at(start) }.word_of(header, 8);
        if self.what == What::Begin {
            taken.commit_and_reserve(now, bytes as u32, reserved);
        } else {
            let room = taken.room() - bytes as i32 - reserved; // of no store's place
            taken.commit(commit, now, bytes as u32, room);
        }
        Some(now)
    }

    /// ```text
    /// 0a LEN  50 SEQUENCE | 68 02 5a L  48 TYPE  18 CATEGORY | 50 NAME or ba 01 l name | arguments | 40 DELTA
    /// ```
    ///
    /// LEN and L have a byte each if the packet can be shorter than 128 bytes, else two, which are padded.
    #[inline(always)]
    fn put_packet(&self, hot: &Hot, taken: Taken) -> Option<u64> {
        const NAME_TAG: u64 =
            proto::tag(track_event::fields::track_event::NAME, proto::WireType::Bytes) as u64;
        let (message, fields_len) = self.fields();
        let name_len = match self.name.len() {
            0 => 0,
            len => 2 + varint_len(len as u64) + len,
        };
        let prefix_len = hot.prefix_len.get();
        let (arguments, _) = self.arguments;
        let most = prefix_len + FIELDS_AT + fields_len + name_len + arguments.len() + TIME_LEN;
        let length = if most < 0x80 { 1 } else { 2 };
        let reserved = self.what.reserves(TRACK_EVENT_END);
        let room = taken.room() - reserved;
        if room < (most + 2) as i32 {
            return taken.put_back();
        }
        let Some((now, delta)) = hot.tick::<true>(&taken) else { return taken.put_back() };
        let commit = taken.last_commit();
        // SAFETY: room for `most` bytes, and for the second byte of both lengths.
        let mut raw = unsafe { taken.raw(commit) };
        let start = raw.position();
        raw.word_of(0x0a, 1 + length);
        raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
        raw.word_of(message[0], LENGTH_AT + length);
        let event = raw.position();
        let fields = [
            message[0] >> (8 * FIELDS_AT) | message[1] << (64 - 8 * FIELDS_AT),
            message[1] >> (8 * FIELDS_AT),
        ];
        raw.two_words_of(fields, fields_len);
        if !self.name.is_empty() {
            raw.word_of(NAME_TAG >> 7 << 8 | NAME_TAG & 0x7f | 0x80, 2);
            raw.varint(self.name.len() as u64);
            raw.copy_short(self.name.as_bytes());
        }
        raw.copy_short(arguments);
        let event_len = raw.distance(event);
        raw.word_of(packet::time(delta), TIME_LEN);
        let bytes = raw.distance(start);
        // SAFETY: both lengths are of this record, and have `length` bytes.
        unsafe {
            Raw::set_length(event, length, event_len);
            Raw::set_length(start.add(1 + length), length, bytes - 1 - length);
        }
        let room = room - bytes as i32;
        if self.what == What::Begin {
            taken.note_begin(commit, bytes as u32, room, now, true);
        }
        taken.commit(commit, now, bytes as u32, room);
        Some(now)
    }

    /// Returns the constant part of the message, and the length of its fields without a name that is
    /// replaced.
    #[inline(always)]
    fn fields(&self) -> ([u64; 2], usize) {
        if self.what.is_end() {
            return ([END_MESSAGE, 0], END_MESSAGE_LEN - FIELDS_AT);
        }
        let (message, len) = self.callsite.message();
        let replaced = if self.name.is_empty() { 0 } else { own_name_len(self.callsite) };
        (message, len - FIELDS_AT - replaced)
    }
}
