//! Callsites: what is static about an event, computed once.
//!
//! Each macro makes one static [`Callsite`]. Its `word` says in one load what to do:
//!
//! | word             | meaning                                                    |
//! |------------------|------------------------------------------------------------|
//! | 0                | off: no session, or the filter leaves the category out     |
//! | [`UNREGISTERED`] | never hit: take the cold path once, which registers it     |
//! | other            | on, in the session with this epoch; bit 0 is the format    |
//!
//! Registration gives the callsite an id, gives its strings their process-wide numbers, and lays down the
//! parts of its records that never change: the FXT header word, the TrackEvent message.

#![allow(unsafe_code)] // callsites are statics behind raw pointers

pub(crate) mod made;
pub(crate) mod registry;
pub(crate) mod tables;

mod link;
mod word;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::on::base::few::Few;
use crate::on::base::forever;
use crate::on::base::this_thread::near_bit;
use crate::on::callsite;
pub(crate) use crate::on::callsite::link::Link;
use crate::on::callsite::word::Word;
pub(crate) use crate::on::callsite::word::fence_constants;
use crate::vocabulary::Unit;

/// A callsite that was never hit.
pub(crate) const UNREGISTERED: u32 = 1;

/// Bit 0 of an epoch: set where the session writes TrackEvent packets, clear for FXT records.
pub(crate) const TRACK_EVENT: u32 = 1;

/// The most bytes of a callsite's constant TrackEvent message that the hot path copies.
pub(crate) const LONGEST_MESSAGE: usize = 16;

/// What a callsite calls when it is hit for the first time: registers the callsite, and returns its word then.
pub(crate) type FirstHit = fn(&'static Callsite) -> u32;

/// An id that no thread's "seen" bits reach, so that every event takes the cold path.
const NO_ID: u32 = u32::MAX;

/// What a callsite's word says where the callsite is on: the epoch of the session, never 0. Only a callsite makes one, so an event
/// cannot be recorded in the epoch 0, in which no thread has a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(NonZeroU32);

impl Epoch {
    /// The number.
    #[inline(always)]
    pub(crate) fn get(self) -> u32 {
        self.0.get()
    }
}

/// What kind of event a callsite records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A slice, begun and ended on one thread.
    Scope,
    /// A moment.
    Instant,
    /// A value over time.
    Counter,
    /// The end of a slice on a track, whatever category that has.
    End,
}

/// Where a callsite is, and what else is fixed about it.
#[derive(Debug)]
pub struct Site {
    /// The file's path.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
    /// The module's path.
    pub module: &'static str,
    /// What a counter's values mean.
    pub counter: CounterOptions,
}

/// What a counter's values mean.
#[derive(Clone, Copy, Debug)]
pub struct CounterOptions {
    /// `unit:`.
    pub unit: Unit,
    /// `multiplier:`; 1 by default.
    pub multiplier: i64,
    /// `incremental:`.
    pub incremental: bool,
}

impl CounterOptions {
    /// Bare numbers.
    pub const NONE: Self = Self { unit: Unit::None, multiplier: 1, incremental: false };

    /// Whether there is anything to be said that FXT has no place for.
    pub(crate) fn is_plain(&self) -> bool {
        self.unit == Unit::None && self.multiplier == 1
    }
}

/// An argument's name and its process-wide number.
#[derive(Debug)]
pub struct Key {
    name: &'static str,
    id: AtomicU32,
}

impl Key {
    /// A key not yet numbered.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        // A raw identifier's mark is not part of its name.
        let name = match name.as_bytes() {
            [b'r', b'#', _, ..] => name.split_at(2).1,
            _ => name,
        };
        Self { name, id: AtomicU32::new(0) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The string's number; 0 before the callsite's registration.
    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed) // ordered by the callsite's word
    }
}

