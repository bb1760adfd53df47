//! Whether a process lives: by its pid and the time at which it started, which together name one for good.
//!
//! Dead is a process only if the kernel says so: no process has its pid, or one that started at another time,
//! or a zombie. That `/proc` does not show a process is no such statement: with `hidepid=2` it hides those of
//! other users, and those that are not dumpable. Nor is anything that the kernel says of a pid whose
//! namespace is not known: it may be a pid of another one.

#![allow(unsafe_code)] // kill, with no signal

use std::os::unix::fs::MetadataExt;

/// In place of a pid.
pub(crate) const SELF: &str = "self";

/// Whether the process that made a region lives.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It does: its region is its own.
    Alive,
    /// It does not.
    Dead,
    /// It cannot be told from here: it counted its pid in another namespace (a container) or in one that is
    /// not known, there is no `/proc`, or `/proc` does not show the process that has its pid.
    Unknown,
}

/// Field 22 of `/proc/PID/stat`, in clock ticks since boot.
pub(crate) fn start_time(pid: &str) -> Option<u64> {
    stat(pid).map(|(_, start)| start)
}

/// Inode of this process's pid namespace; 0 where it cannot be known.
pub(crate) fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// Whether process `pid` lives that started at `start` (0: whichever it is) and counts its pid in `namespace`
/// (0: not known, so the process is never known to be dead).
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

/// The same for a process that counts its pid in this process's namespace.
#[cfg(not(loom))]
fn life_here(pid: u32, start: u64) -> Life {
    if !exists(pid) {
        return Life::Dead;
    }
    match stat(&pid.to_string()) {
        Some((_, now)) if start != 0 && now != start => Life::Dead, // another one has its pid
        // A zombie is dead, unless only its first thread has ended.
        Some(('Z' | 'X', _)) if threads(pid).is_some_and(|threads| threads <= 1) => Life::Dead,
        Some(_) => Life::Alive,
        // It ends just now, or is hidden: whether it is the one that is meant only `/proc` could say.
        None if exists(pid) => Life::Unknown,
        None => Life::Dead,
    }
}

/// False only if no process of this pid namespace has the pid.
#[cfg(not(loom))]
fn exists(pid: u32) -> bool {
    match libc::pid_t::try_from(pid) {
        Ok(0) => true, // to kill(2) that is the caller's own group
        Ok(pid) => {
            // SAFETY: takes numbers, and sends nothing.
            let outcome = unsafe { libc::kill(pid, 0) };
            outcome == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
        }
        Err(_) => false, // above every pid
    }
}

/// State and start time.
fn stat(pid: &str) -> Option<(char, u64)> {
    // The command's name may be any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // It may hold spaces and parentheses too: count from the last ')'. What follows is field 3.
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

    /// A process whose `/proc` is not mounted does not know its namespace: whoever has its pid here, or
    /// nobody, says nothing of it.
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
