//! The drain thread: copies committed bytes from the ring to the sink, refines the clock, answers flush and
//! stop.

#![allow(unsafe_code)] // closes the region

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hairline_shm::{Drain, LossReason};

use crate::on::base::hooks;
use crate::on::base::hooks::Sampled;
use crate::on::base::memory::Bytes;
use crate::on::encode::stream;
use crate::on::encode::tail::BeforeTail;
use crate::on::session::current;
use crate::on::session::end::End;
use crate::on::session::heap_profile::Profiling;
use crate::on::session::late_ends::LATE_ROOM;
use crate::on::session::naming::Naming;
use crate::on::session::recall;
use crate::on::session::recall::Recaller;
use crate::on::session::sampling::Sampling;
use crate::on::session::scheduling::Scheduling;
use crate::on::session::shared::Shared;
use crate::on::session::sink::Sink;
use crate::on::session::upkeep::Upkeep;

/// Time between two passes while threads record.
const TICK: Duration = Duration::from_millis(50);
/// The longest time between two passes while no thread records.
const LONGEST_TICK: Duration = Duration::from_secs(1);
/// The most passes after the request to stop. Threads still end scopes then.
const LAST_PASSES: u32 = 8;

/// Runs the drain thread until the session ends. Only the caller's own `Write` implementation can panic here;
/// the panic becomes an error of the output.
pub(crate) fn run(shared: &Arc<Shared>, sink: Sink, upkeep: Upkeep) {
    let life = std::panic::AssertUnwindSafe(|| DrainThread::new(shared, sink, upkeep).live());
    if std::panic::catch_unwind(life).is_err() {
        shared.deactivate();
        drop(shared.hardware.close());
        shared.region().end_waits();
        // SAFETY: this thread had the region's only drain, and has dropped it.
        unsafe { shared.region().close() };
        shared.requests.set_error(&Arc::new(io::Error::other("the output panicked")));
        shared.requests.set_end(End::default());
    }
}

/// The state of the drain thread.
struct DrainThread<'s> {
    shared: &'s Arc<Shared>,
    drain: Drain,
    sink: Sink,
    /// Whether the sink still takes bytes.
    state: State,
    /// Whether the last pass copied bytes, or discarded records.
    found_records: bool,
    /// The longest time until the next sample, if the session records samples.
    next_sample: Option<Duration>,
    /// Late ends that were written to the sink.
    late_ends: u64,
    /// The buffer of [`write_late_ends`](Self::write_late_ends).
    late_records: Bytes,
    /// Chunks that were read to their end.
    chunks: u64,
    /// Flushes that were requested and done.
    flushes: u64,
    upkeep: Upkeep,
    last_heartbeat: Instant,
    /// When the names of threads were last read.
    last_names: Instant,
    /// The sleep before the next pass. It doubles with each pass that finds nothing.
    tick: Duration,
    /// The context switches, if the session records them.
    scheduling: Option<Box<Scheduling>>,
    /// The samples of call stacks, if the session records them.
    sampling: Option<Box<Sampling>>,
    /// The heap profile, if the session records it.
    heap_profile: Option<Box<Profiling>>,
    has_heap_profile: bool,
    naming: Naming,
    /// Files of a rotation whose heap profile has no functions, because many waited for theirs.
    files_without_functions: u64,
    recaller: Recaller,
    last_recall: Option<Instant>,
    /// Whether the last recall was postponed, because the next pass was about to free chunks.
    has_postponed_recall: bool,
}

/// Whether the sink takes bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The sink has failed. The session records nothing more, and the ring's content is lost.
    Failed,
    /// Like `Failed`, but because the output has reached its size limit. The tail is still written.
    AtLimit,
}

/// Time between two looks at the names of threads.
const BETWEEN_NAMES: Duration = Duration::from_secs(1);

/// Whether a pass flushes the sink.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    Later,
}

