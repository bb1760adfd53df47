//! Samples into the session's sink, or into the history of a flight recorder.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hairline_formats::track_event::SequenceId;
use hairline_perf::Task;
use hairline_shm::{LossReason, Region, Tape, tape_entries};
use hairline_stacks::{Functions, Profile, WRITING};

use crate::on::base::{clock, stacks};
use crate::on::encode::{OWN_SEQUENCE, SAMPLES_TAPE};
use crate::on::session::naming::Naming;
use crate::on::session::rotation::{Addition, Finished};
use crate::on::session::sampling::events::Events;
use crate::on::session::sampling::source::{SampledBy, Source};
use crate::on::session::sampling::{Opened, SampledThreads, Wanted};
use crate::on::session::scheduling::Traced;
use crate::on::session::slot::Slot;
use crate::options::Format;
use crate::sampling::{OwnStacks, Sampling as Wished};

/// The tape of a session that keeps its last samples: a quarter of its ring, in these bounds. A sample of 30
/// frames has some 130 bytes, so 16 MiB are a minute of 20 busy threads at 99 samples a second.
const KEPT: [u64; 2] = [4 << 20, 16 << 20];

/// The tape of a session whose samples are in its output: it has the frames, some 6 bytes each.
const FRAMES: u32 = 1 << 20;

/// One stack in so many may lack callers, before that is said: the C library calls back now and then.
const FEW: u64 = 10;

/// So many stacks without callers are not worth a word: those of a program that ended soon are mostly of the
/// session's own thread, while it begins.
const HANDFUL: u64 = 20;

/// The longest time between two reads in a session without samples. Threads wake the reader when a quarter of
/// the ring is full.
const LONGEST_OF_EVENTS: Duration = Duration::from_millis(50);

/// The samples of a session, and the stacks of its events.
#[derive(Debug)]
pub(crate) struct Sampling {
    source: Option<Source>,
    events: Events,
    form: Form,
    /// Made for the first samples: a session without any looks nothing up, and asks the system for nothing.
    profile: Option<Profile>,
    tape: Option<OnTape>,
    /// Whether all stacks are those of frame pointers.
    follows: bool,
}

/// Samples as a tape has them. They are read where nothing waits for it: a full tape takes half a second.
#[derive(Debug)]
pub(crate) struct Unread {
    entries: Vec<u8>,
    functions: Functions,
    /// Where they end.
    end: u64,
}

impl Unread {
    fn is_empty(&self) -> bool {
        !tape_entries(&self.entries).any(hairline_stacks::is_sample)
    }

    /// Returns a part of a trace with them.
    fn part(&self, has_name: &dyn Fn(Task) -> bool) -> Vec<u8> {
        let entries: Vec<&[u8]> = tape_entries(&self.entries).collect();
        self.functions.window(&entries).map(|window| window.write(has_name)).unwrap_or_default()
    }
}

/// The tape of the session's region.
#[derive(Debug)]
struct OnTape {
    tape: Tape,
    /// Where the samples begin that no file has got.
    taken: u64,
    /// Where the last definitions end.
    repeated: u64,
}

impl OnTape {
    fn new(tape: Tape) -> Self {
        Self { tape, taken: 0, repeated: 0 }
    }

    /// Takes the profile's entries. Returns the number of those that found no room: the system has no memory.
    fn take(&mut self, profile: &mut Profile) -> u64 {
        let mut lost = 0;
        let mut append = |profile: &mut Profile, tape: &mut Tape| {
            profile.take_entries(|entry| lost += u64::from(!tape.append(entry)));
        };
        append(profile, &mut self.tape);
        let (_, len) = self.tape.filled();
        if self.tape.end() - self.repeated > len / 4 {
            profile.repeat();
            append(profile, &mut self.tape);
            self.repeated = self.tape.end();
        }
        lost
    }

    /// Returns the samples that no file has got.
    fn unread(&self, profile: &Profile) -> Unread {
        let (entries, functions) = (self.tape.read(self.taken), profile.functions());
        Unread { entries, functions, end: self.tape.end() }
    }

    /// As [`unread`](Self::unread), for a file. `None` if there is none.
    fn take_unread(&mut self, profile: &mut Profile) -> Option<Unread> {
        let unread = Some(self.unread(profile)).filter(|unread| !unread.is_empty())?;
        self.taken = self.tape.end();
        profile.repeat();
        self.take(profile);
        self.repeated = self.tape.end();
        Some(unread)
    }

