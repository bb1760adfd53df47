//! Numbers and structures of the kernel's `include/uapi/linux/perf_event.h`.

/// `struct perf_event_attr`, up to the field of its version 5. A newer kernel takes the missing fields as 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct EventAttr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    /// A number of events, or with [`flag::FREQ`] samples in a second.
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    /// Bytes, with [`flag::WATERMARK`].
    pub(crate) wakeup_watermark: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
    pub(crate) sample_regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) sample_max_stack: u16,
    pub(crate) reserved: u16,
}

const _: () = assert!(size_of::<EventAttr>() == 112, "PERF_ATTR_SIZE_VER5");

/// `PERF_TYPE_*`
pub(crate) const TYPE_HARDWARE: u32 = 0;
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const TYPE_TRACEPOINT: u32 = 2;

/// `PERF_COUNT_HW_*`
pub(crate) const HW_CYCLES: u64 = 0;
pub(crate) const HW_INSTRUCTIONS: u64 = 1;
pub(crate) const HW_CACHE_MISSES: u64 = 3;

/// `PERF_COUNT_SW_*`
pub(crate) const SW_CPU_CLOCK: u64 = 0;
pub(crate) const SW_TASK_CLOCK: u64 = 1;
pub(crate) const SW_CONTEXT_SWITCHES: u64 = 3;
pub(crate) const SW_DUMMY: u64 = 9;

/// The bits of `perf_event_attr` behind `read_format`.
pub(crate) mod flag {
    pub(crate) const DISABLED: u64 = 1;
    pub(crate) const INHERIT: u64 = 1 << 1;
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(crate) const EXCLUDE_HV: u64 = 1 << 6;
    pub(crate) const COMM: u64 = 1 << 9;
    pub(crate) const FREQ: u64 = 1 << 10;
    pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const WATERMARK: u64 = 1 << 14;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const USE_CLOCKID: u64 = 1 << 25;
    pub(crate) const CONTEXT_SWITCH: u64 = 1 << 26;
    pub(crate) const INHERIT_THREAD: u64 = 1 << 35;
}

/// `PERF_SAMPLE_*`
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
}

/// `PERF_FORMAT_*`
pub(crate) const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
pub(crate) const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
pub(crate) const FORMAT_ID: u64 = 1 << 2;
pub(crate) const FORMAT_LOST: u64 = 1 << 4;

/// `PERF_SAMPLE_REGS_ABI_NONE`: no user registers, and so no stack.
pub(crate) const REGS_ABI_NONE: u64 = 0;

/// `PERF_RECORD_*`
pub(crate) mod record {
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const SWITCH: u32 = 14;
}

/// `PERF_RECORD_MISC_*`
pub(crate) mod misc {
    pub(crate) const CPU_MODE: u16 = 7;
    pub(crate) const USER: u16 = 2;
    /// Of a COMM record: the name comes from exec.
    pub(crate) const COMM_EXEC: u16 = 1 << 13;
    pub(crate) const SWITCH_OUT: u16 = 1 << 13;
    pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// Of an MMAP2 record: a build id stands where device and inode do.
    pub(crate) const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// The size of `struct perf_event_header`.
pub(crate) const HEADER: usize = 8;

/// Offsets in `struct perf_event_mmap_page`.
#[cfg_attr(not(all(target_os = "linux", target_endian = "little")), allow(dead_code))]
pub(crate) mod page {
    pub(crate) const DATA_HEAD: usize = 1024;
    pub(crate) const DATA_TAIL: usize = 1032;
    pub(crate) const DATA_OFFSET: usize = 1040;
    pub(crate) const DATA_SIZE: usize = 1048;
}

/// `PERF_EVENT_IOC_*`, as on all processors but alpha, mips, powerpc and sparc.
#[cfg_attr(not(all(target_os = "linux", target_endian = "little")), allow(dead_code))]
pub(crate) mod ioctl {
    pub(crate) const ENABLE: u32 = 0x2400;
    pub(crate) const DISABLE: u32 = 0x2401;
    pub(crate) const SET_OUTPUT: u32 = 0x2405;
    /// It takes a pointer, whose size is in the number.
    pub(crate) const SET_FILTER: u32 = 0x4000_2406 | (size_of::<usize>() as u32) << 16;
}

/// `PERF_FLAG_FD_CLOEXEC`
#[cfg_attr(not(all(target_os = "linux", target_endian = "little")), allow(dead_code))]
pub(crate) const FLAG_CLOEXEC: u32 = 8;

/// `CLOCK_MONOTONIC` of linux/time.h.
pub(crate) const CLOCK_MONOTONIC: i32 = 1;

/// `CLOCK_BOOTTIME` of linux/time.h.
pub(crate) const CLOCK_BOOTTIME: i32 = 7;

/// Numbers of asm-generic/errno-base.h, which all processors have. Not libc's: only Linux needs that package.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const ESRCH: i32 = 3;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const ENFILE: i32 = 23;
    pub(crate) const EMFILE: i32 = 24;
}
