//! The generation and the reference count of a slot.
//!
//! The memory of a slot is zeroed at first, and may be again later. So no span has generation 0.

use crate::on::base::sync::{AtomicU32, Ordering, const_unless_loom};

/// The generation and the reference count of a slot.
#[derive(Debug)]
pub(crate) struct Count {
    /// One more than the number of spans that were closed in the slot; 0 in zeroed memory. The id of a span has
    /// the generation in which it was made.
    generation: AtomicU32,
    /// Number of owners of the span.
    references: AtomicU32,
}

impl Count {
    const_unless_loom! {
        pub(crate) fn new() -> Count {
            Count { generation: AtomicU32::new(0), references: AtomicU32::new(0) }
        }
    }

    /// Begins a span, with one owner. Returns its generation. The slot is free and the caller's.
    #[inline]
    pub(crate) fn begin(&self) -> u32 {
        self.references.store(1, Ordering::Relaxed);
        match self.generation.load(Ordering::Relaxed) {
            0 => {
                self.generation.store(1, Ordering::Relaxed);
                1
            }
            generation => generation,
        }
    }

    /// Returns the generation of the next span. The slot is free and the caller's.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Sets the generation of the next span, in zeroed memory: one that no id has.
    pub(crate) fn go_on_from(&self, generation: u32) {
        self.generation.store(generation, Ordering::Release); // as in `end`
    }

    /// Returns whether the span of this generation is still open.
    #[inline]
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        // Acquire pairs with the Release in `end`.
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Adds an owner. The caller is one already, so the span is not closed meanwhile.
    #[inline]
    pub(crate) fn share(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes an owner. Returns true to the last one, which then closes the span and calls [`Count::end`].
    #[inline]
    pub(crate) fn release(&self) -> bool {
        // As with an Arc: Release by an owner that is not the last pairs with Acquire by the last, which sees
        // all that the others did. A single owner needs no read-modify-write: only an owner can add another.
        self.references.load(Ordering::Acquire) == 1 || self.references.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Ends the span: its id is invalid from now on. Only the last owner calls it.
    #[inline]
    pub(crate) fn end(&self) {
        let generation = self.generation.load(Ordering::Relaxed); // only a last owner stores it
        // Release pairs with the Acquire in `is_of`: a thread that sees the next generation sees the span
        // closed.
        self.generation.store(generation.wrapping_add(1).max(1), Ordering::Release);
    }
}
