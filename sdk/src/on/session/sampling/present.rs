//! Samples into the session's sink, or into the history of a flight recorder.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hairline_formats::track_event::SequenceId;
use hairline_perf::Task;
use hairline_shm::LossReason;
use hairline_stacks::{Profile, WRITING, Window};

use crate::on::base::lock::Mutex;
use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::platform::process;
use crate::on::base::{clock, stacks, this_thread};
use crate::on::encode::OWN_SEQUENCE;
use crate::on::session::rotation::Finished;
use crate::on::session::sampling::events::Events;
use crate::on::session::sampling::source::Source;
use crate::on::session::sampling::{Opened, Wanted};
use crate::on::session::scheduling::Traced;
use crate::options::Format;

/// The samples that a flight recorder keeps: some 6 MiB, a minute of 20 busy threads at 99 samples a second.
const KEPT: usize = 1 << 17;

/// The most files of a rotation whose functions are looked up at a time.
const MOST_NAMING: u32 = 4;

/// The longest time between two reads in a session without samples. Threads wake the reader when a quarter of
/// the ring is full.
const LONGEST_OF_EVENTS: Duration = Duration::from_millis(50);

/// The longest wait of a snapshot for another thread that reads the samples: it may look at a large program
/// for the first time, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The samples of a session, and the stacks of its events.
#[derive(Debug)]
pub(crate) struct Sampling {
    source: Option<Source>,
    events: Events,
    form: Form,
    /// Made for the first samples: a session without any looks nothing up, and asks the system for nothing.
    profile: Option<Profile>,
    /// The threads that add samples to finished files.
    naming: Vec<OwnThread>,
    /// How many of these have not ended.
    running: Arc<AtomicU32>,
}

/// What the profile of a session is like.
#[derive(Debug)]
struct Form {
    /// Those of its samples and of its stacks of events; `None` in FXT.
    sequences: Option<[SequenceId; 2]>,
    frequency: Option<u32>,
    keeps_last: bool,
}

impl Form {
    fn profile(&self) -> Profile {
        let profile = match self.sequences {
            None => Profile::fxt_within(),
            Some([samples, events]) => Profile::packets(samples).events_on(events),
        };
        let profile = match self.frequency {
            Some(frequency) => profile.frequency(frequency),
            None => profile,
        };
        if self.keeps_last { profile.keep_last(KEPT) } else { profile }
    }
}

/// Where a session keeps its [`Sampling`], while no thread uses it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    sampling: Mutex<Option<Box<Sampling>>>,
    /// Whether the session records samples, and has not ended.
    is_open: AtomicBool,
}

impl Slot {
    /// Begins to sample the process's threads, and to take the stacks of events.
    pub(crate) fn open(&self, wanted: Wanted, format: Format, sequence: impl Fn() -> u32) -> Opened {
        let (mut notes, mut source, mut no_samples) = (Vec::new(), None, None);
        if let Some(frequency) = wanted.samples {
            match Source::open(frequency) {
                Ok((opened, note)) => {
                    source = Some(opened);
                    notes.extend(note);
                }
                Err(why) => no_samples = Some(why),
            }
        }
        // The option `stack:` of a macro asks for one in any session.
        let (events, note) = Events::open(wanted.of_slow_slices);
        notes.extend(note);
        let sequence = || SequenceId(sequence() + OWN_SEQUENCE.0);
        let form = Form {
            sequences: (format == Format::TrackEvent).then(|| [sequence(), sequence()]),
            frequency: source.as_ref().zip(wanted.samples).map(|(source, asked)| source.frequency(asked)),
            keeps_last: wanted.keeps_last,
        };
        let (naming, running) = (Vec::new(), Arc::default());
        let sampling = Sampling { source, events, form, profile: None, naming, running };
        self.is_open.store(true, Ordering::Relaxed);
        self.put(Some(Box::new(sampling)));
        Opened { no_samples, notes }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        if let Some(slot) = self.sampling.lock_unless_lost()
            && let Some(source) = slot.as_ref().and_then(|sampling| sampling.source.as_ref())
        {
            source.moved_here();
        }
    }

    /// Begins to take samples in: the session's own thread calls this once, before it does anything else.
    pub(crate) fn begin(&self) {
        let mut sampling = self.take();
        if let Some(sampling) = &mut sampling {
            sampling.events.is_here();
            if sampling.source.is_some() {
                // After the events are open: a file that is mapped meanwhile is found twice, and not missed.
                let profile = sampling.profile.get_or_insert_with(|| sampling.form.profile());
                profile.add_present(process::id());
            }
        }
        self.put(sampling);
    }

    /// Whether the session may have samples, and no thread has taken them for good.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Takes the samples for good: no snapshot waits for them.
    pub(crate) fn close(&self) -> Option<Box<Sampling>> {
        self.is_open.store(false, Ordering::Relaxed);
        self.take()
    }

    fn take(&self) -> Option<Box<Sampling>> {
        self.sampling.lock_unless_lost()?.take()
    }

    fn put(&self, mut sampling: Option<Box<Sampling>>) {
        if sampling.is_some()
            && let Some(mut slot) = self.sampling.lock_unless_lost()
        {
            std::mem::swap(&mut *slot, &mut sampling); // nothing is freed under the lock
        }
    }

