//! A thread that writes, and a drain thread that recalls its chunk while it is idle.

#![allow(unsafe_code)] // `Lease::set` and `Lease::take` have contracts

use super::*;
use hairline_shm::{Lease, Recall, fence_all_threads, may_be_interrupted, model_interrupts, now_idle};

const EPOCH: u32 = 2;

/// A thread as in the SDK: each event takes the fast path or the slow one.
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
        // SAFETY: `Owner` follows the rules of `Lease::set`.
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
        may_be_interrupted();
        self.lease.set_busy(true);
        may_be_interrupted();
        if self.lease.epoch() != EPOCH {
            self.settle();
        }
        may_be_interrupted();
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

    /// Ends the thread. Another thread may get its lease at once.
    fn leave(mut self) {
        self.lease.set_busy(true);
        self.lease.clear();
        if self.lease.settle()
            && let Some(chunk) = &mut self.chunk
        {
            chunk.set_recalled();
        }
        drop(self.chunk);
        self.lease.give_up();
        self.lease.set_busy(false);
    }
}

/// Recalls the chunk of a thread that looks idle. Returns whether it took the chunk; `None` if it did not
/// ask.
fn try_recall(region: &Region, lease: &Lease) -> Option<bool> {
    let recall = Recall { region, epoch: EPOCH, idle_since: u64::MAX, empty_room: None };
    if !lease.ask(&recall) {
        return None;
    }
    fence_all_threads();
    // SAFETY: after the fence.
    Some(unsafe { lease.take(&recall) })
}

// owner:    event a, event b, leave
// recaller: ask, fence, take, then reads all committed bytes
#[test]
fn a_recalled_chunk_is_not_written_again_and_no_record_is_lost() {
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
        let is_taken = try_recall(&region, &lease);
        taken.note_if(is_taken == Some(true));
        refused.note_if(is_taken == Some(false));
        drain.pass(&mut out).unwrap();
        thread.join().unwrap();
        while drain.pass(&mut out).unwrap().freed > 0 {}
        assert_eq!(out.bytes, b"ab");
        assert_eq!(
            region.free_chunks(),
            region.chunk_count(),
            "completed once, by the thread or by the recaller"
        );
    });
    assert!(seen_taken.happened() && seen_refused.happened() && seen_slow.happened());
}

// owner: event a, event b, leave
// drain: interrupts the lease, then ask, fence, take, and reads all committed bytes
#[test]
fn an_interrupted_thread_takes_the_slow_path_and_keeps_its_chunk_or_gives_it_back_once() {
    let (taken, slow) = (Seen::default(), Seen::default());
    let (seen_taken, seen_slow) = (taken.clone(), slow.clone());
    explore_with(2, move || {
        let (region, lease) = (ring(), Arc::new(Lease::new()));
        let mut owner = Owner::new(&region, &lease);
        let thread = {
            let slow = slow.clone();
            thread::spawn(move || {
                owner.event(b"a");
                owner.event(b"b");
                slow.note_if(owner.went_slow && owner.index == 0);
                owner.leave();
            })
        };
        lease.interrupt(EPOCH);
        taken.note_if(try_recall(&region, &lease) == Some(true));
        let (mut drain, mut out) = (Drain::new(Arc::clone(&region)), Sink::default());
        drain.pass(&mut out).unwrap();
        thread.join().unwrap();
        while drain.pass(&mut out).unwrap().freed > 0 {}
        assert_eq!(out.bytes, b"ab");
        assert_eq!(region.free_chunks(), region.chunk_count(), "completed once");
    });
    assert!(seen_taken.happened() && seen_slow.happened());
}

