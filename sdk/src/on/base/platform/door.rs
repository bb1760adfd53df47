//! The socket of a process that listens for commands, on Linux.
//!
//! A command's connection keeps the borders of packets (`SOCK_SEQPACKET`), so no packet is read in part. All
//! of it belongs to a thread with a table of open files of its own: the program cannot close these
//! descriptors, and so none of them can become one of the program's.

#![allow(unsafe_code)] // calls the system

use std::ffi::c_void;
use std::fs::{self, File};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hairline_shm::is_one_user;

use crate::on::base::platform;
use crate::on::base::platform::facts::{Ready, Received};

/// The pause if the system refuses a wait.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: libc::c_int = 64;

/// The most descriptors that a packet is searched for. The kernel closes further ones.
const MOST_FILES: usize = 4;

/// The name of a socket without a process may belong to one that is about to listen, for this time.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// The most names of the folder that are looked at for stale ones.
const MOST_NAMES: usize = 10_000;

/// A socket that commands connect to.
#[derive(Debug)]
pub(crate) struct Door {
    socket: OwnedFd,
}

/// The connection of a command.
#[derive(Debug)]
pub(crate) struct Visitor {
    socket: OwnedFd,
    pid: u32,
    user: u32,
}

impl Door {
    /// Makes the socket. Only this user, and root, can connect to it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let socket = new_socket()?;
        // The name that `bind` makes has these permissions from the start.
        // SAFETY: a call on an open descriptor.
        checked(unsafe { libc::fchmod(socket.as_raw_fd(), 0o600) })?;
        let (address, len) = address(path)?;
        // SAFETY: the address has this length.
        checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
        // SAFETY: a call on an open descriptor.
        checked(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
        Ok(Self { socket })
    }

    /// Returns the next connection that waits. `None` if none does.
    pub(crate) fn accept(&self) -> io::Result<Option<Visitor>> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the null pointers ask for no address.
        let number = unsafe {
            libc::accept4(self.socket.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags)
        };
        if let Err(e) = checked(number) {
            return if e.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(e) };
        }
        // SAFETY: the call has made this descriptor for the caller.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the call writes `len` bytes to `peer`.
        checked(unsafe {
            let peer: *mut c_void = (&raw mut peer).cast();
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, peer, &raw mut len)
        })?;
        Ok(Some(Visitor { socket, pid: peer.pid.unsigned_abs(), user: peer.uid }))
    }

    /// Waits until a command connects, or one of the visitors has something, or `longest` has passed. If the
    /// system refuses the wait, all are asked after a pause: a program may set its limit of open files to 0.
    pub(crate) fn wait<'v>(
        &self,
        visitors: impl Iterator<Item = &'v Visitor>,
        longest: Option<Duration>,
    ) -> Ready {
        let sockets = std::iter::once(&self.socket).chain(visitors.map(|visitor| &visitor.socket));
        let poll =
            |socket: &OwnedFd| libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = sockets.map(poll).collect();
        let longest = longest.map_or(-1, |longest| longest.as_millis().try_into().unwrap_or(i32::MAX));
        // SAFETY: the array has this length.
        let found = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, longest) };
        let is_known = checked(found).is_ok();
        if !is_known {
            std::thread::sleep(PAUSE);
        }
        let mut ready = polled.iter().map(|polled| !is_known || polled.revents != 0);
        Ready { door: ready.next().unwrap_or(false), visitors: ready.collect() }
    }
}

impl Visitor {
    /// Whether this is a command of the process's user, or of root.
    pub(crate) fn may_command(&self) -> bool {
        self.user == 0 || self.user == platform::effective_user() && is_one_user(self.user)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads a packet, without waiting.
    pub(crate) fn receive(&self, bytes: &mut [u8]) -> Received {
        // SAFETY: the macros only compute sizes.
        const ROOM: usize =
            unsafe { libc::CMSG_SPACE((MOST_FILES * size_of::<libc::c_int>()) as u32) } as usize;
        #[repr(C, align(8))] // as a header
        struct Control([MaybeUninit<u8>; ROOM]);
        let mut control = Control([MaybeUninit::uninit(); ROOM]);
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: a struct of numbers and pointers, for which zeros are valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = ((&raw mut control).cast(), ROOM as _);
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        // SAFETY: the message names buffers of these lengths.
        let len = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        let Ok(len) = usize::try_from(len) else {
            let e = io::Error::last_os_error().kind();
            let again = matches!(e, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if again { Received::Nothing } else { Received::End };
        };
        // Each is taken, so that each is closed.
        let mut files = files_of(&message);
        if len == 0 || message.msg_flags & libc::MSG_TRUNC != 0 || files.len() > 1 {
            return Received::End;
        }
        Received::Packet(len, files.pop())
    }

    /// Sends a packet, without waiting. Returns false if the command does not take it.
    pub(crate) fn send(&self, bytes: &[u8]) -> bool {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: pointer and length describe `bytes`.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        usize::try_from(sent) == Ok(bytes.len())
    }
}

/// Takes the files of a message.
fn files_of(message: &libc::msghdr) -> Vec<File> {
    let mut files = Vec::new();
    // SAFETY: the kernel has written the headers that these functions go through, inside of the control buffer.
    // Each number is a descriptor that it has made for this process.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(about) = header.as_ref() {
            if (about.cmsg_level, about.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                #[allow(clippy::unnecessary_cast)] // 32 bits in musl
                let bytes = (about.cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let numbers = libc::CMSG_DATA(header).cast::<libc::c_int>();
                for n in 0..bytes / size_of::<libc::c_int>() {
                    files.push(File::from_raw_fd(numbers.add(n).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    files
}

/// Whether the file is an empty regular one that can be written.
pub(crate) fn is_empty_output(file: &File) -> bool {
    // SAFETY: a call on an open descriptor.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    let is_written = flags >= 0 && matches!(flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR);
    is_written
        && flags & (libc::O_APPEND | libc::O_PATH) == 0
        && file.metadata().is_ok_and(|about| about.is_file() && about.len() == 0)
}

/// Connects to the socket at a path and closes the connection, which ends a wait of its thread.
pub(crate) fn knock(path: &Path) -> io::Result<()> {
    let socket = new_socket()?;
    let (address, len) = address(path)?;
    // SAFETY: the address has this length.
    checked(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Removes the sockets of this user's processes that no longer exist. `pid_in` reads their names.
pub(crate) fn remove_stale(folder: &Path, pid_in: impl Fn(&str) -> Option<u32>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES);
    let is_of_nobody = |entry: &fs::DirEntry| {
        let pid = entry.file_name().to_str().and_then(&pid_in);
        pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    };
    for entry in entries.filter(is_of_nobody) {
        let Ok(about) = fs::symlink_metadata(entry.path()) else { continue };
        let age = about.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let is_refused = || knock(&entry.path()).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        if about.file_type().is_socket()
            && about.uid() == platform::effective_user()
            && age.is_some_and(|age| age > STALE_AFTER)
            && is_refused()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes numbers.
    let number = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the call has made this descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

pub(super) fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: a struct of numbers, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = path.as_os_str().as_bytes();
    if path.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, byte) in address.sun_path.iter_mut().zip(path) {
        *to = byte.cast_signed() as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
