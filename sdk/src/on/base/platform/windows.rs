//! Windows.
//!
//! The functions of the system that the SDK calls are declared here: they are few, and a dependency is built
//! by each user of the SDK.

#![allow(unsafe_code)] // calls the system

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
#[cfg(feature = "recovery")]
use std::os::windows::fs::FileExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, RawHandle};
use std::path::Path;
use std::sync::OnceLock;

use hairline_formats::track_event::fields::clock as id;

use crate::on::base::platform::facts::{Identity, Machine, Resources};
pub(crate) use crate::on::base::platform::plain::*;

/// Whether sessions record on this platform.
pub(crate) const CAN_RECORD: bool = true;

const LOCK_EXCLUSIVE_AT_ONCE: u32 = 1 | 2;
const ERROR_LOCK_VIOLATION: i32 = 33;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
#[cfg(feature = "recovery")]
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// The offset of the byte that a lock takes, in units of 4 GiB. Locks of Windows keep other processes from
/// reading the bytes, so it is one that no trace has.
const LOCKED_BYTE: u32 = 0x4000_0000;

#[repr(C)]
#[derive(Default)]
struct Overlapped {
    internal: [usize; 2],
    offset_low: u32,
    offset_high: u32,
    event: usize,
}

#[repr(C)]
#[derive(Default)]
struct FileInformation {
    attributes: u32,
    times: [[u32; 2]; 3],
    volume: u32,
    size: [u32; 2],
    links: u32,
    index: [u32; 2],
}

#[repr(C)]
#[derive(Default)]
struct SystemInfo {
    architecture: u32,
    page_size: u32,
    addresses: [usize; 2],
    mask: usize,
    processors: u32,
    kind: u32,
    granularity: u32,
    levels: [u16; 2],
}

#[repr(C)]
#[derive(Default)]
struct MemoryCounters {
    len: u32,
    faults: u32,
    peak: usize,
    working_set: usize,
    others: [usize; 6],
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn QueryPerformanceCounter(count: *mut i64) -> i32;
    fn QueryPerformanceFrequency(frequency: *mut i64) -> i32;
    fn GetSystemTimePreciseAsFileTime(time: *mut u64);
    fn GetCurrentThreadId() -> u32;
    fn GetCurrentThread() -> RawHandle;
    fn GetCurrentProcess() -> RawHandle;
    fn GetThreadTimes(
        thread: RawHandle,
        start: *mut u64,
        end: *mut u64,
        kernel: *mut u64,
        user: *mut u64,
    ) -> i32;
    fn GetProcessTimes(
        process: RawHandle,
        start: *mut u64,
        end: *mut u64,
        kernel: *mut u64,
        user: *mut u64,
    ) -> i32;
    fn GetThreadDescription(thread: RawHandle, name: *mut *mut u16) -> i32;
    fn LocalFree(memory: *mut c_void) -> *mut c_void;
    fn GetSystemInfo(information: *mut SystemInfo);
    fn K32GetProcessMemoryInfo(process: RawHandle, counters: *mut MemoryCounters, len: u32) -> i32;
    fn LockFileEx(file: RawHandle, flags: u32, zero: u32, low: u32, high: u32, at: *mut Overlapped) -> i32;
    fn UnlockFileEx(file: RawHandle, zero: u32, low: u32, high: u32, at: *mut Overlapped) -> i32;
    fn GetFileInformationByHandle(file: RawHandle, information: *mut FileInformation) -> i32;
    fn SetConsoleCtrlHandler(handler: extern "system" fn(u32) -> i32, is_added: i32) -> i32;
}

#[link(name = "advapi32")]
unsafe extern "system" {
    /// `RtlGenRandom`.
    fn SystemFunction036(buffer: *mut c_void, len: u32) -> u8;
}

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> i32;
}

/// The ticks of the performance counter in a second. They do not change.
fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: the call writes one number.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        u64::try_from(frequency).unwrap_or(0).max(1)
    })
}

