//! Events of all threads of this process, present and future.
//!
//! Each present thread gets an event on each processor, which its future threads inherit. All events of a
//! processor write into one ring.

use std::ffi::CStr;
use std::io;

use crate::abi::errno;
use crate::attributes::Attributes;
use crate::cpus::online_cpus;
use crate::event::Event;
use crate::record::{Record, Stamp};
use crate::ring::Ring;
use crate::threads::while_none_starts;

/// The bytes of a ring that a user has for each processor without a limit, but for one page.
pub const RING: usize = 512 << 10;

/// The events of this process's threads, and their rings.
#[derive(Debug)]
pub struct OwnEvents {
    rings: Vec<Ring>,
    /// All events but those of the rings.
    events: Vec<Event>,
    /// Lost records that were returned.
    lost: u64,
    /// Lost records that the rings have told of, and records that are malformed.
    told: u64,
    malformed: u64,
    has_all_threads: bool,
}

impl OwnEvents {
    const NONE: Self =
        Self { rings: Vec::new(), events: Vec::new(), lost: 0, told: 0, malformed: 0, has_all_threads: true };

    /// Opens the events, which future threads should inherit. `each` is called for each present thread when
    /// its events are open; its results are returned. `may_open`: the most file descriptors to use.
    ///
    /// It is also called for threads whose events are closed again, since another thread started meanwhile.
    ///
    /// # Errors
    /// As those of [`Event::open`] and [`Ring::at_most`]; of the kind
    /// [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) if `may_open` is too little.
    pub fn open<T>(
        attributes: &Attributes,
        may_open: u64,
        each: impl FnMut(u32) -> T,
    ) -> io::Result<(Self, Vec<T>)> {
        Self::open_with(attributes, RING, may_open, each)
    }

    /// The same with rings of at most so many bytes.
    pub(crate) fn open_with<T>(
        attributes: &Attributes,
        bytes: usize,
        may_open: u64,
        mut each: impl FnMut(u32) -> T,
    ) -> io::Result<(Self, Vec<T>)> {
        let cpus = online_cpus();
        let ((mut own, results), has_all) = while_none_starts(cpus.len() as u64, may_open, |threads| {
            let (mut own, mut results) = (Self::NONE, Vec::new());
            for tid in threads {
                if own.open_thread(*tid, &cpus, (attributes, bytes))? {
                    results.push(each(*tid));
                }
            }
            Ok((own, results))
        })?;
        if own.rings.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "/proc has no threads of this process"));
        }
        own.has_all_threads = has_all;
        Ok((own, results))
    }

    /// Opens events of another process that has one thread. The attributes say when they begin, and that
    /// later threads and processes inherit them. `bytes`: the most for each ring.
    ///
    /// # Errors
    /// As those of [`Event::open`] and [`Ring::at_most`].
    pub fn open_for_command(attributes: &Attributes, pid: u32, bytes: usize) -> io::Result<Self> {
        Self::of_processors(attributes, bytes, |cpu| Event::open(attributes, pid, Some(cpu)))
    }

    /// Opens events of all threads of the machine.
    pub(crate) fn open_for_all(attributes: &Attributes, bytes: usize) -> io::Result<Self> {
        Self::of_processors(attributes, bytes, |cpu| Event::open_for_all(attributes, cpu))
    }

    fn of_processors(
        attributes: &Attributes,
        bytes: usize,
        open: impl Fn(u32) -> io::Result<Event>,
    ) -> io::Result<Self> {
        let mut own = Self::NONE;
        for cpu in online_cpus() {
            own.rings.push(Ring::at_most(open(cpu)?, bytes, attributes)?);
        }
        Ok(own)
    }

    /// Opens a thread's events on all processors. Returns false when the thread has ended.
    fn open_thread(
        &mut self,
        tid: u32,
        cpus: &[u32],
        (attributes, bytes): (&Attributes, usize),
    ) -> io::Result<bool> {
        let is_first = self.rings.is_empty();
        for (index, cpu) in cpus.iter().enumerate() {
            let event = match Event::open(attributes, tid, Some(*cpu)) {
                Err(e) if e.raw_os_error() == Some(errno::ESRCH) => {
                    self.rings.retain(|_| !is_first); // so that the next thread makes them all
                    return Ok(false);
                }
                event => event?,
            };
            match self.rings.get(index) {
                Some(ring) => {
                    event.write_to_ring_of(ring.event())?;
                    self.events.push(event);
                }
                None => self.rings.push(Ring::at_most(event, bytes, attributes)?),
            }
        }
        Ok(true)
    }

    /// See [`Event::set_filter`].
    pub(crate) fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        self.all().try_for_each(|event| event.set_filter(filter))
    }

    fn all(&self) -> impl Iterator<Item = &Event> {
        self.rings.iter().map(Ring::event).chain(&self.events)
    }

    /// Returns false if threads kept starting while the events were opened: a few may have none.
    #[must_use]
    pub fn has_all_threads(&self) -> bool {
        self.has_all_threads
    }

    /// Returns the number of events.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all().count()
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        self.all().map(Event::raw_fd).collect()
    }

    /// See [`Event::moved_here`].
    pub fn moved_here(&self) {
        self.all().for_each(Event::moved_here);
    }

    /// Returns the size of the smallest ring, in bytes.
    #[must_use]
    pub fn smallest_ring(&self) -> u64 {
        self.rings.iter().map(Ring::size).min().unwrap_or(0) as u64
    }

    /// Calls `each` for the records of all rings, ring by ring. Returns the part of the fullest ring that was
    /// filled, in percent.
    pub fn read(&mut self, mut each: impl FnMut(Record<'_>, Stamp)) -> u64 {
        let Self { rings, told, malformed, .. } = self;
        let mut fullest = 0;
        for ring in rings {
            let read = ring.read(|record, stamp| {
                if let Record::Lost { records } = record {
                    *told = told.saturating_add(records);
                }
                each(record, stamp);
            });
            *malformed += read.malformed;
            fullest = fullest.max(read.bytes.saturating_mul(100) / ring.size() as u64);
        }
        fullest
    }

    /// Ends the recording. The descriptors stay open.
    pub fn disable(&self) {
        self.all().for_each(|event| drop(event.disable()));
    }

    /// Returns the number of records that were lost since the last call: the kernel's rings were full. At the
    /// end (`ask`) the kernel is asked about each event: a ring tells of a loss only when it has room again.
    pub fn newly_lost(&mut self, ask: bool) -> u64 {
        let mut all = self.told;
        if ask {
            all = all.max(self.all().filter_map(Event::lost).fold(0, u64::saturating_add));
        }
        let all = all.saturating_add(self.malformed);
        let new = all.saturating_sub(self.lost);
        self.lost = self.lost.max(all);
        new
    }
}