/// One place in the code that records events.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Callsite {
    word: Word,
    /// Index of this callsite's bit in each thread's "seen" set; [`NO_ID`] where it has no constants.
    id: AtomicU32,
    /// The same for all callsites, in the order of their registration.
    serial: AtomicU32,
    /// The FXT header word of a record without arguments.
    fxt_header: AtomicU64,
    /// `68 02 5a L <message>`: sequence flags and the TrackEvent without annotations or counter value.
    message: [AtomicU64; 2],
    message_len: AtomicU8,
    /// Where the bit of this callsite stands in each thread's set, if it is one of the first.
    near_mask: AtomicU8,
    /// Whether it is in the registry's list.
    is_listed: AtomicBool,
    near_byte: AtomicU32,
    kind: Kind,
    category_id: AtomicU32,
    name_id: AtomicU32,
    next: Link<Callsite>,
    /// The numbers of its categories, where they are not just [`category_id`](Self::category_id).
    categories: AtomicPtr<Box<[u32]>>,
    category: &'static str,
    name: &'static str,
    keys: &'static [Key],
    site: &'static Site,
    first_hit: FirstHit,
}

impl Callsite {
    /// A callsite that was never hit. `first_hit` comes from the layer that can start a session.
    pub(crate) const fn with_first_hit(
        kind: Kind,
        category: &'static str,
        name: &'static str,
        keys: &'static [Key],
        site: &'static Site,
        first_hit: FirstHit,
    ) -> Self {
        Self {
            word: Word::new(UNREGISTERED),
            id: AtomicU32::new(NO_ID),
            serial: AtomicU32::new(0),
            fxt_header: AtomicU64::new(0),
            message: [AtomicU64::new(0), AtomicU64::new(0)],
            message_len: AtomicU8::new(0),
            near_mask: AtomicU8::new(near_bit(NO_ID).1),
            is_listed: AtomicBool::new(false),
            near_byte: AtomicU32::new(near_bit(NO_ID).0),
            kind,
            category_id: AtomicU32::new(0),
            name_id: AtomicU32::new(0),
            next: Link::end(),
            categories: AtomicPtr::new(std::ptr::null_mut()),
            category,
            name,
            keys,
            site,
            first_hit,
        }
    }

    /// The enable word. An event that finds a session's epoch in it calls [`fence_constants`] before it reads the constants
    /// (`Hot::take`).
    #[inline(always)]
    pub(crate) fn word(&'static self) -> u32 {
        self.word.get()
    }

    /// As [`word`](Self::word), but registered first if it was never hit: for events with arguments, which are
    /// evaluated only if the event is recorded.
    #[inline(always)]
    pub(crate) fn registered_word(&'static self) -> u32 {
        match self.word() {
            UNREGISTERED => self.first_hit(),
            word => word,
        }
    }

    /// The session's epoch, where the callsite is on; also where it was never hit, which the event then finds out.
    #[inline(always)]
    #[must_use]
    pub fn epoch(&'static self) -> Option<Epoch> {
        NonZeroU32::new(self.word()).map(Epoch)
    }

    /// The session's epoch, where the callsite is on. Registers it if it was never hit: for events with arguments, which are
    /// evaluated only if the event is recorded.
    #[inline(always)]
    #[must_use]
    pub fn registered_epoch(&'static self) -> Option<Epoch> {
        NonZeroU32::new(self.registered_word()).map(Epoch)
    }

    /// Registers the callsite at its first hit. Returns its word then.
    pub(crate) fn first_hit(&'static self) -> u32 {
        (self.first_hit)(self)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn category(&self) -> &'static str {
        self.category
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn site(&self) -> &'static Site {
        self.site
    }

