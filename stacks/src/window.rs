//! Samples of a time, and a part of a trace with them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use hairline_formats::track_event::{PerfSample, SampledBy};
use hairline_perf::Task;

use crate::fxt::Records;
use crate::order::SampledAt;
use crate::packets::Packets;
use crate::process::Place;
use crate::symbols::Known;
use crate::tape::{self, Kept, Read};

/// The samples that the entries of a tape have. Nothing of the recording waits while it is written, which
/// takes as long as it takes to read the debug information of functions that were not looked up before.
#[derive(Debug)]
pub struct Window {
    read: Read,
    known: Arc<Known>,
}

/// Functions that were looked up: a window has them at once.
#[derive(Clone, Debug, Default)]
pub struct Functions(pub(crate) Arc<Known>);

impl Functions {
    /// Reads entries as [`Window::read`].
    #[must_use]
    pub fn window(&self, entries: &[&[u8]]) -> Option<Window> {
        Some(Window { read: tape::read(entries)?, known: Arc::clone(&self.0) })
    }
}

impl Window {
    /// Reads the entries of a [`Profile`](crate::Profile), also damaged ones. `None`: nothing was recorded.
    #[must_use]
    pub fn read(entries: &[&[u8]]) -> Option<Self> {
        Functions::default().window(entries)
    }

    /// Returns the number of its samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.read.samples.len() as u64
    }

    /// Returns the threads of [`Profile::note_named`](crate::Profile::note_named).
    #[must_use]
    pub fn named(&self) -> HashSet<u32> {
        self.read.named.iter().copied().collect()
    }

    /// Returns the samples, the functions of their frames and the names of their threads, as a part of a
    /// trace. A thread that `has_name` gets none, and neither does the process of a first thread that has.
    #[must_use]
    pub fn write(self, has_name: &dyn Fn(Task) -> bool) -> Vec<u8> {
        let Read { form, files, mut table, mut names, samples, frames, .. } = self.read;
        let mut out = Vec::new();
        let mut packets = Packets::new(form.sequence, form.by);
        let mut events = Packets::new(form.events, SampledBy::Events);
        let mut records = form.is_fxt.then(Records::within);
        let mut frames: BTreeSet<u32> = frames.into_iter().collect();
        for Kept { time, sample, stack, at } in samples {
            names.sampled(sample.pid, sample.tid, time);
            frames.extend(stack.iter().copied());
            let number = table.stacks.number(&stack);
            let sample = PerfSample { callstack: u64::from(number) + 1, ..sample };
            if let Some(records) = records.as_mut().filter(|_| at == SampledAt::CpuTime) {
                let places: Vec<Place> =
                    stack.iter().rev().filter_map(|frame| table.place(*frame, &files)).collect();
                records.sample(&files, &table, time, &sample, &places);
            }
            let packets = if at == SampledAt::Events { &mut events } else { &mut packets };
            packets.sample(&mut out, &files, &table, time, &sample);
        }
        names.write(&mut out, form.sequence, has_name);
        let frames = frames.iter().filter_map(|frame| table.frames.values().get(*frame as usize));
        self.known.write(&mut out, form.sequence, &files, &table, frames);
        match &mut records {
            Some(records) => records.take(&out),
            None => out,
        }
    }
}
