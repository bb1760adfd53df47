//! Whether a process is alive. A pid and a start time identify one process for ever.
//!
//! A process counts as dead only if the kernel says so: no process has its pid, or the process with its pid
//! has another start time or is a zombie. If the system does not show a process, that proves nothing: it may
//! hide the processes of other users. If the namespace of a pid is not known, nothing about that pid proves
//! anything: it may be of another namespace.

use crate::platform;

/// Whether the process of a region is alive.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// The process is alive, and writes its region itself.
    Alive,
    /// The process is dead.
    Dead,
    /// This process cannot tell: the pid is of another namespace (a container) or of one that is not known,
    /// there is no `/proc`, or the system does not show the process with that pid.
    Unknown,
}

/// The start time of this process, in units of the system; 0 if not known.
pub(crate) fn own_start() -> u64 {
    platform::shown_self().map_or(0, |shown| shown.start)
}

/// Whether the process with this pid, start time and pid namespace is alive.
///
/// A `start` of 0 stands for any start time. A `namespace` of 0 is not known, so the result is never `Dead`.
#[cfg(not(loom))]
pub(crate) fn life(pid: u32, start: u64, namespace: u64) -> Life {
    let (Some(_), own) = (platform::shown_self(), platform::namespace()) else { return Life::Unknown };
    if namespace != 0 && own != 0 && namespace != own {
        return Life::Unknown;
    }
    match life_here(pid, start) {
        Life::Dead if namespace == 0 => Life::Unknown,
        life => life,
    }
}

/// As [`life`], for a pid of this process's namespace.
#[cfg(not(loom))]
fn life_here(pid: u32, start: u64) -> Life {
    if !platform::exists(pid) {
        return Life::Dead;
    }
    match platform::shown(pid) {
        Some(shown) if start != 0 && shown.start != start => Life::Dead, // another process has the pid
        Some(shown) if shown.has_ended => Life::Dead,
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
        let here = platform::namespace();
        assert_eq!(life(child.id(), start, here), Life::Alive);
        assert_eq!(life(child.id(), 0, 0), Life::Alive);
        assert_eq!(life(child.id(), start + 1, here), Life::Dead, "its pid was another's");
        assert_eq!(life(child.id(), start, 1), Life::Unknown, "of another namespace");
        assert_eq!(life(u32::MAX, 0, here), Life::Dead, "no process can have it");
        assert_eq!(life(0, 0, here), Life::Unknown, "no pid");
        child.kill().unwrap();
        while life(child.id(), start, here) != Life::Dead {} // a zombie: nobody has waited for it
        child.wait().unwrap();
        assert_eq!(life(child.id(), start, here), Life::Dead);
        assert_eq!(life(std::process::id(), own_start(), platform::namespace()), Life::Alive);
    }

    /// A process without a mounted `/proc` does not know its namespace. So no process with its pid proves
    /// anything.
    #[test]
    fn a_process_of_a_namespace_that_is_not_known_is_never_known_to_be_dead() {
        let mut child = Command::new("true").spawn().unwrap();
        let (pid, here) = (child.id(), platform::namespace());
        while life(pid, 0, here) != Life::Dead {} // a zombie
        assert_eq!(life(pid, 0, 0), Life::Unknown);
        child.wait().unwrap();
        assert_eq!(life(pid, 0, 0), Life::Unknown);
        let own_start = own_start();
        assert_eq!(life(std::process::id(), own_start + 1, 0), Life::Unknown);
        assert_eq!(life(std::process::id(), own_start, 0), Life::Alive);
    }
}
