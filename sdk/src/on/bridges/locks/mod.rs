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
//! An event of a lock starts the session that the environment requests, as every event does, but never by a
//! thread that holds the lock: the start allocates, and the lock may be that of the program's allocator. So
//! [`epoch`] comes before the lock. It registers all callsites at once, and the rest uses [`known_epoch`].
//!
//! In a session with a limit for holds, the clock is read too, and no other session pays for that: the word
//! of [`GATE`] is that of a callsite that was never hit, so each lock takes the way of the first one.
//!
//! A wait that begins while the lock is being released may miss that release: then it has no arrow.
//!
//! Each release while a thread waits is recorded, so a wait has all that held the lock meanwhile. Locks may
//! have one name: a wait and a release have the address of the lock too, which is its own while a thread
//! waits.

pub(crate) mod awaited;
pub(crate) mod depth;
mod holds;
mod waiting;
mod who;

use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::on::base::this_thread;
use crate::on::bridges::locks::waiting::Waiting;
use crate::on::bridges::locks::who::{Seen, Who};
pub(crate) use crate::on::callsite::Epoch;
use crate::on::callsite::{Callsite, Key, watched};
use crate::on::event::extras::Extras;
use crate::on::event::flow::Flow;
use crate::on::event::text::Text;
use crate::on::thread::events;
use crate::on::thread::guards::Scope;
use crate::site::{CallsiteKind, Site};
use crate::sync::name::{Kind, Name, Place};

/// What each lock looks at. It has no events of its own.
static GATE: Callsite = callsite(CallsiteKind::Instant, "wait", &[]).unless_held();
static WAIT: Callsite = callsite(CallsiteKind::Scope, "wait", &WAIT_KEYS);
/// A wait for what is no lock.
static WAIT_FOR: Callsite = callsite(CallsiteKind::Scope, "wait", &WAIT_FOR_KEYS);
static RELEASED: Callsite = callsite(CallsiteKind::Instant, "released", &RELEASED_KEYS);
static NOTIFIED: Callsite = callsite(CallsiteKind::Instant, "notified", &NOTIFIED_KEYS);
static RELEASE: Callsite = callsite(CallsiteKind::Instant, "release", &RELEASE_KEYS);

static WAIT_KEYS: [Key; 4] = [Key::new("at"), Key::new("held_by"), Key::new("held_at"), Key::new("lock")];
static WAIT_FOR_KEYS: [Key; 5] =
    [Key::new("at"), Key::new("held_by"), Key::new("held_at"), Key::new("kind"), Key::new("again")];
static RELEASED_KEYS: [Key; 2] = [Key::new("released_by"), Key::new("released_at")];
static NOTIFIED_KEYS: [Key; 2] = [Key::new("notified_by"), Key::new("notified_at")];
static RELEASE_KEYS: [Key; 7] = [
    Key::new("at"),
    Key::new("lock"),
    Key::new("shared"),
    Key::new("held_by"),
    Key::new("held_by_task"),
    Key::new("kind"),
    Key::new("released_by_task"),
];

const fn callsite(kind: CallsiteKind, name: &'static str, keys: &'static [Key]) -> Callsite {
    Callsite::new(kind, "lock", name, keys, &Site::NOWHERE)
}

/// Returns the epoch of the session that records the waits for locks. Call it before the lock is taken.
#[inline(always)]
pub(crate) fn epoch() -> Option<Epoch> {
    epoch_at_once().unwrap_or_else(|_| first_hit())
}

/// This lock is the first one, or its hold is timed: [`epoch`] comes first, and [`Watch::begin_hold`] when
/// the lock is taken.
pub(crate) struct MoreSteps;

/// As [`epoch`], if a lock has no more steps than that.
#[inline(always)]
pub(crate) fn epoch_at_once() -> Result<Option<Epoch>, MoreSteps> {
    match GATE.epoch() {
        Some(Epoch::UNREGISTERED) => Err(MoreSteps),
        epoch => Ok(epoch),
    }
}

/// Registers all callsites. A thread that is inside of an event makes no other one, and this counts none as
/// lost: most locks are free.
#[cold]
#[inline(never)]
fn first_hit() -> Option<Epoch> {
    if this_thread::is_barred() {
        return None;
    }
    for other in [&WAIT_FOR, &RELEASE, &RELEASED, &NOTIFIED, &holds::HOLD] {
        let _ = other.registered_epoch();
    }
    let epoch = WAIT.registered_epoch();
    if epoch.is_some() && watched::hold_limit() != 0 {
        holds::prepare();
    } else {
        let _ = GATE.registered_epoch();
    }
    epoch
}

/// As [`epoch`], for a thread that holds the lock.
pub(crate) fn known_epoch() -> Option<Epoch> {
    epoch_of(&WAIT)
}

