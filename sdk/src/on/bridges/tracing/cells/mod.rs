//! Where a layer keeps what it knows of a span, so that it need not ask the registry, which costs more than a span's two slices.
//!
//! The thread that makes a span puts it into its own table, at the place that the low bits of the span's id say. Ids of
//! spans that live at the same time rarely have these in common, since registries number their spans from 0 and use the
//! numbers of closed ones again. Where they have, or a thread has no table, the caller keeps the span elsewhere.
//!
//! Only a table's owner fills its cells, whoever closes the span empties one, and what is in them is atomic; so
//! the owner takes no lock, and others find the span by looking. They look first where they have found the last
//! span of that place.

mod word;

use std::cell::Cell as Own;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use crate::on::base::forever;
use crate::on::bridges::tracing::cells::word::Word;
use crate::on::bridges::tracing::span::Span;

/// Spans in a table.
const CELLS: usize = 128;
/// Threads that have one at the same time. Others look through all of them, so there are not many.
const TABLES: usize = 64;

/// A layer's place for a span.
#[derive(Debug)]
#[repr(align(64))] // no span shares a cache line with another
pub(crate) struct Cell {
    word: Word,
    pub(crate) span: Span,
}

// As a slot of the subscriber's.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<Cell>() == 128);

struct Table {
    cells: [Cell; CELLS],
    /// For each place, the table that its owner has found the last span of others in.
    guesses: [AtomicU8; CELLS],
    owned: AtomicBool,
}

static ALL: [AtomicPtr<Table>; TABLES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; TABLES];

thread_local! {
    static OWN: Own<Option<&'static Table>> = const { Own::new(None) };
    static HOLD: Hold = const { Hold };
}

/// Gives the table to another thread at the end of this one. Spans in it stay where they are.
struct Hold;

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(table) = OWN.replace(None) {
            table.owned.store(false, Ordering::Release); // pairs with the Acquire of the next owner
        }
    }
}

impl Table {
    fn new() -> Box<Self> {
        let cell = || Cell { word: Word::free(), span: Span::default() };
        let cells = std::array::from_fn(|_| cell());
        let guesses = [const { AtomicU8::new(0) }; CELLS];
        Box::new(Self { cells, guesses, owned: AtomicBool::new(false) })
    }

    #[inline]
    fn get(&self, layer: u32, id: u64) -> Option<&Cell> {
        let cell = &self.cells[place(id)];
        cell.word.is(layer, id).then_some(cell)
    }
}

#[inline]
fn place(id: u64) -> usize {
    id as usize % CELLS
}

/// A table that has no owner, for this thread until its end.
#[cold]
fn acquire() -> Option<&'static Table> {
    HOLD.try_with(|_| ()).ok()?; // not at the thread's end
    let table = ALL.iter().map(|table| forever::keep(table, Table::new)).find(|table| {
        table.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })?;
    OWN.set(Some(table));
    Some(table)
}

/// Puts a new span into its cell, where `fill` says what there is to know. False: there is no room for it.
#[inline]
pub(crate) fn put(layer: u32, id: u64, fill: impl FnOnce(&Span)) -> bool {
    let Some(table) = OWN.get().or_else(acquire) else { return false };
    let cell = &table.cells[place(id)];
    if !cell.word.claim(layer) {
        return false;
    }
    let filling = Filling(cell);
    fill(&cell.span);
    std::mem::forget(filling);
    cell.word.commit(id);
    true
}

/// A cell that is free again if the program's code panics.
struct Filling(&'static Cell);

impl Drop for Filling {
    fn drop(&mut self) {
        self.0.word.clear();
    }
}

/// The span's cell, if it is this thread's or where this thread would guess.
#[inline]
pub(crate) fn find(layer: u32, id: u64) -> Option<&'static Cell> {
    let own = OWN.get()?;
    own.get(layer, id).or_else(|| guess(own, layer, id))
}

#[cold]
fn guess(own: &Table, layer: u32, id: u64) -> Option<&'static Cell> {
    let guess = own.guesses[place(id)].load(Ordering::Relaxed);
    forever::shared(ALL.get(guess as usize)?.load(Ordering::Acquire))?.get(layer, id)
}

/// The span's cell, whosever it is.
#[cold]
pub(crate) fn search(layer: u32, id: u64) -> Option<&'static Cell> {
    let tables = ALL.iter().map_while(|table| forever::shared(table.load(Ordering::Acquire))).enumerate();
    let (index, cell) = tables.filter_map(|(i, table)| Some((i, table.get(layer, id)?))).next()?;
    if let Some(own) = OWN.get().or_else(acquire) {
        own.guesses[place(id)].store(index as u8, Ordering::Relaxed); // TABLES are fewer than 256
    }
    Some(cell)
}

impl Cell {
    /// Its span is over.
    #[inline]
    pub(crate) fn clear(&self) {
        self.word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// A layer that no other test has.
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
    fn a_place_is_one_spans() {
        let layer = layer();
        assert!(put(layer, 8, |_| {}));
        assert!(!put(layer, 8 + CELLS as u64, |_| {}));
        find(layer, 8).unwrap().clear();
        assert!(put(layer, 8 + CELLS as u64, |_| assert!(!put(layer, 8, |_| {}), "while it is filled")));
        find(layer, 8 + CELLS as u64).unwrap().clear();
    }

    #[test]
    fn another_thread_finds_it_after_the_first_search_by_guessing() {
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
    fn a_panic_while_it_is_filled_leaves_the_place_free() {
        let layer = layer();
        let panicked = std::panic::catch_unwind(|| put(layer, 11, |_| panic!("in a field's Debug")));
        assert!(panicked.is_err() && put(layer, 11, |_| {}));
        find(layer, 11).unwrap().clear();
    }
}
