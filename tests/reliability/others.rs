//! What the tests of hostile users share: a second user, and places where both can work.

#![allow(unsafe_code)] // geteuid, statvfs

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hairline_tests::programs;

/// User and group of `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// A directory that root owns and every user may enter. Removed at its end.
pub(crate) struct Stage(tempfile::TempDir);

impl Stage {
    /// `None`, with a line on stderr, where the test does not run as root.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: takes nothing.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("not root here, so there is no second user: not tested");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("changed");
        Some(Self(directory))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A directory that `nobody` owns.
    pub(crate) fn directory_of_nobody(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).expect("made");
        give_to_nobody(&path);
        path
    }

    /// A copy of a program, with this mode.
    pub(crate) fn program(&self, from: &str, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        programs::copy(from, &path);
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
        path
    }

    /// Whether a setuid bit has an effect here.
    pub(crate) fn heeds_setuid(&self) -> bool {
        let path = CString::new(self.0.path().as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: an all-zero value is a valid one, the path is NUL-terminated, and the call writes `stat`.
        let flags = unsafe {
            let mut stat: libc::statvfs = std::mem::zeroed();
            assert_eq!(libc::statvfs(path.as_ptr(), &raw mut stat), 0);
            stat.f_flag
        };
        let status = fs::read_to_string("/proc/self/status").expect("a status");
        let heeds = flags & libc::ST_NOSUID == 0 && !status.contains("NoNewPrivs:\t1");
        if !heeds {
            eprintln!("{}: setuid bits have no effect here: not tested", self.0.path().display());
        }
        heeds
    }
}

pub(crate) fn give_to_nobody(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("given away");
}

/// A command that `nobody` runs, without groups, and without an environment of this process's for Hairline.
pub(crate) fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).env_remove("HAIRLINE");
    command
}

/// A shell with a `/dev/shm` of its own, which all users may write, after `prepare`.
/// `None`, with a line on stderr, where that cannot be had.
pub(crate) fn in_own_shm(prepare: &str, script: &str) -> Option<Command> {
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).env_remove("HAIRLINE");
        command
    };
    let prepare = format!("set -e\nmount -t tmpfs -o mode=1777 none /dev/shm\n{prepare}\nset +e\n");
    if !shell(&prepare).output().is_ok_and(|output| output.status.success()) {
        eprintln!("no mounts of one's own here: not tested");
        return None;
    }
    Some(shell(&format!("{prepare}{script}")))
}

/// The lines that Hairline wrote to stderr.
pub(crate) fn said(output: &std::process::Output) -> Vec<String> {
    let all = String::from_utf8_lossy(&output.stderr);
    all.lines().filter(|line| line.starts_with("hairline: ")).map(str::to_owned).collect()
}
