//! The span that a cell holds: its layer and its id.
//!
//! Only the thread that owns the table claims a cell and commits a span to it. Any thread may look and clear.

use crate::on::base::sync::{AtomicU32, AtomicU64, Ordering};

/// The id of a cell without a span. No span has it.
const FREE: u64 = 0;
/// The id of a cell that is being filled. No registry has this many spans.
const FILLING: u64 = u64::MAX;

/// The id and layer of a cell's span.
#[derive(Debug)]
pub(crate) struct State {
    id: AtomicU64,
    layer: AtomicU32,
}

impl State {
    pub(crate) fn free() -> Self {
        Self { id: AtomicU64::new(FREE), layer: AtomicU32::new(0) }
    }

    /// Returns whether the cell holds this span.
    #[inline]
    pub(crate) fn holds(&self, layer: u32, id: u64) -> bool {
        // Acquire pairs with the Release in `commit`: the thread that finds the span sees its layer and the
        // fields set by `fill`.
        self.id.load(Ordering::Acquire) == id && self.layer.load(Ordering::Relaxed) == layer
    }

    /// Claims a free cell for a span of this layer. Returns false if the cell is not free. Only the table's
    /// owner calls it.
    #[inline]
    pub(crate) fn claim(&self, layer: u32) -> bool {
        // Acquire pairs with the Release in `clear`: the last span's thread no longer uses the fields that
        // the owner sets anew.
        if self.id.load(Ordering::Acquire) != FREE {
            return false;
        }
        // Filling may run the program's own code, which may make spans.
        self.id.store(FILLING, Ordering::Relaxed);
        self.layer.store(layer, Ordering::Relaxed);
        true
    }

    /// Commits a span to the claimed cell: every thread can find it from now on.
    #[inline]
    pub(crate) fn commit(&self, id: u64) {
        self.id.store(id, Ordering::Release); // pairs with the Acquire in `holds`
    }

    /// Frees the cell: its span is closed, or `fill` panicked.
    #[inline]
    pub(crate) fn clear(&self) {
        self.id.store(FREE, Ordering::Release); // pairs with the Acquire in `claim`
    }
}
