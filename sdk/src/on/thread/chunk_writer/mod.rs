//! Writes the events of one thread that take the cold path, in one session.
//!
//! A chunk writer owns the thread's chunks and its sequence. The hot path writes into the same chunk, from a
//! copy of the state in [`Hot`]. Each cold event has three steps:
//!
//! ```text
//! take_over   read how far the hot path has written
//! event, end  write the preamble (loss, strings, tracks), then the event
//! publish     copy the state back for the hot path
//! ```

#![allow(unsafe_code)] // lends the chunk to the hot path

mod overwriting;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use hairline_formats::track_event::SequenceId;
use hairline_formats::{OUT_OF_ORDER, Value};
use hairline_shm::{ChunkInfo, Lease, LossReason, Region};

use crate::builder::Detail;
use crate::on::base::few::Few;
use crate::on::base::memory::{Bytes, List, Own};
use crate::on::base::platform::process;
use crate::on::base::this_thread::{Facts, Hot, Position};
use crate::on::base::{clock, this_thread};
use crate::on::callsite::{Callsite, Epoch};
use crate::on::encode::OWN_SEQUENCE;
use crate::on::encode::begin::Begin;
use crate::on::encode::fit;
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::sequence::Sequence;
use crate::on::encode::stream::AnySequence;
use crate::on::encode::track_event::tracks::counter_track;
use crate::on::event::extras::{Extras, NewFlows};
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::Track;
use crate::on::event::{Action, Event, Moment};
use crate::on::session::shared::Shared;
use crate::on::session::thread_list::Place;
use crate::on::thread::hot::{FXT_END, TRACK_EVENT_END};
use crate::on::thread::room::Room;
use crate::on::thread::starved;
use crate::on::thread::starved::STARVED;

/// Writes the chunks of one thread in one session.
pub(crate) struct ChunkWriter {
    lease: &'static Lease,
    /// The thread in the session's list.
    place: Place,
    shared: Arc<Shared>,
    room: Room,
    sequence: AnySequence,
    /// Events refused since the last recorded event.
    refused: u64,
    /// Whether the region was full for one of them.
    found_full: bool,
    /// Chunks reserved for ends, as last reported to the session.
    reserved_for_ends: Cell<u32>,
    /// The session's number of passes at this thread's last late end.
    late_end_pass: Option<u64>,
    /// The id of the last begin on this thread's track that the cold path has written.
    last_begin: u32,
    /// The position of the last event, with its record behind it.
    position: Position,
    /// Encodes records before they are copied into the chunk.
    scratch: Bytes,
    /// The deferred begin of a slice on a track: it is written together with its end.
    deferred_begin: Bytes,
    /// The begins of open slices, encoded again for the next chunk, and their offsets.
    again: Bytes,
    begins: List<Begin>,
    /// A copy of the chunk that holds those begins.
    chunk_copy: Bytes,
}

/// Publishes the chunk writer's state to the hot path when it is dropped. An argument's code may panic:
/// without this guard, the hot path would then write into a chunk that is no longer the thread's.
pub(crate) struct PublishOnDrop<'w> {
    writer: &'w mut ChunkWriter,
    hot: &'w Hot,
}

impl Drop for PublishOnDrop<'_> {
    fn drop(&mut self) {
        self.writer.publish(self.hot);
    }
}

impl Deref for PublishOnDrop<'_> {
    type Target = ChunkWriter;
    fn deref(&self) -> &ChunkWriter {
        self.writer
    }
}

impl DerefMut for PublishOnDrop<'_> {
    fn deref_mut(&mut self) -> &mut ChunkWriter {
        self.writer
    }
}

