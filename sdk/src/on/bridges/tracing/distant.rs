//! The spans of a layer for which its threads' tables have no cell.
//!
//! They are in slots, as those of a [`Subscriber`](super::Subscriber). Tables of some bytes for each find the
//! slot by the registry's id of the span. The registry could keep them too, in 300 bytes more.

use std::sync::atomic::Ordering;

use crate::on::base::lock::{Grow, Mutex};
use crate::on::base::memory::List;
use crate::on::base::this_thread;
use crate::on::bridges::tracing::slots::{SLOTS, Slot};
use crate::on::bridges::tracing::span::Span;

/// Number of tables: threads rarely wait for each other's.
const TABLES: usize = 16;

/// The spans of a layer.
#[derive(Debug)]
pub(crate) struct Distant([Mutex<Table>; TABLES]);

/// A table of slots. A place is 0 if it is empty, or one more than the slot's index. A slot is in the place
/// that its span's id gives, or in one after it, with no empty place in between.
#[derive(Debug)]
struct Table {
    places: List<u32>,
    len: usize,
}

/// Fewer places stay.
const FEW: usize = 256;

/// Returns a number with the bits of an id spread.
fn spread(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the slot in a place, and the registry's id of its span.
fn slot_in(place: u32) -> Option<(&'static Slot, u64)> {
    let slot = SLOTS.at(place.checked_sub(1)?)?;
    Some((slot, slot.parent.load(Ordering::Relaxed)))
}

impl Table {
    const fn new() -> Self {
        Self { places: List::new(), len: 0 }
    }

    /// Returns the places from the first of the id on, once around.
    fn from(&self, id: u64) -> impl Iterator<Item = usize> + use<> {
        let (count, first) = (self.places.len(), spread(id) as usize >> 8);
        (0..count).map(move |n| first.wrapping_add(n) & (count - 1))
    }

    /// Returns the place of the span with this id, and its slot.
    fn find(&self, id: u64) -> Option<(usize, &'static Slot)> {
        for at in self.from(id) {
            let (slot, of) = slot_in(self.places[at])?;
            if of == id {
                return Some((at, slot));
            }
        }
        None
    }

    fn insert(&mut self, id: u64, place: u32) {
        if let Some(at) = self.from(id).find(|at| self.places[*at] == 0) {
            self.places[at] = place;
            self.len += 1;
        }
    }

    /// Removes the span with this id. Returns its slot and the slot's index.
    fn remove(&mut self, id: u64) -> Option<(u32, &'static Slot)> {
        let (mut hole, slot) = self.find(id)?;
        let index = std::mem::take(&mut self.places[hole]) - 1;
        self.len -= 1;
        let mask = self.places.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some((_, of)) = slot_in(self.places[at]) {
            // A span moves into the hole unless its first place is behind the hole.
            let first = spread(of) as usize >> 8 & mask;
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(hole) & mask {
                self.places[hole] = std::mem::take(&mut self.places[at]);
                hole = at;
            }
            at = (at + 1) & mask;
        }
        Some((index, slot))
    }
}

impl Grow for Table {
    fn with_room(entries: usize) -> Self {
        let mut places = List::new();
        places.resize((entries + entries / 2 + 1).next_power_of_two(), 0);
        Self { places, len: 0 }
    }

    fn entries(&self) -> usize {
        self.len
    }

    fn has_room(&self, more: usize) -> bool {
        (self.len + more) * 4 <= self.places.len() * 3
    }

    fn take_over(&mut self, smaller: &mut Self) {
        for place in smaller.places.iter_mut().filter(|place| **place != 0) {
            let place = std::mem::take(place);
            if let Some((_, id)) = slot_in(place) {
                self.insert(id, place);
            }
        }
        smaller.len = 0;
    }
}

impl Distant {
    pub(crate) const fn new() -> Self {
        Self([const { Mutex::new(Table::new()) }; TABLES])
    }

    fn table(&self, id: u64) -> &Mutex<Table> {
        &self.0[spread(id) as usize % TABLES]
    }

    /// Stores a new span. `fill`, code of the program, sets its fields.
    pub(crate) fn put(&self, id: u64, fill: impl FnOnce(&Span)) {
        let Some((slot, own)) = SLOTS.take() else { return };
        let index = (own.into_u64() - 1) as u32;
        slot.parent.store(id, Ordering::Relaxed);
        let unused = Unused(index, slot);
        fill(&slot.span);
        let _busy = this_thread::busy(); // for the lock
        if let Some(mut table) = self.table(id).lock_unless_lost_with_room(|table| (table, 1)) {
            table.insert(id, index + 1);
            std::mem::forget(unused);
        }
    }

    /// Returns a span that is stored here.
    pub(crate) fn find(&self, id: u64) -> Option<&'static Span> {
        let _busy = this_thread::busy(); // for the lock
        let (_, slot) = self.table(id).lock_unless_lost()?.find(id)?;
        Some(&slot.span)
    }

    /// Closes a span that is stored here. Returns whether it was.
    pub(crate) fn close(&self, id: u64) -> bool {
        let busy = this_thread::busy(); // for the lock
        let table = self.table(id);
        let Some(mut locked) = table.lock_unless_lost() else { return false };
        let Some((index, slot)) = locked.remove(id) else { return false };
        let shrinks = locked.places.len() > FEW && locked.len * 8 < locked.places.len();
        let len = locked.len;
        drop(locked);
        if shrinks {
            Self::shrink(table, len);
        }
        drop(busy);
        slot.span.close(id);
        SLOTS.free(index, slot);
        true
    }

    /// Returns memory that a burst has left.
    #[cold]
    fn shrink(table: &Mutex<Table>, len: usize) {
        let mut smaller = Table::with_room(2 * len); // not under the lock
        let Some(mut locked) = table.lock_unless_lost() else { return };
        if smaller.has_room(locked.len) && smaller.places.len() < locked.places.len() {
            smaller.take_over(&mut locked);
            std::mem::swap(&mut *locked, &mut smaller);
        }
        drop(locked);
        drop(smaller); // outside of the lock
    }
}

