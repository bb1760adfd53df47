//! Heap profiles.

use hairline_formats::DecodeError;
use hairline_formats::track_event::fields::trace_packet;
use hairline_formats::track_event::{HeapDumps, Packet};

use crate::HeapSums;
use crate::track_event::read::pending::Pending;
use crate::track_event::read::stacks::CurrentStack;
use crate::track_event::read::state::State;

impl State {
    /// Queues the sums of dumps. Those of other tools may have their call stacks in the packet itself, which
    /// no item has.
    pub(super) fn heap_dumps(
        &mut self,
        index: usize,
        dumps: &HeapDumps<'_>,
        packet: &Packet<'_>,
        time: Option<i64>,
    ) -> Result<(), DecodeError> {
        let mut sums = std::mem::take(&mut self.sample.sums);
        sums.clear();
        let mut are_known = time.is_some();
        for dump in dumps.clone() {
            let (dump, samples) = dump?;
            for sample in samples {
                let sample = sample?;
                are_known &= self.has_stack(index, sample.callstack);
                sums.push((dump.pid, sample));
            }
        }
        self.sample.sums = sums;
        let Some(time) = time.filter(|_| are_known) else {
            self.foreign(trace_packet::PROFILE_PACKET, packet);
            return Ok(());
        };
        (self.sample.time, self.sample.sequence) = (time, index);
        self.pending.extend((0..self.sample.sums.len()).map(Pending::Heap));
        Ok(())
    }

    /// Makes the call stack of these sums the current one.
    pub(super) fn select_sums(&mut self, index: usize) {
        self.stack = CurrentStack::Interned(self.sample.sequence, self.sample.sums[index].1.callstack);
    }

    pub(super) fn current_sums(&self, index: usize) -> HeapSums<'_> {
        let (pid, sums) = self.sample.sums[index];
        HeapSums {
            time: self.sample.time,
            pid: u64::from(pid),
            key: (self.sample.sequence as u64, sums.callstack),
            allocated: sums.allocated,
            freed: sums.freed,
            stack: self,
        }
    }
}