/// Returns the time of the performance counter in ns. It goes on while the machine is suspended.
pub(crate) fn boottime() -> u64 {
    let mut count = 0;
    // SAFETY: the call writes one number.
    unsafe { QueryPerformanceCounter(&raw mut count) };
    let ns = u128::from(count.cast_unsigned()) * 1_000_000_000 / u128::from(frequency());
    u64::try_from(ns).unwrap_or(0)
}

/// Returns the CPU time of this thread in ns.
pub(crate) fn thread_time() -> u64 {
    let (mut start, mut end, mut kernel, mut user) = (0, 0, 0, 0);
    // SAFETY: a handle that always means this thread, and the call writes four numbers.
    unsafe {
        let thread = GetCurrentThread();
        GetThreadTimes(thread, &raw mut start, &raw mut end, &raw mut kernel, &raw mut user);
    }
    (kernel + user).wrapping_mul(100)
}

/// 1970 in units of 100 ns since 1601.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 3] {
    let (now, mut date) = (boottime(), 0);
    // SAFETY: the call writes one number.
    unsafe { GetSystemTimePreciseAsFileTime(&raw mut date) };
    let date = date.saturating_sub(UNIX_EPOCH).wrapping_mul(100);
    [(id::BOOTTIME, now), (id::REALTIME, date), (id::MONOTONIC, now)]
}

/// Whether the system trusts the processor's counter: the performance counter is then derived from it, and
/// has 10 MHz. Other sources have other frequencies.
pub(crate) fn trusts_counter() -> bool {
    frequency() == 10_000_000
}

/// Returns 0: a session does not ask.
pub(crate) fn timezone_off_mins() -> i32 {
    0
}

/// Returns a description of the machine.
pub(crate) fn machine() -> Machine {
    let mut information = SystemInfo::default();
    // SAFETY: the call writes the struct.
    unsafe { GetSystemInfo(&raw mut information) };
    Machine {
        sysname: "Windows".to_owned(),
        machine: std::env::consts::ARCH.to_owned(),
        page_size: information.page_size.into(),
        processors: information.processors.into(),
        ..Machine::default()
    }
}

/// Returns what the process has used.
pub(crate) fn resources() -> Option<Resources> {
    let (mut start, mut end, mut kernel, mut user) = (0_u64, 0_u64, 0_u64, 0_u64);
    // SAFETY: a handle that always means this process, and the call writes four numbers.
    let is_known = unsafe {
        let process = GetCurrentProcess();
        GetProcessTimes(process, &raw mut start, &raw mut end, &raw mut kernel, &raw mut user) != 0
    };
    let faults = memory().map(|memory| memory.faults.into());
    is_known.then(|| Resources { cpu: Some((kernel + user) * 100), faults, ..Resources::default() })
}

/// Returns the bytes of memory in use.
pub(crate) fn rss() -> Option<u64> {
    memory().map(|memory| memory.working_set as u64)
}

fn memory() -> Option<MemoryCounters> {
    let mut memory = MemoryCounters::default();
    let len = u32::try_from(size_of_val(&memory)).ok()?;
    // SAFETY: a handle that always means this process; the pointer and the length describe `memory`.
    (unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut memory, len) } != 0).then_some(memory)
}

/// Returns `None`: not known.
pub(crate) fn threads() -> Option<u64> {
    None
}

/// Returns `None`: not known.
pub(crate) fn open_files() -> Option<u64> {
    None
}

/// Returns `None`: not known.
pub(crate) fn disk_bytes() -> (Option<u64>, Option<u64>) {
    (None, None)
}

/// Returns the calling thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { GetCurrentThreadId() }
}

