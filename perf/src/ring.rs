//! A ring that the kernel writes and this process reads.

use std::io;

use crate::abi::HEADER;
use crate::attributes::{Attributes, Layout};
use crate::event::Event;
use crate::record::{Record, Stamp, parse};
use crate::sys;

/// The ring of an event, and of all events that write to it. It is the memory of the process that has made
/// it: a forked child does not have it.
#[derive(Debug)]
pub struct Ring {
    /// Unmapped before the event is closed.
    memory: sys::Memory,
    event: Event,
    layout: Layout,
    /// A copy of the record that is read.
    record: Vec<u8>,
}

/// What one [`Ring::read`] has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records whose content contradicts itself. After a header that does, the rest of the ring is dropped
    /// and counts once.
    pub malformed: u64,
}

impl Ring {
    /// Makes the ring of an event. `bytes` is a power of two and at least a page. Per processor, a user has
    /// 512 KiB without a limit (`kernel.perf_event_mlock_kb`); more counts against `RLIMIT_MEMLOCK`.
    /// `attributes` are those of the samples in the ring.
    ///
    /// # Errors
    /// `EPERM` if the user has reached the limit: a smaller ring may fit. `EINVAL` for another size.
    pub fn new(event: Event, bytes: usize, attributes: &Attributes) -> io::Result<Self> {
        let memory = sys::Memory::map(event.fd.get()?, bytes)?;
        Ok(Self { memory, event, layout: attributes.layout(), record: Vec::new() })
    }

    /// Like [`new`](Self::new), with half the size until the kernel accepts it, but at least 16 KiB.
    ///
    /// # Errors
    /// As for `new`.
    pub fn at_most(event: Event, mut bytes: usize, attributes: &Attributes) -> io::Result<Self> {
        const LEAST: usize = 16 << 10;
        loop {
            match sys::Memory::map(event.fd.get()?, bytes) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied && bytes > LEAST => bytes /= 2,
                memory => {
                    let (memory, layout) = (memory?, attributes.layout());
                    return Ok(Self { memory, event, layout, record: Vec::new() });
                }
            }
        }
    }

    /// Returns the event that the ring belongs to.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Returns the size of the ring, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.size()
    }

    /// Calls `each` for the records that the ring has now, oldest first, and frees their room.
    pub fn read(&mut self, mut each: impl FnMut(Record<'_>, Stamp)) -> Read {
        let (head, mut tail) = (self.memory.head(), self.memory.tail());
        let mut read = Read::default();
        while let Some(size) = self.record_size(tail, head) {
            self.record.resize(size, 0);
            self.memory.copy(tail, &mut self.record);
            match parse(&self.record, self.layout) {
                Some((record, stamp)) => each(record, stamp),
                None => read.malformed += 1,
            }
            tail = tail.wrapping_add(size as u64);
            self.memory.set_tail(tail);
            read.records += 1;
            read.bytes += size as u64;
        }
        if tail != head {
            read.malformed += 1;
            self.memory.set_tail(head);
        }
        read
    }

    /// Returns the size of the record at `tail`. `None`: there is none, or the bytes are no record.
    fn record_size(&self, tail: u64, head: u64) -> Option<usize> {
        let filled = usize::try_from(head.wrapping_sub(tail)).ok()?;
        if filled < HEADER || filled > self.memory.size() {
            return None;
        }
        let mut header = [0; HEADER];
        self.memory.copy(tail, &mut header);
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        (size >= HEADER && size <= filled).then_some(size)
    }
}
