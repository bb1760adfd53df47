//! Whether a process is alive. A pid and a start time identify one process for ever.
//!
//! A process counts as dead only if the kernel says so: no process has its pid, or the process with its pid
//! has another start time or is a zombie. If `/proc` does not show a process, that proves nothing: with
//! `hidepid=2` it hides the processes of other users, and those that are not dumpable. If the namespace of a
//! pid is not known, nothing about that pid proves anything: it may be of another namespace.

#![allow(unsafe_code)] // kill, with no signal

use std::os::unix::fs::MetadataExt;

/// This process, in place of a pid.
pub(crate) const SELF: &str = "self";

/// Whether the process of a region is alive.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// The process is alive, and writes its region itself.
    Alive,
    /// The process is dead.
    Dead,
    /// This process cannot tell: the pid is of another namespace (a container) or of one that is not known,
    /// there is no `/proc`, or `/proc` does not show the process with that pid.
    Unknown,
}

/// The start time of a process: field 22 of `/proc/PID/stat`, in clock ticks since boot.
pub(crate) fn start_time(pid: &str) -> Option<u64> {
    stat(pid).map(|(_, start)| start)
}

/// The inode of this process's pid namespace; 0 if not known.
pub(crate) fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// Whether the process with this pid, start time and pid namespace is alive.
///
/// A `start` of 0 stands for any start time. A `namespace` of 0 is not known, so the result is never `Dead`.
#[cfg(not(loom))]
pub(crate) fn life(pid: u32, start: u64, namespace: u64) -> Life {
    let (Some(_), own) = (stat(SELF), own_namespace()) else { return Life::Unknown };
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
    if !exists(pid) {
        return Life::Dead;
    }
    match stat(&pid.to_string()) {
        Some((_, now)) if start != 0 && now != start => Life::Dead, // another process has the pid
        // A zombie is dead, unless only its first thread has ended.
        Some(('Z' | 'X', _)) if threads(pid).is_some_and(|threads| threads <= 1) => Life::Dead,
        Some(_) => Life::Alive,
        // The process is just ending, or hidden. Only `/proc` has the start time that would identify it.
        None if exists(pid) => Life::Unknown,
        None => Life::Dead,
    }
}

/// Returns `false` only if no process of this pid namespace has the pid.
#[cfg(not(loom))]
fn exists(pid: u32) -> bool {
    match libc::pid_t::try_from(pid) {
        Ok(0) => true, // kill(2) takes 0 for the caller's process group
        Ok(pid) => {
            // SAFETY: takes numbers, and sends no signal.
            let outcome = unsafe { libc::kill(pid, 0) };
            outcome == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
        }
        Err(_) => false, // above every pid
    }
}

/// The state and the start time of a process.
fn stat(pid: &str) -> Option<(char, u64)> {
    // The name of the command can have any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // It can have spaces and parentheses too, so count from the last ')'. Field 3 follows it.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(22 - 4)?.parse().ok()?))
}

#[cfg(not(loom))]
fn threads(pid: u32) -> Option<usize> {
    std::fs::read_dir(format!("/proc/{pid}/task")).map(Iterator::count).ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_until_it_has_ended_and_a_zombie_does_not() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let start = start_time(&child.id().to_string()).unwrap();
        let here = own_namespace();
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
        assert_eq!(life(std::process::id(), start_time(SELF).unwrap(), own_namespace()), Life::Alive);
    }

    /// A process without a mounted `/proc` does not know its namespace. So no process with its pid proves
    /// anything.
    #[test]
    fn a_process_of_a_namespace_that_is_not_known_is_never_known_to_be_dead() {
        let mut child = Command::new("true").spawn().unwrap();
        let (pid, here) = (child.id(), own_namespace());
        while life(pid, 0, here) != Life::Dead {} // a zombie
        assert_eq!(life(pid, 0, 0), Life::Unknown);
        child.wait().unwrap();
        assert_eq!(life(pid, 0, 0), Life::Unknown);
        let own_start = start_time(SELF).unwrap();
        assert_eq!(life(std::process::id(), own_start + 1, 0), Life::Unknown);
        assert_eq!(life(std::process::id(), own_start, 0), Life::Alive);
    }
}