/// The time of the next pass, after an attempt to recall chunks.
enum NextPass {
    /// At once: the pass frees chunks.
    Now,
    /// After [`recall::IDLE`]: a thread needs a chunk, and threads that were busy may be idle then.
    Soon,
    /// After the usual sleep: no chunk is needed, or none can be recalled.
    WhenDue,
}

impl<'s> DrainThread<'s> {
    fn new(shared: &'s Arc<Shared>, mut sink: Sink, upkeep: Upkeep) -> Self {
        shared.sampling.begin();
        shared.heap_profile.begin();
        if shared.sampling.is_open() || shared.heap_profile.is_open() {
            sink.keep_finished();
        }
        Self {
            shared,
            drain: Drain::new(Arc::clone(shared.region())),
            sink,
            state: State::Open,
            found_records: false,
            next_sample: None,
            late_ends: 0,
            late_records: Bytes::with_capacity(LATE_ROOM),
            chunks: 0,
            flushes: 0,
            upkeep,
            last_heartbeat: Instant::now(),
            last_names: Instant::now(),
            tick: TICK,
            scheduling: shared.scheduling.close(),
            sampling: shared.sampling.close(),
            has_heap_profile: shared.heap_profile.is_open(),
            heap_profile: shared.heap_profile.close(),
            naming: Naming::default(),
            files_without_functions: 0,
            recaller: Recaller::default(),
            last_recall: None,
            has_postponed_recall: false,
        }
    }

    fn live(mut self) {
        loop {
            // The pass below answers the requests that were made before this point.
            let requests = self.shared.requests.pending();
            self.shared.drain.clear_wake();
            let has_flush = requests.flushes_requested != requests.flushes_done;
            let sampled = if requests.stop { Sampled::AtEnd } else { Sampled::Regularly };
            self.next_sample = hooks::sample(self.shared.epoch().get(), sampled);
            self.pass(if has_flush || requests.stop { Flush::Now } else { Flush::Later });
            self.write_switches();
            self.end_files();
            self.write_samples();
            self.write_heap_profile();
            self.write_heartbeat_if_due();
            if self.last_names.elapsed() >= BETWEEN_NAMES {
                self.write_names(false);
            }
            current::free_retired();
            self.upkeep.refine_clock(self.shared);
            if requests.stop {
                break;
            }
            if has_flush {
                self.flushes += requests.flushes_requested - requests.flushes_done;
                self.shared.requests.set_flushes_done(requests.flushes_requested);
            }
            if self.upkeep.allocate_ahead(self.shared) {
                continue; // the ring may have filled meanwhile
            }
            self.recall_or_sleep();
        }
        self.last_passes();
        self.write_names(true);
        self.sink.stay(); // the last file is whole with what follows
        self.end_files();
        self.write_last_samples();
        self.write_last_heap_profile();
        self.write_last_switches();
        self.end();
    }

    /// Copies committed bytes to the sink.
    fn pass(&mut self, flush: Flush) {
        self.shared.region().note_time(self.shared.now());
        self.found_records = if self.state == State::Open {
            self.copy_committed(flush).unwrap_or_else(|e| {
                self.fail(e);
                false
            })
        } else {
            self.drain.discard().records > 0
        };
    }

    /// Copies committed bytes and late ends to the sink. Returns whether there were any.
    fn copy_committed(&mut self, flush: Flush) -> io::Result<bool> {
        self.sink.pass_begins(self.shared.now());
        // Taken before the pass, so that the pass writes all that these sequences have committed.
        let ended = self.shared.ended_sequences.take();
        let passed = self.drain.pass(&mut self.sink).and_then(|pass| Ok((pass, self.write_late_ends()?)));
        ended.iter().for_each(|next_chunk| self.drain.end_sequence(*next_chunk, &mut self.sink));
        let flushed = if flush == Flush::Now { self.sink.flush() } else { Ok(()) };
        let (pass, late_ends) = passed?;
        flushed?;
        match self.sink.pass_ended()? {
            0 => {}
            lost => self.shared.region().count_lost(LossReason::Output, lost),
        }
        self.shared.drain.add_pass();
        self.chunks += u64::from(pass.freed);
        Ok(pass.bytes > 0 || late_ends > 0)
    }

