//! What is known of a lock of the program: who holds it, who waits for it, who released it last.
//!
//! ```text
//! thread 1   [ wait: cache ................ released ]      the slice has the place of the waiter, and thread
//!                                           ^               and place of the holder at its begin
//! thread 2   .. holds it .. release: cache ─┘               a flow, from the release to the end of the wait
//! ```
//!
//! A lock that is free costs no event and no clock read: who takes it notes its thread and its place in two
//! words of the lock. Nothing is kept outside of the lock.
//!
//! An event of a lock starts the session that the environment requests, as every event does, but never
//! between the lock and its release: the start allocates, and the lock may be that of the program's
//! allocator. So [`epoch`] comes before the lock.
//!
//! A wait that begins while the lock is being released may miss that release: then it has no arrow.

mod who;

use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::on::base::this_thread;
use crate::on::bridges::locks::who::{Seen, Who};
use crate::on::callsite::{Callsite, Epoch, Key};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::text::Text;
use crate::on::thread::events;
use crate::on::thread::guards::Scope;
use crate::site::{CallsiteKind, Site};
use crate::sync::name::{Kind, Name, Place};

static WAIT: Callsite = callsite(CallsiteKind::Scope, "wait", &WAIT_KEYS);
static RELEASED: Callsite = callsite(CallsiteKind::Instant, "released", &RELEASED_KEYS);
static NOTIFIED: Callsite = callsite(CallsiteKind::Instant, "notified", &NOTIFIED_KEYS);
static RELEASE: Callsite = callsite(CallsiteKind::Instant, "release", &RELEASE_KEYS);

static WAIT_KEYS: [Key; 3] = [Key::new("at"), Key::new("held_by"), Key::new("held_at")];
static RELEASED_KEYS: [Key; 2] = [Key::new("released_by"), Key::new("released_at")];
static NOTIFIED_KEYS: [Key; 2] = [Key::new("notified_by"), Key::new("notified_at")];
static RELEASE_KEYS: [Key; 1] = [Key::new("at")];

const fn callsite(kind: CallsiteKind, name: &'static str, keys: &'static [Key]) -> Callsite {
    Callsite::new(kind, "lock", name, keys, &Site::NOWHERE)
}

/// Returns the epoch of the session that records the waits for locks.
#[inline(always)]
pub(crate) fn epoch() -> Option<Epoch> {
    WAIT.registered_epoch()
}

/// Returns the epoch of a callsite that the begin of a wait has registered. The first hit of a callsite is
/// not for a thread that holds the lock.
fn epoch_of(callsite: &'static Callsite) -> Option<Epoch> {
    callsite.epoch().filter(|epoch| *epoch != Epoch::UNREGISTERED)
}

/// What is known of one lock.
#[derive(Debug)]
pub(crate) struct Watch {
    name: Name,
    /// Who holds it, if one thread alone does. Written by that thread.
    holder: Who<Location<'static>>,
    released: Released,
    /// The number of recorded waits. Low half: of threads that want it alone. High half: of readers.
    waiting: AtomicU64,
}

/// The last release while a thread waited.
#[derive(Debug)]
struct Released {
    by: Who<Location<'static>>,
    /// The flow that began with its event; 0 once a wait has taken it.
    flow: AtomicU64,
    /// The epoch of that event.
    epoch: AtomicU32,
    /// 1 if the release was that of a reader. It lets no reader continue.
    is_shared: AtomicU32,
    /// Whether a thread is writing the words above. Two readers of one lock may release it at once.
    is_taken: AtomicU32,
}

impl Watch {
    pub(crate) const fn new(name: Name) -> Self {
        let released = Released {
            by: Who::nobody(),
            flow: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            is_shared: AtomicU32::new(0),
            is_taken: AtomicU32::new(0),
        };
        Self { name, holder: Who::nobody(), released, waiting: AtomicU64::new(0) }
    }

    /// Notes that this thread holds the lock alone.
    #[inline(always)]
    pub(crate) fn took(&self, place: Place) {
        self.holder.set(this_thread::tid(), std::ptr::from_ref(place).cast_mut());
    }

