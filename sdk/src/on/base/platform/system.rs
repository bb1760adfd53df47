//! The machine and the kernel that a trace is recorded on, and their clocks.

#![allow(unsafe_code)] // uname, sysconf, localtime_r

use std::sync::OnceLock;

use hairline_formats::track_event as te;
use hairline_formats::track_event::fields::clock as id;

use crate::on::base::{clock, lock};

/// The kernel and the machine.
#[derive(Debug, Default)]
pub(crate) struct System {
    sysname: String,
    release: String,
    version: String,
    machine: String,
    page_size: u32,
    processors: u32,
    timezone_off_mins: i32,
    ram_bytes: u64,
}

impl System {
    /// Reads the facts of this system.
    pub(crate) fn current() -> Self {
        // SAFETY: an all-zero utsname is valid, and `uname` writes terminated text into it.
        let name = unsafe {
            let mut name: libc::utsname = std::mem::zeroed();
            libc::uname(&raw mut name);
            name
        };
        let page_size = sysconf(libc::_SC_PAGESIZE);
        Self {
            sysname: text(&name.sysname),
            release: text(&name.release),
            version: text(&name.version),
            machine: text(&name.machine),
            page_size: u32::try_from(page_size).unwrap_or(0),
            processors: u32::try_from(sysconf(libc::_SC_NPROCESSORS_ONLN)).unwrap_or(0),
            timezone_off_mins: timezone_off_mins(),
            ram_bytes: sysconf(libc::_SC_PHYS_PAGES).saturating_mul(page_size),
        }
    }

    /// Returns the facts as a trace packet has them.
    pub(crate) fn info(&self) -> te::SystemInfo<'_> {
        te::SystemInfo {
            sysname: &self.sysname,
            release: &self.release,
            version: &self.version,
            machine: &self.machine,
            tracer: concat!("hairline ", env!("CARGO_PKG_VERSION")),
            page_size: self.page_size,
            num_cpus: self.processors,
            timezone_off_mins: self.timezone_off_mins,
            ram_bytes: self.ram_bytes,
        }
    }
}

/// Returns the text of a fixed-size field, up to its first zero.
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a value of `sysconf`; 0 if the system does not know it.
fn sysconf(name: libc::c_int) -> u64 {
    // SAFETY: argument and result are numbers.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
}

/// Returns the minutes east of Greenwich. The C library is asked once for each process: it has a lock for
/// this that no fork handler takes. So a forked child does not ask. It has the value of its parent, or 0.
fn timezone_off_mins() -> i32 {
    static KNOWN: OnceLock<i32> = OnceLock::new();
    match KNOWN.get() {
        Some(known) => *known,
        None if lock::is_forked() => 0,
        None => *KNOWN.get_or_init(read_timezone),
    }
}

fn read_timezone() -> i32 {
    let now = libc::time_t::try_from(clock::system(libc::CLOCK_REALTIME) / 1_000_000_000).unwrap_or(0);
    // SAFETY: an all-zero tm is valid, and both pointers are to live locals.
    let offset = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut local);
        local.tm_gmtoff
    };
    i32::try_from(offset / 60).unwrap_or(0)
}

/// Returns the current time of each system clock, in ns.
pub(crate) fn clocks() -> [(u32, u64); 6] {
    [
        (id::BOOTTIME, libc::CLOCK_BOOTTIME),
        (id::REALTIME, libc::CLOCK_REALTIME),
        (id::REALTIME_COARSE, libc::CLOCK_REALTIME_COARSE),
        (id::MONOTONIC, libc::CLOCK_MONOTONIC),
        (id::MONOTONIC_COARSE, libc::CLOCK_MONOTONIC_COARSE),
        (id::MONOTONIC_RAW, libc::CLOCK_MONOTONIC_RAW),
    ]
    .map(|(id, clock)| (id, clock::system(clock)))
}