    /// Writes the late ends. Their begins are committed, and are in the sink after the pass. Returns the
    /// number of late ends.
    fn write_late_ends(&mut self) -> io::Result<u64> {
        let count = self.shared.late_ends.take(&mut self.late_records);
        if count > 0 {
            self.drain.insert(&self.late_records, &mut self.sink.uncompressed())?;
            self.late_ends += count;
        }
        Ok(count)
    }

    /// Writes the context switches that the kernel has recorded.
    fn write_switches(&mut self) {
        let (Some(scheduling), State::Open) = (&mut self.scheduling, self.state) else { return };
        let (drain, sink) = (&mut self.drain, &mut self.sink);
        let file = sink.finished_files();
        if let Err(e) = scheduling.write(self.shared.traced(), file, |bytes| drain.insert(bytes, sink)) {
            self.fail(e);
        }
    }

    /// Adds the samples and the heap profile to the files of a rotation that have just ended.
    fn end_files(&mut self) {
        let mut finished = self.sink.take_finished();
        if finished.is_empty() || self.state != State::Open {
            return;
        }
        let functions = self.heap_profile.as_mut().map(|profile| profile.end_files(&mut finished));
        // Without room the next file has the samples.
        let samples = self.sampling.as_mut().filter(|_| self.naming.has_room()).and_then(|sampling| {
            let shared = Arc::clone(self.shared);
            sampling.end_file(self.shared.traced(), move |tid| shared.threads.contains(tid))
        });
        let (count, has_profile) = (finished.len() as u64, functions.is_some());
        let has_room = self
            .naming
            .add(move || [functions, samples].into_iter().flatten().for_each(|add| add(&mut finished)));
        self.files_without_functions += if has_profile && !has_room { count } else { 0 };
    }

    /// Writes the samples that were taken.
    fn write_samples(&mut self) {
        let (Some(sampling), State::Open) = (&mut self.sampling, self.state) else { return };
        let (drain, sink, of) = (&mut self.drain, &mut self.sink, self.shared.traced());
        let naming = &mut self.naming;
        let written =
            sink.in_present_file(|sink| sampling.write(of, naming, |bytes| drain.insert(bytes, sink)));
        if let Err(e) = written {
            self.fail(e);
        }
    }

    /// Ends the recording of samples, and writes the rest with the functions of all frames.
    fn write_last_samples(&mut self) {
        self.write_samples();
        self.naming.join();
        let Some(sampling) = self.sampling.take().filter(|_| self.state == State::Open) else { return };
        let (drain, sink) = (&mut self.drain, &mut self.sink);
        let of = self.shared.traced();
        let written = sink.in_present_file(|sink| sampling.finish(of, |bytes| drain.insert(bytes, sink)));
        match written {
            Ok(note) => note.map_or((), |note| _ = self.shared.stacks_note.set(note)),
            Err(e) => self.fail(e),
        }
    }

    /// Takes in the allocations that threads have sampled.
    fn write_heap_profile(&mut self) {
        let (Some(profile), State::Open) = (&mut self.heap_profile, self.state) else { return };
        let (drain, sink) = (&mut self.drain, &mut self.sink);
        let written = sink.in_present_file(|sink| profile.write(|bytes| drain.insert(bytes, sink)));
        if let Err(e) = written {
            self.fail(e);
        }
    }

    /// Ends the heap profile, and writes what is live.
    fn write_last_heap_profile(&mut self) {
        let Some(profile) = self.heap_profile.take().filter(|_| self.state == State::Open) else { return };
        let (drain, sink) = (&mut self.drain, &mut self.sink);
        match profile.finish(|bytes| drain.insert(bytes, sink)) {
            Ok(note) => note.map_or((), |note| _ = self.shared.heap_note.set(note)),
            Err(e) => self.fail(e),
        }
    }

