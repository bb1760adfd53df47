//! The cold path: everything that the hot path does not do.
//!
//! It runs with the thread marked busy. An event from inside of it (an allocator that traces) counts as
//! re-entrant. It takes only locks that no such event can hold.

#![allow(unsafe_code)] // the region of a thread that forks

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;

#[cfg(feature = "subscriber")]
use hairline_shm::Commit;
use hairline_shm::{Lease, LossReason, Region, Uncancelled, start_pool_in_child};

use crate::on::base::memory::Own;
use crate::on::base::this_thread::Hot;
#[cfg(feature = "subscriber")]
use crate::on::base::this_thread::Position;
use crate::on::base::{lease, this_thread};
use crate::on::callsite::{Callsite, Epoch, fence_constants, registry};
use crate::on::encode::constants;
use crate::on::event::Event;
use crate::on::session::shared::Shared;
use crate::on::session::{current, stray};
use crate::on::thread::chunk_writer::ChunkWriter;
use crate::on::thread::open_scope::OpenScope;
use crate::site::CallsiteKind;

/// Counts as lost an event of a busy thread: one inside of another event, or at the thread's end.
fn count_lost_to_busy(hot: &Hot) {
    let has_ended = lease::has_ended(hot.lease());
    stray::count(if has_ended { LossReason::ThreadExit } else { LossReason::Reentrant });
}

thread_local! {
    /// Without a destructor: to register one, the C library allocates. The thread's lease has one, which
    /// calls [`thread_ended`].
    static WRITER: RefCell<ManuallyDrop<Owner>> = const { RefCell::new(ManuallyDrop::new(Owner(None))) };
    /// For a forked child: the region that the thread may write into; null without a chunk writer.
    static REGION: Cell<*const Region> = const { Cell::new(std::ptr::null()) };
}

/// The thread's chunk writer.
struct Owner(Option<Own<ChunkWriter>>);

/// Gives the thread's chunk back at its end.
pub(crate) fn thread_ended() {
    let (hot, _uncancelled) = (this_thread::hot(), Uncancelled::new());
    let _ = with_owner(|owner| {
        let _busy = hot.busy();
        drop(owner.leave(hot));
    });
}

/// Calls `f` with the thread's [`Owner`]. `None` if an event of this thread has it, which a signal handler
/// has interrupted.
fn with_owner<R>(f: impl FnOnce(&mut Owner) -> R) -> Option<R> {
    WRITER.with(|owner| owner.try_borrow_mut().ok().map(|mut owner| f(&mut owner)))
}

/// Keeps the region that [`REGION`] points to alive. The drop clears `REGION` before it releases the region:
/// a signal handler may fork in between.
struct Noted(Option<Arc<Region>>);

impl Noted {
    fn new(region: &Arc<Region>) -> Self {
        let noted = Self(Some(Arc::clone(region)));
        REGION.set(Arc::as_ptr(region));
        noted
    }

    /// Leaves `REGION` set: the thread's chunk writer keeps the region alive from now on.
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
    /// Drops the chunk writer. Returns its session, which this thread may have been the last to know. Call it
    /// with the thread marked busy.
    #[inline(never)]
    fn leave(&mut self, hot: &Hot) -> Option<Arc<Shared>> {
        hot.lease().clear();
        let mut writer = self.0.take()?;
        let _noted = Noted::new(writer.region());
        if writer.is_of_parent_process() {
            std::mem::forget(writer); // a signal handler interrupted one of its events and forked
            return None;
        }
        writer.take_over(hot);
        let shared = writer.into_inner().finish();
        hot.lease().give_up();
        Some(shared)
    }

    /// Returns the chunk writer if it belongs to the session with `epoch`, after
    /// [`take_over`](ChunkWriter::take_over).
    fn writer(&mut self, hot: &Hot, epoch: Epoch) -> Option<&mut ChunkWriter> {
        let writer = self.0.as_mut().filter(|writer| writer.epoch() == epoch)?;
        writer.take_over(hot);
        Some(writer)
    }
}

/// Records an event that the hot path cannot write. `epoch` is that of the callsite. Returns the epoch in
/// which the event was recorded, `None` if it was not.
#[cold]
#[inline(never)]
pub(crate) fn event(epoch: Epoch, event: &Event<'_>) -> Option<Epoch> {
    begin(epoch, event).map(OpenScope::epoch)
}

