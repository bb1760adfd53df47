//! Samples of allocations into the session's sink, and into the snapshots of a flight recorder.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hairline_formats::track_event::SequenceId;
use hairline_formats::track_event::fields::clock as id;
use hairline_sampler::Sample;
use hairline_shm::Region;
use hairline_stacks::{Allocated, HeapMoment, HeapProfile as Profile, HeapWriter, KeptAt};

use crate::heap_profile::HeapProfile;
use crate::on::base::heap::profile::Reader;
use crate::on::base::platform;
use crate::on::base::platform::process;
use crate::on::encode::OWN_SEQUENCE;
use crate::on::session::heap_profile::Parts;
use crate::on::session::heap_profile::kept::OnTape;
use crate::on::session::rotation::{Addition, Finished};
use crate::on::session::slot::Slot;
use crate::options::Format;
use crate::sampling::OwnStacks;

/// The longest time between two reads. The threads wake the reader when a quarter of the ring is full.
const LONGEST: Duration = Duration::from_millis(50);
/// The same if peaks are looked for.
const LONGEST_FOR_PEAKS: Duration = Duration::from_millis(10);

pub(crate) use crate::on::session::heap_profile::kept::TAPE_BYTES;

/// The heap profile of a session.
#[derive(Debug)]
pub(crate) struct Profiling {
    reader: Reader,
    own: OwnStacks,
    profile: Profile,
    /// Of the output's present file.
    writer: HeapWriter,
    /// The distance of two peaks that are noted.
    step: Option<u64>,
    /// The live bytes from which the next peak is noted.
    next_peak: u64,
    /// The last peak of a flight recorder, which is the highest.
    peak: Option<Arc<HeapMoment>>,
    tape: Option<OnTape>,
}

/// The heap profile of a flight recorder at the moment of a snapshot.
#[derive(Debug)]
pub(crate) struct Window {
    writer: HeapWriter,
    peak: Option<Arc<HeapMoment>>,
    now: HeapMoment,
}

impl Slot<Profiling> {
    /// Begins to sample allocations.
    ///
    /// # Errors
    /// A sentence that says why the session has no profile.
    pub(crate) fn open(
        &self,
        (HeapProfile { every, peak }, own): (HeapProfile, OwnStacks),
        parts: Parts,
        format: Format,
        region: &Arc<Region>,
        sequence: impl FnOnce() -> u32,
    ) -> Result<(), String> {
        let reader =
            Reader::begin(every, own).map_err(|e| format!("the heap profile is not recorded: {e}"))?;
        let pid = process::id();
        let allocator = file_of_the_allocator();
        let profile = match format {
            Format::TrackEvent => {
                Profile::packets(SequenceId(sequence() + OWN_SEQUENCE.0), pid, every, &allocator)
            }
            Format::Fxt => Profile::fxt_within(pid, every, &allocator),
        };
        let profile = if parts == Parts::Several { profile.closing_files() } else { profile };
        let writer = profile.writer();
        let next_peak = peak.unwrap_or(u64::MAX);
        let tape = OnTape::of(region);
        self.fill(Profiling { reader, own, profile, writer, step: peak, next_peak, peak: None, tape });
        Ok(())
    }

    /// Makes the calling thread, the session's own, the one that is woken when there are many samples.
    pub(crate) fn begin(&self) {
        self.when_there(|profiling| profiling.reader.is_here()); // the program may write a snapshot already
    }

    /// Takes in the samples of a flight recorder. Returns the longest time until the next call; `None` if the
    /// session has no profile.
    pub(crate) fn keep(&self) -> Option<Duration> {
        // A snapshot that has the profile reads the samples itself.
        self.is_open().then(|| {
            let kept = self.with(|profiling| {
                profiling.keep();
                profiling.longest_sleep()
            });
            kept.unwrap_or(LONGEST_FOR_PEAKS)
        })
    }

    /// Returns the profile of a flight recorder up to now, for a snapshot.
    pub(crate) fn window(&self) -> Option<Window> {
        self.when_there(|profiling| {
            profiling.keep();
            let Profiling { profile, peak, .. } = &*profiling;
            Window { writer: profile.writer(), peak: peak.clone(), now: profiling.now() }
        })
    }
}

impl Profiling {
    /// Returns the longest time until the next read.
    pub(crate) fn longest_sleep(&self) -> Duration {
        if self.step.is_some() { LONGEST_FOR_PEAKS } else { LONGEST }
    }