/// Calls `attempt` until it finds a chunk, for as long as the session's policy allows to wait. Meanwhile the
/// thread is marked busy, and it holds no lock.
fn retry_while_full<T>(shared: &Shared, mut attempt: impl FnMut() -> Result<T, NoRoom>) -> Result<T, NoRoom> {
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

impl ChunkWriter {
    pub(crate) fn publish_on_drop<'w>(&'w mut self, hot: &'w Hot) -> PublishOnDrop<'w> {
        PublishOnDrop { writer: self, hot }
    }

    /// Makes the chunk writer of this thread. Returns `None` if no chunk is free and the wait, if any, is
    /// over.
    #[inline(never)] // its stack is not that of the event which follows
    pub(crate) fn new(shared: Arc<Shared>) -> Option<Own<Self>> {
        let thread = process::Thread::current();
        // The first is the drain thread's own.
        let number = SequenceId(shared.region().new_sequence() + OWN_SEQUENCE.0);
        let info = ChunkInfo { sequence: number.0, tid: thread.tid, ..ChunkInfo::default() };
        let detail = shared.detail();
        let mut end_size = if shared.is_track_event() { TRACK_EVENT_END } else { FXT_END };
        let sequence = AnySequence::new(shared.epoch(), number, thread.clone(), detail);
        if detail.thread_time {
            end_size += sequence.cpu_time_len();
        }
        // Of two sessions no two numbers are equal.
        let changes = u64::from(shared.epoch().get()) << 32;
        let first = || Room::new(Arc::clone(shared.region()), info, sequence.context(), end_size, changes);
        let room = retry_while_full(&shared, || first().ok_or(NoRoom::BufferFull)).ok()?;
        let place = shared.add_thread(number, thread);
        Some(Own::new(Self {
            lease: this_thread::hot().own_lease(),
            place,
            shared,
            room,
            sequence,
            refused: 0,
            found_full: false,
            reserved_for_ends: Cell::new(0),
            late_end_pass: None,
            last_begin: 0,
            position: Position::default(),
            scratch: Bytes::new(),
            deferred_begin: Bytes::new(),
            again: Bytes::new(),
            begins: List::new(),
            chunk_copy: Bytes::new(),
        }))
    }

    /// Gives the chunks back and ends the sequence. Returns the session. Call it with the thread marked busy.
    pub(crate) fn finish(self) -> Arc<Shared> {
        let Self { shared, place, room, reserved_for_ends, .. } = self;
        shared.threads.end(place);
        shared.keep_for_ends(reserved_for_ends.get(), 0);
        if let Some(last) = room.finish() {
            shared.sequence_ended(last);
        }
        shared.chunk_completed();
        shared
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.shared.epoch()
    }

    /// Returns the id of the last begin that this chunk writer has written.
    pub(crate) fn last_begin(&self) -> u32 {
        self.last_begin
    }

    /// Returns the region of its chunks.
    pub(crate) fn region(&self) -> &Arc<Region> {
        self.shared.region()
    }

    /// Returns whether this chunk writer was made for `lease`. A signal handler may fork during an event.
    /// That event then continues in the child, where the thread has another lease.
    fn owns_lease(&self, lease: &'static Lease) -> bool {
        std::ptr::eq(self.lease, lease) && !lease.is_wiped()
    }

    /// Returns whether this process is a forked child and the session is its parent's.
    pub(crate) fn is_of_parent_process(&self) -> bool {
        !self.shared.is_of_this_process()
    }

    /// Reads how far the hot path has written since [`publish`](Self::publish), and whether the drain thread
    /// has recalled the chunk. Call it first, with the thread marked busy.
    pub(crate) fn take_over(&mut self, hot: &Hot) {
        let lease = hot.lease();
        if !self.owns_lease(lease) || self.room.is_recalled() {
            return;
        }
        let was_recalled = lease.settle();
        let is_valid = self.room.set_used(lease.commit(), lease.room());
        // A signal handler that forks here leaves a child whose lease was wiped: all its numbers are 0, also
        // where the fork handlers have claimed the lease again.
        debug_assert!(
            is_valid || lease.is_wiped() || self.is_of_parent_process(),
            "the hot path writes only within its room"
        );
        if was_recalled {
            self.room.set_recalled();
        }
    }

    /// Claims a chunk if the drain thread has recalled the last one.
    pub(crate) fn resume(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        if !self.room.is_recalled() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if let Some(at) = self.late_end_pass {
            // The events from here on must be drained after that end.
            if !shared.wait_for_pass(at + 2) {
                return Err(NoRoom::BufferFull);
            }
            self.late_end_pass = None;
        }
        retry_while_full(&shared, || {
            if shared.recorder().is_some() { self.begin_next_chunk(hot) } else { self.room.resume() }
        })
    }

    /// Counts an event that was refused before it reached this chunk writer, for the "events lost" record.
    /// The caller has counted it in the region.
    pub(crate) fn count_refused(&mut self) {
        self.refused += 1;
        self.found_full = true;
    }

    /// Writes the sequence's first records and sets the fields of `hot` that stay constant.
    pub(crate) fn set_up(&mut self, hot: &Hot) {
        self.sequence.set_packet_constants(hot);
        hot.clear_seen();
        hot.set_facts(self.facts());
        starved::clear_refused();
        hot.end_size.set(self.room.end_size());
        hot.lease().set_last(0);
        let now = self.tick(hot).now;
        self.scratch.clear();
        self.sequence.put_start(&mut self.scratch, now);
        let started = self.room.append(&self.scratch, 0, None);
        debug_assert!(started.is_ok(), "names are cut so that an empty chunk holds them");
        hot.lease().set_last(now);
    }

    /// Returns the facts that the session records beside each event.
    fn facts(&self) -> Facts {
        let Detail { thread_time, source_locations } = self.shared.detail();
        Facts { location: source_locations, cpu_time: thread_time }
    }

    /// Copies the clock's newest parameters to `hot`. Returns the current time, which is never before the
    /// last event.
    fn tick(&self, hot: &Hot) -> Moment {
        let (clock, now) = self.shared.clock().load();
        hot.multiplier.set(clock.multiplier);
        hot.offset.set(if clock.multiplier == 0 { clock::NO_COUNTER } else { clock.offset });
        let last = hot.lease().last();
        let now = now.max(last + 1); // importers nest two instants that have one time
        Moment { now, delta: now - last, cpu: None, new_flows: NewFlows::default() }
    }

    /// As [`tick`](Self::tick), with the thread's CPU time if the session records it: for a begin or an end
    /// on the thread's own track.
    fn tick_with_cpu_time(&self, hot: &Hot) -> Moment {
        let cpu = self.shared.detail().thread_time.then(clock::thread_time);
        Moment { cpu, ..self.tick(hot) }
    }

    /// Reports a change in the number of chunks that this thread reserves for the ends of open scopes.
    fn report_reserved_for_ends(&self) {
        let (before, now) = (self.reserved_for_ends.get(), self.room.chunks_for_ends());
        if before != now {
            self.reserved_for_ends.set(now);
            self.shared.keep_for_ends(before, now);
        }
    }

    /// Copies to `hot` the state that a cold event may have changed.
    fn publish(&self, hot: &Hot) {
        self.report_reserved_for_ends();
        let (far, far_len) = self.sequence.seen_callsites().raw();
        let facts = self.facts();
        let is_detailed = facts != Facts::NONE;
        hot.far.set(far);
        hot.far_len.set(if is_detailed { 0 } else { far_len });
        hot.detailed_len.set(if is_detailed { far_len } else { 0 });
        hot.cold_position.set(Position { changes: self.room.changes(), ..self.position });
        if self.room.is_recalled() {
            hot.lease().clear();
            return;
        }
        let epoch = self.shared.epoch().get();
        let room = self.room.left();
        let all_ends_epoch = if self.room.keeps_all_ends() { epoch } else { 0 };
        // An end with a CPU time is longer than the hot path writes.
        let (end_epoch, detailed_end_epoch) =
            if facts.cpu_time { (0, all_ends_epoch) } else { (all_ends_epoch, 0) };
        hot.detailed_end_epoch.set(detailed_end_epoch);
        let (chunk, lease) = (self.room.chunk(), hot.lease());
        if !self.owns_lease(lease) {
            return;
        }
        let is_new = lease.chunk().cast_const() != std::ptr::from_ref(chunk.header());
        lease.set_room(room);
        starved::set_counts(&self.shared, chunk);
        // SAFETY: the rules of `Lease::set` are kept. 1: `Hot::take` compares the epoch while busy, and every
        // cold path calls `take_over`, busy, before it touches the room. 2: `take_over` marks the room as
        // recalled, and a recalled room does not touch its chunk. 3: a lease is its thread's own until the
        // thread has dropped its chunk writer. 4: the chunk writer owns the room and its chunk. 5:
        // `Owner::leave`.
        unsafe { lease.set(chunk, epoch, end_epoch, self.room.has_no_spares()) };
        if is_new {
            self.shared.chunk_taken(chunk.number());
        }
    }

    /// Writes an event. Returns whether it is recorded. If it is not, counts it by the reason of the loss.
    pub(crate) fn event(&mut self, hot: &Hot, event: &Event<'_>) -> bool {
        if self.refused > 0 && self.room.left() < STARVED && self.shared.has_no_chunk() {
            self.refuse(hot, LossReason::BufferFull); // like the last event, at little cost
            return false;
        }
        if event.action == Action::Begin && event.track.is_some() && self.shared.recorder().is_some() {
            return self.defer_begin(hot, event);
        }
        match self.try_waiting(hot, event) {
            Ok(()) => return true,
            Err(NoRoom::BufferFull | NoRoom::ChunkFull) => self.refuse(hot, LossReason::BufferFull),
            Err(NoRoom::TooLarge) => self.refuse(hot, LossReason::TooLarge),
        }
        false
    }

    /// Writes the event. If no chunk is free and the policy is to wait, waits for one.
    fn try_waiting(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_fitting(hot, event) {
            Err(NoRoom::BufferFull) if self.shared.patience_ends().is_some() => {
                let shared = Arc::clone(&self.shared);
                retry_while_full(&shared, || self.try_fitting(hot, event))
            }
            done => done,
        }
    }

    /// Writes the event, with shorter strings if no chunk can hold it as it is.
    pub(crate) fn try_fitting(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_event(hot, event) {
            Err(NoRoom::TooLarge) => {
                let room = self.room.largest_at_least() as usize;
                fit::shortened(event, room, |shorter| self.try_event(hot, shorter))
            }
            done => done,
        }
    }

    /// Counts an event that could not be written: here for the "events lost" record, and in the region for
    /// the trace's tail.
    fn refuse(&mut self, hot: &Hot, reason: LossReason) {
        self.refused += 1;
        self.found_full |= reason == LossReason::BufferFull;
        if reason == LossReason::BufferFull {
            hot.set_starved(self.epoch().get());
            self.report_reserved_for_ends();
            self.shared.refuse_for_room();
        } else {
            self.shared.region().count_lost(reason, 1);
            self.shared.wake();
        }
    }

    /// Writes the event into this chunk or, in a region that overwrites, into the next one.
    fn try_event(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        match self.try_here(hot, event) {
            Err(NoRoom::ChunkFull) => {
                self.begin_next_chunk(hot)?;
                // An event that an empty chunk cannot hold after its first records is too large.
                self.try_here(hot, event).map_err(
                    |e| {
                        if e == NoRoom::ChunkFull { NoRoom::TooLarge } else { e }
                    },
                )
            }
            done => done,
        }
    }

    /// Writes everything that must precede the event, and then the event.
    fn try_here(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(), NoRoom> {
        self.write_loss(hot)?;
        let is_self_contained = self.sequence.is_self_contained(event);
        if !is_self_contained {
            self.write_strings(event.callsite)?;
        }
        self.write_preamble(|sequence, out| sequence.put_tracks(out, event))?;
        self.sequence.set_tracks_written();
        if !is_self_contained {
            // After the description of a counter's track: from here on the hot path may write the callsite.
            self.sequence.set_strings_written(hot, event.callsite);
        }
        self.write_preamble(|sequence, out| sequence.put_values(out, event))?;
        self.sequence.set_values_written(event);
        let (now, dropped) = self.write_record(hot, event)?;
        self.sequence.set_event_written(event);
        if self.shared.recorder().is_none() && !hot.is_detailed() {
            self.set_described(hot, event);
        }
        if event.past.is_none() {
            hot.lease().set_last(now);
        }
        if dropped > 0 {
            self.shared.region().count_lost(LossReason::Argument, dropped);
        }
        Ok(())
    }

    /// Tells the hot path which tracks of an event that is written need no description from here on.
    fn set_described(&self, hot: &Hot, event: &Event<'_>) {
        let needs_none = self.sequence.describes_no_track_of(event);
        if let Some(track) = event.track
            && (needs_none || event.action == Action::Begin || self.sequence.has_described(track))
        {
            hot.set_described(track.uuid(), needs_none);
        }
        // Last: if both have one slot, the next value finds its own.
        let is_counter = event.action == Action::Counter && !event.callsite.site().counter.incremental;
        if is_counter && !needs_none && event.extras.name.is_none() {
            hot.set_described(counter_track(event, false), false);
        }
    }

    /// Writes the record of the event, and begins its flows. Returns the time, and the number of arguments
    /// that do not fit.
    fn write_record(&mut self, hot: &Hot, event: &Event<'_>) -> Result<(u64, u64), NoRoom> {
        let is_own_slice = matches!(event.action, Action::Begin | Action::End) && event.track.is_none();
        let ((mut new, mut after), mut own) = (event.extras.new_flows(self.epoch()), NewFlows::default());
        loop {
            let moment = if is_own_slice { self.tick_with_cpu_time(hot) } else { self.tick(hot) };
            let at = moment.after(event.after.max(after));
            let (now, at) = (at.now, Moment { now: event.past.unwrap_or(at.now), new_flows: new, ..at });
            self.scratch.clear();
            let in_slice = self.room.open() > 0;
            let dropped = self.sequence.put_event(&mut self.scratch, event, &at, in_slice)?;
            let note = event.reserves_end().then(|| self.sequence.note_of_begin(event, at.now));
            self.room.find_room(self.scratch.len(), note.is_some())?;
            if event.extras.begin_flows(self.epoch(), now, &mut new, &mut own) {
                let (commit, last) = (self.room.chunk().committed(), hot.lease().last());
                self.position = Position { commit, last, ..self.position };
                self.room.append(&self.scratch, 1, note)?;
                self.last_begin = note.map_or(self.last_begin, |note| note.id);
                return Ok((now, dropped));
            }
            after = event.extras.new_flows(self.epoch()).1;
        }
    }

    /// Writes the number of events refused before this one.
    fn write_loss(&mut self, hot: &Hot) -> Result<(), NoRoom> {
        if self.refused > 0 {
            let now = self.tick(hot).now;
            self.scratch.clear();
            let refused = self.refused + starved::refused();
            self.sequence.put_loss(&mut self.scratch, now, refused, self.found_full);
            self.room.append(&self.scratch, 0, None)?;
            self.sequence.set_loss_written();
            hot.clear_seen();
            (self.refused, self.found_full) = (0, false);
            starved::clear_refused();
            hot.set_starved(0);
            hot.lease().set_last(now);
        }
        Ok(())
    }

    /// Writes the records of `put`, which precede an event.
    fn write_preamble(&mut self, put: impl FnOnce(&mut dyn Sequence, &mut Bytes)) -> Result<(), NoRoom> {
        self.scratch.clear();
        put(&mut *self.sequence, &mut self.scratch);
        if self.scratch.is_empty() { Ok(()) } else { self.room.append(&self.scratch, 0, None) }
    }

    /// Writes the strings of the callsite that the sequence does not have yet: all together or, if a chunk is
    /// too small for that, each on its own.
    fn write_strings(&mut self, callsite: &'static Callsite) -> Result<(), NoRoom> {
        match self.write_preamble(|sequence, out| sequence.put_strings(out, callsite, None)) {
            Err(NoRoom::TooLarge) => (0..self.sequence.string_count(callsite)).try_for_each(|n| {
                self.write_preamble(|sequence, out| sequence.put_strings(out, callsite, Some(n)))
            }),
            done => done,
        }
    }

    /// Ends a scope of this thread, in the room that its begin reserved. If the chunk was recalled and no
    /// other is free, the drain thread writes the end on its own sequence.
    pub(crate) fn end(&mut self, hot: &Hot, callsite: &'static Callsite, id: u32) {
        let extras = Extras::new();
        let event = Event { action: Action::End, ..Event::new(callsite, &[], &extras) };
        if self.resume(hot).is_err() {
            self.end_late(hot, &event);
        } else if self.is_out_of_order(id) {
            self.end_out_of_order(hot, &event);
        } else {
            self.end_here(hot, callsite);
        }
    }

    /// Writes an end into the room that its begin reserved.
    fn end_here(&mut self, hot: &Hot, callsite: &'static Callsite) {
        let at = self.tick_with_cpu_time(hot);
        self.scratch.clear();
        self.sequence.put_end(&mut self.scratch, callsite, &at);
        self.room.append_end(&self.scratch);
        hot.lease().set_last(at.now);
    }

    /// Takes a slice back: the records between the two positions, its begin and its end, if they are the last
    /// ones and no reader has them.
    #[cfg(feature = "subscriber")]
    pub(crate) fn retract(&mut self, hot: &Hot, begin: &Position, end: hairline_shm::Commit) {
        let are_last = self.room.changes() == begin.changes && self.room.chunk().committed() == end;
        if are_last && self.room.retract(begin.commit) {
            hot.lease().set_last(begin.last); // times are relative to it
        }
    }

    /// Ends a scope of this thread with arguments, or without them if there is no room.
    pub(crate) fn end_with(&mut self, hot: &Hot, event: &Event<'_>, id: u32) {
        if self.resume(hot).is_err() {
            self.end_late(hot, event);
        } else if self.is_out_of_order(id) {
            self.end_out_of_order(hot, event);
        } else {
            self.end_with_arguments(hot, event);
        }
    }

    /// Returns whether the begin with this `id` is not that of the innermost open slice. If the thread does
    /// not know the innermost one any more (its chunk was recalled), returns false.
    fn is_out_of_order(&self, id: u32) -> bool {
        self.room.innermost().is_some_and(|innermost| innermost != id)
    }

    /// Counts an end that is out of order, and writes it with a mark: an argument with the scope's name.
    #[cold]
    fn end_out_of_order(&mut self, hot: &Hot, event: &Event<'_>) {
        self.shared.count_out_of_order();
        let mut named: Few<(&str, Value<'_>)> = Few::new(("", Value::Null));
        named.push((OUT_OF_ORDER, Value::Str(event.callsite.name())));
        event.named.iter().for_each(|argument| named.push(*argument));
        self.end_with_arguments(hot, &Event { named: named.as_slice(), ..*event });
    }

    fn end_with_arguments(&mut self, hot: &Hot, event: &Event<'_>) {
        if self.try_waiting(hot, event).is_ok() {
            self.room.release_end();
        } else {
            self.end_here(hot, event.callsite);
            self.shared.region().count_lost(LossReason::Argument, event.arguments().count() as u64);
        }
    }

    /// Leaves the end of a scope to the drain thread.
    fn end_late(&mut self, hot: &Hot, event: &Event<'_>) {
        // Made here: it takes more memory than the rest of an idle thread's chunk writer.
        let track = Track::of_this_thread();
        let after = event.after.max(hot.lease().last());
        self.shared.end_late(&Event { track: Some(TrackRef::Track(&track)), after, ..*event });
        self.late_end_pass = Some(self.shared.passes());
        self.shared.wake(); // this thread waits for the passes
        self.room.release_end();
    }
}
