//! Wake-ups: which thread let which one go on. The tracepoint `sched_waking` is counted for the threads that
//! wake, and needs more rights than their switches do: its number stands in tracefs. A session of a process
//! has the wake-ups by its own threads: others would cost the whole machine time, for as long as it runs.
//!
//! A hit names the woken thread by its number on the machine. All other records name threads by their numbers
//! in the pid namespace of this process. So a container with a namespace of its own has no wake-ups: some
//! other thread of the machine has each of its numbers.

use std::io;
use std::path::Path;

use crate::attributes::{Attributes, Inherit};
use crate::own_events::OwnEvents;
use crate::record::{Record, Stamp};
use crate::sys;
use crate::tasks::Waking;

/// Where tracefs is, the usual place first.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What `/proc/self/ns/pid` links to in the namespace of the machine: `PROC_PID_INIT_INO`, the same on all
/// kernels.
const NAMESPACE_OF_MACHINE: &str = "pid:[4026531836]";

/// The bytes of a ring.
const RING: usize = 512 << 10;

/// Bits of `common_flags`: a hard or a soft interrupt has woken the thread, not the one that it interrupted.
const IN_INTERRUPT: u8 = 0x18;

/// The events of wake-ups.
#[derive(Debug)]
pub(crate) struct Wakings {
    events: OwnEvents,
    fields: Fields,
}

/// Where a hit of the tracepoint has its fields: offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    id: u64,
    flags: usize,
    pid: usize,
}

impl Wakings {
    /// Opens the events of this process's threads.
    pub(crate) fn of_this_process(may_open: u64) -> io::Result<Self> {
        let fields = Fields::find()?;
        let attributes = Attributes::tracepoint(fields.id).inherit(Inherit::Threads);
        Ok(Self { events: OwnEvents::open(&attributes, may_open, |_| ())?.0, fields })
    }

    /// Opens the events of all threads of the machine, for a command and all that it starts. Its threads are
    /// woken by others too: by interrupts of an idle processor or of another program, and by a thread that
    /// ends, whose own events the kernel has closed by then.
    pub(crate) fn of_command() -> io::Result<Self> {
        let fields = Fields::find()?;
        let events = OwnEvents::open_for_all(&Attributes::tracepoint(fields.id), RING)?;
        Ok(Self { events, fields })
    }

    pub(crate) fn events(&self) -> &OwnEvents {
        &self.events
    }

    pub(crate) fn newly_lost(&mut self, ask: bool) -> u64 {
        self.events.newly_lost(ask)
    }

    /// Calls `each` for the wake-ups that the rings have.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Waking, Stamp)) -> u64 {
        let Self { events, fields } = self;
        let suspended = sys::suspended();
        events.read(|record, stamp| {
            if let Record::Sample { raw, .. } = record
                && let Some(waking) = fields.waking(raw)
            {
                each(waking, Stamp { time: stamp.time.saturating_add(suspended), ..stamp });
            }
        })
    }
}

impl Fields {
    fn find() -> io::Result<Self> {
        if !are_numbers_of_machine(Path::new("/proc/self/ns/pid")) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Self::parse(&read_format("sched_waking")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses `ID: 375` and lines like `field:pid_t pid; offset:24; size:4; signed:1;`.
    fn parse(format: &str) -> Option<Self> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let offset = |name: &str, size: &str| -> Option<usize> {
            let mut fields = format.lines().filter_map(|line| line.trim().strip_prefix("field:"));
            let field = fields.find(|field| {
                field.split(';').next().is_some_and(|declared| declared.ends_with(&format!(" {name}")))
            })?;
            let value = |key: &str| field.split(';').find_map(|part| part.trim().strip_prefix(key));
            (value("size:")? == size).then(|| value("offset:")?.parse().ok())?
        };
        Some(Self { id, flags: offset("common_flags", "1")?, pid: offset("pid", "4")? })
    }

    fn waking(self, raw: &[u8]) -> Option<Waking> {
        let tid = raw.get(self.pid..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))?;
        let flags = *raw.get(self.flags)?;
        Some(Waking { tid, is_by_interrupt: flags & IN_INTERRUPT != 0 })
    }
}

/// Reads the format of a tracepoint of the scheduler.
pub(crate) fn read_format(tracepoint: &str) -> io::Result<String> {
    let mut error = io::ErrorKind::NotFound.into();
    for directory in TRACEFS {
        match std::fs::read_to_string(
            Path::new(directory).join("events/sched").join(tracepoint).join("format"),
        ) {
            Ok(text) => return Ok(text),
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// Returns whether this process has the numbers of the machine, by its link to the namespace.
fn are_numbers_of_machine(link: &Path) -> bool {
    std::fs::read_link(link).is_ok_and(|namespace| namespace == Path::new(NAMESPACE_OF_MACHINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_in_a_pid_namespace_of_its_own_has_no_wake_ups() {
        let link = |namespace: &str| {
            let path = std::env::temp_dir().join(format!("hairline-namespace-{}", std::process::id()));
            std::os::unix::fs::symlink(namespace, &path).unwrap();
            let are = are_numbers_of_machine(&path);
            std::fs::remove_file(&path).unwrap();
            are
        };
        assert!(link("pid:[4026531836]") && !link("pid:[4026532561]"));
        assert!(!are_numbers_of_machine(Path::new("/nowhere")));
    }

    const FORMAT: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"comm=%s pid=%d\"\n";

    #[test]
    fn the_fields_are_found_by_their_names() {
        let fields = Fields::parse(FORMAT).unwrap();
        assert_eq!(fields, Fields { id: 375, flags: 2, pid: 24 });
        for gone in ["ID: 375", " pid;", " common_flags;", "offset:24"] {
            assert_eq!(Fields::parse(&FORMAT.replace(gone, "")), None, "{gone}");
        }
    }

    #[test]
    fn a_hit_names_the_woken_thread_and_whether_an_interrupt_has_woken_it() {
        let fields = Fields { id: 375, flags: 2, pid: 24 };
        let mut raw = [0; 36];
        raw[24..28].copy_from_slice(&71_u32.to_ne_bytes());
        assert_eq!(fields.waking(&raw), Some(Waking { tid: 71, is_by_interrupt: false }));
        raw[2] = 0x10;
        assert_eq!(fields.waking(&raw), Some(Waking { tid: 71, is_by_interrupt: true }));
        assert_eq!(fields.waking(&raw[..27]), None);
    }
}
