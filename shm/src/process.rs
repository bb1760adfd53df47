//! Whether a process is alive. A pid and a start time identify one process for ever.
//!
//! A process counts as dead only if the kernel says so: no process has its pid, or the process with its pid
//! has another start time or is a zombie. If the system does not show a process, that proves nothing: it may
//! hide the processes of other users. Nor does a fact prove anything outside of its namespace:
//!
//! * A pid names a process of one pid namespace. `kill` takes it for a pid of the caller's namespace, and
//!   `/proc` for one of the namespace that `/proc` was mounted in. These can be three different namespaces.
//! * A start time is shifted by the offset of the reader's time namespace. Two start times can be compared
//!   only if they were read in the same one.
//!
//! A lock that a session holds for life would need no namespaces. But a record lock ends when any code of the
//! process closes any descriptor of the region's file, as `recover::find` does in the traced process. The
//! other locks stay with a forked child.

use crate::platform;
#[cfg(not(loom))]
use crate::platform::Namespaces;

/// Whether the process of a region is alive.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// The process is alive, and writes its region itself.
    Alive,
    /// The process is dead.
    Dead,
    /// This process cannot tell. The pid is of another pid namespace (a container), or of one that is not
    /// known. Or a process has the pid, and the system does not show it: there is no `/proc`, or `/proc` hides
    /// it or is that of another pid namespace. Or the start time is of another time namespace.
    Unknown,
}

/// The start time of this process, in units of the system; 0 if not known.
pub(crate) fn own_start() -> u64 {
    platform::shown_self().map_or(0, |shown| shown.start)
}

/// Whether the process with this pid and start time in these namespaces is alive.
///
/// A `start` of 0 stands for any start time. If a pid namespace is not known (0), the result is never `Dead`.
#[cfg(not(loom))]
pub(crate) fn life(pid: u32, start: u64, of: Namespaces) -> Life {
    let (Some(_), own) = (platform::shown_self(), platform::namespaces()) else { return Life::Unknown };
    if of.pids != 0 && own.pids != 0 && of.pids != own.pids {
        return Life::Unknown;
    }
    match life_here(pid, start, of.time == own.time) {
        Life::Dead if of.pids == 0 || own.pids == 0 => Life::Unknown,
        life => life,
    }
}

/// As [`life`], for a pid of this process's namespace. `is_comparable`: the start was read in this process's
/// time namespace.
#[cfg(not(loom))]
fn life_here(pid: u32, start: u64, is_comparable: bool) -> Life {
    if !platform::exists(pid) {
        return Life::Dead;
    }
    if !platform::shows_own_pids() {
        return Life::Unknown; // `/proc` shows another process with this pid, or none
    }
    match platform::shown(pid) {
        // A zombie keeps its pid. So it is the process itself, or a later one.
        Some(shown) if shown.has_ended => Life::Dead,
        Some(_) if start == 0 => Life::Alive,
        Some(_) if !is_comparable => Life::Unknown,
        Some(shown) if shown.start != start => Life::Dead, // another process has the pid
        Some(_) => Life::Alive,
        // The process is just ending, or hidden. Only its start time would identify it.
        None if platform::exists(pid) => Life::Unknown,
        None => Life::Dead,
    }
}

#[cfg(all(test, not(loom), target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_until_it_has_ended_and_a_zombie_does_not() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let start = platform::shown(child.id()).unwrap().start;
        let here = platform::namespaces();
        assert_eq!(life(child.id(), start, here), Life::Alive);
        assert_eq!(life(child.id(), 0, Namespaces::default()), Life::Alive);
        assert_eq!(life(child.id(), start + 1, here), Life::Dead, "its pid was another's");
        assert_eq!(
            life(child.id(), start, Namespaces { pids: 1, ..here }),
            Life::Unknown,
            "of another namespace"
        );
        let elsewhere = Namespaces { time: 1, ..here };
        assert_eq!(
            life(child.id(), start, elsewhere),
            Life::Unknown,
            "which may be a start of another process"
        );
        assert_eq!(life(child.id(), start + 1, elsewhere), Life::Unknown, "which may be the same start");
        assert_eq!(life(u32::MAX, start, elsewhere), Life::Dead, "in whichever time");
        assert_eq!(life(u32::MAX, 0, here), Life::Dead, "no process can have it");
        assert_eq!(life(0, 0, here), Life::Unknown, "no pid");
        child.kill().unwrap();
        while life(child.id(), start, here) != Life::Dead {} // a zombie: nobody has waited for it
        assert_eq!(life(child.id(), start + 1, elsewhere), Life::Dead, "a zombie, in whichever time");
        child.wait().unwrap();
        assert_eq!(life(child.id(), start, here), Life::Dead);
        assert_eq!(life(std::process::id(), own_start(), platform::namespaces()), Life::Alive);
    }

    /// A process without a mounted `/proc` does not know its namespace. So no process with its pid proves
    /// anything.
    #[test]
    fn a_process_of_a_namespace_that_is_not_known_is_never_known_to_be_dead() {
        let mut child = Command::new("true").spawn().unwrap();
        let (pid, here, unknown) = (child.id(), platform::namespaces(), Namespaces::default());
        while life(pid, 0, here) != Life::Dead {} // a zombie
        assert_eq!(life(pid, 0, unknown), Life::Unknown);
        child.wait().unwrap();
        assert_eq!(life(pid, 0, unknown), Life::Unknown);
        let own_start = own_start();
        assert_eq!(life(std::process::id(), own_start + 1, Namespaces { pids: 0, ..here }), Life::Unknown);
        assert_eq!(life(std::process::id(), own_start, Namespaces { pids: 0, ..here }), Life::Alive);
    }
}