/// As [`event`], for an event that may begin a slice on this thread's track.
#[cold]
#[inline(never)]
pub(crate) fn begin(epoch: Epoch, event: &Event<'_>) -> Option<OpenScope> {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        count_lost_to_busy(hot);
        return None;
    }
    if this_thread::is_detached() {
        return None; // a forked child; the epoch was read before the child was known to be one
    }
    let epoch = if epoch == Epoch::UNREGISTERED { event.callsite.first_hit()? } else { epoch };
    let _busy = hot.busy();
    fence_constants(); // as in `Hot::take`, which not all events have passed
    let track = event.track.filter(|track| track.is_of(epoch));
    record(hot, epoch, &Event { track, ..*event }).map(|id| OpenScope::with_id(epoch, id))
}

/// Ends a recorded scope that the hot path cannot end.
#[cold]
#[inline(never)]
pub(crate) fn end(callsite: &'static Callsite, open: OpenScope) {
    with_writer_of(open.epoch(), |hot, writer| writer.end(hot, callsite, open.id));
}

/// Ends a recorded scope with arguments, or without them if there is no room.
#[cold]
#[inline(never)]
pub(crate) fn end_with(event: &Event<'_>, open: OpenScope) {
    with_writer_of(open.epoch(), |hot, writer| writer.end_with(hot, event, open.id));
}

/// Takes this thread's last slice back: [`ChunkWriter::retract`].
#[cfg(feature = "subscriber")]
#[inline(never)]
pub(crate) fn retract(epoch: Epoch, begin: &Position, end: Commit) {
    with_writer_of(epoch, |hot, writer| writer.retract(hot, begin, end));
}

/// Calls `end` with the chunk writer of this thread, if it belongs to the session with `epoch`.
fn with_writer_of(epoch: Epoch, end: impl FnOnce(&Hot, &mut ChunkWriter)) {
    let hot = this_thread::hot();
    // A busy thread ends only guards that a signal handler took from the code it interrupted.
    if hot.own_lease().is_busy() || this_thread::is_detached() {
        return;
    }
    let _busy = hot.busy();
    let _ = with_owner(|owner| {
        // Without a chunk writer of this epoch, the session has stopped, or the thread has ended: the slice
        // stays open.
        if let Some(writer) = owner.writer(hot, epoch) {
            end(hot, &mut writer.publish_on_drop(hot));
        }
    });
}

/// The outcome of ending a slice on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackEnd {
    /// The end is in the trace, at this time.
    Recorded(u64),
    /// The session is over.
    Over,
    /// The end was not written, since it came from inside of another event of this thread: the slice stays
    /// open.
    Refused,
    /// The region overwrites and has no room: the whole slice is lost.
    Lost,
}

/// Ends a recorded slice on a track, on any thread. If this thread has no room for the end, the drain thread
/// writes it, so that the slice does not stay open.
#[cold]
#[inline(never)]
pub(crate) fn end_on_track(epoch: Epoch, event: &Event<'_>) -> TrackEnd {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        count_lost_to_busy(hot); // the list of late ends has a lock
        return TrackEnd::Refused;
    }
    if this_thread::is_detached() {
        return TrackEnd::Over;
    }
    let _busy = hot.busy();
    fence_constants(); // as in `event`: another thread may have registered the callsite
    let outcome =
        with_owner(|owner| Some(attach(hot, owner, epoch)?.publish_on_drop(hot).end_on_track(hot, event)));
    let outcome = outcome.flatten();
    if let Some(Some(time)) = outcome {
        return TrackEnd::Recorded(time);
    }
    match current::current(epoch) {
        // A region that overwrites is not drained, so it has no late ends: the whole slice is lost.
        Some(shared) if shared.region().overwrites() => {
            // A chunk writer without room has already removed the begin. The last begin is then that of the
            // enclosing slice.
            if outcome.is_none() {
                let recorder = shared.recorder();
                let begun = event.track.zip(recorder).is_some_and(|(t, r)| r.open().forget_last(t.uuid()));
                shared.region().count_lost(LossReason::BufferFull, u64::from(begun));
            }
            TrackEnd::Lost
        }
        Some(shared) => TrackEnd::Recorded(shared.end_late(event)),
        None => TrackEnd::Over,
    }
}

