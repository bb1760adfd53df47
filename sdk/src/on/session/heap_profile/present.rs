//! Samples of allocations into the session's sink.

use std::io;
use std::time::Duration;

use hairline_formats::track_event::SequenceId;
use hairline_formats::track_event::fields::clock as id;
use hairline_stacks::{Allocated, HeapProfile as Profile};

use crate::heap_profile::HeapProfile;
use crate::on::base::heap;
use crate::on::base::heap::profile::Reader;
use crate::on::base::lock::Mutex;
use crate::on::base::platform;
use crate::on::base::platform::process;
use crate::on::encode::OWN_SEQUENCE;
use crate::options::Format;

/// The longest time between two reads. The threads wake the reader when a quarter of the ring is full.
const LONGEST: Duration = Duration::from_millis(50);
/// The same if peaks are looked for.
const LONGEST_FOR_PEAKS: Duration = Duration::from_millis(10);

/// The heap profile of a session, on its drain thread.
#[derive(Debug)]
pub(crate) struct Profiling {
    reader: Reader,
    profile: Profile,
    /// The distance of two peaks that are written.
    step: Option<u64>,
    /// The live bytes from which the next peak is written.
    next_peak: u64,
}

/// What the drain thread needs to begin.
#[derive(Debug)]
struct Opened {
    reader: Reader,
    settings: HeapProfile,
    /// The sequence of the packets; `None` in FXT.
    sequence: Option<SequenceId>,
}

/// Where a session keeps its profile until its drain thread has it.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Box<Opened>>>);

impl Slot {
    /// Begins to sample allocations.
    ///
    /// # Errors
    /// A sentence that says why the session has no profile.
    pub(crate) fn open(
        &self,
        settings: HeapProfile,
        format: Format,
        sequence: impl FnOnce() -> u32,
    ) -> Result<(), String> {
        let reader =
            Reader::begin(settings.every).map_err(|e| format!("the heap profile is not recorded: {e}"))?;
        let sequence = (format == Format::TrackEvent).then(|| SequenceId(sequence() + OWN_SEQUENCE.0));
        let mut opened = Some(Box::new(Opened { reader, settings, sequence }));
        if let Some(mut slot) = self.0.lock_unless_lost() {
            std::mem::swap(&mut *slot, &mut opened); // nothing is freed under the lock
        }
        Ok(())
    }

    /// Takes the profile, for good. The drain thread calls this.
    pub(crate) fn close(&self) -> Option<Box<Profiling>> {
        let Opened { reader, settings, sequence } = *self.0.lock_unless_lost()?.take()?;
        reader.is_here();
        let (pid, every) = (process::id(), settings.every);
        let profile = match sequence {
            Some(sequence) => Profile::packets(sequence, pid, every),
            None => Profile::fxt_within(pid, every),
        };
        let step = settings.peak;
        Some(Box::new(Profiling { reader, profile, step, next_peak: step.unwrap_or(u64::MAX) }))
    }
}

impl Profiling {
    /// Returns the longest time until the next call of [`write`](Self::write).
    pub(crate) fn longest_sleep(&self) -> Duration {
        if self.step.is_some() { LONGEST_FOR_PEAKS } else { LONGEST }
    }

    fn read(&mut self) {
        let allocated =
            |profile: &mut Profile, [slot, bytes, count]: [u64; 3], registers: &[u64], stack: &[u8]| {
                profile.allocated(&Allocated { slot: slot as u32, bytes, count, registers, stack });
            };
        self.reader.read(&mut self.profile, allocated, Profile::freed);
    }

    fn dump(&mut self) {
        let clocks = platform::clocks();
        let time = |of| clocks.iter().find(|(clock, _)| *clock == of).map_or(0, |(_, time)| *time);
        let has_losses = self.reader.lost()[0] > 0;
        self.profile.dump(time(id::BOOTTIME), time(id::MONOTONIC_COARSE), has_losses);
    }

    /// Takes the samples since the last call in. Writes new stacks, and the profile if there is a new peak,
    /// with the functions of its frames: a killed process has no later moment for them.
    pub(crate) fn write(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.read();
        let live = self.profile.totals().live;
        if live >= self.next_peak {
            self.next_peak = live.saturating_add(self.step.unwrap_or(u64::MAX));
            self.dump();
            write(&self.profile.take_output())?;
            self.profile.write_functions();
        }
        let out = self.profile.take_output();
        if out.is_empty() { Ok(()) } else { write(&out) }
    }

    /// Ends the recording, and writes the rest, the profile and the functions of all frames. Returns what is
    /// to be said of it.
    pub(crate) fn finish(
        mut self: Box<Self>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        self.reader.stop();
        self.read();
        self.dump();
        self.profile.write_functions();
        write(&self.profile.take_output())?;
        Ok(self.note())
    }

    fn note(&self) -> Option<String> {
        if heap::is_unannounced() {
            return Some(
                "the heap profile is empty: the program's allocator is no `hairline::Heap`".to_owned(),
            );
        }
        let ([lost, bytes], totals) = (self.reader.lost(), self.profile.totals());
        let lost_for =
            format!("found no room, and are in no sum: they stand for {bytes} bytes; sample less often");
        let parts = [
            (lost, &*lost_for),
            (totals.others, "have no stack, because there are too many different ones"),
            (
                totals.cut,
                "have a stack without its root, because it is deeper than the bytes that were copied",
            ),
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
