//! The machine: pinning, the bare clock, what the kernel says of threads and memory.

#![allow(unsafe_code)] // rdtsc and sched_setaffinity

use std::hint::black_box;

/// The clock read that an event cannot do without: the floor.
#[inline(always)]
pub fn clock_read() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: rdtsc is there on every x86-64 and touches no memory.
    black_box(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    black_box(std::time::Instant::now());
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

/// Keeps the calling thread on one core; threads it started before are left where they are.
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

/// CPU time that the writer thread of the running session has used so far, ns.
#[must_use]
pub fn writer_thread_cpu_ns() -> Option<u64> {
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim() == "hairline-writer" {
            return read("schedstat").split_whitespace().next()?.parse().ok();
        }
    }
    None
}

/// Resident memory of this process, bytes: (all, shared with files and shared memory).
#[must_use]
pub fn resident() -> (u64, u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm.split_whitespace().skip(1).map(|n| n.parse::<u64>().unwrap_or(0) * 4096);
    (pages.next().unwrap_or(0), pages.next().unwrap_or(0))
}

/// Bytes of the first core's L2 cache. What is not told is taken to be of a usual size.
#[must_use]
pub fn l2_cache() -> usize {
    let told = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
    told.and_then(|size| size.trim().strip_suffix('K')?.parse::<usize>().ok())
        .map_or(1 << 20, |kib| kib << 10)
}

/// The processor's name.
#[must_use]
pub fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}
