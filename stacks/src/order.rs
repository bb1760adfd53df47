//! Puts records of several rings in the order of their times.
//!
//! The rings are read one after the other, so a mapping may be read after the samples in it. A record waits
//! until all rings have been read once more: then no older one can follow.

use hairline_perf::{Record, Stamp, Task};

use crate::file::Inode;

/// The longest time between a record's own time and its appearance in a ring, in nanoseconds. The kernel
/// takes the time before it copies the stack.
pub const WRITING: u64 = 1_000_000;

/// What the samples of a ring are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledAt {
    /// The thread runs.
    CpuTime,
    /// Some time has passed, whether the thread runs or sleeps.
    WallTime,
    /// The thread leaves its processor.
    Switches,
    /// The thread records an event, or is in a slice that has become slow.
    Events,
}

/// A record that has left its ring.
#[derive(Debug)]
pub(crate) enum Happening {
    Map {
        pid: u32,
        start: u64,
        size: u64,
        offset: u64,
        path: Vec<u8>,
        inode: Inode,
    },
    Fork {
        parent: Task,
        child: Task,
    },
    Exit {
        task: Task,
    },
    Comm {
        task: Task,
        is_exec: bool,
        name: Vec<u8>,
    },
    Sample {
        address: u64,
        /// Native words.
        call_chain: Vec<u8>,
        registers: Vec<u64>,
        stack: Vec<u8>,
        at: SampledAt,
        earlier: (u32, u64),
    },
    Lost {
        records: u64,
        at: SampledAt,
    },
}

impl Happening {
    /// Copies the record, if it is of use here. `at`: what the samples of its ring are taken for.
    pub(crate) fn of(record: &Record<'_>, at: SampledAt) -> Option<Self> {
        Some(match record {
            Record::Mmap(m) => Self::Map {
                pid: m.task.pid,
                start: m.address,
                size: m.size,
                offset: m.offset,
                path: m.path.to_owned(),
                inode: Inode { device: m.device, number: m.inode },
            },
            Record::Fork { child, parent, .. } => Self::Fork { parent: *parent, child: *child },
            Record::Exit { task, .. } => Self::Exit { task: *task },
            Record::Comm { task, is_exec, name } => {
                Self::Comm { task: *task, is_exec: *is_exec, name: (*name).to_owned() }
            }
            Record::Sample { address, registers, stack, call_chain, .. } => Self::Sample {
                address: *address,
                call_chain: call_chain.bytes().to_owned(),
                registers: registers.iter().collect(),
                stack: (*stack).to_owned(),
                at,
                earlier: (0, 0),
            },
            Record::Lost { records } => Self::Lost { records: *records, at },
            _ => return None,
        })
    }
}

/// The records that wait.
#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: Vec<(Stamp, Happening)>,
    /// The start of the last reading of all rings.
    read_at: u64,
}

impl Order {
    pub(crate) fn add(&mut self, stamp: Stamp, happening: Happening) {
        self.waiting.push((stamp, happening));
    }

    /// Returns the records that no older one can follow, after a reading of all rings that began at `start`.
    pub(crate) fn settled(&mut self, start: u64) -> Vec<(Stamp, Happening)> {
        let until = self.read_at.saturating_sub(WRITING);
        self.read_at = start;
        // Stable: records of one ring keep their order at equal times.
        self.waiting.sort_by_key(|(stamp, _)| stamp.time);
        let settled = self.waiting.partition_point(|(stamp, _)| stamp.time < until);
        let later = self.waiting.split_off(settled);
        std::mem::replace(&mut self.waiting, later)
    }

    /// Returns all records that wait.
    pub(crate) fn rest(&mut self) -> Vec<(Stamp, Happening)> {
        self.read_at = u64::MAX;
        self.settled(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> (Stamp, Happening) {
        (Stamp { time, ..Stamp::default() }, Happening::Lost { records: time, at: SampledAt::CpuTime })
    }

    fn times(of: &[(Stamp, Happening)]) -> Vec<u64> {
        of.iter().map(|(stamp, _)| stamp.time).collect()
    }

    #[test]
    fn a_record_waits_until_all_rings_have_been_read_after_it() {
        let mut order = Order::default();
        for time in [30_000_000, 10_000_000] {
            let (stamp, happening) = at(time);
            order.add(stamp, happening);
        }
        assert!(order.settled(20_000_000).is_empty());
        let (stamp, happening) = at(15_000_000); // of the ring that was read first
        order.add(stamp, happening);
        assert_eq!(times(&order.settled(40_000_000)), [10_000_000, 15_000_000]);
        assert_eq!(times(&order.rest()), [30_000_000]);
    }
}