/// Returns the epoch of a callsite, if it is registered.
fn epoch_of(callsite: &'static Callsite) -> Option<Epoch> {
    callsite.epoch().filter(|epoch| *epoch != Epoch::UNREGISTERED)
}

/// Of a condition: a thread that waits may have been notified already, by whom is not known.
const UNSURE: u64 = u64::MAX;

/// What is known of one lock.
#[derive(Debug)]
pub(crate) struct Watch {
    name: Name,
    /// Who holds it, if one thread alone does. Written by that thread.
    holder: Who<Location<'static>>,
    released: Released,
    waiting: Waiting,
}

/// The last release while a thread waited.
#[derive(Debug)]
struct Released {
    by: Who<Location<'static>>,
    /// The flow that began with its event; 0 once a wait has taken it; or [`UNSURE`].
    flow: AtomicU64,
    /// The epoch of that event.
    epoch: AtomicU32,
    /// 1 if the release was that of a reader. It lets no reader continue.
    is_shared: AtomicU32,
    /// [`this_thread::forks`] and 1 more while a thread writes the words above; else another number. Two
    /// readers of one lock may release it at once.
    taken: AtomicU32,
}

impl Watch {
    pub(crate) const fn new(name: Name) -> Self {
        let released = Released {
            by: Who::nobody(),
            flow: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            is_shared: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        };
        Self { name, holder: Who::nobody(), released, waiting: Waiting::nobody() }
    }

    /// Notes that this thread holds the lock alone.
    #[inline(always)]
    pub(crate) fn took(&self, place: Place) {
        self.holder.set(this_thread::tid(), std::ptr::from_ref(place).cast_mut());
    }

