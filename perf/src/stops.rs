//! Which threads stop: by a signal or a debugger. A switch alone does not tell a user why a thread leaves its
//! processor. The tracepoint `sched_switch` does, and needs the rights that wake-ups need. A filter lets only
//! the threads that stop count, so the rings are small.

use std::ffi::CStr;
use std::io;

use crate::attributes::{Attributes, Inherit};
use crate::own_events::OwnEvents;
use crate::record::{Record, Stamp};
use crate::sys;
use crate::wakings::read_format;

/// The states of a thread that a signal or a debugger stops: `TASK_STOPPED` and `TASK_TRACED`.
const FILTER: &CStr = c"prev_state & 12";

/// The bytes of a ring.
const RING: usize = 16 << 10;

/// The events of threads that stop.
#[derive(Debug)]
pub(crate) struct Stops(OwnEvents);

impl Stops {
    /// Opens the events of this process's threads.
    pub(crate) fn of_this_process(may_open: u64) -> io::Result<Self> {
        let attributes = attributes()?.inherit(Inherit::Threads);
        let (events, _) = OwnEvents::open_with(&attributes, RING, may_open, |_| ())?;
        Self::filtered(events)
    }

    /// Opens the events of a process that has not yet executed its program, and of all that it starts.
    pub(crate) fn of_command(pid: u32) -> io::Result<Self> {
        let attributes = attributes()?.inherit(Inherit::All).enable_on_exec();
        Self::filtered(OwnEvents::open_for_command(&attributes, pid, RING)?)
    }

    fn filtered(events: OwnEvents) -> io::Result<Self> {
        events.set_filter(FILTER)?;
        Ok(Self(events))
    }

    pub(crate) fn events(&self) -> &OwnEvents {
        &self.0
    }

    pub(crate) fn newly_lost(&mut self, ask: bool) -> u64 {
        self.0.newly_lost(ask)
    }

    /// Calls `each` for the threads that are about to stop.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Stamp)) -> u64 {
        let suspended = sys::suspended();
        self.0.read(|record, stamp| {
            if matches!(record, Record::Sample { .. }) {
                each(Stamp { time: stamp.time.saturating_add(suspended), ..stamp });
            }
        })
    }
}

fn attributes() -> io::Result<Attributes> {
    let format = read_format("sched_switch")?;
    let id = format.lines().find_map(|line| line.strip_prefix("ID:")).and_then(|id| id.trim().parse().ok());
    id.map(Attributes::tracepoint).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
