//! The connection to a service of the machine over a socket, and the memory that both share, on Linux.
//!
//! All of it belongs to threads with tables of open files of their own, as the socket of `door.rs` does.

#![allow(unsafe_code)] // calls the system, and maps memory

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use crate::on::base::platform;
use crate::on::base::platform::door::{address, checked};
use crate::on::base::platform::facts::Heard;

/// The pause if the system refuses a wait.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection of bytes to a service.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
}

impl Connection {
    /// Connects to the socket at `path`; with a leading `@` the rest is a name in the kernel alone.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes numbers.
        let number = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
        // SAFETY: the call has made this descriptor for the caller.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        let (mut address, mut len) = address(path)?;
        if path.as_os_str().as_encoded_bytes().first() == Some(&b'@') {
            address.sun_path[0] = 0;
            let head = size_of::<libc::sockaddr_un>() - address.sun_path.len();
            len = (head + path.as_os_str().len()) as libc::socklen_t;
        }
        // SAFETY: the address has this length.
        checked(unsafe { libc::connect(number, (&raw const address).cast(), len) })?;
        Ok(Self { socket })
    }

    /// Whether the service is root's or this user's.
    pub(crate) fn is_trusted(&self) -> bool {
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        let to: *mut c_void = (&raw mut peer).cast();
        // SAFETY: the call writes `len` bytes to `peer`.
        let found = unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut len)
        };
        found == 0 && (peer.uid == 0 || peer.uid == platform::effective_user())
    }

    /// Returns a second descriptor of the connection.
    pub(crate) fn again(&self) -> io::Result<Self> {
        self.socket.try_clone().map(|socket| Self { socket })
    }

    /// Returns the number of the descriptor.
    pub(crate) fn number(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Waits until the service has sent something, for at most this time.
    pub(crate) fn wait(&self, longest: Duration) {
        self.poll(libc::POLLIN, longest);
    }

    /// Reads what has come, without waiting. Descriptors are closed.
    pub(crate) fn receive(&self, bytes: &mut [u8]) -> Heard {
        let to: *mut c_void = bytes.as_mut_ptr().cast();
        // SAFETY: pointer and length describe `bytes`.
        let len = unsafe { libc::recv(self.socket.as_raw_fd(), to, bytes.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(len) {
            Ok(0) => Heard::End,
            Ok(len) => Heard::Bytes(len),
            Err(_) => match io::Error::last_os_error().kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Heard::Nothing,
                _ => Heard::End,
            },
        }
    }

    /// Sends all of the bytes, the first of them with the file. Waits at most until `until`.
    ///
    /// # Errors
    /// When the service does not take them in that time, or has gone. A part may have been sent.
    pub(crate) fn send(&self, mut bytes: &[u8], mut file: Option<&File>, until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.send_some(bytes, file) {
                Ok(sent) => {
                    bytes = bytes.get(sent..).unwrap_or_default();
                    file = None;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let rest = until.saturating_duration_since(Instant::now());
                    if rest.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.poll(libc::POLLOUT, rest);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn send_some(&self, bytes: &[u8], file: Option<&File>) -> io::Result<usize> {
        // SAFETY: the macro only computes a size.
        const ROOM: usize = unsafe { libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) } as usize;
        #[repr(C, align(8))] // as a header
        struct Control([u8; ROOM]);
        let mut control = Control([0; ROOM]);
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: a struct of numbers and pointers, for which zeros are valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        if let Some(file) = file {
            (message.msg_control, message.msg_controllen) = ((&raw mut control).cast(), ROOM as _);
            // SAFETY: the control buffer has room for a header and one number.
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
                libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(file.as_raw_fd());
            }
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the message names buffers of these lengths, which the call only reads.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn poll(&self, events: libc::c_short, longest: Duration) {
        let mut polled = libc::pollfd { fd: self.socket.as_raw_fd(), events, revents: 0 };
        let longest = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: one element.
        if checked(unsafe { libc::poll(&raw mut polled, 1, longest) }).is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Memory that this process shares with a service. Its size is sealed, so neither side can take pages away
/// from the other. A forked child has none of it.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to no thread. Its words are atomic. Other bytes are written by one thread at a
// time, by the contract of `write`, and never read.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes memory of `len` bytes, which are 0, and the file with which another process maps it.
    pub(crate) fn new(len: usize) -> io::Result<(Self, File)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a literal.
        let number = checked(unsafe { libc::memfd_create(c"hairline-traced".as_ptr(), flags) })?;
        // SAFETY: the call has made this descriptor for the caller.
        let file = unsafe { File::from_raw_fd(number) };
        file.set_len(len as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: takes numbers.
        checked(unsafe { libc::fcntl(number, libc::F_ADD_SEALS, seals) })?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, number, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping has just been made with this length. A failure leaves the child with it.
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_DONTFORK) };
        Ok((Self { start, len }, file))
    }

    /// Returns the word at byte `at`, a multiple of 4. The other process may change it at any time.
    ///
    /// # Panics
    /// When the word is not inside of the memory.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at < self.len && self.len - at >= 4);
        // SAFETY: aligned, as the mapping begins at a page, and inside of it by the assertion. All accesses
        // of this process to words are atomic: `write` is for other bytes, by its contract.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Writes bytes from byte `at` on, none of them in a [`word`](Self::word) that is used. They are in a
    /// page that the calling thread has claimed.
    ///
    /// # Panics
    /// When they are not inside of the memory.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at);
        // SAFETY: inside of the mapping by the assertion, and `bytes` is not: no reference to its bytes is
        // made.
        unsafe { self.start.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which nothing refers any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
