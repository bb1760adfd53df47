//! What this process uses of the machine.

#![allow(unsafe_code)] // getrusage, sysconf

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
}

impl Usage {
    pub(crate) fn now(wanted: ProcessCounters) -> Self {
        let mut usage = Self::default();
        let resources = resources();
        let number = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        if let Some(all) = resources.filter(|_| wanted.has(Group::Cpu)) {
            let time = |t: libc::timeval| number(t.tv_sec) * 1_000_000_000 + number(t.tv_usec) * 1000;
            usage.cpu = Some(time(all.ru_utime) + time(all.ru_stime));
        }
        if let Some(all) = resources.filter(|_| wanted.has(Group::Faults)) {
            usage.major_faults = Some(number(all.ru_majflt));
            usage.faults = Some(number(all.ru_minflt) + number(all.ru_majflt));
        }
        if let Some(all) = resources.filter(|_| wanted.has(Group::Switches)) {
            usage.waits = Some(number(all.ru_nvcsw));
            usage.preemptions = Some(number(all.ru_nivcsw));
        }
        // The files of the calling thread: those of the process are empty once its first thread has ended.
        if wanted.has(Group::Rss) {
            let pages = |text: &str| text.split(' ').nth(1)?.parse().ok();
            usage.rss = number_in("/proc/thread-self/statm", pages).map(|pages| pages * page_size());
        }
        if wanted.has(Group::Threads) {
            // The program's name is in parentheses, and may contain some. `num_threads` is field 20.
            let threads = |text: &str| text.rsplit(") ").next()?.split(' ').nth(17)?.parse().ok();
            usage.threads = number_in("/proc/thread-self/stat", threads);
        }
        if wanted.has(Group::Files) {
            // Without the one that lists them.
            let files = std::fs::read_dir("/proc/thread-self/fd").ok();
            usage.open_files = files.map(|files| files.count().saturating_sub(1) as u64);
        }
        if wanted.has(Group::Io) {
            let of = |name: &'static str| {
                let number =
                    move |text: &str| text.lines().find_map(|line| line.strip_prefix(name))?.parse().ok();
                number_in("/proc/self/io", number)
            };
            usage.read = of("read_bytes: ");
            usage.written = of("write_bytes: ");
        }
        usage
    }
}

fn resources() -> Option<libc::rusage> {
    // SAFETY: a struct of integers, for which 0 is a value.
    let mut all: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `rusage`.
    (unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut all) } == 0).then_some(all)
}

/// Returns the number that `find` finds in a file.
fn number_in(path: &str, find: impl FnOnce(&str) -> Option<u64>) -> Option<u64> {
    find(&std::fs::read_to_string(path).ok()?)
}

fn page_size() -> u64 {
    // SAFETY: takes a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_it_uses() {
        let all = ProcessCounters::parse("counters", "all").unwrap();
        let before = Usage::now(all);
        let file = std::fs::File::open("/proc/self/stat").expect("a file");
        let touched = vec![1_u8; 8 << 20];
        let after = std::thread::scope(|scope| scope.spawn(|| Usage::now(all)).join().expect("its end"));
        drop((file, touched));
        assert!(before.rss > Some(100 << 10) && before.open_files >= Some(3), "{before:?}");
        assert!(after.rss >= before.rss.map(|rss| rss + (6 << 20)), "{before:?} {after:?}");
        assert!(after.threads >= Some(2) && after.faults >= before.faults && after.cpu >= before.cpu);
        assert!(after.written >= before.written && after.read.is_some(), "{before:?} {after:?}");
        let rss = Usage::now(ProcessCounters::parse("counters", "rss").unwrap());
        assert_eq!(rss, Usage { rss: rss.rss, ..Usage::default() }, "no more than was asked for");
    }
}
