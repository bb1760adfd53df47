//! The cold path: whatever an event needs besides being written.
//!
//! It runs with the writer marked busy, so an event from inside it (an allocator that traces) is counted as
//! re-entrant, and it takes locks only that no such event can hold.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use hairline_shm::{ChunkInfo, LOSS_REASONS, LossReason};

use super::super::callsite::{Callsite, Kind, UNREGISTERED};
use super::super::session::{self, Shared};
use super::super::{clock, env, process, registry};
use super::event::{Action, Event, Moment};
use super::fit;
use super::hot::{self, FXT_END, Hot, TRACK_EVENT_END};
use super::room::{NoRoom, Room};
use super::sequence::{Sequence, cpu_time_len};

/// Events lost where no session's region is at hand, by [`LossReason`]; they belong to the running session.
static STRAY: [AtomicU64; LOSS_REASONS.len()] = [const { AtomicU64::new(0) }; LOSS_REASONS.len()];

/// Events of no region so far, by reason.
pub(crate) fn stray_losses(reason: LossReason) -> u64 {
    STRAY[reason as usize].load(Ordering::Relaxed)
}

fn count_stray(reason: LossReason) {
    STRAY[reason as usize].fetch_add(1, Ordering::Relaxed);
}

/// With less room than this and no free chunk in sight, a thread that has had to refuse an event does not try the next.
const STARVED: i32 = 256;

/// The room that the hot path sees in sessions whose events are all the cold path's.
const NO_ROOM: i32 = i32::MIN / 2;

thread_local! {
    static WRITER: RefCell<Owner> = const { RefCell::new(Owner(None)) };
}

/// The thread's writer; gives its chunk back at thread exit.
struct Owner(Option<Writer>);

impl Drop for Owner {
    fn drop(&mut self) {
        let hot = hot::hot();
        hot.detach();
        if let Some(writer) = self.0.take() {
            writer.room.finish();
        }
    }
}

/// One thread's part in one session.
struct Writer {
    shared: Arc<Shared>,
    room: Room,
    sequence: Sequence,
    /// Events refused since the last one that was recorded.
    refused: u64,
    /// Whether the ring was full for one of them.
    found_full: bool,
    /// Where records are put together before they go into the chunk.
    scratch: Vec<u8>,
}

/// Records an event that the hot path would not. Returns the epoch it was recorded in, 0 if it was not.
#[cold]
#[inline(never)]
pub(super) fn event(word: u32, event: &Event<'_>) -> u32 {
    let hot = hot::hot();
    if hot.is_busy() {
        count_stray(LossReason::Reentrant);
        return 0;
    }
    let _busy = hot.busy();
    fence(Ordering::Acquire); // as in `Hot::take`, where not all events have been
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
    if hot.is_busy() {
        return;
    }
    let _busy = hot.busy();
    // Another epoch: its session has stopped, or its thread's writer is gone, and the slice stays open there.
    if hot.epoch.get() != word {
        return;
    }
    let _ = WRITER.try_with(|owner| {
        if let Some(writer) = owner.try_borrow_mut().ok().as_mut().and_then(|o| o.0.as_mut()) {
            writer.take_over(hot);
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
    if hot.is_busy() {
        count_stray(LossReason::Reentrant); // the list of late ends has a lock
        return TrackEnd::Refused;
    }
    let _busy = hot.busy();
    fence(Ordering::Acquire); // as in `event`: another thread may have registered the callsite
    let outcome = WRITER.try_with(|owner| {
        let mut owner = owner.try_borrow_mut().ok()?;
        let mut writer = attach(hot, &mut owner, word)?.published(hot);
        writer.try_fitting(hot, event).ok().map(|()| hot.last.get())
    });
    if let Ok(Some(time)) = outcome {
        return TrackEnd::Recorded(time);
    }
    match session::current(word) {
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
    if hot.is_busy() {
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
/// another one stays; or no chunk, and the thread has no writer and `hot.epoch` is 0.
fn attach<'o>(hot: &Hot, owner: &'o mut Owner, epoch: u32) -> Option<&'o mut Writer> {
    if hot.epoch.get() == epoch {
        let writer = owner.0.as_mut()?;
        writer.take_over(hot);
        return Some(writer);
    }
    let shared = session::current(epoch)?;
    hot.detach();
    if let Some(writer) = owner.0.take() {
        writer.room.finish();
    }
    let writer = owner.0.insert(Writer::new(shared)?);
    writer.set_up(hot);
    Some(writer)
}

/// In a forked child: forgets the parent's chunk without touching it.
pub(crate) fn detach_after_fork() {
    let hot = hot::hot();
    hot.detach();
    hot.set_busy(false);
    let _ = WRITER.try_with(|owner| {
        if let Ok(mut owner) = owner.try_borrow_mut() {
            std::mem::forget(owner.0.take());
        }
    });
}

/// A writer whose state the hot path learns at the end, also where an argument's code panics on the way: it would write
/// into a chunk that is not the thread's any more.
struct Published<'w> {
    writer: &'w mut Writer,
    hot: &'w Hot,
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        self.writer.publish(self.hot);
    }
}

impl Deref for Published<'_> {
    type Target = Writer;
    fn deref(&self) -> &Writer {
        self.writer
    }
}

impl DerefMut for Published<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        self.writer
    }
}

