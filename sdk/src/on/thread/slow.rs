//! Events that the session looks at: those that have stacks, and slices that are timed, because a slow one
//! triggers a snapshot or has stacks.
//!
//! Only callsites that a rule of the session matches, or that have the option `slow:`, are timed, and only in
//! a session that does something at slow slices. Their slices leave the hot path twice: at the begin, since
//! their near "seen" bit is always clear, and at the end, since no session has the number of
//! [`RecordedIn::timed`]. So other slices pay nothing.
//!
//! A begin keeps only the low half of its time, its id, which comes again after 4.3 s. The whole times of the
//! last begins are kept here, for each thread.
//!
//! [`RecordedIn::timed`]: crate::on::thread::open_scope::RecordedIn::timed

use std::cell::Cell;

use crate::on::base::stacks::{self, Watched};
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Watch};
use crate::on::session::trigger;
use crate::on::thread::open_scope::OpenScope;

/// Number of begins whose times a thread keeps. A slice with more timed slices in it has the length that its
/// id tells: less than 4.3 s.
const BEGINS: usize = 64;

struct Begins {
    times: [Cell<u64>; BEGINS],
    /// The watch of each.
    watched: [Cell<Watched>; BEGINS],
    /// The number of begins so far.
    count: Cell<usize>,
}

thread_local! {
    static LAST: Begins = const {
        Begins {
            times: [const { Cell::new(0) }; BEGINS],
            watched: [const { Cell::new(Watched::NONE) }; BEGINS],
            count: Cell::new(0),
        }
    };
}

/// Returns a begin that was just recorded, marked as timed if slices of the callsite are.
#[inline(always)]
pub(crate) fn if_timed(callsite: &'static Callsite, begun: OpenScope) -> OpenScope {
    let watch = callsite.watch();
    if watch == Watch::NOTHING { begun } else { watched(watch, begun) }
}

/// Looks at an instant that was just recorded on this thread.
#[inline(always)]
pub(crate) fn happened(callsite: &'static Callsite) {
    if callsite.watch().has_stacks() {
        stacks::take(this_thread::hot().lease().last());
    }
}

#[inline(never)]
fn watched(watch: Watch, begun: OpenScope) -> OpenScope {
    let now = this_thread::hot().lease().last();
    if watch.has_stacks() {
        stacks::take(now);
    }
    let limit = watch.slow_after();
    if limit == 0 {
        return begun;
    }
    let watched = if watch.has_slow_stacks() { stacks::watch(now, limit) } else { Watched::NONE };
    LAST.with(|last| {
        let count = last.count.get();
        last.times[count % BEGINS].set(now);
        last.watched[count % BEGINS].set(watched);
        last.count.set(count.wrapping_add(1));
    });
    OpenScope { recorded_in: begun.recorded_in.timed(), ..begun }
}

/// Looks at a slice that has just ended on this thread, if it is timed.
#[inline(always)]
pub(crate) fn ended(callsite: &'static Callsite, open: OpenScope) {
    if open.recorded_in.is_timed() {
        ended_timed(callsite, open);
    }
}

#[inline(never)]
fn ended_timed(callsite: &'static Callsite, open: OpenScope) {
    let now = this_thread::hot().lease().last();
    let begun = LAST.with(|last| {
        let count = last.count.get();
        // The last begin first: nearly always it is the one.
        let at =
            (1..=BEGINS).find(|n| last.times[count.wrapping_sub(*n) % BEGINS].get() as u32 == open.id)?;
        if at == 1 {
            last.count.set(count.wrapping_sub(1));
        }
        let at = count.wrapping_sub(at) % BEGINS;
        stacks::unwatch(last.watched[at].replace(Watched::NONE), last.times[at].get());
        Some(last.times[at].get())
    });
    if begun.is_none() {
        stacks::unwatch_begun(open.id);
    }
    if callsite.epoch() != Some(open.epoch()) {
        return; // the session of its begin is over: this thread's last event is another one
    }
    check(callsite, begun.unwrap_or_else(|| begun_by_id(open.id, now)), now);
}

/// Returns the last time up to `now` with this id; 0 if there is none. `now` is 0 in a child that was forked
/// inside the slice.
#[allow(clippy::cast_possible_truncation)] // the low half is meant
fn begun_by_id(id: u32, now: u64) -> u64 {
    now.saturating_sub(u64::from((now as u32).wrapping_sub(id)))
}

/// Requests a snapshot, and takes a stack, if a slice with these times, in ns, is slow.
#[inline]
pub(crate) fn check(callsite: &'static Callsite, begun: u64, ended: u64) {
    let watch = callsite.watch();
    let limit = watch.slow_after();
    if limit != 0 && ended.saturating_sub(begun) >= limit {
        if watch.has_slow_stacks() {
            stacks::take(ended);
        }
        trigger::trigger_slow(callsite);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_begin_gives_its_time_if_the_clock_has_been_there() {
        let hour = 3_600_000_000_000;
        assert_eq!(begun_by_id((hour - 7) as u32, hour), hour - 7);
        assert_eq!((begun_by_id(5, 9), begun_by_id(5, 0)), (5, 0));
    }
}
