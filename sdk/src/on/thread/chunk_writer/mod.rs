//! One thread's part in one session: its chunk, its sequence, and how an event that takes the cold path gets from the one
//! into the other. Beside it the hot path writes into the same chunk, from a copy of the state in [`Hot`]:
//!
//! ```text
//! take_over   the room that the hot path has left
//! event, end  what goes before the event (loss, strings, tracks), then the event
//! publish     the state, to the hot path
//! ```

#![allow(unsafe_code)] // lends the chunk to the hot path

mod overwriting;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use hairline_shm::{ChunkInfo, Lease, LossReason, Region};

use crate::on::base::platform::process;
use crate::on::base::this_thread::Hot;
use crate::on::base::{clock, this_thread};
use crate::on::callsite::Callsite;
use crate::on::encode::again::{Again, Begin};
use crate::on::encode::fit;
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::sequence::{Sequence, cpu_time_len};
use crate::on::event::extras::Extras;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::Track;
use crate::on::event::{Action, Event, Moment};
use crate::on::session::shared::Shared;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END};
use crate::on::thread::room::Room;

/// With less room than this and no free chunk in sight, a thread that has had to refuse an event does not try the next.
const STARVED: i32 = 256;

/// The room that the hot path sees in sessions whose events are all the cold path's.
const NO_ROOM: i32 = i32::MIN / 2;

/// One thread's part in one session.
pub(crate) struct Writer {
    lease: &'static Lease,
    shared: Arc<Shared>,
    room: Room,
    sequence: Sequence,
    /// Events refused since the last one that was recorded.
    refused: u64,
    /// Whether the ring was full for one of them.
    found_full: bool,
    /// Chunks kept for ends, as the session was last told.
    kept_for_ends: Cell<u32>,
    /// The session's passes at the last end of this thread that came late.
    late_at: Option<u64>,
    /// Where records are put together before they go into the chunk.
    scratch: Vec<u8>,
    /// The begin of a slice on a track that is to be written with its end.
    begin: Vec<u8>,
    /// The begins of open slices, told again for the next chunk, and where each stands.
    again: Again,
    begins: Vec<Begin>,
    /// The bytes of the chunk in which those begins stand.
    chunk_copy: Vec<u8>,
}

/// A writer whose state the hot path learns at the end, also where an argument's code panics on the way: it would write
/// into a chunk that is not the thread's any more.
pub(crate) struct Published<'w> {
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

/// `attempt`, again and again while it finds no chunk and the session's policy is to wait for one. The thread's writer is marked
/// busy meanwhile, and no lock is held.
fn waiting<T>(shared: &Shared, mut attempt: impl FnMut() -> Result<T, NoRoom>) -> Result<T, NoRoom> {
    let mut ends = None;
    loop {
        match attempt() {
            Err(NoRoom::BufferFull) => {}
            done => return done,
        }
        ends = ends.or_else(|| shared.patience_ends());
        if !ends.is_some_and(|ends| shared.wait_for_chunk(ends)) {
            return Err(NoRoom::BufferFull);
        }
    }
}

impl Writer {
    pub(crate) fn published<'w>(&'w mut self, hot: &'w Hot) -> Published<'w> {
        Published { writer: self, hot }
    }

    /// None when there is no chunk, and none is waited for any longer.
    pub(crate) fn new(shared: Arc<Shared>) -> Option<Self> {
        let thread = process::Thread::current();
        let number = shared.region().new_sequence() + 1; // 1 is the writer thread's own
        let info = ChunkInfo { sequence: number, tid: thread.tid, ..ChunkInfo::default() };
        let detail = shared.detail();
        let mut end_size = if shared.is_track_event() { TRACK_EVENT_END } else { FXT_END };
        if detail.thread_time {
            end_size += cpu_time_len(shared.is_track_event());
        }
        let sequence = Sequence::new(shared.epoch(), number, thread.clone(), detail);
        let first = || Room::new(Arc::clone(shared.region()), info, sequence.context(), end_size);
        let room = waiting(&shared, || first().ok_or(NoRoom::BufferFull)).ok()?;
        shared.add_thread(number, thread);
        Some(Self {
            lease: this_thread::hot().own_lease(),
            shared,
            room,
            sequence,
            refused: 0,
            found_full: false,
            kept_for_ends: Cell::new(0),
            late_at: None,
            scratch: Vec::with_capacity(256),
            begin: Vec::new(),
            again: Again::default(),
            begins: Vec::new(),
            chunk_copy: Vec::new(),
        })
    }

    /// Gives the chunk back; nothing comes after it. To be called with the thread marked busy.
    pub(crate) fn finish(self) {
        let Self { shared, room, kept_for_ends, .. } = self;
        shared.keep_for_ends(kept_for_ends.get(), 0);
        if let Some(last) = room.finish() {
            shared.sequence_ended(last);
        }
        shared.chunk_completed();
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.shared.epoch()
    }