    /// Ends the recording of context switches, and writes the rest: after all else, so that no track of a
    /// thread comes after its death.
    fn write_last_switches(&mut self) {
        self.write_switches();
        let Some(scheduling) = self.scheduling.take().filter(|_| self.state == State::Open) else { return };
        let (drain, sink) = (&mut self.drain, &mut self.sink);
        if let Err(e) = scheduling.finish(self.shared.traced(), |bytes| drain.insert(bytes, sink)) {
            self.fail(e);
        }
    }

    /// Writes the names of threads that were renamed since their first event. Of two names, readers show the
    /// last.
    fn write_names(&mut self, all: bool) {
        self.last_names = Instant::now();
        let names = self.shared.threads.take_new_names(all);
        if names.is_empty() || self.state != State::Open {
            return;
        }
        let mut bytes = Bytes::new();
        stream::put_names(self.shared.format(), &mut bytes, &names);
        if let Err(e) = self.drain.insert(&bytes, &mut self.sink) {
            self.fail(e);
        }
    }

    /// Writes the records that the stream repeats from time to time.
    fn write_heartbeat_if_due(&mut self) {
        if self.last_heartbeat.elapsed() < self.shared.settings.heartbeat {
            return;
        }
        let bytes = stream::heartbeat(self.shared.format());
        if self.state == State::Open
            && !bytes.is_empty()
            && let Err(e) = self.drain.insert(&bytes, &mut self.sink.uncompressed())
        {
            self.fail(e);
        }
        self.last_heartbeat = Instant::now();
    }

    /// Recalls chunks if few are free, or sleeps until the next pass is due.
    fn recall_or_sleep(&mut self) {
        let longest = self.upkeep.longest_sleep();
        self.tick = match self.found_records {
            true => TICK,
            false if longest < TICK => self.tick, // the next pass comes early
            false => (self.tick * 2).min(LONGEST_TICK),
        };
        let sleep = match self.recall() {
            NextPass::Now => return,
            NextPass::Soon => recall::IDLE,
            NextPass::WhenDue => self.tick,
        };
        let longest = longest.min(self.shared.settings.heartbeat);
        let longest = self.scheduling.as_ref().map_or(longest, |of| longest.min(of.longest_sleep()));
        let longest = self.sampling.as_ref().map_or(longest, |of| longest.min(of.longest_sleep()));
        let longest = self.heap_profile.as_ref().map_or(longest, |of| longest.min(of.longest_sleep()));
        std::thread::park_timeout(sleep.min(longest).min(self.next_sample.unwrap_or(longest)));
    }

    /// Recalls chunks from idle threads while less than half of the chunks are free. From there on each
    /// thread that claims a chunk wakes the drain thread, so that it recalls while chunks are still free.
    fn recall(&mut self) -> NextPass {
        let region = self.shared.region();
        let free = region.free_chunks();
        let wanted = (region.chunk_count() / 2).saturating_sub(free);
        if wanted == 0 {
            return NextPass::WhenDue;
        }
        if self.last_recall.is_some_and(|at| at.elapsed() < recall::IDLE) {
            return NextPass::Soon;
        }
        // The chunks that were completed during the last pass, which may have taken long, may be enough: no
        // thread should lose its chunk in vain.
        if !self.has_postponed_recall && region.has_complete_chunk() {
            self.has_postponed_recall = true;
            return NextPass::Now;
        }
        self.has_postponed_recall = false;
        self.last_recall = Some(Instant::now());
        let recalled = match free {
            0 => self.recaller.recall_any(self.shared, wanted),
            _ => self.recaller.recall_idle(self.shared, wanted),
        };
        if recalled > 0 {
            NextPass::Now
        } else if region.is_waited_for() || self.found_records && free == 0 {
            NextPass::Soon
        } else {
            NextPass::WhenDue // a thread that loses an event wakes this thread
        }
    }