    /// Moves the samples of a flight recorder into its history. Returns the longest time until the next call;
    /// `None` if the session records none.
    pub(crate) fn keep(&self, of: Traced<'_>) -> Option<Duration> {
        if !self.is_open.load(Ordering::Relaxed) {
            return None;
        }
        // A snapshot that has them reads them itself.
        let Some(mut sampling) = self.take() else { return Some(Duration::from_millis(10)) };
        sampling.read(of, false);
        let every = sampling.longest_sleep();
        self.put(Some(sampling));
        Some(every)
    }

    /// Returns the history of a flight recorder up to now, for a snapshot.
    pub(crate) fn window(&self, of: Traced<'_>) -> Option<Window> {
        let until = Instant::now() + PATIENCE;
        let mut taken = self.take();
        while taken.is_none() && self.is_open.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200)); // another thread has them, for a read
            taken = self.take();
        }
        let mut sampling = taken?;
        if sampling.source.is_none() && !stacks::are_taken() {
            self.put(Some(sampling));
            return None;
        }
        // What is older than this needs no record that may still come, once it was read twice.
        std::thread::sleep(Duration::from_nanos(WRITING));
        sampling.read(of, false);
        sampling.read(of, false);
        let window = sampling.profile.as_ref().and_then(Profile::window);
        self.put(Some(sampling));
        window
    }
}

impl Sampling {
    pub(crate) fn longest_sleep(&self) -> Duration {
        let of_events = if stacks::are_taken() { LONGEST_OF_EVENTS } else { Duration::MAX };
        self.source.as_ref().map_or(of_events, Source::every)
    }

    fn read(&mut self, of: Traced<'_>, is_last: bool) {
        if self.source.is_none() && !stacks::are_taken() {
            return;
        }
        let profile = self.profile.get_or_insert_with(|| self.form.profile());
        let (start, mut lost) = (clock::boottime(), 0);
        if let Some(source) = &mut self.source {
            lost += source.read(profile, is_last);
        }
        lost += self.events.read(profile, is_last);
        profile.settle(start);
        if lost > 0 {
            of.region.count_lost(LossReason::KernelRing, lost);
        }
    }

    /// Takes no more samples and stacks. What was taken can still be read.
    fn stop(&mut self) {
        if let Some(source) = &mut self.source {
            source.stop();
        }
        self.events.stop();
    }

    /// Adds the samples since the last call, with the functions of their frames, to a file that has ended. A
    /// thread of its own looks the functions up: until then the ring would have no reader. `is_traced`: the
    /// threads that record.
    pub(crate) fn end_file(
        &mut self,
        of: Traced<'_>,
        is_traced: impl Fn(u32) -> bool + Send + 'static,
        file: Finished,
    ) {
        self.read(of, false);
        if self.running.load(Ordering::Acquire) >= MOST_NAMING {
            return; // the next file has them: the ring has no reader while this thread waits
        }
        if self.running.load(Ordering::Acquire) == 0 {
            self.naming.drain(..).for_each(OwnThread::join); // they have ended, and each keeps its stack
        }
        let window = self.profile.as_mut().and_then(|profile| profile.take_window(true));
        let Some(window) = window else { return };
        self.running.fetch_add(1, Ordering::Relaxed);
        let (running, count) = (Arc::clone(&self.running), window.count());
        let add = move || {
            let _busy = this_thread::busy(); // a heap profile does not have what this thread allocates
            file.add(&window.write(&has_name(is_traced)));
            running.fetch_sub(1, Ordering::Release);
        };
        match own_thread::spawn(c"hairline-names", add) {
            Ok(thread) => self.naming.push(thread),
            Err(_) => {
                self.running.fetch_sub(1, Ordering::Relaxed);
                of.region.count_lost(LossReason::KernelRing, count);
            }
        }
    }

    /// Writes the samples since the last call. Those of a rotated output wait until its file ends, or until
    /// there are many.
    pub(crate) fn write(
        &mut self,
        of: Traced<'_>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.read(of, false);
        let Some(profile) = &mut self.profile else { return Ok(()) };
        let out = match profile.take_window(false) {
            Some(window) => window.write(&has_name(|tid| of.threads.contains(tid))),
            None => profile.take_output(),
        };
        if out.is_empty() { Ok(()) } else { write(&out) }
    }

    /// Ends the recording, and writes the rest and the functions of all frames.
    pub(crate) fn finish(
        mut self: Box<Self>,
        of: Traced<'_>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.stop();
        self.read(of, true);
        let Some(mut profile) = self.profile else { return Ok(()) };
        let has_name = has_name(|tid| of.threads.contains(tid));
        profile.finish(&has_name);
        if let Some(window) = profile.take_window(true) {
            write(&window.write(&has_name))?;
        }
        self.naming.into_iter().for_each(OwnThread::join);
        write(&profile.take_output())
    }
}

/// Returns which threads have better names in the trace: the process has a track, and so has each thread that
/// records.
fn has_name(is_traced: impl Fn(u32) -> bool) -> impl Fn(Task) -> bool {
    move |task| task.tid == task.pid || is_traced(task.tid)
}

/// Writes the samples of a window, and the functions of their frames. Returns the number of bytes.
pub(crate) fn put_window(
    of: Traced<'_>,
    window: Window,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let out = window.write(&has_name(|tid| of.threads.contains(tid)));
    write(&out)?;
    Ok(out.len() as u64)
}
