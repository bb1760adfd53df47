//! The cells of `layer()` and the slots of `Subscriber`, each a place for a span.

#[path = "../src/on/bridges/tracing/slots/count.rs"]
mod count;
#[path = "../src/on/bridges/tracing/cells/state.rs"]
mod state;

use std::sync::Arc;

use super::on::base::sync::{AtomicU64, Ordering};
use super::{Seen, explore};
use count::Count;
use loom::cell::UnsafeCell;
use loom::thread;
use state::State;

const LAYER: u32 = 3;

/// As a cell: the state, and fields of the span, which are stored and loaded with Relaxed. The loom cell
/// watches that no two spans use them at the same time.
struct Cell {
    state: State,
    field: AtomicU64,
    guard: UnsafeCell<()>,
}

impl Cell {
    fn new() -> Self {
        Self { state: State::free(), field: AtomicU64::new(0), guard: UnsafeCell::new(()) }
    }

    /// What `cells::put` does.
    fn put(&self, id: u64) -> bool {
        if !self.state.claim(LAYER) {
            return false;
        }
        self.guard.with_mut(|_| self.field.store(id, Ordering::Relaxed));
        self.state.commit(id);
        true
    }
}

// owner: puts span 7     other thread: looks for span 7
// --> its layer and its fields are there as soon as its id is
//
// Fails when `commit` is Relaxed, and when `holds` loads the id with Relaxed.
#[test]
fn a_thread_that_finds_a_span_sees_what_its_cell_was_filled_with() {
    let (found, missed) = (Seen::default(), Seen::default());
    let seen = (found.clone(), missed.clone());
    explore(move || {
        let cell = Arc::new(Cell::new());
        let owner = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || assert!(cell.put(7)))
        };
        let is_found = cell.state.holds(LAYER, 7);
        if is_found {
            cell.guard.with(|_| assert_eq!(cell.field.load(Ordering::Relaxed), 7));
        }
        assert!(!cell.state.holds(LAYER, u64::MAX - 1) && !cell.state.holds(LAYER + 1, 7));
        seen.0.note_if(is_found);
        seen.1.note_if(!is_found);
        owner.join().unwrap();
    });
    assert!(found.happened() && missed.happened());
}

// owner: puts 7, hands it to another thread, then tries to put 8 into the same cell
// other: uses 7 for the last time, and clears the cell --> the owner fills it only after that
//
// Fails when `clear` is Relaxed, and when `claim` loads with Relaxed.
#[test]
fn a_cell_is_filled_anew_only_when_the_last_spans_thread_is_done_with_it() {
    let (again, full) = (Seen::default(), Seen::default());
    let seen = (again.clone(), full.clone());
    explore(move || {
        let cell = Arc::new(Cell::new());
        assert!(cell.put(7));
        let closing = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                assert!(cell.state.holds(LAYER, 7));
                cell.guard.with_mut(|_| assert_eq!(cell.field.load(Ordering::Relaxed), 7));
                cell.state.clear();
            })
        };
        let is_again = cell.put(8);
        assert!(!is_again || cell.state.holds(LAYER, 8) && !cell.state.holds(LAYER, 7));
        seen.0.note_if(is_again);
        seen.1.note_if(!is_again);
        closing.join().unwrap();
        assert_eq!(cell.state.holds(LAYER, 8), is_again);
    });
    assert!(again.happened() && full.happened());
}

/// As a slot: the count, and the span that its owners use until the last of them closes it. The loom cell
/// stands for the span.
struct Slot {
    count: Count,
    span: UnsafeCell<()>,
    closed: AtomicU64,
}

impl Slot {
    fn with_a_span() -> Arc<Self> {
        let slot = Self { count: Count::new(), span: UnsafeCell::new(()), closed: AtomicU64::new(0) };
        assert_eq!(slot.count.begin(), 1);
        Arc::new(slot)
    }

    /// What `Slots::drop` does.
    fn release(&self) -> bool {
        if !self.count.release() {
            return false;
        }
        self.span.with_mut(|_| self.closed.fetch_add(1, Ordering::Relaxed));
        self.count.end();
        true
    }
}

// two owners each use the span and drop it, of which one shares it once more before that --> exactly one drop
// closes it, after all uses
//
// Fails when `release` loads with Relaxed, and when it counts down with Relaxed, Acquire or Release alone.
#[test]
fn the_last_owner_of_a_span_closes_it_once_and_after_all_that_the_others_did() {
    let (first, second) = (Seen::default(), Seen::default());
    let seen = (first.clone(), second.clone());
    explore(move || {
        let slot = Slot::with_a_span();
        slot.count.share();
        let other = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                slot.span.with(|_| assert!(slot.count.is_of(1)));
                slot.count.share();
                let closed_early = slot.release();
                assert!(!closed_early, "this thread has the span");
                slot.release()
            })
        };
        slot.span.with(|_| assert!(slot.count.is_of(1)));
        let mine = slot.release();
        let others = other.join().unwrap();
        assert!(mine ^ others);
        assert_eq!(slot.closed.load(Ordering::Relaxed), 1);
        assert!(!slot.count.is_of(1) && slot.count.is_of(2));
        seen.0.note_if(mine);
        seen.1.note_if(others);
    });
    assert!(first.happened() && second.happened());
}

// owner: closes the span; the slot goes on in new memory     other thread: has its id, without being an owner
// --> when the id means no span, all that closing did is seen
//
// Fails when `end` or `go_on_from` stores with Relaxed, and when `is_of` loads with Relaxed.
#[test]
fn a_thread_that_finds_an_id_outdated_sees_the_span_closed() {
    let (open, closed) = (Seen::default(), Seen::default());
    let seen = (open.clone(), closed.clone());
    explore(move || {
        let slot = Slot::with_a_span();
        let owner = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                assert!(slot.release());
                slot.count.go_on_from(slot.count.generation());
            })
        };
        let is_open = slot.count.is_of(1);
        if !is_open {
            slot.span.with(|_| assert_eq!(slot.closed.load(Ordering::Relaxed), 1));
        }
        seen.0.note_if(is_open);
        seen.1.note_if(!is_open);
        owner.join().unwrap();
    });
    assert!(open.happened() && closed.happened());
}