    /// Its categories: `"net,slow"` are two.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> {
        self.category.split(',').map(str::trim).filter(|part| !part.is_empty())
    }

    /// The numbers of its categories, in their order.
    pub(crate) fn category_ids(&self) -> Few<u32, 4> {
        let mut ids = Few::new(0);
        match forever::shared(self.categories.load(Ordering::Acquire)) {
            Some(several) => several.iter().for_each(|id| ids.push(*id)),
            None if self.category_id() != 0 => ids.push(self.category_id()),
            None => {}
        }
        ids
    }

    /// Its one category and its name, where it has both, and no more.
    #[inline(always)]
    pub(crate) fn texts(&self) -> Option<[&'static str; 2]> {
        let is_one = self.category_id() != 0 && self.categories.load(Ordering::Acquire).is_null();
        (is_one && !self.name.is_empty()).then_some([self.category, self.name])
    }

    #[inline(always)]
    pub(crate) fn keys(&self) -> &'static [Key] {
        self.keys
    }

    pub(crate) fn category_id(&self) -> u32 {
        self.category_id.load(Ordering::Relaxed)
    }

    pub(crate) fn name_id(&self) -> u32 {
        self.name_id.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    pub(crate) fn serial(&self) -> u32 {
        self.serial.load(Ordering::Relaxed)
    }

    /// Whether the hot path can write its records.
    pub(crate) fn has_constants(&self) -> bool {
        self.id() != NO_ID
    }

    /// Byte and mask of this callsite's bit in `Hot`.
    #[inline(always)]
    pub(crate) fn near_bit(&self) -> (u32, u8) {
        (self.near_byte.load(Ordering::Relaxed), self.near_mask.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn fxt_header(&self) -> u64 {
        self.fxt_header.load(Ordering::Relaxed)
    }

    /// The constant TrackEvent bytes and how many of the 16 count.
    #[inline(always)]
    pub(crate) fn message(&self) -> ([u64; 2], usize) {
        let [low, high] = &self.message;
        let len = self.message_len.load(Ordering::Relaxed);
        ([low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)], len as usize)
    }

    /// Switches on (an epoch) or off (0).
    pub(crate) fn set_word(&self, word: u32) {
        self.word.set(word);
    }

    pub(crate) fn next(&self) -> Option<&'static Callsite> {
        callsite::pointee(self.next.get())
    }

    /// Under the registry's lock.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed)
    }

    /// Makes it the first of the list at `head`. Under the registry's lock.
    pub(crate) fn push(&'static self, head: &Link<Callsite>) {
        self.is_listed.store(true, Ordering::Relaxed);
        head.publish(std::ptr::from_ref(self).cast_mut(), &self.next);
    }

    /// Lays down the constants, under the registry's lock. Allocates nothing; what `constants` keeps is the caller's to drop.
    pub(crate) fn lay_down(&self, serial: u32, constants: &mut Constants) {
        for (key, number) in self.keys.iter().zip(&constants.keys) {
            key.id.store(*number, Ordering::Relaxed);
        }
        self.serial.store(serial, Ordering::Relaxed);
        self.category_id.store(constants.category, Ordering::Relaxed);
        self.name_id.store(constants.name, Ordering::Relaxed);
        if let Some(several) = constants.several.take() {
            // For the rest of the process, as the callsite.
            self.categories.store(Box::into_raw(several), Ordering::Release);
        }
        self.fxt_header.store(constants.header, Ordering::Relaxed);
        let Some(message) = &constants.message else { return };
        let mut padded = [0u8; LONGEST_MESSAGE];
        padded[..message.len()].copy_from_slice(message);
        for (word, bytes) in self.message.iter().zip(padded.chunks_exact(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
        #[allow(clippy::cast_possible_truncation)] // at most LONGEST
        self.message_len.store(message.len() as u8, Ordering::Relaxed);
        self.id.store(serial, Ordering::Relaxed);
        let (byte, mask) = near_bit(serial);
        self.near_byte.store(byte, Ordering::Relaxed);
        self.near_mask.store(mask, Ordering::Relaxed);
    }
}

/// What never changes in a callsite's records.
pub(crate) struct Constants {
    pub(crate) category: u32,
    pub(crate) name: u32,
    /// The numbers of its keys.
    pub(crate) keys: Vec<u32>,
    /// The numbers of its categories, where it has several.
    pub(crate) several: Option<Box<Box<[u32]>>>,
    pub(crate) header: u64,
    /// `None`: the hot path cannot write its records.
    pub(crate) message: Option<Vec<u8>>,
}

/// The callsite behind a pointer of the list or of a span.
#[inline]
pub(crate) fn pointee(p: *mut Callsite) -> Option<&'static Callsite> {
    // SAFETY: null, or made from a `&'static Callsite`: by `Callsite::push` in the list, by `Span::create` in
    // a span.
    unsafe { p.as_ref() }
}
