//! Records that are composed on the stack first: with a name made at run time, with nested arguments, and ends
//! with arguments.
//!
//! One function writes all of them. Nothing in it depends on the types of the arguments, so a program has it
//! once. Its checks and its commit are those of the other records on the hot path.

#![allow(unsafe_code)] // stores into the chunk

use hairline_formats::proto::varint_len;
use hairline_formats::{fxt, proto, track_event};
use hairline_shm::Lease;

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::{Callsite, Epoch, StringId};
use crate::on::encode::MAX_NAME;
use crate::on::encode::track_event::message::{END_MESSAGE, END_MESSAGE_LEN, FIELDS_AT, LENGTH_AT};
use crate::on::event::argument::Values;
use crate::on::thread::hot::encoded::{Encoded, Keyed};
use crate::on::thread::hot::packet::TIME_LEN;
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END, fxt as fxt_hot, packet};
use crate::on::thread::open_scope::OpenScope;
use crate::options::Format;
use crate::site::CallsiteKind;

/// Writes the begin of a scope or an instant, with a name made at run time if there is one. Returns its time,
/// `None` if nothing was written.
#[inline]
pub(crate) fn event<V: Values>(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &V,
    name: Option<&str>,
) -> Option<u64> {
    let mut encoded = Encoded::new(epoch.format());
    let keys = callsite.keys();
    if keys.len() != values.count() {
        return None;
    }
    values.each(0, &mut Keyed { keys, encoded: &mut encoded });
    let what = match callsite.kind() {
        CallsiteKind::Scope => What::Begin,
        CallsiteKind::Instant => What::Instant,
        CallsiteKind::Counter | CallsiteKind::End => return None,
    };
    write(callsite, epoch, what, name, &encoded)
}

/// Writes the end of a recorded scope with arguments, if that is the innermost. Returns false if nothing was
/// written.
#[inline]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope, arguments: &Encoded) -> bool {
    write(callsite, open.epoch, What::End { id: open.id }, None, arguments).is_some()
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
    fn is_end(self) -> bool {
        matches!(self, Self::End { .. })
    }

    /// Returns the bytes that the record takes from the room beside its own: a begin reserves its end, and an
    /// end uses what its begin has reserved.
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
    arguments: &'a [u8],
    /// The number of FXT arguments.
    count: u64,
}

#[inline(never)]
fn write(
    callsite: &'static Callsite,
    epoch: Epoch,
    what: What,
    name: Option<&str>,
    arguments: &Encoded,
) -> Option<u64> {
    // The cold path cuts a long name, and gives an event an empty one.
    if name.is_some_and(|name| name.is_empty() || name.len() > MAX_NAME) {
        return None;
    }
    let (arguments, count) = arguments.get()?;
    let record = Record { callsite, what, name: name.unwrap_or_default(), arguments, count };
    let hot = this_thread::hot();
    let session = if what.is_end() { Lease::end_epoch } else { Lease::epoch };
    let taken = hot.take(session, epoch)?;
    // An end follows its begin in the same sequence.
    if !what.is_end() && !hot.has_seen::<true>(callsite) {
        return taken.put_back();
    }
    if let What::End { id } = what
        && !taken.is_innermost(taken.last_commit(), taken.room(), id)
    {
        return taken.put_back();
    }
    if epoch.format() == Format::Fxt { record.put_fxt(hot, taken) } else { record.put_packet(hot, taken) }
}

impl Record<'_> {
    /// ```text
    /// HEADER | TIME | name | arguments
    /// ```
    #[inline(always)]
    fn put_fxt(&self, hot: &Hot, taken: Taken) -> Option<u64> {
        const NAME: fxt::layout::Field = fxt::layout::event::NAME;
        let bytes = 16 + self.name.len().next_multiple_of(8) + self.arguments.len();
        let room = taken.room() - bytes as i32 - self.what.reserves(FXT_END);
        if room < 0 {
            return taken.put_back();
        }
        let Some((now, _)) = hot.tick::<true>(&taken) else { return taken.put_back() };
        let own_header = self.callsite.fxt_header();
        let mut header = own_header
            + fxt::layout::record::SIZE.set(bytes as u64 / 8 - 2)
            + fxt::layout::event::ARGS.set(self.count);
        if self.what.is_end() {
            header += fxt_hot::BEGIN_TO_END;
        }
        if !self.name.is_empty() {
            header -= NAME.set(NAME.get(header));
            header += NAME.set(fxt::StringRef::Inline(self.name).bits());
        }
        let commit = taken.last_commit();
        // SAFETY: room for `bytes`.
        let mut raw = unsafe { taken.raw(commit) };
        fxt::PutWords::word(&mut raw, header);
        fxt::PutWords::word(&mut raw, now);
        raw.stream_short(self.name.as_bytes());
        raw.copy_short(self.arguments);
        if self.what == What::Begin {
            taken.note_begin(commit, bytes as u32, room, now, false);
            // Without a name of its own, the begin's record has the strings of the end.
            if !self.name.is_empty() {
                taken.note_strings(commit, bytes as u32, room, own_header);
            }
        }
        taken.commit(commit, now, bytes as u32, room);
        Some(now)
    }

    /// ```text
    /// 0a LEN  50 SEQUENCE | 68 02 5a L  48 TYPE  18 CATEGORY | 50 NAME or ba 01 l name | arguments | 40 DELTA
    /// ```
    #[inline(always)]
    fn put_packet(&self, hot: &Hot, taken: Taken) -> Option<u64> {
        const NAME_TAG: u64 =
            proto::tag(track_event::fields::track_event::NAME, proto::WireType::Bytes) as u64;
        let (message, message_len) = match self.what {
            What::End { .. } => ([END_MESSAGE, 0], END_MESSAGE_LEN),
            What::Begin | What::Instant => self.callsite.message(),
        };
        let (fields_len, name_len) = if self.name.is_empty() {
            (message_len - FIELDS_AT, 0)
        } else {
            let fields_len = message_len - FIELDS_AT - own_name_len(self.callsite);
            (fields_len, 2 + varint_len(self.name.len() as u64) + self.name.len())
        };
        let prefix_len = hot.prefix_len.get();
        let event_len = fields_len + name_len + self.arguments.len();
        let body = (prefix_len - 2) + LENGTH_AT + varint_len(event_len as u64) + event_len + TIME_LEN;
        let len = 1 + varint_len(body as u64) + body;
        let room = taken.room() - len as i32 - self.what.reserves(TRACK_EVENT_END);
        if room < 0 {
            return taken.put_back();
        }
        let Some((now, delta)) = hot.tick::<true>(&taken) else { return taken.put_back() };
        let commit = taken.last_commit();
        // SAFETY: room for `len` bytes.
        let mut raw = unsafe { taken.raw(commit) };
        raw.word_of(0x0a, 1);
        raw.varint(body as u64);
        raw.word_of(hot.prefix.get() >> 16, prefix_len - 2);
        raw.word_of(message[0], LENGTH_AT);
        raw.varint(event_len as u64);
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
        raw.copy_short(self.arguments);
        raw.word_of(packet::time(delta), TIME_LEN);
        if self.what == What::Begin {
            taken.note_begin(commit, len as u32, room, now, true);
        }
        taken.commit(commit, now, len as u32, room);
        Some(now)
    }
}

/// Returns the bytes of the name in the callsite's message, where it is the last field.
#[inline(always)]
fn own_name_len(callsite: &'static Callsite) -> usize {
    match callsite.name_id() {
        StringId::NONE => 0,
        id => 1 + varint_len(id.iid()),
    }
}