    /// Takes in the samples since the last call. Returns the profile if there is a new peak.
    fn read(&mut self) -> Option<HeapMoment> {
        let allocated = |profile: &mut Profile, [slot, bytes, count]: [u64; 3], sample: &Sample<'_>| {
            let Sample { registers, call_chain, stack } = *sample;
            profile.allocated(&Allocated { slot: slot as u32, bytes, count, call_chain, registers, stack })
        };
        self.reader.read(&mut self.profile, allocated, Profile::freed);
        let live = self.profile.totals().live;
        if live < self.next_peak {
            return None;
        }
        self.next_peak = live.saturating_add(self.step.unwrap_or(u64::MAX));
        Some(self.now())
    }

    fn now(&self) -> HeapMoment {
        let KeptAt { boottime, coarse, has_losses, .. } = self.moment();
        self.profile.at(boottime, coarse, has_losses)
    }

    fn moment(&self) -> KeptAt {
        let clocks = platform::clocks();
        let time = |of| clocks.iter().find(|(clock, _)| *clock == of).map_or(0, |(_, time)| *time);
        KeptAt {
            boottime: time(id::BOOTTIME),
            coarse: time(id::MONOTONIC_COARSE),
            has_losses: self.reader.lost()[0] > 0,
            progress: self.writer.progress(),
        }
    }

    fn keep(&mut self) {
        if let Some(peak) = self.read() {
            self.peak = Some(Arc::new(peak));
        }
        self.keep_for_recovery();
    }

    /// Writes to the region's tape what has changed, if it is time.
    fn keep_for_recovery(&mut self) {
        let progress = self.writer.progress();
        if self.tape.as_ref().is_some_and(|tape| tape.is_due(&self.profile, progress)) {
            let moment = self.moment();
            self.tape.take_if(|tape| !tape.write(&mut self.profile, moment));
        }
    }

    /// Takes the samples since the last call in. Writes the profile if there is a new peak, with the
    /// functions of its frames: a killed process has no later moment for them.
    pub(crate) fn write(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(peak) = self.read() {
            write(&self.writer.dump(&peak))?;
            write_some(&self.writer.functions(&peak), write)?;
        }
        self.keep_for_recovery();
        Ok(())
    }

    /// Adds the profile to the files that have ended since the last call, each of which is whole then.
    /// Returns what adds the functions.
    pub(crate) fn end_files(&mut self, files: &mut [Finished]) -> Addition {
        // A peak that is found only now is in this dump.
        let now = self.read().unwrap_or_else(|| self.now());
        let mut writers = Vec::with_capacity(files.len());
        for file in files {
            let mut writer = std::mem::replace(&mut self.writer, self.profile.writer());
            file.add(&writer.dump(&now));
            writers.push(writer);
        }
        self.keep_for_recovery();
        Box::new(move |files| {
            files.iter_mut().zip(writers).for_each(|(file, mut writer)| file.add(&writer.functions(&now)));
        })
    }

    /// Ends the recording, and writes the profile and the functions of all frames. Returns what is to be said
    /// of it.
    pub(crate) fn finish(
        mut self: Box<Self>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        self.reader.stop();
        let now = self.read().unwrap_or_else(|| self.now());
        write(&self.writer.dump(&now))?;
        write_some(&self.writer.functions(&now), write)?;
        Ok(self.note())
    }

    /// Returns what is to be said of the profile at the session's end.
    pub(crate) fn note(&self) -> Option<String> {
        let ([lost, bytes], totals) = (self.reader.lost(), self.profile.totals());
        let lost_for =
            format!("found no room, and are in no sum: they stand for {bytes} bytes; sample less often");
        let without_root = match self.own {
            OwnStacks::Copied => {
                "have a stack without its root, because it is deeper than the bytes that were copied; frame \
                 pointers, where the program has them, lead to any root: HAIRLINE_FRAME_POINTERS=on"
            }
            OwnStacks::ByFramePointers => {
                "have a stack without some callers, because functions without frame pointers are in it"
            }
        };
        let parts = [
            (lost, &*lost_for),
            (totals.others, "have no stack, because there are too many different ones"),
            (totals.cut, without_root),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(samples, _)| *samples > 0)
            .map(|(samples, what)| format!("{samples} {what}"))
            .collect();
        let all = totals.samples + lost;
        (!parts.is_empty()).then(|| format!("of the heap profile's {all} samples, {}", parts.join("; ")))
    }
}

/// The source file of `Heap`, or the end of its path, as debug information has it.
fn file_of_the_allocator() -> String {
    let (source, this) = (file!(), "on/session/heap_profile/present.rs");
    format!("{}heap.rs", source.strip_suffix(this).unwrap_or_default())
}

fn write_some(bytes: &[u8], mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    if bytes.is_empty() { Ok(()) } else { write(bytes) }
}

/// Writes the profile of a snapshot: at the highest peak and at its moment, with the functions of all frames.
/// Returns the number of bytes.
pub(crate) fn put_window(window: Window, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
    let Window { mut writer, peak, now } = window;
    let mut bytes = 0;
    let mut put = |part: &[u8]| {
        bytes += part.len() as u64;
        write(part)
    };
    if let Some(peak) = peak {
        put(&writer.dump(&peak))?;
    }
    put(&writer.dump(&now))?;
    put(&writer.functions(&now))?;
    Ok(bytes)
}
