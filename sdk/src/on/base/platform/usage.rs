//! What this process uses of the machine.

use crate::on::base::platform;
use crate::process_counters::{Group, ProcessCounters};

/// The numbers that were asked for, and that the system tells; `None` for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of memory in use.
    pub(crate) rss: Option<u64>,
    /// CPU time of all threads, in ns.
    pub(crate) cpu: Option<u64>,
    pub(crate) faults: Option<u64>,
    /// Page faults that read from a disk.
    pub(crate) major_faults: Option<u64>,
    /// Times that a thread gave its core up, to wait for something.
    pub(crate) waits: Option<u64>,
    /// Times that a thread had to give its core up to another one.
    pub(crate) preemptions: Option<u64>,
    pub(crate) threads: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// Bytes read from disks.
    pub(crate) read: Option<u64>,
    /// Bytes written to disks.
    pub(crate) written: Option<u64>,
    /// Counters of the hardware, which the session has: cycles, instructions and cache misses in user mode.
    pub(crate) hardware: [Option<u64>; 3],
}

impl Usage {
    pub(crate) fn now(wanted: ProcessCounters) -> Self {
        let mut usage = Self::default();
        let resources = platform::resources();
        if let Some(all) = resources.filter(|_| wanted.has(Group::Cpu)) {
            usage.cpu = all.cpu;
        }
        if let Some(all) = resources.filter(|_| wanted.has(Group::Faults)) {
            (usage.major_faults, usage.faults) = (all.major_faults, all.faults);
        }
        if let Some(all) = resources.filter(|_| wanted.has(Group::Switches)) {
            (usage.waits, usage.preemptions) = (all.waits, all.preemptions);
        }
        if wanted.has(Group::Rss) {
            usage.rss = platform::rss();
        }
        if wanted.has(Group::Threads) {
            usage.threads = platform::threads();
        }
        if wanted.has(Group::Files) {
            usage.open_files = platform::open_files();
        }
        if wanted.has(Group::Io) {
            (usage.read, usage.written) = platform::disk_bytes();
        }
        usage
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_it_uses() {
        let all = ProcessCounters::parse("counters", "all").unwrap();
        let before = Usage::now(all);
        let file = std::fs::File::open("/proc/self/stat").expect("a file");
        // More than what other tests free meanwhile.
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = std::thread::scope(|scope| scope.spawn(|| Usage::now(all)).join().expect("its end"));
        drop((file, touched));
        assert!(before.rss > Some(100 << 10) && before.open_files >= Some(3), "{before:?}");
        assert!(after.rss >= before.rss.map(|rss| rss + (16 << 20)), "{before:?} {after:?}");
        assert!(after.threads >= Some(2) && after.faults >= before.faults && after.cpu >= before.cpu);
        assert!(after.written >= before.written && after.read.is_some(), "{before:?} {after:?}");
        let rss = Usage::now(ProcessCounters::parse("counters", "rss").unwrap());
        assert_eq!(rss, Usage { rss: rss.rss, ..Usage::default() }, "no more than was asked for");
    }
}
