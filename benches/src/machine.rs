//! The machine: pinning, the bare clock, and facts of the kernel about threads and memory.

#![allow(unsafe_code)] // rdtsc, sched_setaffinity and getrusage

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The clock read that each event needs: the floor.
#[inline(always)]
pub fn clock_read() {
    black_box(ticks());
}

/// The value of the bare clock, in its own unit.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has rdtsc, which touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }
}

/// The ns of one of the [`ticks`].
#[must_use]
pub fn tick_ns() -> f64 {
    static TICK: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *TICK.get_or_init(|| {
        let (start, first) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(50));
        start.elapsed().as_nanos() as f64 / (ticks() - first) as f64
    })
}

/// Runs `f` on a thread of its own, which `f` may pin. The caller is not pinned, and neither are threads that
/// it starts.
pub fn aside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let outcome = std::thread::scope(|scope| scope.spawn(f).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The cores that the calling thread may run on.
#[must_use]
pub fn cores() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set; the call writes only `set`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

/// Pins the calling thread to one core. The threads that it has started before are not pinned.
pub fn pin(core: usize) {
    // SAFETY: an all-zero cpu_set_t is an empty set, `CPU_SET` checks the number, the call reads only `set`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// [`pin`]s the calling thread to the machine's last core.
pub fn pin_to_last_core() {
    if let Some(core) = cores().pop() {
        pin(core);
    }
}

/// The page faults of the calling thread so far, without those that needed the disk.
#[must_use]
pub fn page_faults() -> u64 {
    // SAFETY: an all-zero rusage is a valid one, and the call writes only that.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// The CPU time of the calling thread so far, in ns.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A thread of this process.
#[derive(Debug)]
pub struct Thread(PathBuf);

impl Thread {
    /// The drain thread of the running session. `None` without a session, and before the thread runs.
    #[must_use]
    pub fn drain_thread() -> Option<Self> {
        let mut tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten().map(|task| Self(task.path()));
        tasks.find(|task| task.read("comm").trim() == "hairline-writer")
    }

    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        Self(PathBuf::from("/proc/thread-self"))
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// The CPU time so far, in ns. Waits a moment first, so that an idle thread goes to sleep: until then the
    /// kernel's count can be a tick behind.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        std::thread::sleep(Duration::from_millis(20));
        self.read("schedstat").split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }

    /// The number of times that the thread has gone to sleep.
    #[must_use]
    pub fn sleeps(&self) -> u64 {
        let status = self.read("status");
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    }
}

/// Makes the allocator give freed memory back to the system. Otherwise that memory would hide the next
/// allocations.
pub fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The resident memory of this process in bytes: all of it, and the part in files and shared memory.
#[must_use]
pub fn resident() -> (u64, u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split_whitespace().skip(1).map(|n| n.parse::<u64>().unwrap_or(0) * 4096);
    (pages.next().unwrap_or(0), pages.next().unwrap_or(0))
}

/// The bytes of the first core's L2 cache, or a usual size if the system does not tell.
#[must_use]
pub fn l2_cache() -> usize {
    let told = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
    told.and_then(|size| size.trim().strip_suffix('K')?.parse::<usize>().ok())
        .map_or(1 << 20, |kib| kib << 10)
}

/// The name of the processor.
#[must_use]
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_shows_as_page_faults_of_the_thread_that_touches_it() {
        let before = page_faults();
        black_box(vec![1u8; 16 << 20]);
        assert!(page_faults() > before);
    }

    #[test]
    fn the_drain_thread_is_found_while_a_session_runs() {
        assert!(Thread::drain_thread().is_none());
        let session = hairline::Session::builder().output_writer(std::io::sink()).start().unwrap();
        session.flush().unwrap(); // it has given itself its name
        assert!(Thread::drain_thread().unwrap().cpu_ns() > 0);
        session.stop().unwrap();
    }
}
