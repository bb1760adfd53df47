//! The cold path: whatever an event needs besides being written.
//!
//! It runs with the writer marked busy, so an event from inside it (an allocator that traces) is counted as
//! re-entrant, and it takes locks only that no such event can hold.

#![allow(unsafe_code)] // the region of a thread that forks

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use hairline_shm::{Lease, LossReason, Region, start_pool_in_child};

use crate::on::base::this_thread::Hot;
use crate::on::base::{lease, this_thread};
use crate::on::callsite::{Callsite, Kind, UNREGISTERED, fence_constants, registry};
use crate::on::encode::constants;
use crate::on::event::Event;
use crate::on::session::{current, stray};
use crate::on::thread::chunk_writer::Writer;

/// Counts an event of a thread that is busy: inside of another event, or at its end.
fn count_refused(hot: &Hot) {
    let has_ended = lease::has_ended(hot.lease());
    stray::count(if has_ended { LossReason::ThreadExit } else { LossReason::Reentrant });
}

thread_local! {
    static WRITER: RefCell<Owner> = const { RefCell::new(Owner(None)) };
    /// Whether the thread has had a writer.
    static HAS_OWNER: Cell<bool> = const { Cell::new(false) };
    /// The region that the thread may be writing into: null where it has no writer. For a forked child.
    static REGION: Cell<*const Region> = const { Cell::new(std::ptr::null()) };
}

/// The thread's writer; gives its chunk back at thread exit.
struct Owner(Option<Writer>);

impl Drop for Owner {
    fn drop(&mut self) {
        let hot = this_thread::hot();
        let _busy = hot.busy();
        self.leave(hot);
    }
}

/// The thread's end, after its thread-locals are gone: what a first event that came after them has left, and the lease.
pub(crate) fn thread_ended() {
    let hot = this_thread::hot();
    let _ = with_owner_if_any(|owner| {
        let _busy = hot.busy();
        owner.leave(hot);
    });
}

/// What the thread has for its session, if it ever had something: to ask the thread-local itself would make one, whose destructor a
/// thread at its end does not come to any more.
fn with_owner_if_any<R>(f: impl FnOnce(&mut Owner) -> R) -> Option<R> {
    if !HAS_OWNER.get() {
        return None;
    }
    WRITER.try_with(|owner| owner.try_borrow_mut().ok().map(|mut owner| f(&mut owner))).ok().flatten()
}

/// Keeps the region that [`REGION`] points to. Its drop empties `REGION` first and gives up the region then:
/// a signal handler may fork in between.
struct Noted(Option<Arc<Region>>);

impl Noted {
    fn new(region: &Arc<Region>) -> Self {
        let noted = Self(Some(Arc::clone(region)));
        REGION.set(Arc::as_ptr(region));
        noted
    }

    /// The thread's writer keeps the region from now on.
    fn leave_to_writer(mut self) {
        self.0 = None;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if self.0.is_some() {
            REGION.set(std::ptr::null());
        }
    }
}

impl Owner {
    /// Gives up the writer. To be called with the thread marked busy.
    fn leave(&mut self, hot: &Hot) {
        hot.lease().clear();
        if let Some(mut writer) = self.0.take() {
            let _noted = Noted::new(writer.region());
            if writer.is_parents() {
                std::mem::forget(writer); // of an event that a signal handler interrupted for a fork
            } else {
                writer.take_over(hot);
                writer.finish();
                hot.lease().give_up();
            }
        }
    }

    /// The writer of the session with `epoch`, if this is one, with what the hot path has left.
    fn writer(&mut self, hot: &Hot, epoch: u32) -> Option<&mut Writer> {
        let writer = self.0.as_mut().filter(|writer| writer.epoch() == epoch)?;
        writer.take_over(hot);
        Some(writer)
    }
}

/// Records an event that the hot path would not. Returns the epoch it was recorded in, 0 if it was not.
#[cold]
#[inline(never)]
pub(crate) fn event(word: u32, event: &Event<'_>) -> u32 {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        count_refused(hot);
        return 0;
    }
    if this_thread::is_detached() {
        return 0; // a forked child; the word was read before it knew
    }
    let epoch = if word == UNREGISTERED { event.callsite.first_hit() } else { word };
    let _busy = hot.busy();
    fence_constants(); // as in `Hot::take`, where not all events have been
    let track = event.track.filter(|track| track.is_of(epoch));
    if epoch != 0 && record(hot, epoch, &Event { track, ..*event }) { epoch } else { 0 }
}

/// Ends a recorded scope where the hot path would not.
#[cold]
#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, word: u32) {
    with_own_writer(word, |hot, writer| writer.end(hot, callsite));
}

/// Ends a recorded scope with arguments; without them where there is no room.
#[cold]
#[inline(never)]
pub(crate) fn end_with(event: &Event<'_>, word: u32) {
    with_own_writer(word, |hot, writer| writer.end_with(hot, event));
}

/// What ends a recorded scope of this thread.
fn with_own_writer(word: u32, end: impl FnOnce(&Hot, &mut Writer)) {
    let hot = this_thread::hot();
    // Busy: only a guard that a signal handler took from the code it interrupted ends here.
    if hot.own_lease().is_busy() || this_thread::is_detached() {
        return;
    }
    let _busy = hot.busy();
    let _ = WRITER.try_with(|owner| {
        // None of this epoch: its session has stopped, or its thread's writer is gone, and the slice stays open there.
        if let Some(writer) = owner.try_borrow_mut().ok().as_mut().and_then(|o| o.writer(hot, word)) {
            end(hot, &mut writer.published(hot));
        }
    });
}

