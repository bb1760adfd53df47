//! The sockets of processes that listen.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hairline::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};
use rustix::process::geteuid;

/// The connection to a process that listens.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Connects to the process. `None` if it does not listen.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn of(pid: u32) -> io::Result<Option<Self>> {
        let mut refused = None;
        for path in sockets_of(pid)? {
            match Self::connect(&path, pid) {
                Ok(socket) => return Ok(Some(socket)),
                // It is left of an earlier program of this process, or of another process.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {}
                Err(e) => refused = Some(e),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    fn connect(path: &Path, pid: u32) -> io::Result<Self> {
        // No wait: anybody can make a socket that accepts nothing.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        // Anybody can make a socket with such a name.
        let peer = socket_peercred(&socket)?.pid.as_raw_nonzero().get().unsigned_abs();
        if peer == pid { Ok(Self(socket)) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Sends a packet, with a file.
    pub(crate) fn send(&self, bytes: &[u8], file: Option<&File>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = file.map(|file| [file.as_fd()]);
        if let Some(files) = &files {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives a packet within a time. `None` if none has come; it is empty if the connection has ended.
    pub(crate) fn receive(&self, within: Duration) -> io::Result<Option<Vec<u8>>> {
        let within =
            Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut polled, Some(&within)) {
            Err(Errno::INTR) | Ok(0) => return Ok(None),
            polled => polled?,
        };
        let mut bytes = vec![0; wire::LONGEST];
        // The first error says that the process has left a packet unread. What it said before is still there.
        let mut received = recv(&self.0, &mut bytes, RecvFlags::empty());
        if received == Err(Errno::CONNRESET) {
            received = recv(&self.0, &mut bytes, RecvFlags::empty());
        }
        let len = match received {
            Err(Errno::CONNRESET) => 0,
            received => received?.0,
        };
        bytes.truncate(len);
        Ok(Some(bytes))
    }
}

/// The sockets with the process's pid in their names, in the namespaces of the process.
fn sockets_of(pid: u32) -> io::Result<Vec<PathBuf>> {
    let process = Path::new("/proc").join(pid.to_string());
    let user = fs::metadata(&process)?.uid();
    let status = fs::read_to_string(process.join("status"))?;
    // Its pid here, and in each namespace from here to its own.
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let own = own.and_then(|pids| pids.split_ascii_whitespace().last()?.parse().ok()).unwrap_or(pid);
    let folder = hairline_shm::folder();
    // In a container, the folder is another one.
    let inside = process.join("root").join(folder.strip_prefix("/").unwrap_or(&folder));
    let entries = fs::read_dir(inside).or_else(|_| fs::read_dir(folder))?;
    let is_own = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str().and_then(wire::pid_in) == Some(own)
            && fs::symlink_metadata(entry.path()).is_ok_and(|about| {
                about.file_type().is_socket() && [user, geteuid().as_raw()].contains(&about.uid())
            })
    };
    Ok(entries.flatten().filter(is_own).map(|entry| entry.path()).collect())
}

/// The processes of this user with a name: that of their first thread, or of their executable. Those of other
/// users choose their names.
pub(crate) fn processes_named(name: &str) -> Vec<u32> {
    let own = geteuid().as_raw();
    let mut found: Vec<u32> = processes()
        .filter(|pid| user_of(*pid) == Some(own))
        .filter(|pid| {
            let process = Path::new("/proc").join(pid.to_string());
            let comm = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let executable = fs::read_link(process.join("exe")).unwrap_or_default();
            comm.trim_end() == name || executable.file_name().is_some_and(|of| of == name)
        })
        .collect();
    found.sort_unstable();
    found
}

/// The processes whose sockets are in the folder of this command.
pub(crate) fn listening_processes() -> Vec<u32> {
    let entries = fs::read_dir(hairline_shm::folder()).into_iter().flatten().flatten();
    let mut found: Vec<u32> = entries.filter_map(|entry| wire::pid_in(entry.file_name().to_str()?)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of a process, or "".
pub(crate) fn name_of(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// The user of a process. `None` if there is no such process.
pub(crate) fn user_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|about| about.uid())
}