/// Returns the thread's name: the system's, which other libraries may have set, or else Rust's.
pub(crate) fn thread_name() -> String {
    let mut name = std::ptr::null_mut();
    // SAFETY: a handle that always means this thread. The call writes a pointer to a terminated text, which
    // `LocalFree` frees.
    let described = unsafe {
        GetThreadDescription(GetCurrentThread(), &raw mut name);
        if name.is_null() {
            String::new()
        } else {
            let len = (0..).find(|at| *name.add(*at) == 0).unwrap_or(0);
            let text = String::from_utf16_lossy(std::slice::from_raw_parts(name, len));
            LocalFree(name.cast());
            text
        }
    };
    if described.is_empty() {
        return std::thread::current().name().unwrap_or("thread").to_owned();
    }
    described
}

/// Fills `bytes` with random ones. Returns false if the system has none.
pub(crate) fn fill_randomly(bytes: &mut [u8]) -> bool {
    let Ok(len) = u32::try_from(bytes.len()) else { return false };
    // SAFETY: the pointer and the length describe `bytes`.
    unsafe { SystemFunction036(bytes.as_mut_ptr().cast(), len) != 0 }
}

/// Calls `handler` when the process returns from `main`. `std::process::exit` does not call it: the system
/// ends the other threads first, and what they have recorded is in the region, as after a kill.
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: a function of this library without arguments.
    unsafe { atexit(handler) };
}

/// What [`console`] calls.
static HANDLER: OnceLock<extern "C" fn(c_int)> = OnceLock::new();

/// Calls `handler` when the user presses Ctrl-C or closes the console. It ends the process.
pub(crate) fn handle_ending(_signal: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    let _ = HANDLER.set(handler);
    // SAFETY: a function of this library.
    match unsafe { SetConsoleCtrlHandler(console, 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The code of a process that Ctrl-C has ended.
const STATUS_CONTROL_C_EXIT: u32 = 0xc000_013a;

/// Handles an event of the console, on a thread of the system. The event counts as handled: the process ends
/// once the trace is complete.
extern "system" fn console(_event: u32) -> i32 {
    HANDLER.get().map_or(0, |handler| {
        handler(0);
        1
    })
}

/// Ends the process as Ctrl-C does.
pub(crate) fn die_of(_signal: c_int) {
    std::process::exit(STATUS_CONTROL_C_EXIT.cast_signed());
}

/// Tries to lock the file. Returns false if another process has it locked; true also if the file system has
/// no locks.
pub(crate) fn try_lock(file: &File) -> bool {
    let mut at = Overlapped { offset_high: LOCKED_BYTE, ..Overlapped::default() };
    // SAFETY: an open handle, and a struct that lives for the call.
    let outcome = unsafe { LockFileEx(file.as_raw_handle(), LOCK_EXCLUSIVE_AT_ONCE, 0, 1, 0, &raw mut at) };
    outcome != 0 || io::Error::last_os_error().raw_os_error() != Some(ERROR_LOCK_VIOLATION)
}

/// Unlocks the file. Without effect if this process does not have it locked.
pub(crate) fn unlock(file: &File) {
    let mut at = Overlapped { offset_high: LOCKED_BYTE, ..Overlapped::default() };
    // SAFETY: as in `try_lock`.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut at) };
}

/// Opens a file for reading. Follows no link.
#[cfg(feature = "recovery")]
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

/// Reads bytes at an offset, at most as many as there are. Moves the position of the file.
#[cfg(feature = "recovery")]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    let mut information = FileInformation::default();
    // SAFETY: an open handle, and the call writes the struct.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let [high, low] = information.index;
    Ok(Identity { device: information.volume.into(), inode: u64::from(high) << 32 | u64::from(low) })
}

/// Returns the identity of the file that a path leads to.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    let mut options = OpenOptions::new();
    identity(&options.access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?)
}

/// Returns the identity of the file at a path, which may be a link.
#[cfg(feature = "recovery")]
pub(crate) fn identity_of_name(path: &Path) -> io::Result<Identity> {
    let mut options = OpenOptions::new();
    let flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    identity(&options.access_mode(0).custom_flags(flags).open(path)?)
}
