//! Windows.

#![allow(unsafe_code)] // calls the system

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::sync::OnceLock;

use hairline_formats::track_event::fields::clock as id;
use windows_sys::Win32::Foundation::{ERROR_LOCK_VIOLATION, FILETIME, LocalFree, STATUS_CONTROL_C_EXIT};
use windows_sys::Win32::Security::Authentication::Identity::RtlGenRandom;
#[cfg(feature = "recovery")]
use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, GetFileInformationByHandle,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::{
    GetSystemInfo, GetSystemTimePreciseAsFileTime, SYSTEM_INFO,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetCurrentThreadId, GetProcessTimes, GetThreadDescription,
    GetThreadTimes,
};

use crate::on::base::memory::SharedText;
use crate::on::base::platform::facts::{Identity, Lock, Machine, Resources};
pub(crate) use crate::on::base::platform::plain::*;

/// Whether sessions record on this platform.
pub(crate) const CAN_RECORD: bool = true;

/// The offset of the byte that a lock takes, in units of 4 GiB. Locks of Windows keep other processes from
/// reading the bytes, so it is one that no trace has.
const LOCKED_BYTE: u32 = 0x4000_0000;

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
    let [mut start, mut end, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: a handle that always means this thread, and the call writes four times.
    unsafe {
        let thread = GetCurrentThread();
        GetThreadTimes(thread, &raw mut start, &raw mut end, &raw mut kernel, &raw mut user);
    }
    ns_of(kernel) + ns_of(user)
}

/// Returns a duration in ns. The system counts units of 100 ns.
fn ns_of(time: FILETIME) -> u64 {
    units_of(time).wrapping_mul(100)
}

fn units_of(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

/// 1970 in units of 100 ns since 1601.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 3] {
    let (now, mut date) = (boottime(), FILETIME::default());
    // SAFETY: the call writes one time.
    unsafe { GetSystemTimePreciseAsFileTime(&raw mut date) };
    let date = units_of(date).saturating_sub(UNIX_EPOCH).wrapping_mul(100);
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
    let mut information = SYSTEM_INFO::default();
    // SAFETY: the call writes the struct.
    unsafe { GetSystemInfo(&raw mut information) };
    Machine {
        host: std::env::var("COMPUTERNAME").unwrap_or_default(),
        sysname: "Windows".to_owned(),
        machine: std::env::consts::ARCH.to_owned(),
        page_size: information.dwPageSize.into(),
        processors: information.dwNumberOfProcessors.into(),
        ..Machine::default()
    }
}

/// Returns what the process has used.
pub(crate) fn resources() -> Option<Resources> {
    let [mut start, mut end, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: a handle that always means this process, and the call writes four times.
    let is_known = unsafe {
        let process = GetCurrentProcess();
        GetProcessTimes(process, &raw mut start, &raw mut end, &raw mut kernel, &raw mut user) != 0
    };
    let faults = memory().map(|memory| memory.PageFaultCount.into());
    is_known.then(|| Resources { cpu: Some(ns_of(kernel) + ns_of(user)), faults, ..Resources::default() })
}

/// Returns the bytes of memory in use.
pub(crate) fn rss() -> Option<u64> {
    memory().map(|memory| memory.WorkingSetSize as u64)
}

fn memory() -> Option<PROCESS_MEMORY_COUNTERS> {
    let mut memory = PROCESS_MEMORY_COUNTERS::default();
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
pub(crate) fn thread_name() -> SharedText {
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
        return std::thread::current().name().unwrap_or("thread").into();
    }
    (&*described).into()
}

/// Fills `bytes` with random ones. Returns false if the system has none.
pub(crate) fn fill_randomly(bytes: &mut [u8]) -> bool {
    let Ok(len) = u32::try_from(bytes.len()) else { return false };
    // SAFETY: the pointer and the length describe `bytes`.
    unsafe { RtlGenRandom(bytes.as_mut_ptr().cast(), len) }
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
pub(crate) fn handle_ending(
    _signal: c_int,
    handler: extern "C" fn(c_int),
    _keep: impl FnOnce(Action),
) -> io::Result<()> {
    let _ = HANDLER.set(handler);
    // SAFETY: a function of this library.
    match unsafe { SetConsoleCtrlHandler(Some(console), 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Handles an event of the console, on a thread of the system. The event counts as handled: the process ends
/// once the trace is complete.
unsafe extern "system" fn console(_event: u32) -> i32 {
    HANDLER.get().map_or(0, |handler| {
        handler(0);
        1
    })
}

/// Ends the process as Ctrl-C does.
pub(crate) fn die_of(_signal: c_int) {
    std::process::exit(STATUS_CONTROL_C_EXIT);
}

fn locked_byte() -> OVERLAPPED {
    let mut at = OVERLAPPED::default();
    at.Anonymous.Anonymous.OffsetHigh = LOCKED_BYTE;
    at
}

/// Tries to lock the file.
pub(crate) fn try_lock(file: &File) -> Lock {
    let mut at = locked_byte();
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: an open handle, and a struct that lives for the call.
    let outcome = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) };
    let is_taken = Some(ERROR_LOCK_VIOLATION.cast_signed());
    match outcome {
        0 if io::Error::last_os_error().raw_os_error() == is_taken => Lock::Taken,
        0 => Lock::Impossible,
        _ => Lock::Got,
    }
}

/// Unlocks the file. Without effect if this process does not have it locked.
pub(crate) fn unlock(file: &File) {
    let mut at = locked_byte();
    // SAFETY: as in `try_lock`.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut at) };
}

/// Opens a file for reading. Follows no link.
#[cfg(feature = "recovery")]
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)
}

/// Reads bytes at an offset, at most as many as there are. Moves the position of the file.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Returns the identity of an open file.
pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: an open handle, and the call writes the struct.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let inode = u64::from(information.nFileIndexHigh) << 32 | u64::from(information.nFileIndexLow);
    Ok(Identity { device: information.dwVolumeSerialNumber.into(), inode })
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