    /// Makes passes until one finds nothing. A pass looks at one thread after the other, so it may read an
    /// end and miss the begin, which another thread commits meanwhile. The next pass finds the begin.
    fn last_passes(&mut self) {
        for _ in 0..LAST_PASSES {
            self.pass(Flush::Now);
            if !self.found_records {
                break;
            }
        }
    }

    /// Ends the recording after an error of the sink. A file that is full still takes what it has room for.
    /// The rest of the ring's content counts as lost.
    fn fail(&mut self, e: io::Error) {
        let is_own_limit = self.sink.is_at_limit() && !self.sink.is_full();
        self.state = if is_own_limit { State::AtLimit } else { State::Failed };
        self.scheduling = None; // the kernel records no more
        self.sampling = None;
        self.heap_profile = None;
        self.shared.deactivate();
        self.shared.region().end_waits();
        if self.state == State::Failed {
            self.shared.requests.set_error(&Arc::new(e));
        }
        if self.sink.is_full() {
            let _ = self.drain.pass(&mut self.sink);
        }
        self.drain.discard();
    }

    /// Writes the tail, closes the region and sets the results of the session.
    fn end(mut self) {
        self.write_tail();
        // SAFETY: this thread has the region's only drain, which makes no further pass.
        unsafe { self.shared.region().close() };
        self.write_end();
        let records_by_sequence = self.drain.records_by_sequence().clone();
        drop(self.shared.hardware.close());
        self.shared.requests.set_end(End {
            records: records_by_sequence.values().sum::<u64>() + self.late_ends,
            bytes: self.sink.written,
            duration: self.shared.elapsed(),
            records_by_sequence,
            path: self.shared.settings.path.clone(),
            notes: self.notes(),
        });
    }

    fn write_tail(&mut self) {
        let tail = self.shared.tail(BeforeTail {
            bytes: self.sink.written,
            chunks: self.chunks,
            flushes: self.flushes,
        });
        self.sink.release_tail_room();
        let has_failed = self.state == State::Failed;
        if has_failed && !self.sink.is_file_or_memory() {
            return;
        }
        let written = self.drain.insert_tail(&tail, &mut self.sink.uncompressed());
        match written.and_then(|()| self.sink.flush()) {
            Err(e) if !has_failed => self.fail(e),
            _ => {} // a file that has failed may have no room for it
        }
    }

    /// Writes the end of the session, once nothing is left to recover: a later run may replace the trace,
    /// unless the output has failed.
    fn write_end(&mut self) {
        let has_failed = self.state == State::Failed;
        if has_failed && !self.sink.is_file_or_memory() {
            return;
        }
        let end = if has_failed { self.shared.kept_end() } else { self.shared.session_end() };
        match self.sink.end(&end).and_then(|()| self.sink.flush()) {
            Err(e) if !has_failed => drop(self.shared.requests.set_error(&Arc::new(e))),
            _ => {}
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.state == State::AtLimit {
            let what =
                "later events are not in it, nor what comes last: the functions of samples, the heap profile";
            notes.push(format!("the output has reached its size limit: {what}"));
        }
        if let Some(e) = self.sink.rotation_error() {
            notes.push(format!("the output stayed in one file, because the next file failed: {e}"));
        }
        let (passed_over, nameless) = (self.sink.passed_over(), self.files_without_functions);
        if self.has_heap_profile && passed_over > 0 {
            notes.push(format!(
                "{passed_over} files of the output have no heap profile: too many ended at a time; make them larger"
            ));
        }
        if nameless > 0 {
            notes.push(format!(
                "the heap profiles of {nameless} files of the output have no functions: files ended faster than \
                 functions are looked up; make them larger"
            ));
        }
        if self.shared.settings.path.as_deref().is_some_and(|path| self.sink.has_vanished(path)) {
            notes.push("the output was removed or replaced while it was written".to_owned());
        }
        notes
    }
}