/// How the end of a slice on a track went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackEnd {
    /// It is in the trace, at this time.
    Recorded(u64),
    /// Its session is over.
    Over,
    /// It came from inside of another event of this thread, and the slice stays open.
    Refused,
}

/// Ends a recorded slice on a track, from whichever thread. Where this thread has no room for it, the writer thread
/// writes it, so that the slice does not stay open.
#[cold]
#[inline(never)]
pub(crate) fn end_on_track(word: u32, event: &Event<'_>) -> TrackEnd {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        count_refused(hot); // the list of late ends has a lock
        return TrackEnd::Refused;
    }
    if this_thread::is_detached() {
        return TrackEnd::Over;
    }
    let _busy = hot.busy();
    fence_constants(); // as in `event`: another thread may have registered the callsite
    let outcome = WRITER.try_with(|owner| {
        let mut owner = owner.try_borrow_mut().ok()?;
        Some(attach(hot, &mut owner, word)?.published(hot).end_on_track(hot, event))
    });
    let outcome = outcome.ok().flatten();
    if let Some(Some(time)) = outcome {
        return TrackEnd::Recorded(time);
    }
    match current::current(word) {
        // What nobody drains has no late ends, and the slice goes as a whole.
        Some(shared) if shared.region().overwrites() => {
            // A writer that had no room has taken the begin already: the next one is that of the slice around it.
            if outcome.is_none() {
                let recorder = shared.recorder();
                let begun = event.track.zip(recorder).is_some_and(|(t, r)| r.open().forget_last(t.uuid()));
                shared.region().count_lost(LossReason::BufferFull, u64::from(begun));
            }
            TrackEnd::Refused
        }
        Some(shared) => TrackEnd::Recorded(shared.end_late(event)),
        None => TrackEnd::Over,
    }
}

/// Registers a callsite at its first hit, after `start` has had the chance to start a session. Returns the callsite's
/// word then. 0 from inside of another event, which counts as lost: the callsite would have been recorded for all we
/// know.
#[cold]
#[inline(never)]
pub(crate) fn first_hit(callsite: &'static Callsite, start: fn()) -> u32 {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        if callsite.kind() != Kind::End {
            count_refused(hot); // a slice counts with its begin
        }
        return 0;
    }
    let _busy = hot.busy();
    if !this_thread::is_detached() {
        start();
    }
    registry::register(callsite, constants::constants);
    callsite.word()
}

/// The event, with the writer of this thread for the session with `epoch`. Whether it was recorded.
fn record(hot: &Hot, epoch: u32, event: &Event<'_>) -> bool {
    let outcome = WRITER.try_with(|owner| {
        let Ok(mut owner) = owner.try_borrow_mut() else {
            stray::count(LossReason::Reentrant);
            return false;
        };
        let Some(writer) = attach(hot, &mut owner, epoch) else {
            // There is no session with this epoch any more, or no chunk.
            if let Some(shared) = current::current(epoch) {
                shared.refuse_for_room();
            }
            if let Some(writer) = owner.writer(hot, epoch) {
                writer.set_refused();
            }
            return false;
        };
        writer.published(hot).event(hot, event)
    });
    outcome.unwrap_or_else(|_| {
        stray::count(LossReason::ThreadExit);
        false
    })
}

/// Makes `owner` the writer for the session with `epoch`. None: there is no such session, and the thread's writer for
/// another one stays; or no chunk, and the thread has no writer, or one that waits for a chunk.
fn attach<'o>(hot: &Hot, owner: &'o mut Owner, epoch: u32) -> Option<&'o mut Writer> {
    if owner.0.as_ref().is_some_and(|writer| writer.epoch() == epoch) {
        let writer = owner.writer(hot, epoch)?;
        return writer.resume(hot).is_ok().then_some(writer);
    }
    let shared = current::current(epoch)?;
    owner.leave(hot);
    if shared.has_no_chunk() {
        return None; // nothing is made for it
    }
    HAS_OWNER.set(true);
    let noted = Noted::new(shared.region());
    let writer = owner.0.insert(Writer::new(shared)?);
    noted.leave_to_writer();
    writer.set_up(hot);
    Some(writer)
}

/// Before a fork: this thread's events count as re-entrant until [`end_fork`] or [`leave_in_child`]. Returns its lease.
pub(crate) fn begin_fork() -> &'static Lease {
    lease::begin_fork(this_thread::hot().lease_place())
}

/// After a fork, in the parent: the thread has its lease again.
pub(crate) fn end_fork(before: &'static Lease) {
    lease::end_fork(this_thread::hot().lease_place(), before);
}

/// In a forked child: the thread that forked, whose lease was this one, begins anew.
pub(crate) fn leave_in_child(before: &'static Lease) {
    forget_parent();
    // SAFETY: the forked child's only thread. Its place has no lease of the pool from here on, and `before`
    // stays claimed.
    unsafe { start_pool_in_child(Some(before)) };
    lease::start_in_child(this_thread::hot().lease_place());
}

/// In a forked child: forgets the parent's session without touching it.
///
/// A signal handler may have forked in the midst of an event, which goes on here when the handler returns: its stores go
/// into private memory from now on.
pub(crate) fn forget_parent() {
    // SAFETY: where `REGION` is not null, `Noted` or the thread's writer keeps the region alive until
    // `REGION` is null again.
    if let Some(region) = unsafe { REGION.get().as_ref() } {
        // SAFETY: the drain's thread does not exist in this process.
        unsafe { region.leave_in_child() };
    }
    // Where the writer is in use, the event that uses it goes on; it finds that its session is not this process's.
    let _ = with_owner_if_any(|owner| std::mem::forget(owner.0.take()));
    REGION.set(std::ptr::null());
}