/// The spans of a registry that ends with its layer are never closed.
impl Drop for Distant {
    fn drop(&mut self) {
        for table in &self.0 {
            let Some(mut locked) = table.lock_unless_lost() else { continue };
            let table = std::mem::replace(&mut *locked, Table::new());
            drop(locked);
            for (place, (slot, id)) in
                table.places.iter().filter_map(|place| Some((*place, slot_in(*place)?)))
            {
                slot.span.close(id);
                SLOTS.free(place - 1, slot);
            }
        }
    }
}

/// A slot that is free again unless its span is stored: the program's code may panic.
struct Unused(u32, &'static Slot);

impl Drop for Unused {
    #[cold]
    fn drop(&mut self) {
        SLOTS.free(self.0, self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_until_they_are_closed_and_a_burst_leaves_a_small_table() {
        let distant = Distant::new();
        let ids = || (1..=20_000_u64).map(|n| n * 0x1_0001);
        ids().for_each(|id| distant.put(id, |_| {}));
        let found: std::collections::HashSet<_> =
            ids().map(|id| distant.find(id).map(std::ptr::from_ref)).collect();
        assert_eq!(found.len(), 20_000, "each has its own slot");
        assert!(!found.contains(&None) && distant.find(5).is_none());
        let (closed, open): (Vec<_>, Vec<_>) = ids().partition(|id| id % 100 != 0);
        assert!(closed.iter().all(|id| distant.close(*id) && !distant.close(*id)));
        assert!(closed.iter().all(|id| distant.find(*id).is_none()));
        assert!(open.iter().all(|id| distant.find(*id).is_some()));
        let places: usize = distant.0.iter().map(|table| table.lock().places.len()).sum();
        assert!(places < 8_000, "{places} for {}", open.len());
    }

    #[test]
    fn a_panic_while_a_span_is_filled_leaves_its_slot_free() {
        let distant = Distant::new();
        let panicked = std::panic::catch_unwind(|| distant.put(7, |_| panic!("in a field's Debug")));
        assert!(panicked.is_err() && distant.find(7).is_none());
        distant.put(7, |_| {});
        assert!(distant.close(7));
    }
}