    /// Notes when this thread has taken the lock, if the session has a limit for holds. Call it after
    /// [`took`](Self::took).
    #[inline]
    pub(crate) fn begin_hold(&self, place: Place) {
        if watched::hold_limit() != 0 {
            self.begin_timed(place);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_timed(&self, place: Place) {
        if let Some(epoch) = known_epoch() {
            self.waiting.set_timed(true);
            holds::begin(self.address(), self.holder.number(), epoch, place);
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Call it before the lock is released by the thread that holds it alone.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        let is_known = self.holder.is_somebody();
        if is_known {
            self.holder.clear();
        }
        if self.waiting.is_any() {
            let place = is_known.then(|| self.holder.own_place());
            self.release(Kind::Alone, place.and_then(place_of));
        }
    }

    /// Call it before the lock is released by a thread that holds it with others.
    #[inline(always)]
    pub(crate) fn leave_shared(&self, place: Option<Place>) {
        if self.waiting.is_alone() {
            self.release(Kind::Shared, place);
        }
    }

    /// Records that this thread releases the lock, for which others wait, or of which holds are timed.
    #[cold]
    #[inline(never)]
    fn release(&self, kind: Kind, place: Option<Place>) {
        if self.waiting.is_timed() {
            if kind == Kind::Alone || place.is_some() {
                holds::end(self.address(), self.holder.number(), &self.name);
            }
            if watched::hold_limit() == 0 || known_epoch().is_none() {
                self.waiting.set_timed(false);
            }
            if !self.waiting.is_for(kind) {
                return;
            }
        }
        if self.waiting.number() == 0 {
            return; // those that waited are threads of the parent
        }
        let flow = Flow::new();
        self.record_release(("release", kind), place, Extras::new().flow(&flow));
        self.publish(kind, place, &flow);
    }

    /// Call it before threads that wait are woken.
    #[inline]
    pub(crate) fn notify(&self, place: Place) {
        if self.waiting.is_any() {
            self.notify_waiting(place);
        }
    }

    /// Records that this thread wakes threads that wait. Which one of several it is cannot be known, nor
    /// whether an earlier call has done so already: then nobody is said to have ended their waits.
    #[cold]
    #[inline(never)]
    fn notify_waiting(&self, place: Place) {
        let waiting = self.waiting.number();
        if waiting == 0 {
            return; // as above
        }
        let is_sure = waiting == 1 && self.released.flow.load(Ordering::Relaxed) == 0;
        let flow = Flow::new();
        let extras = if is_sure { Extras::new().flow(&flow) } else { Extras::new() };
        self.record_release(("notify", Kind::Notified), Some(place), extras);
        if is_sure {
            self.publish(Kind::Notified, Some(place), &flow);
        } else {
            self.write_release(|released| released.flow.store(UNSURE, Ordering::Relaxed));
        }
    }

    /// Counts a thread that waits for a notification, until the outcome is dropped: also one whose wait is
    /// not recorded.
    pub(crate) fn expect_notify(&self) -> Counted<'_> {
        if self.waiting.add(Kind::Notified) == 1 {
            self.released.flow.store(0, Ordering::Relaxed); // the last notification is over
        }
        Counted { waiting: &self.waiting, kind: Kind::Notified }
    }

    fn record_release(&self, (what, kind): (&str, Kind), place: Option<Place>, extras: Extras<'_>) {
        let Some(epoch) = epoch_of(&RELEASE) else { return };
        let name = Text::display(&format_args!("{what}: {}", self.name));
        let lock = what_of(kind).is_none().then(|| number_of(self.address()));
        let is_shared = (kind == Kind::Shared).then_some(true);
        events::event_rich(
            &RELEASE,
            epoch,
            &(place.map(text_of), (lock, (is_shared, ()))),
            &extras.name(name.as_str()),
        );
    }

    /// Tells the threads that wait who ends their waits: the thread whose event has begun the flow.
    fn publish(&self, kind: Kind, place: Option<Place>, flow: &Flow) {
        if flow.begun() == 0 {
            return self.forget_release(); // the event was lost, and an earlier release did not end the wait
        }
        self.write_release(|released| {
            released.flow.store(flow.id(), Ordering::Release);
            released.epoch.store(flow.begun(), Ordering::Release);
            released.is_shared.store(u32::from(kind == Kind::Shared), Ordering::Release);
            let place = place.map_or(std::ptr::null_mut(), |place| std::ptr::from_ref(place).cast_mut());
            released.by.set(this_thread::tid(), place);
        });
        // Pairs with the fence in `Wait::begin`: a wait that does not see these words is seen by the next
        // thread that releases the lock.
        fence(Ordering::SeqCst);
    }

    /// From now on nobody is known to have ended the waits.
    fn forget_release(&self) {
        self.write_release(|_| ());
    }

    /// Calls `write` between two states of [`Released::by`], unless another thread does so at this moment.
    fn write_release(&self, write: impl FnOnce(&Released)) {
        let (taken, mine) = (&self.released.taken, this_thread::forks().wrapping_add(1));
        let before = taken.load(Ordering::Relaxed);
        // Acquire and Release: the next thread that writes the words sees those of this one.
        if before == mine
            || taken.compare_exchange(before, mine, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        self.released.by.clear();
        write(&self.released);
        taken.store(0, Ordering::Release);
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
    /// Absent if [`Watch::expect_notify`] counts the thread.
    _counted: Option<Counted<'w>>,
}

/// A thread that is counted.
pub(crate) struct Counted<'w> {
    waiting: &'w Waiting,
    kind: Kind,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.waiting.remove(self.kind);
    }
}

impl<'w> Wait<'w> {
    /// Begins a wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(watch: &'w Watch, epoch: Epoch, kind: Kind, place: Place) -> Self {
        let counted = (!is_notified(kind)).then(|| {
            watch.waiting.add(kind);
            Counted { waiting: &watch.waiting, kind }
        });
        fence(Ordering::SeqCst); // pairs with the one in `publish`
        let before = watch.released.by.number();
        let holder = watch.holder.look(|| ()).map(|(seen, ())| seen);
        let (by, at) = shown(holder);
        let name = Text::display(&format_args!("wait: {}", watch.name));
        let what = what_of(kind).filter(|_| epoch_of(&WAIT_FOR) == Some(epoch));
        let slice = if let Some(what) = what {
            let again = (kind == Kind::NotifiedAgain).then_some(true);
            let values = (text_of(place), (by, (at, (what, (again, ())))));
            Scope::begin_named(&WAIT_FOR, epoch, &values, name.as_str())
        } else {
            let values = (text_of(place), (by, (at, (number_of(watch.address()), ()))));
            Scope::begin_named(&WAIT, epoch, &values, name.as_str())
        };
        Self { watch, before, epoch, kind, _slice: slice, _counted: counted }
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
        let callsite: &Callsite = if is_notified(self.kind) { &NOTIFIED } else { &RELEASED };
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

/// Whether a notification ends a wait.
fn is_notified(kind: Kind) -> bool {
    matches!(kind, Kind::Notified | Kind::NotifiedAgain)
}

/// What is waited for, if that is no lock.
fn what_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Alone | Kind::Shared => None,
        Kind::Notified | Kind::NotifiedAgain => Some("condition variable"),
        Kind::Met => Some("barrier"),
        Kind::Done => Some("initialization"),
    }
}

/// The thread and its place as arguments.
fn shown(seen: Option<Seen<Location<'static>>>) -> (Option<i64>, Option<Text>) {
    let place = seen.and_then(|seen| place_of(seen.place));
    (seen.map(|seen| i64::from(seen.thread)), place.map(text_of))
}

/// The address of a lock as an argument.
fn number_of(address: usize) -> i64 {
    address.cast_signed() as i64
}

fn text_of(place: Place) -> Text {
    Text::display(&format_args!("{}:{}", place.file(), place.line()))
}

#[allow(unsafe_code)] // a pointer from a reference
fn place_of(place: *mut Location<'static>) -> Option<Place> {
    // SAFETY: `took` and `publish` store null, or a pointer from a `&'static Location`. Nobody writes to it.
    unsafe { place.as_ref() }
}
