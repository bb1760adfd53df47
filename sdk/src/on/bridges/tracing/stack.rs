//! The spans that this thread has entered.
//!
//! tracing lets spans be left in any order, but slices nest. When a span is left below others, its end is
//! counted and marked in the trace, as that of a scope of a macro is. Below a few others, the slices of those
//! end before it, and begin again. Below more spans that would cost more with each of them: tasks that hold
//! `span.enter()` across an `.await` have an entry each.

#![allow(unsafe_code)] // a reference to the thread-local

use std::cell::{Cell, RefCell};

use crate::on::base::few::Few;
use crate::on::base::this_thread;
use crate::on::bridges::tracing::elsewhere;
use crate::on::bridges::tracing::far::{Entry, Far};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::thread::retraction::Begun;
use crate::on::thread::slices::{self, OpenScope, RecordedIn};

/// Number of entries in the thread-local itself, which then needs no destructor and is quick to find.
const NEAR: usize = 32;

/// The most spans whose slices begin again when one below them is left.
const MOST_AGAIN: usize = 4;

struct Stack {
    /// Number of places in use in `near`; with entries in `FAR` [`NEAR`] and their number.
    len: Cell<usize>,
    /// A place without a callsite is a gap. There is none unless `FAR` has entries.
    near: [Place; NEAR],
    /// The begin of the last slice that may be taken back, the id of its span, its epoch and the index of its
    /// entry. One is enough: what began before it has something inside.
    begun: Cell<Begun>,
    begun_by: Cell<u64>,
    begun_in: Cell<Epoch>,
    begun_at: Cell<usize>,
}

/// A place for an [`Entry`]. Each field is stored and loaded by itself, in one access of its size: a
/// processor waits when it loads at once what was stored in parts a moment before.
struct Place {
    span: Cell<u64>,
    callsite: Cell<Option<&'static Callsite>>,
    recorded_in: Cell<Option<RecordedIn>>,
    id: Cell<u32>,
}

impl Place {
    const fn new() -> Self {
        Self { span: Cell::new(0), callsite: Cell::new(None), recorded_in: Cell::new(None), id: Cell::new(0) }
    }

    #[inline(always)]
    fn set(&self, entry: Entry) {
        self.span.set(entry.span);
        self.callsite.set(Some(entry.callsite));
        self.recorded_in.set(entry.open.map(|open| open.recorded_in));
        self.id.set(entry.open.map_or(0, |open| open.id));
    }

    /// Makes the place a gap.
    fn clear(&self) {
        self.span.set(0);
        self.callsite.set(None);
    }

    /// Returns the entry; `None` if there is none.
    #[inline(always)]
    fn get(&self) -> Option<Entry> {
        let id = self.id.get();
        let open = self.recorded_in.get().map(|recorded_in| OpenScope { recorded_in, id });
        let span = self.span.get();
        self.callsite.get().map(|callsite| Entry { span, callsite, open })
    }
}

thread_local! {
    static STACK: Stack = const {
        Stack {
            len: Cell::new(0),
            near: [const { Place::new() }; NEAR],
            begun: Cell::new(Begun::NONE),
            begun_by: Cell::new(0),
            begun_in: Cell::new(Epoch::UNREGISTERED),
            begun_at: Cell::new(0),
        }
    };
    /// The entries above the first [`NEAR`].
    static FAR: RefCell<Far> = const { RefCell::new(Far::new()) };
}

/// Returns this thread's stack.
#[inline(always)]
fn stack<'t>() -> &'t Stack {
    // By a pointer, since the closure of `LocalKey::with` is compiled as a separate function.
    let stack = STACK.with(std::ptr::from_ref);
    // SAFETY: `Stack` has no destructor, so it exists as long as its thread. It is neither Send nor Sync, so
    // the reference cannot leave the thread.
    unsafe { &*stack }
}

/// Calls `f` with the entries in `FAR`. Returns `None` at the thread's end.
fn far<R>(f: impl FnOnce(&mut Far) -> R) -> Option<R> {
    FAR.try_with(|far| far.try_borrow_mut().ok().map(|mut far| f(&mut far))).ok().flatten()
}

#[cold]
fn pop_far() {
    let _busy = this_thread::busy(); // as below
    if far(|far| far.pop().is_none() || far.len() == 0) == Some(true) {
        stack().close_gaps();
    }
}

