//! The writer thread: drains the ring into the output, keeps the clock true, answers flush and stop.

#![allow(unsafe_code)] // closes the region

use std::sync::Arc;
use std::time::{Duration, Instant};

use hairline_shm::Drain;

use crate::on::base::clock::Clock;
use crate::on::base::platform::process;
use crate::on::callsite::registry;
use crate::on::encode::stream;
use crate::on::encode::tail::Tail;
use crate::on::session::end::End;
use crate::on::session::late::LATE_ROOM;
use crate::on::session::recall;
use crate::on::session::recall::Recaller;
use crate::on::session::shared::Shared;
use crate::on::session::sink::Sink;
use crate::on::session::upkeep::Upkeep;

/// The longest a committed record waits for the output while events come.
const TICK: Duration = Duration::from_millis(50);
/// The longest sleep while none come.
const IDLE: Duration = Duration::from_secs(1);
/// Passes at the end, as long as there is something: threads go on ending scopes.
const LAST_PASSES: u32 = 8;

/// What the writer thread has counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Chunks that were read to their end.
    chunks: u64,
    /// Flushes that were asked for and done.
    flushes: u64,
}

/// What came of an attempt to take chunks back.
enum Recalled {
    /// The next pass frees some.
    Some,
    /// There are none to be had, or none are needed.
    None,
    /// Whoever was not idle at the last attempt may be soon, and somebody wants a chunk.
    NotYet,
}

struct Writer<'s> {
    shared: &'s Arc<Shared>,
    drain: Drain,
    sink: Sink,
    /// Records written here in place of threads without room.
    late: u64,
    late_records: Vec<u8>,
    counts: Counts,
    recaller: Recaller,
    /// When chunks were last taken back.
    recalled: Option<Instant>,
    /// None were, since the next pass was to free some.
    has_put_off_recall: bool,
    /// Nothing is written any more; what the ring holds is lost.
    failed: bool,
    /// When that is since the output may not grow: the tail is written all the same.
    limited: bool,
}

/// The writer thread's whole life. A panic can only come from an output that the user gave; it counts as that
/// output's error.
pub(crate) fn run(shared: &Arc<Shared>, sink: Sink, clock: Clock) {
    let life = std::panic::AssertUnwindSafe(|| live(shared, sink, clock));
    if std::panic::catch_unwind(life).is_err() {
        registry::deactivate(shared.epoch);
        shared.region.end_waits();
        // SAFETY: the drain was this thread's, and is dropped.
        unsafe { shared.region.close() };
        shared.set_error(&Arc::new(std::io::Error::other("the output panicked")));
        shared.set_end(End::default());
    }
}

fn live(shared: &Arc<Shared>, sink: Sink, clock: Clock) {
    let drain = Drain::new(Arc::clone(&shared.region));
    let mut writer = Writer {
        shared,
        drain,
        sink,
        late: 0,
        late_records: Vec::with_capacity(LATE_ROOM),
        counts: Counts::default(),
        recaller: Recaller::default(),
        recalled: None,
        has_put_off_recall: false,
        failed: false,
        limited: false,
    };
    let mut sleep = TICK;
    let mut upkeep = Upkeep::new(clock);
    let mut beaten = Instant::now();
    loop {
        // Asked before this moment, answered after the pass below.
        let (asked, done, stop) = {
            let requests = shared.requests.lock();
            (requests.flushes_asked, requests.flushes_done, requests.stop)
        };
        shared.heed_wake();
        let any = writer.pass(asked != done || stop);
        if beaten.elapsed() >= shared.heartbeat {
            writer.heartbeat();
            beaten = Instant::now();
        }
        upkeep.refine_clock(shared);
        if stop {
            // A pass looks at one thread after the other, so it may have an end that it read later than it would have found
            // the begin, which another thread was about to commit. The next one finds it.
            for _ in 0..LAST_PASSES {
                if !writer.pass(true) {
                    break;
                }
            }
            break;
        }
        if asked != done {
            writer.counts.flushes += asked - done;
            shared.requests.lock().flushes_done = asked;
            shared.answered.notify_all();
        }
        if upkeep.populate(shared) {
            continue; // the ring may have filled meanwhile
        }
        sleep = if any { TICK } else { (sleep * 2).min(IDLE) };
        let sleep = match writer.recall(any) {
            Recalled::Some => continue,
            Recalled::NotYet => recall::IDLE,
            Recalled::None => sleep,
        };
        std::thread::park_timeout(sleep.min(shared.heartbeat));
    }
    writer.end();
}

