//! The cold path: whatever an event needs besides being written.
//!
//! It runs with the writer marked busy, so an event from inside it (an allocator that traces) is counted as
//! re-entrant, and it takes locks only that no such event can hold.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{LOSS_REASONS, LossReason};

use super::super::callsite::{Callsite, Kind, UNREGISTERED, fence_constants};
use super::super::{env, registry, session};
use super::event::Event;
use super::hot::{self, Hot};
use super::writer::Writer;

/// Events lost where no session's region is at hand, by [`LossReason`]; they belong to the running session.
static STRAY: [AtomicU64; LOSS_REASONS.len()] = [const { AtomicU64::new(0) }; LOSS_REASONS.len()];

/// Events of no region so far, by reason.
pub(crate) fn stray_losses(reason: LossReason) -> u64 {
    STRAY[reason as usize].load(Ordering::Relaxed)
}

fn count_stray(reason: LossReason) {
    STRAY[reason as usize].fetch_add(1, Ordering::Relaxed);
}

thread_local! {
    static WRITER: RefCell<Owner> = const { RefCell::new(Owner(None)) };
}

/// The thread's writer; gives its chunk back at thread exit.
struct Owner(Option<Writer>);

impl Drop for Owner {
    fn drop(&mut self) {
        let hot = hot::hot();
        let _busy = hot.busy();
        self.leave(hot);
    }
}

impl Owner {
    /// Gives up the writer. To be called with the thread marked busy.
    fn leave(&mut self, hot: &Hot) {
        hot.lease.clear();
        if let Some(mut writer) = self.0.take() {
            writer.take_over(hot);
            writer.finish();
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
pub(super) fn event(word: u32, event: &Event<'_>) -> u32 {
    let hot = hot::hot();
    if hot.lease.is_busy() {
        count_stray(LossReason::Reentrant);
        return 0;
    }
    let _busy = hot.busy();
    fence_constants(); // as in `Hot::take`, where not all events have been
    let epoch = if word == UNREGISTERED { register(event.callsite) } else { word };
    let track = event.track.filter(|track| track.is_of(epoch));
    if epoch != 0 && record(hot, epoch, &Event { track, ..*event }) { epoch } else { 0 }
}

/// Ends a recorded scope where the hot path would not.
#[cold]
#[inline(never)]
pub(super) fn end(callsite: &'static Callsite, word: u32) {
    with_own_writer(word, |hot, writer| writer.end(hot, callsite));
}

/// Ends a recorded scope with arguments; without them where there is no room.
#[cold]
#[inline(never)]
pub(super) fn end_with(event: &Event<'_>, word: u32) {
    with_own_writer(word, |hot, writer| writer.end_with(hot, event));
}

/// What ends a recorded scope of this thread.
fn with_own_writer(word: u32, end: impl FnOnce(&Hot, &mut Writer)) {
    let hot = hot::hot();
    // Busy: only a guard that a signal handler took from the code it interrupted ends here.
    if hot.lease.is_busy() {
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
pub(super) enum TrackEnd {
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
pub(super) fn end_on_track(word: u32, event: &Event<'_>) -> TrackEnd {
    let hot = hot::hot();
    if hot.lease.is_busy() {
        count_stray(LossReason::Reentrant); // the list of late ends has a lock
        return TrackEnd::Refused;
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
    match session::current(word) {
        // What nobody drains has no late ends, and the slice goes as a whole.
        Some(shared) if shared.region().overwrites() => {
            // A writer that had no room has taken the begin already: the next one is that of the slice around it.
            if outcome.is_none() {
                let begun = event.track.and_then(|track| shared.recorder()?.end(track.uuid(), |_| ()));
                shared.region().count_lost(LossReason::BufferFull, u64::from(begun.is_some()));
            }
            TrackEnd::Refused
        }
        Some(shared) => TrackEnd::Recorded(shared.end_late(event)),
        None => TrackEnd::Over,
    }
}

/// A callsite's word at its first hit. 0 from inside of another event, which counts as lost: the callsite would
/// have been recorded for all we know.
#[cold]
#[inline(never)]
pub(crate) fn first_hit(callsite: &'static Callsite) -> u32 {
    let hot = hot::hot();
    if hot.lease.is_busy() {
        if callsite.kind() != Kind::End {
            count_stray(LossReason::Reentrant); // a slice counts with its begin
        }
        return 0;
    }
    let _busy = hot.busy();
    register(callsite)
}

/// Registers the callsite, starting the session that the environment asks for if this is the process's first
/// event. Returns the callsite's word then.
fn register(callsite: &'static Callsite) -> u32 {
    if !registry::is_detached() {
        env::start_once();
    }
    registry::register(callsite);
    callsite.word()
}

/// The event, with the writer of this thread for the session with `epoch`. Whether it was recorded.
fn record(hot: &Hot, epoch: u32, event: &Event<'_>) -> bool {
    let outcome = WRITER.try_with(|owner| {
        let Ok(mut owner) = owner.try_borrow_mut() else {
            count_stray(LossReason::Reentrant);
            return false;
        };
        let Some(writer) = attach(hot, &mut owner, epoch) else {
            // There is no session with this epoch any more, or no chunk.
            if let Some(shared) = session::current(epoch) {
                shared.region().count_lost(LossReason::BufferFull, 1);
                shared.wake();
            }
            if let Some(writer) = owner.writer(hot, epoch) {
                writer.set_refused();
            }
            return false;
        };
        writer.published(hot).event(hot, event)
    });
    outcome.unwrap_or_else(|_| {
        count_stray(LossReason::ThreadExit);
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
    let shared = session::current(epoch)?;
    owner.leave(hot);
    if shared.has_no_chunk() {
        return None; // nothing is made for it
    }
    let writer = owner.0.insert(Writer::new(shared)?);
    writer.set_up(hot);
    Some(writer)
}

/// In a forked child: forgets the parent's chunk without touching it.
pub(crate) fn detach_after_fork() {
    let hot = hot::hot();
    hot.lease.clear();
    hot.lease.settle();
    hot.lease.set_busy(false);
    let _ = WRITER.try_with(|owner| {
        if let Ok(mut owner) = owner.try_borrow_mut() {
            std::mem::forget(owner.0.take());
        }
    });
}
