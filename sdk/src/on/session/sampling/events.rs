//! The stacks of events, which threads take themselves.

use hairline_perf::Stamp;
use hairline_stacks::{Profile, SampledAt};

use crate::on::base::platform::process;
use crate::on::base::stacks::{self, Reader};
use crate::on::session::sampling::looks::{Looks, New};
use crate::sampling::OwnStacks;

/// The stacks of a session's events.
#[derive(Debug)]
pub(super) struct Events {
    reader: Reader,
    looks: Looks,
    /// Losses that were returned.
    lost: u64,
}

impl Events {
    /// Begins to take stacks. `watches`: also those of slices that become slow. Returns also what is to be said.
    pub(super) fn open(watches: bool, own: OwnStacks) -> (Self, Option<String>) {
        let mut reader = Reader::begin(own);
        let note = watches.then(|| reader.watch().err()).flatten().map(|e| {
            let advice = hairline_sampler::advice(&e);
            format!("a slow slice has a stack at its end, and none at its limit: {e}; {advice}")
        });
        (Self { reader, looks: Looks::default(), lost: 0 }, note)
    }

    /// Makes the calling thread the one that is woken when there are many stacks.
    pub(super) fn is_here(&mut self) {
        self.reader.is_here();
    }

    /// Reads the stacks since the last call into `profile`. Returns the number of lost ones.
    pub(super) fn read(&mut self, profile: &mut Profile, is_last: bool) -> u64 {
        if !stacks::are_taken() {
            return 0; // nothing is looked up for a session without stacks
        }
        let (pid, mut new) = (process::id(), New::default());
        self.reader.read(|(tid, time), sample| {
            let stamp = Stamp { pid, tid, time, ..Stamp::default() };
            hairline_sampler::as_record(sample, |record| {
                new.add(profile, &record, stamp);
                profile.add(&record, stamp, SampledAt::Events);
            });
        });
        self.looks.look(profile, new, is_last);
        let all = self.reader.lost();
        all - std::mem::replace(&mut self.lost, all)
    }

    /// Takes no more stacks. What was taken can still be read.
    pub(super) fn stop(&mut self) {
        self.reader.stop();
    }
}
