//! Callsites: the static parts of events, computed once.
//!
//! Each macro defines one static [`Callsite`]. One load of its `word` decides what an event does:
//!
//! | word  | as `Option<Epoch>`            | meaning                                                 |
//! |-------|-------------------------------|---------------------------------------------------------|
//! | 0     | `None`                        | off: no session, or the filter excludes the category    |
//! | 1     | [`Epoch::UNREGISTERED`]       | never hit: the cold path registers the callsite         |
//! | other | that epoch                    | on, in the session with this epoch; bit 0 is the format |
//!
//! Registration gives the callsite an id, interns its strings in a table of the process, and stores the
//! constant parts of its records: the FXT header word and the TrackEvent message.

#![allow(unsafe_code)] // callsites are statics behind raw pointers

pub(crate) mod registry;
pub(crate) mod runtime;
pub(crate) mod tables;

mod epoch;
mod link;
pub(crate) mod listed;
mod string_id;
mod watch;
pub(crate) mod watched;
mod word;

use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Level;
use hairline_formats::fxt::IndexedName;
use hairline_formats::track_event::AnnotationHead;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::on::base::buffer::Buffer;
use crate::on::base::few::Few;
use crate::on::base::forever;
use crate::on::base::memory::List;
use crate::on::base::this_thread::near_bit;
pub(crate) use crate::on::callsite::epoch::Epoch;
pub(crate) use crate::on::callsite::link::Link;
pub(crate) use crate::on::callsite::string_id::StringId;
pub(crate) use crate::on::callsite::watch::Watch;
use crate::on::callsite::word::Word;
pub(crate) use crate::on::callsite::word::fence_constants;

/// Limit of the bytes of a callsite's constant TrackEvent message that the hot path copies.
pub(crate) const LONGEST_MESSAGE: usize = 16;

/// The number of spans of a callsite, closed without a life, after which its spans are taken for such that do
/// not wait.
#[cfg(feature = "subscriber")]
const ALL_AT_ONCE: u8 = 32;
/// A span of the callsite has had a life.
#[cfg(feature = "subscriber")]
const WAITS: u8 = u8::MAX;

