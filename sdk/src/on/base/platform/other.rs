//! WebAssembly and systems that are neither Unix nor Windows. Where there are threads and files, sessions
//! record, by the standard library alone.

use std::ffi::c_int;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use hairline_formats::track_event::fields::clock as id;

use crate::on::base::memory::SharedText;
use crate::on::base::platform::facts::{Identity, Lock, Machine, Resources};
pub(crate) use crate::on::base::platform::plain::*;

/// Whether sessions record on this platform: the drain needs a thread.
pub(crate) const CAN_RECORD: bool =
    !cfg!(target_family = "wasm") || cfg!(all(target_os = "wasi", target_feature = "atomics"));

/// Returns the time since the first call in ns; 0 where nothing records, since there may be no clock.
pub(crate) fn boottime() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    if !CAN_RECORD {
        return 0;
    }
    u64::try_from(FIRST.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(0)
}

/// Returns 0: not known.
pub(crate) fn thread_time() -> u64 {
    0
}

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 2] {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    [(id::BOOTTIME, boottime()), (id::REALTIME, u64::try_from(since_1970.as_nanos()).unwrap_or(0))]
}

/// Returns false: nothing is known of the processor's counter.
pub(crate) fn trusts_counter() -> bool {
    false
}

/// Returns 0: not known.
pub(crate) fn timezone_off_mins() -> i32 {
    0
}

/// Returns the architecture, which is all that is known.
pub(crate) fn machine() -> Machine {
    let (sysname, machine) = (std::env::consts::OS.to_owned(), std::env::consts::ARCH.to_owned());
    Machine { sysname, machine, ..Machine::default() }
}

/// Returns `None`: not known.
pub(crate) fn resources() -> Option<Resources> {
    None
}

/// Returns `None`: not known.
pub(crate) fn rss() -> Option<u64> {
    None
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

/// Returns the thread's name.
pub(crate) fn thread_name() -> SharedText {
    std::thread::current().name().unwrap_or("thread").into()
}

/// Fills `bytes` with the random numbers of the standard library's hash maps.
pub(crate) fn fill_randomly(bytes: &mut [u8]) -> bool {
    for (n, part) in bytes.chunks_mut(8).enumerate() {
        let random = RandomState::new().hash_one(n).to_le_bytes();
        part.copy_from_slice(&random[..part.len()]);
    }
    true
}

/// Does nothing: the system has no such handlers.
pub(crate) fn at_exit(_handler: extern "C" fn()) {}

/// Has always got the lock: no other process is known to have the files.
pub(crate) fn try_lock(_file: &File) -> Lock {
    Lock::Got
}

/// Does nothing.
pub(crate) fn unlock(_file: &File) {}

/// Opens a file for reading.
#[cfg(feature = "recovery")]
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads bytes at an offset, at most as many as there are. Moves the position of the file.
pub(crate) fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read, Seek};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read(bytes)
}

/// Returns a constant: files have no identity.
#[allow(clippy::unnecessary_wraps)] // as on other platforms
pub(crate) fn identity(_file: &File) -> io::Result<Identity> {
    Ok(Identity { device: 0, inode: 0 })
}

/// Returns a constant if there is a file.
pub(crate) fn identity_at(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|_| Identity { device: 0, inode: 0 })
}

/// As [`identity_at`].
#[cfg(feature = "recovery")]
pub(crate) fn identity_of_name(path: &Path) -> io::Result<Identity> {
    identity_at(path)
}

/// Handles nothing.
///
/// # Errors
/// Always: there are no signals.
pub(crate) fn handle_ending(
    _signal: c_int,
    _handler: extern "C" fn(c_int),
    _keep: impl FnOnce(Action),
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Ends the process.
pub(crate) fn die_of(_signal: c_int) {
    std::process::abort();
}