// owner:    event a                     (interrupted before, during or after it)
// recaller: ask, interrupts the owner, take, then reads all committed bytes
//
// Without the Release of `busy = 0` the recaller could see 0 there, and not the record that was written
// before.
#[test]
fn a_recaller_that_sees_the_end_of_an_event_sees_its_record() {
    let (taken, slow) = (Seen::default(), Seen::default());
    let (seen_taken, seen_slow) = (taken.clone(), slow.clone());
    explore_with(5, move || {
        model_interrupts(true);
        let (region, lease) = (ring(), Arc::new(Lease::new()));
        let mut owner = Owner::new(&region, &lease);
        let thread = {
            let slow = slow.clone();
            thread::spawn(move || {
                owner.event(b"a");
                slow.note_if(owner.went_slow);
                now_idle();
                owner
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut out = Sink::default();
        if let Some(is_taken) = try_recall(&region, &lease) {
            taken.note_if(is_taken);
            drain.pass(&mut out).unwrap();
            if is_taken {
                // The chunk is complete: the output has all of its records, and it is free.
                assert!(out.bytes.is_empty() || out.bytes == b"a");
            }
        }
        let owner = thread.join().unwrap();
        model_interrupts(false);
        owner.leave();
        while drain.pass(&mut out).unwrap().freed > 0 {}
        assert_eq!(out.bytes, b"a");
        assert_eq!(
            region.free_chunks(),
            region.chunk_count(),
            "completed once, by the thread or by the recaller"
        );
    });
    model_interrupts(false);
    assert!(seen_taken.happened() && seen_slow.happened());
}

// owner:    event a, event b, leave
// recaller: ask, fence, take, drains, and so frees the chunk
// claimer:  claims a chunk, perhaps that one, and writes it
#[test]
fn another_thread_can_own_a_recalled_chunk_at_once() {
    let (same, other) = (Seen::default(), Seen::default());
    let (seen_same, seen_other) = (same.clone(), other.clone());
    explore_with(2, move || {
        // One chunk is the owner's, two are free, and this thread has one.
        let (region, held) = ring_with_free(3);
        let lease = Arc::new(Lease::new());
        let mut owner = Owner::new(&region, &lease);
        let number = owner.chunk.as_ref().unwrap().number();
        let owner = thread::spawn(move || {
            owner.event(b"a");
            owner.leave();
        });
        let claimer = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut chunk = claim(&region, 2, 0, b"")?;
                assert!(chunk.append(b"z", 1));
                let number = chunk.number();
                chunk.finish_sequence();
                Some(number)
            })
        };
        let mut drain = Drain::new(Arc::clone(&region));
        let mut out = Sink::default();
        try_recall(&region, &lease);
        drain.pass(&mut out).unwrap();
        owner.join().unwrap();
        let claimed = claimer.join().unwrap();
        same.note_if(claimed == Some(number));
        other.note_if(claimed.is_some_and(|claimed| claimed != number));
        while drain.pass(&mut out).unwrap().freed > 0 {}
        out.bytes.sort_unstable();
        assert_eq!(out.bytes, if claimed.is_some() { &b"az"[..] } else { b"a" });
        assert_eq!(region.free_chunks(), 3);
        drop(held);
    });
    assert!(seen_same.happened() && seen_other.happened());
}

// owner:    has a spare chunk beside the one it writes; gives the spare one back
// recaller: ask, fence, take
#[test]
fn a_thread_with_a_spare_chunk_keeps_both() {
    let (asked, refused) = (Seen::default(), Seen::default());
    let (seen_asked, seen_refused) = (asked.clone(), refused.clone());
    explore_most(move || {
        let (region, lease) = (ring(), Arc::new(Lease::new()));
        let mut owner = Owner::new(&region, &lease);
        let spare = claim(&region, 1, 1, b"").unwrap();
        owner.index = 1;
        // SAFETY: as in `Owner::new`.
        unsafe { lease.set(owner.chunk.as_ref().unwrap(), EPOCH, EPOCH, false) };
        let has_spare = Arc::new(loom::sync::atomic::AtomicBool::new(true));
        let told = Arc::clone(&has_spare);
        let thread = thread::spawn(move || {
            owner.event(b"a");
            // The end for which the spare chunk was reserved: that chunk is now the next and only one of the
            // sequence.
            owner.lease.set_busy(true);
            owner.chunk = Some(spare);
            told.store(false, Ordering::SeqCst);
            // SAFETY: as in `Owner::new`.
            unsafe { owner.lease.set(owner.chunk.as_ref().unwrap(), EPOCH, EPOCH, true) };
            owner.lease.set_busy(false);
            owner.leave();
        });
        let had_spare = || has_spare.load(Ordering::SeqCst);
        let is_taken = try_recall(&region, &lease);
        assert!(is_taken != Some(true) || !had_spare(), "taken while the thread had two");
        asked.note_if(is_taken.is_some());
        refused.note_if(is_taken.is_none());
        thread.join().unwrap();
        let (mut drain, mut out) = (Drain::new(Arc::clone(&region)), Sink::default());
        while drain.pass(&mut out).unwrap().freed > 0 {}
        assert_eq!(out.bytes, b"a");
        assert_eq!(region.free_chunks(), region.chunk_count());
    });
    assert!(seen_asked.happened() && seen_refused.happened());
}
