//! Exits on another thread than that of the entry.
//!
//! Only a thread itself can end a slice on its track. So the exit leaves a message for the thread of the
//! entry, which reads it when it has many entries, or leaves one in an unusual order. The messages are few
//! and the entries that they are about may be gone, so the oldest ones are dropped.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::on::base::lock::Mutex;
use crate::on::base::this_thread;
use crate::on::event::track;

/// Number of lists. Each has the messages for some threads.
const LISTS: usize = 16;
/// The most messages of a list. They may be for threads that have ended.
const MOST: usize = 1024;
/// Number of messages that a thread takes at a time.
const BATCH: usize = 64;

struct List {
    /// Number of messages that the list ever had.
    written: AtomicU32,
    /// Threads, by the uuids of their tracks, and the spans that were left.
    messages: Mutex<Vec<(u64, u64)>>,
}

static ALL: [List; LISTS] =
    [const { List { written: AtomicU32::new(0), messages: Mutex::new(Vec::new()) } }; LISTS];

fn list(thread: u64) -> &'static List {
    &ALL[thread as usize % LISTS]
}

/// Leaves a message for the thread that it has left the span.
#[cold]
pub(crate) fn leave(thread: u64, span: u64) {
    // A thread that has not entered the span itself, or has left it already, has no use for the message.
    if thread == track::own_uuid().0 || this_thread::is_barred() {
        return;
    }
    let _busy = this_thread::busy(); // for the lock
    let list = list(thread);
    let messages = list.messages.lock_unless_lost_with_room(|messages| (messages, 1));
    if let Some(mut messages) = messages {
        if messages.len() >= MOST {
            messages.drain(..MOST / 2);
        }
        messages.push((thread, span));
        list.written.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls `left` with each span that other threads have left for this one. `seen` is the number of messages
/// that this thread has looked at.
pub(crate) fn read(seen: u32, mut left: impl FnMut(u64)) -> u32 {
    let thread = track::own_uuid().0;
    let list = list(thread);
    // Relaxed: only the lock makes messages visible. Without it a message is read a little later.
    if list.written.load(Ordering::Relaxed) == seen || this_thread::is_barred() {
        return seen;
    }
    loop {
        let (mut taken, mut count) = ([0; BATCH], 0);
        let busy = this_thread::busy(); // for the lock
        let Some(mut messages) = list.messages.lock_unless_lost() else { return seen };
        messages.retain(|(of, span)| {
            let is_taken = *of == thread && count < BATCH;
            if is_taken {
                taken[count] = *span;
                count += 1;
            }
            !is_taken
        });
        let written = list.written.load(Ordering::Relaxed);
        drop(messages);
        drop(busy);
        taken[..count].iter().for_each(|span| left(*span));
        if count < BATCH {
            return written;
        }
    }
}
