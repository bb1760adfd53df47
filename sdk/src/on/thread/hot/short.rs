//! Records that are written in one pass: scopes, instants and counters with few and short arguments, scopes
//! with a short name made at run time, and ends with short arguments.
//!
//! The room is checked once, for the most bytes of the record. The time comes first, so that no register
//! holds it, and each length is stored after what it counts. Nothing makes a call, since a function of the
//! hot path would save registers for that. What is longer is [composed](super::composed).

#![allow(unsafe_code)] // stores into the chunk

use std::sync::atomic::{Ordering, compiler_fence};

use crate::on::base::this_thread::Hot;
use crate::on::encode::track_event::message::FIELDS_AT;
use crate::on::thread::hot::packet::{TIME_LEN, time};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::raw::{Raw, settled};

/// A record while it is written, in one of the formats.
pub(crate) trait Form {
    /// Whether the note of a begin has the whole time, since the record has not.
    const NOTES_TIME: bool;

    /// Begins a record.
    ///
    /// # Safety
    /// There is room for the record.
    unsafe fn begin(raw: Raw) -> Self;

    /// Returns its first byte.
    fn start(&self) -> *mut u8;

    /// Writes what comes before the constants of the callsite.
    fn put_head(&mut self, hot: &Hot, now: u64, delta: u64);
}

/// What is known of a record before it is written.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// The bytes that a begin reserves for its end. Negative: an end uses those of its begin.
    pub(crate) reserved: i32,
    /// The strings of the end, for the note of a begin in FXT that has not the same.
    pub(crate) strings: Option<u64>,
    /// Whether `put` finds out if the record fits.
    pub(crate) may_fail: bool,
}

/// Writes a record. `put` writes what follows its head, and returns its bytes. Returns its time, `None` if
/// nothing was written. The room was checked.
#[inline(always)]
pub(crate) fn write<F: Form>(
    hot: &Hot,
    taken: Taken,
    plan: Plan,
    put: impl FnOnce(F) -> Option<u32>,
) -> Option<u64> {
    let Plan { reserved, strings, may_fail } = plan;
    let Some((now, delta)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    if !may_fail {
        taken.lease.set_last(now);
    }
    let commit = taken.last_commit();
    // SAFETY: the caller has checked the room.
    let mut record = unsafe { F::begin(taken.raw(commit)) };
    if reserved > 0 {
        taken.note_at_limit(F::NOTES_TIME, record.start(), commit, reserved, now);
        if let Some(strings) = strings {
            taken.note_strings_at_limit(record.start(), reserved, strings);
        }
    }
    then();
    record.put_head(hot, now, delta);
    let Some(bytes) = put(record) else { return taken.put_back() };
    then();
    if may_fail {
        taken.commit_and_reserve(now, bytes, reserved);
        return Some(now);
    }
    Some(taken.commit_timed(bytes, reserved))
}

/// Keeps what follows behind the stores before it: otherwise the compiler loads everything first, and saves
/// registers for it.
#[inline(always)]
pub(crate) fn then() {
    compiler_fence(Ordering::SeqCst);
}

/// A record of FXT. Its header, which has the size, comes last.
pub(crate) struct ShortRecord {
    pub(crate) raw: Raw,
    start: *mut u8,
}

impl Form for ShortRecord {
    const NOTES_TIME: bool = false;

    #[inline(always)]
    unsafe fn begin(raw: Raw) -> Self {
        let start = settled(raw.position());
        // SAFETY: the same place.
        Self { raw: unsafe { Raw::at(start) }, start }
    }

    #[inline(always)]
    fn start(&self) -> *mut u8 {
        self.start
    }

    #[inline(always)]
    fn put_head(&mut self, _: &Hot, now: u64, _: u64) {
        // SAFETY: the second word of the record.
        self.raw = unsafe { Raw::at(self.start.add(8)) };
        self.raw.word_of(now, 8);
    }
}

impl ShortRecord {
    /// Stores the header: this one, which is that of a record of two words, and the size. Returns the bytes
    /// of the record.
    #[inline(always)]
    pub(crate) fn close(&self, header: u64) -> u32 {
        let bytes = self.raw.distance(self.start);
        let size = (bytes as u64 - 16) << 1; // in words, from bit 4 on
        // SAFETY: the first word of the record.
        unsafe { Raw::at(self.start) }.word_of(header + size, 8);
        bytes as u32
    }
}

/// A packet. Each of its lengths has `LENGTH` bytes: 1 if the packet has less than 128, else 2.
pub(crate) struct Packet<const LENGTH: usize> {
    pub(crate) raw: Raw,
    /// What the packet's length counts begins here, and what the event's length counts.
    content: *mut u8,
    event: *mut u8,
}

impl<const LENGTH: usize> Form for Packet<LENGTH> {
    const NOTES_TIME: bool = true;

    #[inline(always)]
    unsafe fn begin(raw: Raw) -> Self {
        // SAFETY: bytes of the packet, by the contract.
        let content = unsafe { settled(raw.position().add(1 + LENGTH)) };
        // SAFETY: the same place.
        Self { raw: unsafe { Raw::at(content.sub(1 + LENGTH)) }, content, event: content }
    }

    #[inline(always)]
    fn start(&self) -> *mut u8 {
        self.raw.position()
    }

    /// Writes the prefix and the time.
    #[inline(always)]
    fn put_head(&mut self, hot: &Hot, _: u64, delta: u64) {
        if LENGTH == 1 {
            self.raw.word_of(hot.prefix.get(), hot.prefix_len.get());
        } else {
            self.raw.word_of(0x0a, 1 + LENGTH);
            self.raw.word_of(hot.prefix.get() >> 16, hot.prefix_len.get() - 2);
        }
        self.raw.word_of(time(delta), TIME_LEN);
        let more = FIELDS_AT - 1 + LENGTH;
        // SAFETY: of the message, which has at least as many bytes.
        self.event = unsafe { settled(self.raw.position().add(more)) };
        // SAFETY: the same place.
        self.raw = unsafe { Raw::at(self.event.sub(more)) };
    }
}

impl<const LENGTH: usize> Packet<LENGTH> {
    /// Writes the constant part of the message, its first `len` bytes. The event's other fields follow.
    #[inline(always)]
    pub(crate) fn put_message(&mut self, words: [u64; 2], len: usize) {
        if LENGTH == 1 {
            self.raw.two_words_of(words, len);
        } else {
            self.raw.word_of(words[0], FIELDS_AT - 1 + LENGTH);
            self.raw.two_words_of(fields_of(words), len - FIELDS_AT);
        }
        then();
    }

    /// Stores the lengths. Returns the bytes of the packet; `None` if it is too long: `may_be_long`
    /// tells whether it can be.
    #[inline(always)]
    pub(crate) fn close(&self, may_be_long: bool) -> Option<u32> {
        let len = self.raw.distance(self.content);
        if may_be_long && len >> (7 * LENGTH) != 0 {
            return None;
        }
        // SAFETY: the lengths of the event and of the packet are in front of them.
        unsafe {
            Raw::set_length(self.event, LENGTH, self.raw.distance(self.event));
            Raw::set_length(self.content, LENGTH, len);
        }
        Some(len as u32 + 1 + LENGTH as u32)
    }
}

/// Returns the fields of the event in a message.
#[inline(always)]
pub(crate) fn fields_of([low, high]: [u64; 2]) -> [u64; 2] {
    [low >> (8 * FIELDS_AT) | high << (64 - 8 * FIELDS_AT), high >> (8 * FIELDS_AT)]
}