    /// The region of its chunks.
    pub(crate) fn region(&self) -> &Arc<Region> {
        self.shared.region()
    }

    /// Whether it is the lease for which this writer was made. Where a signal handler has forked in the midst of an event, that event goes
    /// on in the child, where the thread has another lease.
    fn is_lent_to(&self, lease: &'static Lease) -> bool {
        std::ptr::eq(self.lease, lease) && !lease.is_wiped()
    }

    /// Whether this is a forked child, and the session its parent's.
    pub(crate) fn is_parents(&self) -> bool {
        !self.shared.is_of_this_process()
    }

    /// Takes over what the hot path has done since [`publish`](Self::publish), or that the chunk was taken back meanwhile. To be
    /// called first, with the thread marked busy.
    pub(crate) fn take_over(&mut self, hot: &Hot) {
        let lease = hot.lease();
        if !self.is_lent_to(lease) || self.room.is_recalled() {
            return;
        }
        let is_taken = lease.settle();
        if !self.shared.detail().is_all_cold() {
            let is_valid = self.room.set_used(lease.commit(), lease.room());
            // A handler that forks just here leaves a child whose lease is wiped.
            debug_assert!(
                is_valid || lease.is_wiped(),
                "the hot path keeps within the room that it was given"
            );
        }
        if is_taken {
            self.room.set_recalled();
        }
    }

    /// Has a chunk again where it was taken back.
    pub(crate) fn resume(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        if !self.room.is_recalled() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if let Some(at) = self.late_at {
            // What comes now must not be read before that end.
            if !shared.wait_for_pass(at + 2) {
                return Err(NoRoom::BufferFull);
            }
            self.late_at = None;
        }
        waiting(&shared, || if shared.recorder().is_some() { self.turn(hot) } else { self.room.resume() })
    }

    /// An event was refused before it came here.
    pub(crate) fn set_refused(&mut self) {
        self.refused += 1;
        self.found_full = true;
    }

    /// Writes the sequence's first records and fills in the hot fields that stay.
    pub(crate) fn set_up(&mut self, hot: &Hot) {
        self.sequence.set_packet_constants(hot);
        hot.clear_seen();
        hot.lease().set_last(0);
        let now = self.tick(hot).now;
        self.scratch.clear();
        self.sequence.put_start(&mut self.scratch, now);
        let started = self.room.append(&self.scratch, 0, None);
        debug_assert!(started.is_ok(), "names are cut so that an empty chunk holds them");
        hot.lease().set_last(now);
    }

    /// Takes the clock's newest parameters; now, not before the last event.
    fn tick(&self, hot: &Hot) -> Moment {
        let clock = self.shared.clock().load();
        hot.multiplier.set(clock.multiplier);
        hot.offset.set(clock.offset);
        let last = hot.lease().last();
        let now = clock.now().max(last);
        Moment { now, delta: now - last, cpu: None }
    }

    /// The same, with the CPU time of the thread where an event of this track has that.
    fn tick_for(&self, hot: &Hot, of_slice: bool) -> Moment {
        let cpu = (of_slice && self.shared.detail().thread_time).then(clock::thread_time);
        Moment { cpu, ..self.tick(hot) }
    }

    /// Tells the session how many chunks this thread keeps for the ends of open scopes, where that has changed.
    fn tell_kept_for_ends(&self) {
        let (before, now) = (self.kept_for_ends.get(), self.room.chunks_for_ends());
        if before != now {
            self.kept_for_ends.set(now);
            self.shared.keep_for_ends(before, now);
        }
    }

    /// Fills in the hot fields that a cold event may have changed.
    fn publish(&self, hot: &Hot) {
        self.tell_kept_for_ends();
        let (far, far_len) = self.sequence.seen_callsites().raw();
        hot.far.set(far);
        hot.far_len.set(far_len);
        if self.room.is_recalled() {
            hot.lease().clear();
            return;
        }
        let epoch = self.shared.epoch();
        let (room, end_epoch) = if self.shared.detail().is_all_cold() {
            (NO_ROOM, 0)
        } else {
            (self.room.left(), if self.room.keeps_all_ends() { epoch } else { 0 })
        };
        let (chunk, lease) = (self.room.chunk(), hot.lease());
        if !self.is_lent_to(lease) {
            return;
        }
        let is_new = lease.chunk().cast_const() != std::ptr::from_ref(chunk.header());
        lease.set_room(room);
        // SAFETY: the rules of `Lease::set` are kept. 1: `Hot::take` compares the epoch while busy, and every cold path goes
        // through `take_over`, busy, before it touches the room. 2: `take_over` passes it on to the room, which does not touch a
        // chunk that was recalled. 3: a lease is its thread's own until the thread has left its writer. 4: the writer owns the
        // room and its chunk. 5: `Owner::leave`.
        unsafe { lease.set(chunk, epoch, end_epoch, self.room.has_no_spares()) };
        if is_new {
            self.shared.chunk_taken(chunk.number());
        }
    }