    /// Whether the next samples would displace others soon.
    fn is_nearly_full(&self) -> bool {
        self.tape.end() - self.taken > self.tape.filled().1 / 2
    }
}

/// Returns the bytes of the tape of such a session's region.
pub(crate) fn tape_bytes(keeps_last: bool, ring: u64) -> u32 {
    let [least, most] = KEPT;
    if keeps_last { u32::try_from((ring / 4).clamp(least, most)).unwrap_or(FRAMES) } else { FRAMES }
}

/// What the profile of a session is like.
#[derive(Debug)]
struct Form {
    /// Those of its samples and of its stacks of events; `None` in FXT.
    sequences: Option<[SequenceId; 2]>,
    samples: Option<SampledBy>,
    keeps_last: bool,
}

impl Form {
    fn profile(&self) -> Profile {
        let profile = match self.sequences {
            None => Profile::fxt_within(),
            Some([samples, events]) => Profile::packets(samples).events_on(events),
        };
        let profile = match self.samples {
            Some(SampledBy::CpuTime(frequency)) => profile.frequency(frequency),
            Some(SampledBy::WallTime(frequency)) => profile.by_clock(frequency),
            None => profile,
        };
        let profile = profile.in_program();
        if self.keeps_last { profile.on_tape() } else { profile.beside_tape() }
    }
}

impl Slot<Sampling> {
    /// Begins to sample the process's threads, and to take the stacks of events.
    pub(crate) fn open(&self, wanted: Wanted, format: Format, region: &Arc<Region>) -> Opened {
        let (mut notes, mut source, mut no_samples, mut threads) = (Vec::new(), None, None, None);
        if let Some(samples) = wanted.samples {
            let by_clock = match &samples {
                Wished::CpuTime(_) | Wished::Kernel(_) | Wished::Signals(_) => None,
                Wished::WallTime(_, names) => Some(SampledThreads::new(names.clone())),
            };
            match Source::open(&samples, by_clock.clone(), wanted.stays_on, wanted.own) {
                Ok((opened, note)) => {
                    (source, threads) = (Some(opened), by_clock);
                    notes.extend(note);
                }
                Err(why) => no_samples = Some(why),
            }
        }
        // The option `stack:` of a macro asks for one in any session.
        let (events, note) = Events::open(wanted.of_slow_slices, wanted.own);
        notes.extend(note);
        let sequence = || SequenceId(region.new_sequence() + OWN_SEQUENCE.0);
        let form = Form {
            sequences: (format == Format::TrackEvent).then(|| [sequence(), sequence()]),
            samples: source.as_ref().map(Source::by),
            keeps_last: wanted.keeps_last,
        };
        let tape = Tape::of(region, SAMPLES_TAPE).map(OnTape::new);
        let by_kernel = matches!(source, Some(Source::Kernel { .. }));
        let follows = wanted.own == OwnStacks::ByFramePointers && !by_kernel;
        self.fill(Sampling { source, events, form, profile: None, tape, follows });
        Opened { no_samples, notes, threads }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        self.when_there(|sampling| sampling.source.iter().for_each(Source::moved_here));
    }

    /// Begins to take samples in: the session's own thread calls this once, before it does anything else.
    pub(crate) fn begin(&self) {
        self.when_there(|sampling| {
            // The program may write a snapshot already, and has made the profile.
            sampling.events.is_here();
            if let Some(source) = &mut sampling.source {
                source.begin(sampling.profile.get_or_insert_with(|| sampling.form.profile()));
            }
        });
    }

    /// Moves the samples of a flight recorder to its tape. Returns the longest time until the next call;
    /// `None` if the session records none.
    pub(crate) fn keep(&self, of: Traced<'_>) -> Option<Duration> {
        // A snapshot that has them reads them itself.
        self.is_open().then(|| {
            let kept = self.with(|sampling| {
                sampling.read(of, false);
                sampling.longest_sleep()
            });
            kept.unwrap_or(Duration::from_millis(10))
        })
    }