impl Writer<'_> {
    /// Moves what is committed to the output. Whether there was anything.
    fn pass(&mut self, flush: bool) -> bool {
        self.shared.region.note_time(self.shared.clock.load().now());
        if self.failed {
            return self.drain.discard().records > 0;
        }
        // Asked before the pass, which hands out all that they have committed.
        let ended = self.shared.take_ended();
        let passed = self.drain.pass(&mut self.sink).and_then(|pass| Ok((pass, self.write_late()?)));
        ended.into_iter().for_each(|last| self.drain.end_sequence(last, &mut self.sink));
        let flushed = if flush { self.sink.flush() } else { Ok(()) };
        match passed.and_then(|passed| flushed.map(|()| passed)) {
            Ok((pass, late)) => {
                self.shared.pass_done();
                self.counts.chunks += u64::from(pass.freed);
                pass.bytes > 0 || late > 0
            }
            Err(e) => {
                self.fail(e);
                false
            }
        }
    }

    /// Takes chunks back from idle threads, once those that are free are less than half: then the next thread that takes one wakes this
    /// one, and finds some. `any`: the last pass has found something.
    fn recall(&mut self, any: bool) -> Recalled {
        let region = &self.shared.region;
        let free = region.free_chunks();
        let wanted = (region.chunk_count() / 2).saturating_sub(free);
        if wanted == 0 {
            return Recalled::None;
        }
        if self.recalled.is_some_and(|at| at.elapsed() < recall::IDLE) {
            return Recalled::NotYet;
        }
        // What was completed during the last pass, which may have taken long, is enough perhaps. Nobody is to lose a chunk for nothing.
        if !self.has_put_off_recall && region.has_complete_chunk() {
            self.has_put_off_recall = true;
            return Recalled::Some;
        }
        self.has_put_off_recall = false;
        self.recalled = Some(Instant::now());
        if self.recaller.recall(self.shared, wanted, free == 0) > 0 {
            Recalled::Some
        } else if region.is_waited_for() || any && free == 0 {
            Recalled::NotYet
        } else {
            Recalled::None // who loses an event wakes this thread
        }
    }

    /// What the stream repeats.
    fn heartbeat(&mut self) {
        let bytes = stream::heartbeat(self.shared.format());
        if !self.failed
            && !bytes.is_empty()
            && let Err(e) = self.drain.insert(&bytes, &mut self.sink.plain())
        {
            self.fail(e);
        }
    }

    /// The ends that threads had no room for. Their begins are committed, if not written yet.
    fn write_late(&mut self) -> std::io::Result<u64> {
        let count = self.shared.take_late(&mut self.late_records);
        if count > 0 {
            self.drain.insert(&self.late_records, &mut self.sink.plain())?;
            self.late += count;
        }
        Ok(count)
    }

    /// The output is gone: nothing more is recorded, and what the ring holds counts as lost.
    fn fail(&mut self, e: std::io::Error) {
        self.failed = true;
        self.limited = self.sink.is_full();
        registry::deactivate(self.shared.epoch);
        self.shared.region.end_waits();
        if !self.limited {
            self.shared.set_error(&Arc::new(e));
        }
        self.drain.discard();
    }

    fn tail(&self) -> Vec<u8> {
        let region = &self.shared.region;
        let tail = Tail {
            pid: process::id(),
            process_track: process::track_uuid(),
            thread: process::Thread::current(),
            now: self.shared.clock.load().now(),
            lost: self.shared.lost(),
            ring: u64::from(region.chunk_count()) * u64::from(region.chunk_size()),
            written: self.sink.written,
            chunks: self.counts.chunks,
            flushes: self.counts.flushes,
        };
        stream::tail(self.shared.format(), &tail)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.limited {
            notes.push(
                "the output has reached its greatest size: what came after that is not in it".to_owned(),
            );
        }
        if let Some(e) = self.sink.rotation_failed() {
            notes.push(format!("the output stayed in one file: {e}"));
        }
        if self.shared.path.as_deref().is_some_and(|path| self.sink.has_vanished(path)) {
            notes.push("the output was removed or replaced while it was written".to_owned());
        }
        notes
    }

    fn end(mut self) {
        let tail = self.tail();
        self.sink.begin_tail();
        if (!self.failed || self.limited)
            && let Err(e) =
                self.drain.insert_tail(&tail, &mut self.sink.plain()).and_then(|()| self.sink.flush())
        {
            self.fail(e);
        }
        let notes = self.notes();
        // SAFETY: the drain is this thread's, which makes no pass any more.
        unsafe { self.shared.region.close() };
        let records_by_sequence = self.drain.records_by_sequence().clone();
        self.shared.set_end(End {
            records: records_by_sequence.values().sum::<u64>() + self.late,
            bytes: self.sink.written,
            duration: self.shared.started.elapsed(),
            records_by_sequence,
            path: self.shared.path.clone(),
            notes,
        });
    }
}