/// Registers a callsite at its first hit, after `start` may have started a session. Returns the callsite's
/// epoch. From inside of another event returns `None` and counts the event as lost, since the session might
/// have recorded it.
#[cold]
#[inline(never)]
pub(crate) fn first_hit(callsite: &'static Callsite, start: fn()) -> Option<Epoch> {
    let hot = this_thread::hot();
    if hot.own_lease().is_busy() {
        if callsite.kind() != CallsiteKind::End {
            count_lost_to_busy(hot); // a slice counts with its begin
        }
        return None;
    }
    let _busy = hot.busy();
    if !this_thread::is_detached() {
        start();
    }
    registry::register(callsite, constants::constants);
    callsite.epoch()
}

/// Records the event with this thread's chunk writer for the session with `epoch`. Returns the id of the
/// thread's last begin, `None` if the event was not recorded.
fn record(hot: &Hot, epoch: Epoch, event: &Event<'_>) -> Option<u32> {
    let outcome = with_owner(|owner| {
        let Some(writer) = attach(hot, owner, epoch) else {
            // The session is over, or there is no chunk.
            if let Some(shared) = current::current(epoch) {
                shared.refuse_for_room();
            }
            if let Some(writer) = owner.writer(hot, epoch) {
                writer.count_refused();
            }
            return None;
        };
        let mut writer = writer.publish_on_drop(hot);
        writer.event(hot, event).then(|| writer.last_begin())
    });
    outcome.unwrap_or_else(|| {
        stray::count(LossReason::Reentrant);
        None
    })
}

/// Makes `owner` hold a chunk writer with a chunk for the session with `epoch`. Returns `None` in two cases:
///
/// * there is no such session: the chunk writer of another session stays;
/// * there is no free chunk: the thread has no chunk writer, or one that waits for a chunk.
fn attach<'o>(hot: &Hot, owner: &'o mut Owner, epoch: Epoch) -> Option<&'o mut ChunkWriter> {
    if owner.0.as_ref().is_some_and(|writer| writer.epoch() == epoch) {
        let writer = owner.writer(hot, epoch)?;
        return writer.resume(hot).is_ok().then_some(writer);
    }
    let _uncancelled = Uncancelled::new();
    let shared = current::current(epoch)?;
    if owner.0.is_some()
        && let Some(shared) = owner.leave(hot)
    {
        current::retire(shared);
    }
    if shared.has_no_chunk() {
        return None; // do not make a chunk writer in vain
    }
    let noted = Noted::new(shared.region());
    let writer = owner.0.insert(ChunkWriter::new(shared)?);
    noted.leave_to_writer();
    writer.set_up(hot);
    Some(writer)
}

/// Called before a fork: this thread's events count as re-entrant until [`end_fork`] or [`start_in_child`].
/// Returns the thread's lease.
pub(crate) fn begin_fork() -> &'static Lease {
    lease::begin_fork(this_thread::hot().lease_slot())
}

/// Called in the parent after a fork: gives the thread its lease back.
pub(crate) fn end_fork(before: &'static Lease) {
    lease::end_fork(this_thread::hot().lease_slot(), before);
}

/// Called in a forked child: the thread that forked, whose lease was `before`, leaves its parent's session.
/// Its events count as re-entrant until [`start_in_child`].
pub(crate) fn leave_in_child(before: &'static Lease) {
    forget_parent();
    // SAFETY: this is the forked child's only thread. Its place has no lease of the pool from here on, and
    // `before` stays claimed.
    unsafe { start_pool_in_child(Some(before)) };
}

/// Called in a forked child that holds no lock of the fork any more: the thread that forked starts anew.
pub(crate) fn start_in_child() {
    lease::start_in_child(this_thread::hot().lease_slot());
}

/// Called in a forked child: forgets the parent's session without touching it.
///
/// A signal handler may have forked during an event. That event continues here when the handler returns. From
/// now on its stores go into private memory.
pub(crate) fn forget_parent() {
    // SAFETY: while `REGION` is not null, `Noted` or the thread's chunk writer keeps the region alive.
    if let Some(region) = unsafe { REGION.get().as_ref() } {
        // SAFETY: the drain's thread does not exist in this process.
        unsafe { region.leave_in_child() };
    }
    // If an event is using the chunk writer, the event continues, and finds that its session is the parent's.
    let _ = with_owner(|owner| std::mem::forget(owner.0.take()));
    REGION.set(std::ptr::null());
}
