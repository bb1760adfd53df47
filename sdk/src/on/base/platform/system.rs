//! The machine and the kernel that a trace is recorded on, and their clocks.

use std::sync::OnceLock;

use hairline_formats::track_event as te;

use crate::on::base::lock;
pub(crate) use crate::on::base::platform::clocks;
use crate::on::base::platform::facts::Machine;
use crate::on::base::platform::{machine, timezone_off_mins as read_timezone};

/// The kernel and the machine.
#[derive(Debug, Default)]
pub(crate) struct System {
    machine: Machine,
    timezone_off_mins: i32,
}

impl System {
    /// Reads the facts of this system.
    pub(crate) fn current() -> Self {
        Self { machine: machine(), timezone_off_mins: timezone_off_mins() }
    }

    /// Returns the facts as a trace packet has them.
    pub(crate) fn info(&self) -> te::SystemInfo<'_> {
        let machine = &self.machine;
        te::SystemInfo {
            sysname: &machine.sysname,
            release: &machine.release,
            version: &machine.version,
            machine: &machine.machine,
            tracer: concat!("hairline ", env!("CARGO_PKG_VERSION")),
            page_size: u32::try_from(machine.page_size).unwrap_or(0),
            num_cpus: u32::try_from(machine.processors).unwrap_or(0),
            timezone_off_mins: self.timezone_off_mins,
            ram_bytes: machine.ram_bytes,
        }
    }
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
