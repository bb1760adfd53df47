//! Packets of events with arguments.

#![allow(unsafe_code)] // stores into the chunk

use std::marker::PhantomData;

use hairline_formats::Value;
use hairline_formats::track_event::{self, AnnotationHead};

use crate::on::base::this_thread::Hot;
use crate::on::callsite::{Callsite, Key};
use crate::on::event::argument::{EntryVisitor, Flat, Values, Visitor};
use crate::on::thread::hot::packet::{PLAIN, reserved_for_end};
use crate::on::thread::hot::short::{self, Packet, Plan, then};
use crate::on::thread::hot::taken::Taken;
use crate::on::thread::raw::{Leaf, Raw, settled_ref};
use crate::site::CallsiteKind;

/// The most bytes of a packet with arguments. The copy of a longer text should be a call.
const LONGEST: usize = 4096;

/// Whether a packet with these values may have 128 bytes or more.
#[inline(always)]
pub(crate) fn is_long(values: &impl Values) -> bool {
    most_of(values) >= 0x80
}

#[inline(always)]
fn most_of(values: &impl Values) -> usize {
    let mut most = Most(PLAIN as usize);
    values.each(0, &mut most);
    most.0
}

/// Writes an event with arguments on its thread's track. Each length has `LENGTH` bytes: 1 if the packet is
/// not [long](is_long), else 2.
#[inline(always)]
pub(crate) fn with_values<V: Values, const LENGTH: usize>(
    hot: &Hot,
    callsite: &'static Callsite,
    kind: CallsiteKind,
    values: &V,
    taken: Taken,
) -> Option<u64> {
    // Flat values need not fit: no more is known of them before they are read.
    let may_fail = V::COLD_ONLY;
    let (most, reserved) = (most_of(values), reserved_for_end(kind));
    let room = most as i32 + if may_fail { FLAT as i32 } else { 0 } + reserved;
    let is_fit = most < 0x80 || LENGTH > 1 && most <= LONGEST;
    if !is_fit || taken.room() < room || callsite.keys().len() != values.count() {
        return taken.put_back();
    }
    let plan = Plan { reserved, strings: None, may_fail };
    short::write(hot, taken, plan, |mut packet: Packet<LENGTH>| {
        then();
        packet.put_message(callsite.message_words(), callsite.message_len());
        if LENGTH == 1 {
            let mut put = PutShort { raw: &mut packet.raw, keys: callsite.keys(), left: FLAT, fits: true };
            settled_ref(values).each(0, &mut put);
            if may_fail && !put.fits {
                return None;
            }
        } else {
            settled_ref(values).each(0, &mut PutLong { raw: &mut packet.raw, keys: callsite.keys() });
        }
        packet.close(may_fail)
    })
}

/// Adds the most bytes that the annotations may have.
struct Most(usize);

impl Visitor<'_> for Most {
    #[inline(always)]
    fn visit(&mut self, _: usize, value: Value<'_>) {
        self.0 += AnnotationHead::most(&value);
    }

    #[inline(always)]
    fn visit_flat<F: Flat>(&mut self, _: usize, _: &F) {}
}

/// Writes annotations of any length.
struct PutLong<'r> {
    raw: &'r mut Raw,
    keys: &'static [Key],
}

impl Visitor<'_> for PutLong<'_> {
    #[inline(always)]
    fn visit(&mut self, at: usize, value: Value<'_>) {
        if value != Value::Null {
            track_event::put_annotation(&mut Leaf(self.raw), self.keys[at].id().iid(), &value);
        }
    }
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
        // SAFETY: an event has as many values as its callsite has keys: `with_values` compares.
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
