//! The memory that this process shares with the service: pages with one chunk each, written by one thread.
//!
//! ```text
//! page   [header: layout and state][0]        free -> being written -> complete -> (service) free
//! chunk    [id][writer, packets]              the service reads complete ones, and those of a dead process
//! packets    [length][bytes]...               a packet may go on in the next chunk of its writer
//! ```
//!
//! **Orderings.** The Release of [`Memory::complete`] pairs with the service's Acquire of the page's header,
//! and that of [`Memory::show`] with its Acquire of the number of packets: it sees their bytes. The Acquire
//! of [`Memory::claim`] pairs with the Release with which the service frees a page: it reads nothing there
//! any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hairline_formats::proto::{put_varint, varint_len};

use crate::on::base::platform::service::SharedMemory;

/// Bytes of a page. The service's buffer takes whole ones, also those that are not full.
pub(crate) const PAGE: usize = 4096;
/// Pages of the memory.
pub(crate) const PAGES: usize = 512;

/// A page's header: one chunk, and its state.
const LAYOUT: u32 = 1 << 28;
const BEING_WRITTEN: u32 = LAYOUT | 1;
const COMPLETE: u32 = LAYOUT | 3;

/// The first byte of a page's packets.
const HEADERS: usize = 16;

/// The bits of the number of packets, and the flags above them.
const MOST_PACKETS: u16 = (1 << 10) - 1;
const CONTINUES_BEFORE: u16 = 1 << 10;
const CONTINUES_AFTER: u16 = 2 << 10;

/// The least room for a part of a packet. A smaller rest of a chunk stays empty.
const LEAST_PART: usize = 16;

/// A writer of the service: a row of chunks, whose packets are one sequence.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) id: u16,
    /// The number of the next chunk.
    next: u32,
    chunk: Option<Chunk>,
}

/// A chunk that is being written.
#[derive(Debug)]
struct Chunk {
    page: u32,
    /// Bytes of the page that are used.
    used: usize,
    packets: u16,
    flags: u16,
}

/// The pages.
#[derive(Debug)]
pub(crate) struct Memory {
    memory: Arc<SharedMemory>,
    /// The page after the last one that was claimed.
    next: usize,
}

/// No page is free.
#[derive(Debug)]
pub(crate) struct Full;

impl Writer {
    /// A writer with this number. `next` is the number of its next chunk: the service has had those before.
    pub(crate) fn new(id: u16, next: u32) -> Self {
        Self { id, next, chunk: None }
    }

    /// Returns the number of the next chunk.
    pub(crate) fn next_chunk(&self) -> u32 {
        self.next
    }
}

impl Memory {
    /// Of memory with [`PAGES`] of zeros.
    pub(crate) fn new(memory: Arc<SharedMemory>) -> Self {
        Self { memory, next: 0 }
    }

    /// Takes a free page.
    fn claim(&mut self) -> Option<u32> {
        let tried = (self.next..PAGES).chain(0..self.next);
        for page in tried {
            let header = self.memory.word(page * PAGE);
            // A page that is not free for this process stays as it is, whatever the service has written
            // there.
            let claimed = header.compare_exchange(0, BEING_WRITTEN, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_ok() {
                self.next = (page + 1) % PAGES;
                return Some(page as u32);
            }
        }
        None
    }

    /// Begins the writer's next chunk, unless it has one with room for a part of a packet. The complete one
    /// before it goes to `done`.
    fn begin(&mut self, writer: &mut Writer, flags: u16, done: &mut Vec<u32>) -> Result<(), Full> {
        let has_room =
            |chunk: &Chunk| PAGE - chunk.used >= LEAST_PART && chunk.packets + 1 < MOST_PACKETS && flags == 0;
        if writer.chunk.as_ref().is_some_and(has_room) {
            return Ok(());
        }
        done.extend(self.complete(writer));
        let page = self.claim().ok_or(Full)?;
        let at = page as usize * PAGE;
        self.memory.word(at + 8).store(writer.next, Ordering::Relaxed);
        let chunk = Chunk { page, used: HEADERS, packets: 0, flags };
        self.show(writer.id, &chunk, 1);
        writer.next = writer.next.wrapping_add(1);
        writer.chunk = Some(chunk);
        Ok(())
    }

    /// Shows the number of packets. `more` is 1 while the chunk is being written: of such a chunk the service
    /// leaves the last one out.
    fn show(&self, writer: u16, chunk: &Chunk, more: u16) {
        let packets = u32::from((chunk.packets + more) | chunk.flags);
        let word = self.memory.word(chunk.page as usize * PAGE + 12);
        word.store(packets << 16 | u32::from(writer), Ordering::Release);
    }

    /// Writes a packet of the writer, from its byte `from` on: a packet that was written in part goes on
    /// there. Pages that are complete go to `done`.
    ///
    /// # Errors
    /// When no page is free. `from` is then what has been written.
    pub(crate) fn write(
        &mut self,
        writer: &mut Writer,
        packet: &[u8],
        from: &mut usize,
        done: &mut Vec<u32>,
    ) -> Result<(), Full> {
        loop {
            let rest = packet.get(*from..).unwrap_or_default();
            let flags = if *from > 0 { CONTINUES_BEFORE } else { 0 };
            self.begin(writer, flags, done)?;
            let Some(chunk) = &mut writer.chunk else { return Err(Full) };
            let room = PAGE - chunk.used;
            let whole = varint_len(rest.len() as u64) + rest.len();
            // A length takes two bytes at most: a page is shorter than 2^14.
            // A byte stays for `complete`.
            let part = if whole < room {
                rest
            } else {
                rest.get(..(room - 2).min(rest.len() - 1)).unwrap_or_default()
            };
            let mut head = Vec::with_capacity(2);
            put_varint(&mut head, part.len() as u64);
            let at = chunk.page as usize * PAGE + chunk.used;
            self.memory.write(at, &head);
            self.memory.write(at + head.len(), part);
            chunk.used += head.len() + part.len();
            chunk.packets += 1;
            *from += part.len();
            if *from >= packet.len() {
                let chunk = &*chunk;
                self.show(writer.id, chunk, 1);
                return Ok(());
            }
            chunk.flags |= CONTINUES_AFTER;
            done.extend(self.complete(writer));
        }
    }

    /// Completes the writer's chunk. Returns its page.
    ///
    /// A chunk that ends with a whole packet gets an empty one, which readers pass over. The service may have
    /// read the chunk before it was complete: it takes one with as many packets for the same, and waits for its
    /// end for ever.
    pub(crate) fn complete(&mut self, writer: &mut Writer) -> Option<u32> {
        let mut chunk = writer.chunk.take()?;
        if chunk.flags & CONTINUES_AFTER == 0 && chunk.used < PAGE {
            self.memory.write(chunk.page as usize * PAGE + chunk.used, &[0]);
            chunk.packets += 1;
        }
        self.show(writer.id, &chunk, 0);
        self.memory.word(chunk.page as usize * PAGE).store(COMPLETE, Ordering::Release);
        Some(chunk.page)
    }
}
