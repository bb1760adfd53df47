//! macOS, the BSDs and Android.
//!
//! A region is a mapped file in the directory for temporary files. Its blocks are allocated at the start,
//! because a store to a block that a full disk does not have is a SIGBUS.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

pub(crate) use super::plain::*;
pub(crate) use super::posix::*;
use crate::platform::Shown;

/// Returns the directory for the files of regions.
pub(crate) fn directory() -> PathBuf {
    std::env::temp_dir()
}

/// Returns a random number.
pub(crate) fn random() -> io::Result<u64> {
    let mut random = [0u8; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
    Ok(u64::from_le_bytes(random))
}

/// Allocates nothing step by step: the error is always `InvalidInput`, so that [`reserve`] allocates the
/// whole file.
pub(crate) fn populate(_start: NonNull<u8>, _len: usize) -> io::Result<()> {
    Err(io::ErrorKind::InvalidInput.into())
}

/// Allocates a part of a file by writing zeros.
pub(crate) fn reserve(file: &File, at: usize, len: usize) -> io::Result<()> {
    const ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let (mut at, end) = (at as u64, (at + len) as u64);
    while at < end {
        let n = usize::try_from(end - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
        file.write_all_at(&ZEROS[..n], at)?;
        at += n as u64;
    }
    Ok(())
}

/// Puts zeroed private memory in the place of pages of a mapping. The blocks of the file stay allocated until
/// the file is removed.
///
/// # Safety
/// The range is whole pages of a mapping of the caller. The process has no reference to a byte in it that
/// must not become zero.
pub(crate) unsafe fn release(start: NonNull<u8>, len: usize) {
    // SAFETY: by the contract.
    unsafe { replace_by_private(start, len) };
}

/// Does nothing: the advice that makes pages zero is Linux's.
///
/// # Safety
/// As [`release`], for memory that no file is behind.
pub(crate) unsafe fn release_private(_start: NonNull<u8>, _len: usize) -> bool {
    false
}

/// Does nothing: a child relies on the fork handlers.
pub(crate) fn wipe_on_fork(_mapping: NonNull<u8>, _len: usize) {}

/// Replaces a mapping by zeroed private memory, in one step for all threads. Returns whether the system did
/// so.
///
/// # Safety
/// As [`release`].
pub(crate) unsafe fn replace_by_private(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: by the contract.
    unsafe { replace(start, len, 0) }
}

/// Returns `false`: the system has no such call.
pub(crate) fn fence_all_threads() -> bool {
    false
}

/// Returns how the system shows this process.
pub(crate) fn shown_self() -> Option<Shown> {
    shown_as(std::process::id())
}

/// Returns how the system shows a process; `None` if it does not show it.
pub(crate) fn shown(pid: u32) -> Option<Shown> {
    shown_as(pid)
}

/// The start is in us since 1970.
#[cfg(target_vendor = "apple")]
fn shown_as(pid: u32) -> Option<Shown> {
    // SAFETY: a struct of integers, for which zeros are valid.
    let mut info: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    let len = libc::c_int::try_from(size_of_val(&info)).ok()?;
    let pid = libc::c_int::try_from(pid).ok()?;
    // SAFETY: the pointer and the length describe `info`.
    let n = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, (&raw mut info).cast(), len) };
    let start = info.pbi_start_tvsec.wrapping_mul(1_000_000).wrapping_add(info.pbi_start_tvusec);
    (n == len).then_some(Shown { has_ended: info.pbi_status == libc::SZOMB, start })
}

/// Shows nothing. So a process with a pid that is in use is never known to be dead.
#[cfg(not(target_vendor = "apple"))]
fn shown_as(_pid: u32) -> Option<Shown> {
    None
}

/// Sleeps for a moment, whether the word has this value or not: no call of the system waits for a word.
pub(crate) fn sleep_while(_word: &AtomicU32, _value: u32, longest: Duration) {
    std::thread::sleep(longest.min(Duration::from_micros(100)));
}

/// Does nothing: no sleep is longer than a moment.
pub(crate) fn wake_all(_word: &AtomicU32) {}
