//! An event: a file descriptor of the kernel.

use std::ffi::CStr;
use std::io;

use crate::abi::errno;
use crate::attributes::Attributes;
use crate::held::Held;
use crate::sys;

/// The number of an event, which the stamps of its records have.
pub type Id = u64;

/// Returns what helps against an error of [`Event::open`], of a ring or of their users.
#[must_use]
pub fn advice(e: &io::Error) -> &'static str {
    match (e.kind(), e.raw_os_error()) {
        (io::ErrorKind::PermissionDenied, Some(errno::EPERM)) => {
            "allow perf_event_open in the seccomp profile of the container, or give CAP_PERFMON or more locked \
             memory (ulimit -l)"
        }
        (io::ErrorKind::PermissionDenied, _) => {
            "set kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON"
        }
        (_, Some(errno::ENOENT)) => "this machine has no such counter, as most virtual machines",
        (io::ErrorKind::QuotaExceeded, _) | (_, Some(errno::EMFILE | errno::ENFILE)) => {
            "raise the limit of open files (ulimit -n)"
        }
        (io::ErrorKind::InvalidInput, _) => "Linux 5.13 or later has it",
        (_, Some(errno::ENOMEM)) => "give more memory",
        _ => "only Linux with perf events has it",
    }
}

/// An event of one thread. It ends when it is dropped, and so do the events that later threads have inherited
/// from it. It is closed by exec. A forked child has a copy of the descriptor, and must drop it: the event
/// lives on as long as any process has a descriptor.
#[derive(Debug)]
pub struct Event {
    pub(crate) fd: Held,
    counts_lost: bool,
}

/// What an event without records has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) count: u64,
    /// The time for which its threads have run, in ns.
    pub(crate) enabled: u64,
    /// The part of that time in which a counter of the processor was free for it.
    pub(crate) running: u64,
}

impl Event {
    /// Opens an event for a thread (0: the calling one), on one processor or on all. Without processor an
    /// inherited event cannot have a ring.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) where there are no perf events. Otherwise the kernel's:
    /// `EACCES` or `EPERM` if the user may not do that (`kernel.perf_event_paranoid`, `CAP_PERFMON`), or a
    /// seccomp filter forbids it; `ESRCH` if the thread has ended; `EMFILE` without a free descriptor;
    /// `ENODEV` if the processor is offline; `EINVAL` if the kernel is too old for an attribute.
    pub fn open(attributes: &Attributes, tid: u32, cpu: Option<u32>) -> io::Result<Self> {
        Self::open_of(attributes, Some(tid), cpu)
    }

    /// Opens an event for all threads of the machine, on one processor. Only root may, or `CAP_PERFMON`.
    pub(crate) fn open_for_all(attributes: &Attributes, cpu: u32) -> io::Result<Self> {
        Self::open_of(attributes, None, Some(cpu))
    }

    fn open_of(attributes: &Attributes, tid: Option<u32>, cpu: Option<u32>) -> io::Result<Self> {
        let open = |attributes: &Attributes| sys::open(&attributes.0, tid, cpu).map(Held::new);
        match open(attributes) {
            Ok(fd) => Ok(Self { fd, counts_lost: true }),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                Ok(Self { fd: open(&attributes.without_lost())?, counts_lost: false })
            }
            Err(e) => Err(e),
        }
    }

    /// Starts to count.
    ///
    /// # Errors
    /// The kernel's.
    pub fn enable(&self) -> io::Result<()> {
        sys::enable(self.fd.get()?)
    }

    /// Ends the counting, also in the threads that have inherited the event.
    ///
    /// # Errors
    /// The kernel's.
    pub fn disable(&self) -> io::Result<()> {
        sys::disable(self.fd.get()?)
    }

    /// Lets the kernel write this event's records into the ring of `other`, which has the same processor.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_to_ring_of(&self, other: &Self) -> io::Result<()> {
        sys::set_output(self.fd.get()?, other.fd.get()?)
    }

    /// Lets only those hits of a tracepoint count that this condition is true for: also in the threads that
    /// inherit the event.
    pub(crate) fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        sys::set_filter(self.fd.get()?, filter)
    }

    /// Returns the number that the stamps of its records have.
    ///
    /// # Errors
    /// The kernel's.
    pub fn id(&self) -> io::Result<Id> {
        let mut words = [0; 3];
        self.read(&mut words)?;
        Ok(words[1])
    }

    fn read(&self, words: &mut [u64]) -> io::Result<usize> {
        sys::read_words(self.fd.get()?, words)
    }

    /// Returns what an event of [`Attributes::count`] has counted, with the counts of threads that have
    /// inherited it. `None` if the kernel does not tell.
    pub(crate) fn reading(&self) -> Option<Reading> {
        let mut words = [0; 3];
        let is_read = self.read(&mut words).is_ok_and(|n| n == 3);
        let [count, enabled, running] = words;
        is_read.then_some(Reading { count, enabled, running })
    }

    /// Returns the number of records that found no room in the ring, of this event and of those that later
    /// threads have inherited. `None`: the kernel is older than 6.0 and does not count them.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let mut words = [0; 3]; // a count that means nothing here, the id, the lost records
        let is_read = self.counts_lost && self.read(&mut words).is_ok_and(|n| n == 3);
        is_read.then_some(words[2])
    }

    /// Notes that the calling thread has a table of open files of its own, with a copy of this event's
    /// descriptor, and that the process closes the other copy. From now on only this thread reads and closes
    /// it.
    pub fn moved_here(&self) {
        self.fd.moved_here();
    }

    /// Returns the number of the file descriptor, for `poll`: readable when the ring has reached the
    /// watermark.
    #[must_use]
    pub fn raw_fd(&self) -> i32 {
        sys::raw(self.fd.unchecked())
    }
}