    /// Call it before the lock is released by the thread that holds it alone.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        let is_known = self.holder.is_somebody();
        if is_known {
            self.holder.clear();
        }
        if self.waiting.load(Ordering::Relaxed) != 0 {
            let place = is_known.then(|| self.holder.own_place());
            self.release(Kind::Alone, place.and_then(place_of));
        }
    }

    /// Call it before the lock is released by a thread that holds it with others.
    #[inline(always)]
    pub(crate) fn leave_shared(&self, place: Option<Place>) {
        if self.waiting.load(Ordering::Relaxed) as u32 != 0 {
            self.release(Kind::Shared, place);
        }
    }

    /// Whether a thread waits.
    #[inline(always)]
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Records that this thread releases the lock, for which others wait.
    #[cold]
    #[inline(never)]
    fn release(&self, kind: Kind, place: Option<Place>) {
        let Some(epoch) = epoch_of(&RELEASE) else { return };
        let flow = Flow::new();
        self.record_release("release", epoch, place, Extras::new().flow(&flow));
        self.publish(kind, place, &flow);
    }

    /// Records that this thread wakes threads that wait. Which one of several it is cannot be known, nor
    /// whether an earlier call has done so already: then nobody is said to have ended their waits.
    #[cold]
    #[inline(never)]
    pub(crate) fn notify(&self, place: Place) {
        let Some(epoch) = epoch_of(&RELEASE) else { return };
        let is_sure =
            self.waiting.load(Ordering::Relaxed) == 1 && self.released.flow.load(Ordering::Relaxed) == 0;
        let flow = Flow::new();
        let extras = if is_sure { Extras::new().flow(&flow) } else { Extras::new() };
        self.record_release("notify", epoch, Some(place), extras);
        if is_sure {
            self.publish(Kind::Notified, Some(place), &flow);
        }
    }

    /// Forgets the last call of [`notify`](Self::notify) if no other thread waits for one.
    pub(crate) fn expect_notify(&self) {
        if !self.is_awaited() {
            self.released.flow.store(0, Ordering::Relaxed);
        }
    }

    fn record_release(&self, what: &str, epoch: Epoch, place: Option<Place>, extras: Extras<'_>) {
        let name = Text::display(&format_args!("{what}: {}", self.name));
        let at = place.map(text_of);
        events::event_rich(&RELEASE, epoch, &(at, ()), &extras.name(name.as_str()));
    }

    /// Tells the threads that wait who ends their waits.
    fn publish(&self, kind: Kind, place: Option<Place>, flow: &Flow) {
        // Acquire and Release: the next thread that writes the words sees those of this one.
        if self.released.is_taken.swap(1, Ordering::Acquire) != 0 {
            return; // another thread releases the lock at the same time
        }
        self.released.by.clear();
        if flow.begun() == 0 {
            // The event was lost. An earlier release did not end the wait.
            self.released.is_taken.store(0, Ordering::Release);
            return;
        }
        self.released.flow.store(flow.id(), Ordering::Release);
        self.released.epoch.store(flow.begun(), Ordering::Release);
        self.released.is_shared.store(u32::from(kind == Kind::Shared), Ordering::Release);
        let place = place.map_or(std::ptr::null_mut(), |place| std::ptr::from_ref(place).cast_mut());
        self.released.by.set(this_thread::tid(), place);
        self.released.is_taken.store(0, Ordering::Release);
    }

    /// Records the wait of this thread, until `block` returns. `is_released` tells by the outcome whether
    /// another thread ended the wait.
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        epoch: Epoch,
        kind: Kind,
        place: Place,
        block: impl FnOnce() -> R,
        is_released: impl FnOnce(&R) -> bool,
    ) -> R {
        let wait = Wait::begin(self, epoch, kind, place);
        let got = block();
        if is_released(&got) {
            wait.note_release();
        }
        got
    }
}

/// A wait, to its drop.
pub(crate) struct Wait<'w> {
    watch: &'w Watch,
    /// The number of the last release before it.
    before: u32,
    epoch: Epoch,
    kind: Kind,
    _slice: Scope,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.watch.waiting.fetch_sub(one(self.kind), Ordering::Relaxed);
    }
}

/// A wait of this kind in [`Watch::waiting`].
fn one(kind: Kind) -> u64 {
    match kind {
        Kind::Alone | Kind::Notified => 1,
        Kind::Shared => 1 << 32,
    }
}

impl<'w> Wait<'w> {
    /// Begins a wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(watch: &'w Watch, epoch: Epoch, kind: Kind, place: Place) -> Self {
        for of_the_end in [&RELEASE, &RELEASED, &NOTIFIED] {
            let _ = of_the_end.registered_epoch();
        }
        watch.waiting.fetch_add(one(kind), Ordering::Relaxed);
        let before = watch.released.by.number();
        let holder = watch.holder.look(|| ()).map(|(seen, ())| seen);
        let (by, at) = shown(holder);
        let values = (text_of(place), (by, (at, ())));
        let name = Text::display(&format_args!("wait: {}", watch.name));
        let slice = Scope::begin_named(&WAIT, epoch, &values, name.as_str());
        Self { watch, before, epoch, kind, _slice: slice }
    }

    /// Records who released the lock, at the end of the wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_release(&self) {
        let released = &self.watch.released;
        let words = || {
            let is_shared = released.is_shared.load(Ordering::Acquire) != 0;
            (released.flow.load(Ordering::Acquire), released.epoch.load(Ordering::Acquire), is_shared)
        };
        if released.by.number() == self.before {
            return;
        }
        let Some((seen, (id, begun, is_shared))) = released.by.look(words) else { return };
        if begun != self.epoch.get() || is_shared && self.kind == Kind::Shared {
            return; // of an earlier session, or for others
        }
        let callsite: &Callsite = if self.kind == Kind::Notified { &NOTIFIED } else { &RELEASED };
        let Some(epoch) = epoch_of(callsite).filter(|epoch| *epoch == self.epoch) else { return };
        let (by, at) = shown(Some(seen));
        // A flow does not fork: the first of several threads that one release lets continue has the arrow.
        let is_first =
            id != 0 && released.flow.compare_exchange(id, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let flow = Flow::resumed(id, begun);
        let extras = if is_first { Extras::new().end_flow(&flow) } else { Extras::new() };
        events::event_rich(callsite, epoch, &(by, (at, ())), &extras);
    }
}

/// The thread and its place as arguments.
fn shown(seen: Option<Seen<Location<'static>>>) -> (Option<i64>, Option<Text>) {
    let place = seen.and_then(|seen| place_of(seen.place));
    (seen.map(|seen| i64::from(seen.thread)), place.map(text_of))
}

fn text_of(place: Place) -> Text {
    Text::display(&format_args!("{}:{}", place.file(), place.line()))
}

#[allow(unsafe_code)] // a pointer from a reference
fn place_of(place: *mut Location<'static>) -> Option<Place> {
    // SAFETY: `took` and `release` store null, or a pointer from a `&'static Location`. Nobody writes to it.
    unsafe { place.as_ref() }
}
