//! A layer's own store of spans: a query to the registry costs more than a span's two slices.
//!
//! The thread that makes a span stores it in its own table, in the cell with the low bits of the span's id.
//! Ids of spans that live at the same time rarely share these bits, since registries number their spans from
//! 0 and reuse the ids of closed ones. If they do, or if a thread has no table, the caller stores the span
//! elsewhere.
//!
//! Only a table's owner fills its cells, the thread that closes a span frees its cell, and the contents are
//! atomic. So the owner takes no lock, and other threads find the span by a search. They look first in the
//! table where they found the last span of that index.

mod state;

use std::cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use crate::on::base::forever;
use crate::on::bridges::tracing::cells::state::State;
use crate::on::bridges::tracing::span::Span;

/// Number of spans in a table.
const CELLS: usize = 128;
/// Number of tables, and so of threads that have one at the same time. It is small: other threads search all
/// of them.
const TABLES: usize = 64;

/// A layer's place for a span.
#[derive(Debug)]
#[repr(align(64))] // no two spans share a cache line
pub(crate) struct Cell {
    state: State,
    pub(crate) span: Span,
}

// As large as a slot of the subscriber.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<Cell>() == 128);

struct Table {
    cells: [Cell; CELLS],
    /// For each index, the table in which the owner last found another thread's span.
    guesses: [AtomicU8; CELLS],
    owned: AtomicBool,
}

static ALL: [AtomicPtr<Table>; TABLES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; TABLES];

thread_local! {
    static OWN: cell::Cell<Option<&'static Table>> = const { cell::Cell::new(None) };
    static HOLD: Hold = const { Hold };
}

/// Releases the table at the end of this thread. Spans in it stay where they are.
struct Hold;

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(table) = OWN.replace(None) {
            table.owned.store(false, Ordering::Release); // pairs with the Acquire of the next owner
        }
    }
}

impl Table {
    fn new() -> Self {
        let cell = || Cell { state: State::free(), span: Span::default() };
        let cells = std::array::from_fn(|_| cell());
        let guesses = [const { AtomicU8::new(0) }; CELLS];
        Self { cells, guesses, owned: AtomicBool::new(false) }
    }

    #[inline]
    fn get(&self, layer: u32, id: u64) -> Option<&Cell> {
        let cell = &self.cells[index_of(id)];
        cell.state.holds(layer, id).then_some(cell)
    }
}

#[inline]
fn index_of(id: u64) -> usize {
    id as usize % CELLS
}

/// Makes a table without an owner this thread's own, until the thread's end.
#[cold]
fn acquire() -> Option<&'static Table> {
    HOLD.try_with(|_| ()).ok()?; // `None` at the thread's end
    let table = ALL.iter().map(|table| forever::get_or_leak(table, Table::new)).find(|table| {
        table.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })?;
    OWN.set(Some(table));
    Some(table)
}

/// Stores a new span in its cell. `fill` sets the span's fields. Returns false if the cell is not free.
#[inline]
pub(crate) fn put(layer: u32, id: u64, fill: impl FnOnce(&Span)) -> bool {
    let Some(table) = OWN.get().or_else(acquire) else { return false };
    let cell = &table.cells[index_of(id)];
    if !cell.state.claim(layer) {
        return false;
    }
    let filling = Filling(cell);
    fill(&cell.span);
    std::mem::forget(filling);
    cell.state.commit(id);
    true
}

/// Frees the cell if the program's code panics.
struct Filling(&'static Cell);

impl Drop for Filling {
    fn drop(&mut self) {
        self.0.state.clear();
    }
}

/// Returns the span's cell, if it is in this thread's table or in the table that the thread guesses.
#[inline]
pub(crate) fn find(layer: u32, id: u64) -> Option<&'static Cell> {
    let own = OWN.get()?;
    own.get(layer, id).or_else(|| guess(own, layer, id))
}

#[cold]
fn guess(own: &Table, layer: u32, id: u64) -> Option<&'static Cell> {
    let guess = own.guesses[index_of(id)].load(Ordering::Relaxed);
    forever::get(ALL.get(guess as usize)?.load(Ordering::Acquire))?.get(layer, id)
}

/// Searches all tables for the span's cell.
#[cold]
pub(crate) fn search(layer: u32, id: u64) -> Option<&'static Cell> {
    let tables = ALL.iter().map_while(|table| forever::get(table.load(Ordering::Acquire))).enumerate();
    let (index, cell) = tables.filter_map(|(i, table)| Some((i, table.get(layer, id)?))).next()?;
    if let Some(own) = OWN.get().or_else(acquire) {
        own.guesses[index_of(id)].store(index as u8, Ordering::Relaxed); // TABLES are fewer than 256
    }
    Some(cell)
}

impl Cell {
    /// Frees the cell: its span is closed.
    #[inline]
    pub(crate) fn clear(&self) {
        self.state.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Returns the number of a layer that no other test has.
    fn layer() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1000);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn a_span_is_found_by_its_layer_and_id_until_it_is_cleared() {
        let (one, other) = (layer(), layer());
        assert!(put(one, 7, |_| {}));
        assert!(find(one, 7).is_some() && find(other, 7).is_none() && find(one, 7 + CELLS as u64).is_none());
        find(one, 7).unwrap().clear();
        assert!(find(one, 7).is_none() && search(one, 7).is_none());
    }

    #[test]
    fn a_cell_holds_one_span_at_a_time() {
        let layer = layer();
        assert!(put(layer, 8, |_| {}));
        assert!(!put(layer, 8 + CELLS as u64, |_| {}));
        find(layer, 8).unwrap().clear();
        assert!(put(layer, 8 + CELLS as u64, |_| assert!(!put(layer, 8, |_| {}), "while it is filled")));
        find(layer, 8 + CELLS as u64).unwrap().clear();
    }

    #[test]
    fn after_a_search_another_thread_finds_the_span_by_its_guess() {
        let layer = layer();
        assert!(put(layer, 9, |_| {}));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert!(put(layer, 10, |_| {})); // a table of its own
                assert!(search(layer, 9).is_some() && find(layer, 9).is_some());
                find(layer, 9).unwrap().clear();
            });
        });
        assert!(find(layer, 9).is_none() && search(layer, 10).is_some());
        search(layer, 10).unwrap().clear();
    }

    #[test]
    fn a_panic_while_a_cell_is_filled_leaves_the_cell_free() {
        let layer = layer();
        let panicked = std::panic::catch_unwind(|| put(layer, 11, |_| panic!("in a field's Debug")));
        assert!(panicked.is_err() && put(layer, 11, |_| {}));
        find(layer, 11).unwrap().clear();
    }
}