impl Writer {
    fn published<'w>(&'w mut self, hot: &'w Hot) -> Published<'w> {
        Published { writer: self, hot }
    }

    /// None when there is no chunk.
    fn new(shared: Arc<Shared>) -> Option<Self> {
        let thread = process::Thread::current();
        let number = shared.region().new_sequence() + 1; // 1 is the writer thread's own
        let info = ChunkInfo { sequence: number, tid: thread.tid, ..ChunkInfo::default() };
        let detail = shared.detail();
        let mut end_size = if shared.is_track_event() { TRACK_EVENT_END } else { FXT_END };
        if detail.thread_time {
            end_size += cpu_time_len(shared.is_track_event());
        }
        let sequence = Sequence::new(shared.epoch(), number, thread.clone(), detail);
        let room = Room::new(Arc::clone(shared.region()), info, sequence.context(), end_size)?;
        shared.add_thread(number, thread);
        Some(Self { shared, room, sequence, refused: 0, found_full: false, scratch: Vec::with_capacity(256) })
    }

    /// Writes the sequence's first records and fills in the hot fields that stay.
    fn set_up(&mut self, hot: &Hot) {
        self.sequence.set_packet_constants(hot);
        hot.clear_seen();
        hot.last.set(0);
        let now = self.tick(hot).now;
        self.scratch.clear();
        self.sequence.put_start(&mut self.scratch, now);
        let started = self.room.append(&self.scratch, 0, false);
        debug_assert!(started.is_ok(), "names are cut so that an empty chunk holds them");
        hot.last.set(now);
        hot.epoch.set(self.shared.epoch());
    }

    /// What the hot path has left of the room.
    fn take_over(&mut self, hot: &Hot) {
        if !self.shared.detail().is_all_cold() {
            self.room.set_left(hot.room.get());
        }
    }

    /// Takes the clock's newest parameters; now, not before the last event.
    fn tick(&self, hot: &Hot) -> Moment {
        let clock = self.shared.clock().load();
        hot.multiplier.set(clock.multiplier);
        hot.offset.set(clock.offset);
        let last = hot.last.get();
        let now = clock.now().max(last);
        Moment { now, delta: now - last, cpu: None }
    }

    /// The same, with the CPU time of the thread where an event of this track has that.
    fn tick_for(&self, hot: &Hot, of_slice: bool) -> Moment {
        let cpu = (of_slice && self.shared.detail().thread_time).then(clock::thread_time);
        Moment { cpu, ..self.tick(hot) }
    }

    /// Fills in the hot fields that a cold event may have changed.
    fn publish(&self, hot: &Hot) {
        let (far, far_len) = self.sequence.seen_callsites().raw();
        hot.far.set(far);
        hot.far_len.set(far_len);
        let (room, end_epoch) = if self.shared.detail().is_all_cold() {
            (NO_ROOM, 0)
        } else {
            (self.room.left(), if self.room.keeps_all_ends() { self.shared.epoch() } else { 0 })
        };
        hot.room.set(room);
        hot.end_epoch.set(end_epoch);
        let chunk = std::ptr::from_ref(self.room.chunk().header());
        if chunk != hot.chunk.get() {
            hot.chunk.set(chunk);
            self.shared.chunk_taken(self.room.chunk().number());
        }
    }

