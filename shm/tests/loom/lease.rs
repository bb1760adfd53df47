//! A thread that writes, and somebody who takes its chunk back while it is idle.
//!
//! The light fences are full ones here, so these models cannot tell whether `busy = 0` needs its Release: `lease.rs` says why it does.

#![allow(unsafe_code)] // `Lease::set` has a contract

use super::*;
use hairline_shm::{Lease, Recall, fence_all_threads};

const EPOCH: u32 = 2;

/// What a thread of the SDK does for each event, the fast way or the slow one.
struct Owner {
    region: Arc<Region>,
    lease: Arc<Lease>,
    chunk: Option<WriteChunk>,
    index: u32,
    went_slow: bool,
}

impl Owner {
    fn new(region: &Arc<Region>, lease: &Arc<Lease>) -> Self {
        let chunk = claim(region, 1, 0, b"").unwrap();
        // SAFETY: `Owner` keeps the rules of `Lease::set`.
        unsafe { lease.set(&chunk, EPOCH, EPOCH, true) };
        Self {
            region: Arc::clone(region),
            lease: Arc::clone(lease),
            chunk: Some(chunk),
            index: 0,
            went_slow: false,
        }
    }

    fn event(&mut self, record: &[u8]) {
        self.lease.set_busy(true);
        if self.lease.epoch() != EPOCH {
            self.settle();
        }
        assert!(self.chunk.as_mut().unwrap().append(record, 1));
        self.lease.set_busy(false);
    }

    fn settle(&mut self) {
        self.went_slow = true;
        if self.lease.settle() {
            let mut before = self.chunk.take().unwrap();
            before.set_recalled();
            self.index += 1;
            self.chunk = claim(&self.region, 1, self.index, b"");
        }
        // SAFETY: as in `new`.
        unsafe { self.lease.set(self.chunk.as_ref().unwrap(), EPOCH, EPOCH, true) };
    }

    /// The thread ends.
    fn leave(mut self) {
        self.lease.set_busy(true);
        self.lease.clear();
        if self.lease.settle()
            && let Some(chunk) = &mut self.chunk
        {
            chunk.set_recalled();
        }
        drop(self.chunk);
    }
}

fn recall(region: &Region) -> Recall<'_> {
    Recall { region, epoch: EPOCH, idle_since: u64::MAX, empty_room: None }
}

// owner:    event a, event b, leave
// recaller: ask, fence, take, then reads all that is committed
#[test]
fn a_chunk_that_is_taken_back_is_not_written_any_more_and_nothing_is_lost() {
    let (taken, refused, slow) = (Seen::default(), Seen::default(), Seen::default());
    let (seen_taken, seen_refused, seen_slow) = (taken.clone(), refused.clone(), slow.clone());
    explore_most(move || {
        let (region, lease) = (ring(), Arc::new(Lease::new()));
        let mut owner = Owner::new(&region, &lease);
        let thread = {
            let slow = slow.clone();
            thread::spawn(move || {
                owner.event(b"a");
                owner.event(b"b");
                slow.note_if(owner.went_slow);
                owner.leave();
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut out = Sink::default();
        if lease.ask(&recall(&region)) {
            fence_all_threads();
            let is_taken = lease.take(&recall(&region));
            taken.note_if(is_taken);
            refused.note_if(!is_taken);
        }
        drain.pass(&mut out).unwrap();
        thread.join().unwrap();
        while drain.pass(&mut out).unwrap().freed > 0 {}
        assert_eq!(out.bytes, b"ab");
        assert_eq!(region.free_chunks(), region.chunk_count(), "completed once, by whoever had it");
    });
    assert!(seen_taken.happened() && seen_refused.happened() && seen_slow.happened());
}