#[cold]
fn top_of_far() -> Option<Entry> {
    far(|far| far.top()).flatten()
}

/// Takes the fields of an entry one by one, so that they are in registers.
#[cold]
#[inline(never)]
fn push_far(span: u64, callsite: &'static Callsite, open: Option<OpenScope>) -> Option<()> {
    // An allocator's spans would find the list borrowed. They are not recorded.
    let _busy = this_thread::busy();
    far(|far| far.push(Entry { span, callsite, open }))
}

/// Removes the entries of spans that other threads have left. Their slices end now, out of order.
#[cold]
pub(crate) fn remove_left_elsewhere() {
    thread_local! {
        static SEEN: Cell<u32> = const { Cell::new(0) };
    }
    let seen = elsewhere::read(SEEN.get(), |span| {
        if let Some(entry) = stack().remove(span) {
            entry.out_of_order().end_slice();
        }
    });
    SEEN.set(seen);
}

impl Stack {
    #[inline(always)]
    fn push(&self, entry: Entry) {
        let len = self.len.get();
        let Entry { span, callsite, open } = entry;
        match self.near.get(len) {
            Some(place) => place.set(entry),
            None if push_far(span, callsite, open).is_none() => return, // the thread ends
            None => {}
        }
        self.len.set(len + 1);
    }

    #[inline]
    fn top(&self) -> Option<Entry> {
        let at = self.len.get().checked_sub(1)?;
        match self.near.get(at) {
            Some(place) => place.get(),
            None => top_of_far(),
        }
    }

    #[inline]
    fn pop(&self) {
        let at = self.len.get().saturating_sub(1);
        self.len.set(at);
        if at >= NEAR {
            pop_far();
        }
    }

    /// The places of `near` that are in use.
    fn near(&self) -> &[Place] {
        &self.near[..self.len.get().min(NEAR)]
    }

    /// Returns the entry with so many above it, if it can be found fast.
    fn below_top(&self, above: usize) -> Option<Entry> {
        let far_entries = self.len.get().saturating_sub(NEAR);
        if above < far_entries {
            return far(|far| far.below_top(above)).flatten();
        }
        self.near().iter().rev().filter_map(Place::get).nth(above - far_entries)
    }

    /// Removes the last entry of the span, wherever it is. The others keep their order.
    fn remove(&self, span: u64) -> Option<Entry> {
        let len = self.len.get();
        let _busy = this_thread::busy(); // the allocator's spans would find the list borrowed
        if len > NEAR
            && let Some(entry) = far(|far| far.remove(span)).flatten()
        {
            self.len.set(len - 1);
            if len - 1 == NEAR {
                self.close_gaps();
            }
            return Some(entry);
        }
        let place = self.near().iter().rfind(|place| place.span.get() == span)?;
        let entry = place.get()?;
        place.clear();
        if len <= NEAR {
            self.close_gaps();
        }
        Some(entry)
    }

    /// Moves the entries of `near` together. `FAR` has none.
    #[cold]
    fn close_gaps(&self) {
        let mut used = 0;
        for place in self.near() {
            if let Some(entry) = place.get() {
                self.near[used].set(entry);
                used += 1;
            }
        }
        self.len.set(used);
    }
}

#[inline(always)]
pub(crate) fn push(entry: Entry) {
    stack().push(entry);
}

/// Keeps the begin of the slice of the next entry, which is of this span; `None` if that must not be taken
/// back.
#[inline]
pub(crate) fn keep_begun(span: u64, begun: Option<(Begun, Epoch)>) {
    let stack = stack();
    match begun {
        Some((begun, epoch)) => {
            stack.begun.set(begun);
            stack.begun_in.set(epoch);
            stack.begun_by.set(span);
            stack.begun_at.set(stack.len.get());
        }
        None if stack.begun_at.get() == stack.len.get() => stack.begun_by.set(0),
        None => {}
    }
}

/// Lets no close take the last slice back: its end says something.
pub(crate) fn keep_last_slice() {
    stack().begun_by.set(0);
}

/// Takes the slice of the last entry back, if that was an entry of this span, on this thread, and nothing was
/// recorded since its begin but its end: it is the entry in which a future was dropped.
pub(crate) fn retract_left(span: u64) {
    let stack = stack();
    if stack.begun_by.get() != span || stack.begun_at.get() != stack.len.get() {
        return;
    }
    stack.begun_by.set(0);
    let begun = stack.begun.get();
    if begun.is_short_and_empty() {
        begun.retract(stack.begun_in.get());
    }
}

