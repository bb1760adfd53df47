//! Packets of less than 128 bytes: each of their lengths has one byte, and is stored after what it counts.

#![allow(unsafe_code)] // stores into the chunk

use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};

use hairline_formats::Value;
use hairline_formats::track_event::{self, AnnotationHead};

use crate::on::base::this_thread::Hot;
use crate::on::callsite::Key;
use crate::on::encode::track_event::message::FIELDS_AT;
use crate::on::event::argument::{EntryVisitor, Flat, Visitor};
use crate::on::thread::hot::packet::{Most, PLAIN, TIME_LEN, reserved_for_end, time};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::hot::{Callsite, Values};
use crate::on::thread::raw::{Leaf, Raw, settled, settled_ref};
use crate::site::CallsiteKind;

/// Such a packet while it is written. The time comes before the message.
pub(crate) struct ShortPacket {
    raw: Raw,
    /// What the packet's length counts begins here, and what the event's length counts.
    content: *mut u8,
    event: *mut u8,
}

impl ShortPacket {
    /// Begins a packet.
    ///
    /// # Safety
    /// There is room for the packet.
    #[inline(always)]
    pub(crate) unsafe fn begin(raw: Raw) -> Self {
        // SAFETY: two bytes of the packet, by the contract.
        let content = unsafe { settled(raw.position().add(2)) };
        // SAFETY: the same place.
        Self { raw: unsafe { Raw::at(content.sub(2)) }, content, event: content }
    }

    /// Returns its first byte, as long as nothing is written.
    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.raw.position()
    }

    /// Writes the prefix and the time.
    #[inline(always)]
    pub(crate) fn put_head(&mut self, hot: &Hot, delta: u64) {
        self.raw.word_of(hot.prefix.get(), hot.prefix_len.get());
        self.raw.word_of(time(delta), TIME_LEN);
        // SAFETY: of the message, which has at least as many bytes.
        self.event = unsafe { settled(self.raw.position().add(FIELDS_AT)) };
        // SAFETY: the same place.
        self.raw = unsafe { Raw::at(self.event.sub(FIELDS_AT)) };
    }

    /// Writes the constant part of the message, its first `len` bytes. The event's other fields follow.
    #[inline(always)]
    pub(crate) fn open_message(&mut self, words: [u64; 2], len: usize) -> &mut Raw {
        self.raw.two_words_of(words, len);
        &mut self.raw
    }

    /// Whether its bytes so far are less than 128.
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.raw.distance(self.content) < 0x80
    }

    /// Stores the lengths. Returns the bytes of the packet.
    #[inline(always)]
    pub(crate) fn close(&self) -> u32 {
        // SAFETY: the lengths of the event and of the packet are in front of them, one byte each.
        unsafe {
            Raw::set_length(self.event, 1, self.raw.distance(self.event));
            Raw::set_length(self.content, 1, self.raw.distance(self.content));
        }
        self.raw.distance(self.content) as u32 + 2
    }
}

/// Writes an event with arguments on its thread's track.
#[inline(always)]
pub(crate) fn with_short_values<V: Values>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    values: &V,
    taken: Taken,
) -> Option<u64> {
    // Flat values need not fit: no more is known of them before they are read.
    let flat = V::COLD_ONLY;
    let mut most = Most(PLAIN as usize);
    values.each(0, &mut most);
    let reserved = reserved_for_end(kind);
    if most.0 >= 0x80 {
        return taken.put_back();
    }
    let room = most.0 as i32 + if flat { FLAT as i32 } else { 0 } + reserved;
    if taken.room() < room || callsite.keys().len() != values.count() {
        return taken.put_back();
    }
    let Some((now, delta)) = hot.tick::<false>(&taken) else { return taken.put_back() };
    if !flat {
        taken.lease.set_last(now);
    }
    let commit = taken.last_commit();
    // SAFETY: room for `most` bytes, less than 128.
    let mut packet = unsafe { ShortPacket::begin(taken.raw(commit)) };
    if kind == CallsiteKind::Scope {
        taken.note_at_limit::<true>(packet.start(), commit, reserved, now);
    }
    // As in `plain`: each step after the other. The time comes first, so that no register holds it.
    compiler_fence(Ordering::SeqCst);
    packet.put_head(hot, delta);
    compiler_fence(Ordering::SeqCst);
    let raw = packet.open_message(callsite.message_words(), callsite.message_len());
    compiler_fence(Ordering::SeqCst);
    let mut put = PutShort { raw, keys: callsite.keys(), left: FLAT, fits: true };
    settled_ref(values).each(0, &mut put);
    let fits = put.fits && packet.is_short();
    if flat && !fits {
        return taken.put_back();
    }
    let len = packet.close();
    compiler_fence(Ordering::SeqCst);
    if flat {
        taken.commit_and_reserve(now, len, reserved);
        return Some(now);
    }
    Some(taken.commit_timed(len, reserved))
}

/// The most bytes of all arrays and maps of an event, and of their entries.
const FLAT: usize = 0x80 - PLAIN as usize;
const FLAT_ENTRIES: usize = 32;

/// Writes annotations of less than 128 bytes.
struct PutShort<'r> {
    raw: &'r mut Raw,
    keys: &'static [Key],
    /// The bytes that flat values may still have, and whether all of them had room.
    left: usize,
    fits: bool,
}

impl PutShort<'_> {
    #[inline(always)]
    fn head(&self, at: usize) -> AnnotationHead {
        // SAFETY: an event has as many values as its callsite has keys: `with_short_values` compares.
        unsafe { self.keys.get_unchecked(at) }.head()
    }
}

impl Visitor<'_> for PutShort<'_> {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        self.head(at).put(&mut Leaf(self.raw), &value);
    }

    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, at: usize, flat: &F) {
        let left = self.left.saturating_sub(AnnotationHead::LONGEST);
        if !matches!(flat.entry_count(), 1..=FLAT_ENTRIES) || left == 0 {
            self.fits = false;
            return;
        }
        // SAFETY: room for the head, by `left`.
        let content = unsafe { self.raw.position().add(2) };
        self.head(at).open(&mut Leaf(self.raw));
        let empty = self.raw.position();
        let mut entries = PutEntries::<F> { raw: self.raw, left, fits: self.fits, flat: PhantomData };
        flat.each_entry(&mut entries);
        (self.left, self.fits) = (entries.left, entries.fits);
        self.fits &= self.raw.position() != empty; // a map of nulls is "{}"
        // SAFETY: the length is in front of the content.
        unsafe { Raw::set_length(content, 1, self.raw.distance(content)) };
    }
}

/// Writes the entries of an array or a map.
struct PutEntries<'r, F> {
    raw: &'r mut Raw,
    left: usize,
    fits: bool,
    flat: PhantomData<F>,
}

impl<F: Flat> EntryVisitor for PutEntries<'_, F> {
    #[inline(always)]
    fn entry(&mut self, name: &str, value: Value<'_>) {
        let Some(value) = value.in_flat(F::IS_MAP) else { return };
        let most = track_event::most_of_entry(name, &value);
        if most > self.left {
            self.fits = false;
            return;
        }
        self.left -= most;
        if F::IS_MAP {
            track_event::put_entry::<true>(&mut Leaf(self.raw), name, &value);
        } else {
            track_event::put_entry::<false>(&mut Leaf(self.raw), name, &value);
        }
    }
}