    /// Returns the samples of a flight recorder up to now, for a snapshot.
    pub(crate) fn window(&self, of: Traced<'_>) -> Option<Unread> {
        let window = self.when_there(|sampling| {
            if sampling.source.is_none() && !stacks::are_taken() {
                return None;
            }
            // What is older than this needs no record that may still come, once it was read twice.
            std::thread::sleep(Duration::from_nanos(WRITING));
            sampling.read(of, false);
            sampling.read(of, false);
            let (tape, profile) = (sampling.tape.as_ref(), sampling.profile.as_ref());
            tape.zip(profile).map(|(tape, profile)| tape.unread(profile))
        });
        window.flatten()
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
        if let Some(tape) = &mut self.tape {
            profile.note_named(&|tid| of.threads.contains(tid));
            let no_room = tape.take(profile);
            lost += if self.form.keeps_last { no_room } else { 0 };
        }
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

    /// Takes the samples since the last call, for the last one of the files that have ended. Returns what
    /// adds them, with the functions of their frames; until then a recovery puts them into the file after it.
    /// `is_traced`: the threads that record.
    pub(crate) fn end_file(
        &mut self,
        of: Traced<'_>,
        is_traced: impl Fn(u32) -> bool + Send + 'static,
    ) -> Option<Addition> {
        self.read(of, false);
        let (unread, region) = (self.take_unread()?, Arc::clone(of.region));
        Some(Box::new(move |files: &mut [Finished]| {
            files
                .iter_mut()
                .next_back()
                .iter_mut()
                .for_each(|file| file.add(&unread.part(&has_name(&is_traced))));
            region.forget_tape(SAMPLES_TAPE, unread.end);
        }))
    }

    /// Writes the samples since the last call. Those of a rotated output wait until its file ends, or until
    /// there are many. `naming` has the files before.
    pub(crate) fn write(
        &mut self,
        of: Traced<'_>,
        naming: &mut Naming,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.read(of, false);
        let is_nearly_full = self.form.keeps_last && self.tape.as_ref().is_some_and(OnTape::is_nearly_full);
        if is_nearly_full && let Some(unread) = self.take_unread() {
            write(&unread.part(&has_name(|tid| of.threads.contains(tid))))?;
            let region = Arc::clone(of.region);
            // Without room a recovery finds these twice.
            let _ = naming.add(move || region.forget_tape(SAMPLES_TAPE, unread.end));
        }
        let out = self.profile.as_mut().map(Profile::take_output).unwrap_or_default();
        if out.is_empty() { Ok(()) } else { write(&out) }
    }

    /// Returns the samples of a rotated output that no file has got.
    fn take_unread(&mut self) -> Option<Unread> {
        self.tape.as_mut()?.take_unread(self.profile.as_mut()?)
    }

    /// Returns what is to be said of the stacks at the session's end: why many of them lack callers.
    pub(crate) fn note(&self) -> Option<String> {
        let totals = self.profile.as_ref()?.totals();
        let all = totals.samples + totals.events;
        let why_cut = if self.follows {
            "because functions without frame pointers are in them: build all of the program with \
             -C force-frame-pointers=yes, or do not ask for frame pointers"
        } else {
            "because they are deeper than the bytes that are copied, or have functions of which nothing says \
             how to unwind them"
        };
        let parts = [
            (totals.too_deep, "because they have more than the 255 frames that are kept"),
            (totals.cut - totals.too_deep, why_cut),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > HANDFUL && count * FEW > all);
        let parts: Vec<String> =
            parts.map(|(count, why)| format!("{count} of {all} stacks lack callers, {why}")).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Ends the recording, and writes the rest and the functions of all frames. Returns what is to be said of
    /// them. All files before are whole.
    pub(crate) fn finish(
        mut self: Box<Self>,
        of: Traced<'_>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        self.stop();
        self.read(of, true);
        let has_name = has_name(|tid| of.threads.contains(tid));
        let Some(profile) = &mut self.profile else { return Ok(None) };
        profile.finish(&has_name);
        if let Some(tape) = &mut self.tape {
            tape.take(profile);
        }
        let out = profile.take_output();
        if self.form.keeps_last
            && let Some(unread) = self.take_unread()
        {
            write(&unread.part(&has_name))?;
            of.region.forget_tape(SAMPLES_TAPE, unread.end);
        }
        write(&out)?;
        Ok(self.note())
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
    window: Unread,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let out = window.part(&has_name(|tid| of.threads.contains(tid)));
    write(&out)?;
    Ok(out.len() as u64)
}