    fn event(&mut self, hot: &Hot, event: &Event<'_>) -> bool {
        if self.refused > 0 && self.room.left() < STARVED && !self.shared.region().has_free_chunk() {
            self.refuse(LossReason::BufferFull); // as the one before it, at little cost
            return false;
        }
        match self.try_fitting(hot, event) {
            Ok(()) => return true,
            Err(NoRoom::BufferFull) => self.refuse(LossReason::BufferFull),
            Err(NoRoom::TooLarge) => self.refuse(LossReason::TooLarge),
        }
        false
    }

    /// The event, with shorter strings if it does not fit a chunk.
    fn try_fitting(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_event(hot, event) {
            Err(NoRoom::TooLarge) => {
                let room = self.room.largest() as usize;
                fit::shortened(event, room, |shorter| self.try_event(hot, shorter))
            }
            done => done,
        }
    }

    fn refuse(&mut self, reason: LossReason) {
        self.refused += 1;
        self.found_full |= reason == LossReason::BufferFull;
        self.shared.region().count_lost(reason, 1);
        self.shared.wake();
    }

    fn try_event(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        self.tell_loss(hot)?;
        let in_full = self.sequence.writes_in_full(event);
        if !in_full {
            self.tell_strings(event.callsite)?;
        }
        self.tell(|sequence, out| sequence.put_tracks(out, event))?;
        self.sequence.tracks_told();
        if !in_full {
            self.sequence.set_seen(hot, event.callsite); // and a counter's track: from here on the hot path may write it
        }
        self.tell(|sequence, out| sequence.put_values(out, event))?;
        self.sequence.values_told(event);
        self.scratch.clear();
        let slice = matches!(event.action, Action::Begin | Action::End) && event.track.is_none();
        let mut at = self.tick_for(hot, slice).after(event.after);
        let (last, now) = (hot.last.get(), at.now);
        at.now = event.past.unwrap_or(now);
        let in_slice = self.room.open() > 0;
        let left_out = self.sequence.put_event(&mut self.scratch, event, &at, in_slice)?;
        self.room.append(&self.scratch, 1, event.keeps_end())?;
        self.sequence.recorded(event);
        hot.last.set(if event.past.is_some() { last } else { now });
        if left_out > 0 {
            self.shared.region().count_lost(LossReason::Argument, left_out);
        }
        Ok(())
    }

    /// Says how many events were refused before this one.
    fn tell_loss(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        if self.refused > 0 {
            let now = self.tick(hot).now;
            self.scratch.clear();
            self.sequence.put_loss(&mut self.scratch, now, self.refused, self.found_full);
            self.room.append(&self.scratch, 0, false)?;
            self.sequence.loss_told();
            hot.clear_seen();
            (self.refused, self.found_full) = (0, false);
            hot.last.set(now);
        }
        Ok(())
    }

    /// Writes what must stand before an event.
    fn tell(&mut self, put: impl FnOnce(&mut Sequence, &mut Vec<u8>)) -> Result<(), NoRoom> {
        self.scratch.clear();
        put(&mut self.sequence, &mut self.scratch);
        if self.scratch.is_empty() { Ok(()) } else { self.room.append(&self.scratch, 0, false) }
    }

    /// Writes the strings that the callsite needs and the sequence does not have: together, or, where a chunk is too
    /// small for that, one by one.
    fn tell_strings(&mut self, callsite: &'static Callsite) -> Result<(), NoRoom> {
        match self.tell(|sequence, out| sequence.put_strings(out, callsite, None)) {
            Err(NoRoom::TooLarge) => (0..Sequence::string_count(callsite))
                .try_for_each(|n| self.tell(|sequence, out| sequence.put_strings(out, callsite, Some(n)))),
            done => done,
        }
    }

    fn end(&mut self, hot: &Hot, callsite: &'static Callsite) {
        let at = self.tick_for(hot, true);
        self.scratch.clear();
        self.sequence.put_end(&mut self.scratch, callsite, &at);
        self.room.append_end(&self.scratch);
        hot.last.set(at.now);
    }

    fn end_with(&mut self, hot: &Hot, event: &Event<'_>) {
        if self.try_fitting(hot, event).is_ok() {
            self.room.release_end();
        } else {
            self.end(hot, event.callsite);
            self.shared.region().count_lost(LossReason::Argument, event.arguments().count() as u64);
        }
    }
}
