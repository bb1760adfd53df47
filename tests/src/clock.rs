//! The system's clocks.

#![allow(unsafe_code)] // clock_gettime

/// A clock of the system, in ns.
///
/// # Panics
/// If there is no such clock.
#[must_use]
pub fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`.
    assert_eq!(unsafe { libc::clock_gettime(id, &raw mut time) }, 0);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// `CLOCK_BOOTTIME`, in ns: the time in a trace.
#[must_use]
pub fn boottime() -> i64 {
    clock(libc::CLOCK_BOOTTIME).cast_signed()
}