/// Returns the number of entries.
#[inline]
pub(crate) fn len() -> usize {
    stack().len.get()
}

/// Returns how many entries are below the last one of this span.
#[cold]
pub(crate) fn place_of(span: u64) -> Option<usize> {
    let stack = stack();
    if stack.len.get() > NEAR
        && let Some(at) = far(|far| far.place_of(span)).flatten()
    {
        return Some(NEAR + at);
    }
    stack.near().iter().rposition(|place| place.span.get() == span)
}

/// Returns the id of the span that was entered last; 0 if none is entered.
#[inline]
pub(crate) fn top_span() -> u64 {
    let stack = stack();
    let Some(at) = stack.len.get().checked_sub(1) else { return 0 };
    match stack.near.get(at) {
        Some(place) => place.span.get(),
        None => top_of_far().map_or(0, |entry| entry.span),
    }
}

/// Returns the span that was entered last.
#[inline]
pub(crate) fn top() -> Option<Entry> {
    stack().top()
}

fn pop() -> Option<Entry> {
    let stack = stack();
    let top = stack.top();
    stack.pop();
    top
}

/// Removes and returns the entry of the span, if that is the last one and near. [`leave`] does the others.
#[inline]
pub(crate) fn leave_near(span: u64) -> Option<Entry> {
    let stack = stack();
    let at = stack.len.get().wrapping_sub(1);
    let place = stack.near.get(at).filter(|place| place.span.get() == span)?;
    let entry = place.get()?;
    stack.len.set(at);
    Some(entry)
}

/// Removes the span, and ends its slice by `end`. Returns false if this thread has not entered it.
pub(crate) fn leave(span: u64, end: impl FnOnce(&Entry)) -> bool {
    let stack = stack();
    match stack.top() {
        Some(entry) if entry.span == span => {
            stack.pop();
            end(&entry);
            return true;
        }
        None => return false,
        Some(_) => {}
    }
    let is_span = |above: &usize| stack.below_top(*above).is_some_and(|entry| entry.span == span);
    if (1..=MOST_AGAIN).any(|above| is_span(&above)) {
        leave_from_below(span, end);
        return true;
    }
    let own = stack.remove(span);
    if let Some(own) = &own {
        end(own);
    }
    own.is_some()
}

/// As [`leave`], for a span that is below a few others.
#[cold]
fn leave_from_below(span: u64, end: impl FnOnce(&Entry)) {
    let mut above = Few::<Option<Entry>, MOST_AGAIN>::new(None);
    let own = loop {
        match pop() {
            Some(entry) if entry.span == span => break entry,
            Some(entry) => above.push(Some(entry)),
            None => return, // the caller has found it
        }
    };
    for entry in above.as_slice().iter().flatten() {
        entry.end_slice();
    }
    end(&own.out_of_order());
    for mut entry in above.as_slice().iter().rev().flatten().copied() {
        let is_on = |open: &OpenScope| entry.callsite.epoch() == Some(open.epoch());
        entry.open = entry.open.filter(is_on).and_then(|_| slices::begin_slice(entry.callsite));
        push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::CallsiteKind;
    use crate::site::Site;

    static SITE: Site = Site::NOWHERE;
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "t", &[], &SITE);

    fn entries() -> Vec<u64> {
        let mut all: Vec<u64> = std::iter::from_fn(|| pop().map(|entry| entry.span)).collect();
        all.reverse();
        all
    }

    #[test]
    fn any_number_of_spans_can_be_left_in_any_order() {
        let entered = 2 * NEAR as u64;
        for left in [1, 5, NEAR as u64 - 1, NEAR as u64, NEAR as u64 + 1, entered - 1, entered, 1000] {
            (1..=entered).for_each(|span| {
                push(Entry { span, callsite: &CALLSITE, open: None });
            });
            let mut ended = None;
            leave(left, |entry| ended = Some(entry.span));
            assert_eq!(ended, (left <= entered).then_some(left));
            let rest: Vec<u64> = (1..=entered).filter(|span| *span != left).collect();
            assert_eq!(entries(), rest, "{left}");
        }
    }
}