    pub(crate) fn event(&mut self, hot: &Hot, event: &Event<'_>) -> bool {
        if self.refused > 0 && self.room.left() < STARVED && self.shared.has_no_chunk() {
            self.refuse(LossReason::BufferFull); // as the one before it, at little cost
            return false;
        }
        if event.action == Action::Begin && event.track.is_some() && self.shared.recorder().is_some() {
            return self.begin_kept(hot, event);
        }
        match self.try_waiting(hot, event) {
            Ok(()) => return true,
            Err(NoRoom::BufferFull | NoRoom::ChunkFull) => self.refuse(LossReason::BufferFull),
            Err(NoRoom::TooLarge) => self.refuse(LossReason::TooLarge),
        }
        false
    }

    /// The event, as soon as there is a chunk for it, if that is worth waiting for.
    fn try_waiting(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_fitting(hot, event) {
            Err(NoRoom::BufferFull) if self.shared.patience_ends().is_some() => {
                let shared = Arc::clone(&self.shared);
                waiting(&shared, || self.try_fitting(hot, event))
            }
            done => done,
        }
    }

    /// The event, with shorter strings if it does not fit a chunk.
    pub(crate) fn try_fitting(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_event(hot, event) {
            Err(NoRoom::TooLarge) => {
                let room = self.room.largest_at_least() as usize;
                fit::shortened(event, room, |shorter| self.try_event(hot, shorter))
            }
            done => done,
        }
    }

    fn refuse(&mut self, reason: LossReason) {
        self.refused += 1;
        self.found_full |= reason == LossReason::BufferFull;
        if reason == LossReason::BufferFull {
            self.tell_kept_for_ends();
            self.shared.refuse_for_room();
        } else {
            self.shared.region().count_lost(reason, 1);
            self.shared.wake();
        }
    }

    fn try_event(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_here(hot, event) {
            Err(NoRoom::ChunkFull) => {
                self.turn(hot)?;
                // What an empty chunk does not hold with all that it begins with is too large.
                self.try_here(hot, event)
                    .map_err(|e| if e == NoRoom::ChunkFull { NoRoom::TooLarge } else { e })
            }
            done => done,
        }
    }

    fn try_here(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
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
        let (last, now) = (hot.lease().last(), at.now);
        at.now = event.past.unwrap_or(now);
        let in_slice = self.room.open() > 0;
        let left_out = self.sequence.put_event(&mut self.scratch, event, &at, in_slice)?;
        let known = event.keeps_end().then(|| self.sequence.known_of_begin(event, at.now));
        self.room.append(&self.scratch, 1, known)?;
        self.sequence.recorded(event);
        if let Some(track) = event.track.filter(|_| self.shared.recorder().is_none()) {
            let needs_none = self.sequence.describes_no_track_of(event);
            if needs_none || event.action == Action::Begin || self.sequence.has_described(track) {
                hot.set_described(track.uuid(), needs_none);
            }
        }
        hot.lease().set_last(if event.past.is_some() { last } else { now });
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
            self.room.append(&self.scratch, 0, None)?;
            self.sequence.loss_told();
            hot.clear_seen();
            (self.refused, self.found_full) = (0, false);
            hot.lease().set_last(now);
        }
        Ok(())
    }

    /// Writes what must stand before an event.
    fn tell(&mut self, put: impl FnOnce(&mut Sequence, &mut Vec<u8>)) -> Result<(), NoRoom> {
        self.scratch.clear();
        put(&mut self.sequence, &mut self.scratch);
        if self.scratch.is_empty() { Ok(()) } else { self.room.append(&self.scratch, 0, None) }
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

    /// Ends a scope, whose room was kept, or, if the chunk was taken back and there is no other, on the writer thread's sequence.
    pub(crate) fn end(&mut self, hot: &Hot, callsite: &'static Callsite) {
        if self.resume(hot).is_err() {
            self.end_late(&Event { action: Action::End, ..Event::new(callsite, &[], &Extras::new()) });
            return;
        }
        let at = self.tick_for(hot, true);
        self.scratch.clear();
        self.sequence.put_end(&mut self.scratch, callsite, &at);
        self.room.append_end(&self.scratch);
        hot.lease().set_last(at.now);
    }

    pub(crate) fn end_with(&mut self, hot: &Hot, event: &Event<'_>) {
        if self.resume(hot).is_err() {
            self.end_late(event);
        } else if self.try_waiting(hot, event).is_ok() {
            self.room.release_end();
        } else {
            self.end(hot, event.callsite);
            self.shared.region().count_lost(LossReason::Argument, event.arguments().count() as u64);
        }
    }

    fn end_late(&mut self, event: &Event<'_>) {
        let track = Track::thread(); // not kept: it takes more memory than the rest of an idle thread's writer
        self.shared.end_late(&Event { track: Some(TrackRef::Track(&track)), ..*event });
        self.late_at = Some(self.shared.passes());
        self.shared.wake(); // this thread waits for the passes
        self.room.release_end();
    }
}