/// The function that a callsite calls at its first hit. It registers the callsite and returns its new epoch.
pub(crate) type FirstHit = fn(&'static Callsite) -> Option<Epoch>;

/// The id of a callsite without constants. No thread's "seen" bits reach it, so every event takes the cold
/// path.
const NO_ID: u32 = u32::MAX;

/// The name of an argument, and its string id in this process.
#[derive(Debug)]
pub struct Key {
    name: &'static str,
    id: AtomicU32,
    /// The bits of its [`IndexedName`].
    indexed: AtomicU32,
    /// The bits of its [`AnnotationHead`].
    head: AtomicU64,
}

impl Key {
    /// Creates a key without an id.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        // The `r#` of a raw identifier is not part of its name.
        let name = match name.as_bytes() {
            [b'r', b'#', _, ..] => name.split_at(2).1,
            _ => name,
        };
        Self { name, id: AtomicU32::new(0), indexed: AtomicU32::new(0), head: AtomicU64::new(0) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the string id of the name; 0 before the callsite's registration.
    #[inline(always)]
    pub(crate) fn id(&self) -> StringId {
        StringId(self.id.load(Ordering::Relaxed)) // ordered by the callsite's word
    }

    /// Returns the name of its FXT arguments, if the hot path can write the callsite's events.
    #[inline(always)]
    pub(crate) fn indexed(&self) -> IndexedName {
        IndexedName::from_bits(self.indexed.load(Ordering::Relaxed))
    }

    /// Returns the constant part of its TrackEvent annotations, if the hot path can write the callsite's
    /// events.
    #[inline(always)]
    pub(crate) fn head(&self) -> AnnotationHead {
        AnnotationHead::from_bits(self.head.load(Ordering::Relaxed))
    }
}

/// A place in the code that records events.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Callsite {
    word: Word,
    /// Index of this callsite's bit in each thread's "seen" set; [`NO_ID`] for a callsite without constants.
    id: AtomicU32,
    /// The serial number of every callsite, in the order of registration.
    serial: AtomicU32,
    /// The FXT header word of a record without arguments.
    fxt_header: AtomicU64,
    /// `68 02 5a L <message>`: sequence flags and the TrackEvent without annotations or counter value.
    message: [AtomicU64; 2],
    message_len: AtomicU32,
    /// The mask of this callsite's bit in [`Hot`](crate::on::base::this_thread::Hot), if the callsite is one
    /// of the first.
    near_mask: AtomicU8,
    is_filtered: bool,
    /// Whether the callsite is on the heap, and not in code that may be unloaded.
    is_permanent: bool,
    /// See [`unless_held`](Self::unless_held).
    is_gate: bool,
    /// For a span of `tracing`: whether its spans wait, see [`may_wait`](Self::may_wait).
    #[cfg(feature = "subscriber")]
    waiting: AtomicU8,
    /// For `tracing`: whether a field names a flow, see [`carries_flow`](Self::carries_flow).
    #[cfg(feature = "subscriber")]
    carries_flow: bool,
    /// The byte of that bit.
    near_byte: AtomicU32,
    kind: CallsiteKind,
    level: Level,
    category_id: AtomicU32,
    name_id: AtomicU32,
    /// The string id of its place in the source; 0 before a sequence of FXT needs it.
    location_id: AtomicU32,
    /// Its place in the source as a field of a TrackEvent; 0 before a sequence of TrackEvent needs it.
    location_field: AtomicU32,
    /// Its entry in the registry's list, a [`Listed`](listed::Listed); null before it is registered.
    listed: AtomicPtr<()>,
    /// The constant part of its events in FXT blobs; null before a sequence of FXT needs it.
    blob_part: AtomicPtr<BlobPart>,
    /// For a counter: the uuid of its track below the process, and what its tracks elsewhere come from.
    counter: [AtomicU64; 2],
    /// The string ids of its categories, if they are not just [`category_id`](Self::category_id).
    categories: AtomicPtr<List<StringId>>,
    category: &'static str,
    name: &'static str,
    keys: &'static [Key],
    site: &'static Site,
    first_hit: FirstHit,
    /// What the session looks at, a [`Watch`].
    watch: AtomicU64,
}

impl Callsite {
    /// Creates a callsite that was never hit. `first_hit` comes from the layer that can start a session.
    pub(crate) const fn with_first_hit(
        kind: CallsiteKind,
        category: &'static str,
        name: &'static str,
        keys: &'static [Key],
        site: &'static Site,
        first_hit: FirstHit,
    ) -> Self {
        Self {
            word: Word::new(Epoch::UNREGISTERED.get()),
            id: AtomicU32::new(NO_ID),
            serial: AtomicU32::new(0),
            fxt_header: AtomicU64::new(0),
            message: [AtomicU64::new(0), AtomicU64::new(0)],
            message_len: AtomicU32::new(0),
            near_mask: AtomicU8::new(near_bit(NO_ID).1),
            is_filtered: true,
            is_permanent: false,
            is_gate: false,
            #[cfg(feature = "subscriber")]
            waiting: AtomicU8::new(0),
            #[cfg(feature = "subscriber")]
            carries_flow: false,
            near_byte: AtomicU32::new(near_bit(NO_ID).0),
            kind,
            level: Level::Fatal,
            category_id: AtomicU32::new(0),
            name_id: AtomicU32::new(0),
            location_id: AtomicU32::new(0),
            location_field: AtomicU32::new(0),
            listed: AtomicPtr::new(std::ptr::null_mut()),
            blob_part: AtomicPtr::new(std::ptr::null_mut()),
            counter: [AtomicU64::new(0), AtomicU64::new(0)],
            categories: AtomicPtr::new(std::ptr::null_mut()),
            category,
            name,
            keys,
            site,
            first_hit,
            watch: AtomicU64::new(0),
        }
    }

    /// For events that a setting of the session asks for: the filter does not apply.
    pub(crate) const fn unfiltered(mut self) -> Self {
        self.is_filtered = false;
        self
    }

    /// For callsites on the heap.
    pub(crate) const fn permanent(mut self) -> Self {
        self.is_permanent = true;
        self
    }

    /// For the callsite that each step of a lock looks at: its word stays that of a callsite that was never
    /// hit in a session with a limit for holds. So only the steps of such a session are more than those of
    /// others.
    #[cfg_attr(not(feature = "sync"), allow(dead_code))]
    pub(crate) const fn unless_held(mut self) -> Self {
        self.is_gate = true;
        self
    }

    pub(crate) fn is_gate(&self) -> bool {
        self.is_gate
    }

    /// Whether the callsite is on the heap.
    pub(crate) fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// Whether the filter decides if the callsite is on.
    pub(crate) fn is_filtered(&self) -> bool {
        self.is_filtered && self.kind != CallsiteKind::End
    }

    /// Returns the session's epoch if the callsite is on. A callsite that was never hit returns
    /// [`Epoch::UNREGISTERED`], and the event then registers the callsite. An event that gets an epoch calls
    /// [`fence_constants`] before it reads the constants (`Hot::take`).
    #[inline(always)]
    #[must_use]
    pub fn epoch(&'static self) -> Option<Epoch> {
        Epoch::from_raw(self.word.get())
    }

    /// Returns the word: 0, or an epoch.
    #[inline(always)]
    pub(crate) fn word(&self) -> u32 {
        self.word.get()
    }

    /// Returns the session's epoch if the callsite is on. Registers the callsite at its first hit. For events
    /// with arguments, which are evaluated only if the event is recorded.
    #[inline(always)]
    #[must_use]
    pub fn registered_epoch(&'static self) -> Option<Epoch> {
        match self.epoch() {
            Some(Epoch::UNREGISTERED) => self.first_hit(),
            epoch => epoch,
        }
    }

    /// Registers the callsite at its first hit. Returns its new epoch.
    pub(crate) fn first_hit(&'static self) -> Option<Epoch> {
        (self.first_hit)(self)
    }

    /// Returns the callsite with the level of its events.
    pub(crate) const fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Returns the level of the events of `tracing`; [`Level::Fatal`] for all other callsites, which no
    /// session's level excludes.
    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Returns the callsite, which carries a flow if one of its keys is `key`.
    #[cfg(feature = "subscriber")]
    pub(crate) fn with_flow_in(mut self, key: &str) -> Self {
        self.carries_flow = self.keys.iter().any(|own| own.name() == key);
        self
    }

    /// Whether the spans and events of this callsite have a field that names a flow.
    #[cfg(feature = "subscriber")]
    #[inline]
    pub(crate) fn carries_flow(&self) -> bool {
        self.carries_flow
    }

    /// Whether a span of this callsite may get a life. It may, until [`ALL_AT_ONCE`] spans have closed
    /// without one; from the first life on, it always may.
    #[cfg(feature = "subscriber")]
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != ALL_AT_ONCE
    }

    /// A span of this callsite has a life.
    #[cfg(feature = "subscriber")]
    pub(crate) fn set_waits(&self) {
        self.waiting.store(WAITS, Ordering::Relaxed);
    }

    /// A span of this callsite was closed without a life. Two threads may count one at a time: the number
    /// need not be exact.
    #[cfg(feature = "subscriber")]
    pub(crate) fn count_done_at_once(&self) {
        let count = self.waiting.load(Ordering::Relaxed);
        if count < ALL_AT_ONCE {
            let _ = self.waiting.compare_exchange(count, count + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> CallsiteKind {
        self.kind
    }

    /// Returns the constant part of its events in FXT blobs; `None` before
    /// [`make_blob_part`](Self::make_blob_part).
    #[inline(always)]
    pub(crate) fn blob_part(&self) -> Option<&'static BlobPart> {
        // Acquire pairs with the Release of the call that has made it.
        forever::get(self.blob_part.load(Ordering::Acquire))
    }

    /// Makes that part, once in the process.
    pub(crate) fn make_blob_part(&self, make: impl FnOnce() -> BlobPart) {
        forever::get_or_leak(&self.blob_part, make);
    }

    /// Returns the uuid of a counter's track below the process.
    #[inline(always)]
    pub(crate) fn counter_uuid(&self) -> u64 {
        self.counter[0].load(Ordering::Relaxed)
    }

    /// Returns the hash of a counter's name.
    #[inline(always)]
    pub(crate) fn counter_hash(&self) -> u64 {
        self.counter[1].load(Ordering::Relaxed)
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

    /// Returns its categories: `"net,slow"` has two.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> + Clone {
        categories_in(self.category)
    }

    /// Returns the string ids of its categories, in their order.
    pub(crate) fn category_ids(&self) -> Few<StringId, 4> {
        let mut ids = Few::new(StringId::NONE);
        match forever::get(self.categories.load(Ordering::Acquire)) {
            Some(category_list) => category_list.iter().for_each(|id| ids.push(*id)),
            None if !self.category_id().is_none() => ids.push(self.category_id()),
            None => {}
        }
        ids
    }

    /// Returns its category and its name. `None` if the callsite has no name, or not exactly one category.
    #[inline(always)]
    pub(crate) fn texts(&self) -> Option<[&'static str; 2]> {
        let is_one = !self.category_id().is_none() && self.categories.load(Ordering::Acquire).is_null();
        (is_one && !self.name.is_empty()).then_some([self.category, self.name])
    }

    #[inline(always)]
    pub(crate) fn keys(&self) -> &'static [Key] {
        self.keys
    }

    pub(crate) fn category_id(&self) -> StringId {
        StringId(self.category_id.load(Ordering::Relaxed))
    }

    pub(crate) fn name_id(&self) -> StringId {
        StringId(self.name_id.load(Ordering::Relaxed))
    }

    /// Returns the string id of its place in the source; [`StringId::NONE`] before
    /// [`set_location_id`](Self::set_location_id).
    #[inline]
    pub(crate) fn location_id(&self) -> StringId {
        // Relaxed: a thread that finds the id has written the string to its own sequence, or does so first.
        StringId(self.location_id.load(Ordering::Relaxed))
    }

    /// Sets that id. Two threads may do so at once: the same text has the same id.
    pub(crate) fn set_location_id(&self, id: StringId) {
        self.location_id.store(id.0, Ordering::Relaxed);
    }

    /// Returns the bytes of its place in a TrackEvent; 0 before
    /// [`set_location_field`](Self::set_location_field).
    #[inline(always)]
    pub(crate) fn location_field(&self) -> u32 {
        self.location_field.load(Ordering::Relaxed) // a thread that reads it has set it before
    }

    /// Sets these bytes, which are always the same.
    pub(crate) fn set_location_field(&self, field: u32) {
        self.location_field.store(field, Ordering::Relaxed);
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

    /// Returns byte and mask of this callsite's bit in `Hot`.
    #[inline(always)]
    pub(crate) fn near_bit(&self) -> (u32, u8) {
        (self.near_byte.load(Ordering::Relaxed), self.near_mask.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn fxt_header(&self) -> u64 {
        self.fxt_header.load(Ordering::Relaxed)
    }

    /// Returns the constant TrackEvent bytes, and how many of the 16 are used.
    #[inline(always)]
    pub(crate) fn message(&self) -> ([u64; 2], usize) {
        (self.message_words(), self.message_len())
    }

    /// Returns the constant TrackEvent bytes.
    #[inline(always)]
    pub(crate) fn message_words(&self) -> [u64; 2] {
        let [low, high] = &self.message;
        [low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)]
    }

    /// Returns the length of the [`message`](Self::message).
    #[inline(always)]
    pub(crate) fn message_len(&self) -> usize {
        self.message_len.load(Ordering::Relaxed) as usize
    }

    /// Switches the callsite on (with an epoch) or off (with `None`).
    pub(crate) fn set_epoch(&self, epoch: Option<Epoch>) {
        self.word.set(epoch.map_or(0, Epoch::get));
    }

    /// Sets what the session looks at. The caller holds the registry's lock, and has set the constants.
    ///
    /// The near "seen" bit of a callsite whose events are looked at is always clear. So the hot path leaves
    /// them to the functions behind it, and other callsites pay nothing.
    ///
    /// Byte and mask of the bit change only at the start of a session, before the callsite's word has its
    /// epoch: no event of that session reads one of them before the change and the other one after it.
    pub(crate) fn set_watch(&self, watch: Watch) {
        self.watch.store(watch.bits(), Ordering::Relaxed);
        let (byte, mask) = near_bit(if watch == Watch::NOTHING { self.id() } else { NO_ID });
        self.near_byte.store(byte, Ordering::Relaxed);
        self.near_mask.store(mask, Ordering::Relaxed);
    }

    /// Returns what the session looks at.
    #[inline(always)]
    pub(crate) fn watch(&self) -> Watch {
        Watch::from_bits(self.watch.load(Ordering::Relaxed))
    }

    /// Returns the slot of its entry in the registry's list.
    pub(crate) fn listed(&self) -> &AtomicPtr<()> {
        &self.listed
    }

    /// Returns the entry of the callsite at an address where there may be other data.
    ///
    /// # Safety
    /// So many bytes are mapped there.
    pub(crate) unsafe fn listed_at(address: NonNull<Self>) -> *const () {
        // SAFETY: by the contract. Any bytes are an address, and an aligned one.
        unsafe { (&raw const (*address.as_ptr()).listed).cast::<*const ()>().read_volatile() }
    }

    /// Interns the names of its arguments. Returns the largest id. Two threads may do so at once: the same
    /// text has the same id.
    pub(crate) fn intern_keys(&self, intern: impl Fn(&'static str) -> StringId) -> StringId {
        let ids = self.keys.iter().map(|key| {
            let id = intern(key.name());
            key.id.store(id.0, Ordering::Relaxed);
            key.indexed.store(IndexedName::new(id.index().unwrap_or(0)).bits(), Ordering::Relaxed);
            let head = AnnotationHead::new(id.iid()).map_or(0, AnnotationHead::bits);
            key.head.store(head, Ordering::Relaxed);
            id
        });
        ids.max().unwrap_or(StringId::NONE)
    }

    /// Stores the constants. The caller holds the registry's lock. Nothing is allocated.
    pub(crate) fn set_constants(&self, serial: u32, constants: &Constants) {
        self.serial.store(serial, Ordering::Relaxed);
        self.category_id.store(constants.category.0, Ordering::Relaxed);
        self.name_id.store(constants.name.0, Ordering::Relaxed);
        if let Some(category_list) = constants.category_list {
            self.categories.store(std::ptr::from_ref(category_list).cast_mut(), Ordering::Release);
        }
        self.fxt_header.store(constants.header, Ordering::Relaxed);
        for (place, word) in self.counter.iter().zip(constants.counter) {
            place.store(word, Ordering::Relaxed);
        }
        let Some(message) = &constants.message else { return };
        let mut padded = [0u8; LONGEST_MESSAGE];
        padded[..message.len()].copy_from_slice(message.as_slice());
        for (word, bytes) in self.message.iter().zip(padded.chunks_exact(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
        #[allow(clippy::cast_possible_truncation)] // at most LONGEST_MESSAGE
        self.message_len.store(message.len() as u32, Ordering::Relaxed);
        self.id.store(serial, Ordering::Relaxed); // the registry sets its "seen" bit
    }
}

/// The constant parts of a callsite's records, and its string ids.
pub(crate) struct Constants {
    pub(crate) category: StringId,
    pub(crate) name: StringId,
    /// The string ids of its categories, if it has several.
    pub(crate) category_list: Option<&'static List<StringId>>,
    pub(crate) header: u64,
    /// For a counter: the uuid of its track below the process, and the hash of its name.
    pub(crate) counter: [u64; 2],
    /// The TrackEvent message; `None` if the hot path cannot write the records.
    pub(crate) message: Option<Buffer<LONGEST_MESSAGE>>,
}

/// Returns the categories in the category of a callsite.
pub(crate) fn categories_in(category: &'static str) -> impl Iterator<Item = &'static str> + Clone {
    category.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The constant part of a callsite's events in FXT blobs.
#[derive(Debug)]
pub(crate) struct BlobPart {
    /// The bytes that are used.
    pub(crate) len: usize,
    pub(crate) bytes: [u8; BlobPart::LONGEST],
}

impl BlobPart {
    /// With these, the longest prefix, a track and a time, a packet is below 128 bytes.
    pub(crate) const LONGEST: usize = 96;
}

/// Returns the callsite behind a pointer of a span; `None` for a null pointer.
#[cfg(feature = "subscriber")]
#[inline]
pub(crate) fn pointee(p: *mut Callsite) -> Option<&'static Callsite> {
    // SAFETY: null, or made from a `&'static Callsite` by `Span::create`.
    unsafe { p.as_ref() }
}
