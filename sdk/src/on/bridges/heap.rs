//! The program's allocations: counters that the session's own thread samples, and an instant for each large
//! block.
//!
//! ```text
//! allocation ──> the thread's counts (base/heap) <── sample, by the session's own thread ──> counters
//!      └── above the limit ──> instant
//! ```
//!
//! The first call of the allocator announces it: from then on `update` follows the sessions and their
//! filters, and the session's thread calls `sample`. The start of a session allocates, so a global allocator
//! is always announced before.

use std::time::Duration;

use hairline_formats::Value;

use crate::on::base::heap::Counts;
use crate::on::base::hooks::{Sampled, Samples};
use crate::on::base::lock::Mutex;
use crate::on::base::platform::own_thread;
use crate::on::base::{heap, hooks, this_thread};
use crate::on::callsite::registry::Bridge;
use crate::on::callsite::{Callsite, Epoch, Key, registry};
use crate::on::encode::constants;
use crate::on::event::Event;
use crate::on::event::extras::Extras;
use crate::on::session::current;
use crate::on::thread::{cold, valued};
use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Unit;

pub(crate) use crate::on::base::heap::profile::Taken;

/// The category of all that is recorded here.
const CATEGORY: &str = "heap";

/// The longest time between two samples.
const PERIOD: Duration = Duration::from_millis(50);
/// The least time between two samples, in ns. The session's thread also comes for each flush.
const LEAST_PERIOD: u64 = 20_000_000;

static LIVE_SINCE_START: Callsite = counter("heap: live bytes since start", &IN_BYTES);
static LIVE: Callsite = counter("heap: live bytes", &IN_BYTES);
static ALLOCATIONS: Callsite = counter("heap: allocations", &ALLOCATIONS_PER_SECOND);
static FREES: Callsite = counter("heap: frees", &FREES_PER_SECOND);
static LARGE: Callsite = Callsite::with_first_hit(
    CallsiteKind::Instant,
    CATEGORY,
    "large allocation",
    &LARGE_KEYS,
    &NOWHERE,
    epoch_without_a_start,
);

static COUNTER_KEYS: [Key; 1] = [Key::new("value")];
static LARGE_KEYS: [Key; 1] = [Key::new("bytes")];
static IN_BYTES: Site = Site::of_unit(Unit::Bytes);
static ALLOCATIONS_PER_SECOND: Site = Site::of_unit(Unit::Named("allocations/s"));
static FREES_PER_SECOND: Site = Site::of_unit(Unit::Named("frees/s"));
static NOWHERE: Site = Site::NOWHERE;

const fn counter(name: &'static str, site: &'static Site) -> Callsite {
    let first_hit = epoch_without_a_start;
    Callsite::with_first_hit(CallsiteKind::Counter, CATEGORY, name, &COUNTER_KEYS, site, first_hit)
}

/// Registers the callsite. An allocation starts no session: the program may hold any lock, even one of the
/// standard library that a start needs.
fn epoch_without_a_start(callsite: &'static Callsite) -> Option<Epoch> {
    registry::register(callsite, constants::constants);
    callsite.epoch()
}

/// Counts an allocation of this size. Returns `false` if [`look_at`] is to do that: it is the turn of this
/// one to be sampled, or the thread is not prepared.
///
/// An access to the thread's locals is a call for the compiler. What is needed after it has to be in
/// registers that the function saves first. So this gets the size only, and the other two little more.
#[inline(never)]
pub(crate) fn allocated(size: usize) -> bool {
    heap::allocated(size, Counts { live: size as u64, allocations: 1, frees: 0 })
}

/// Counts a reallocation as an allocation and a free, as [`allocated`].
#[inline(never)]
pub(crate) fn moved(before: usize, now: usize) -> bool {
    heap::allocated(now, Counts { live: (now as u64).wrapping_sub(before as u64), allocations: 1, frees: 1 })
}

/// Counts a free. Returns `false` if [`freed_first`] is to do that.
#[inline(never)]
pub(crate) fn freed(block: *mut u8, size: usize) -> bool {
    if may_be_sampled(block) {
        return freed_sampled(block, size);
    }
    heap::add_if_prepared(Counts::of_free(size))
}

/// As [`freed`], of a block that may have a sample.
#[inline(never)]
fn freed_sampled(block: *mut u8, size: usize) -> bool {
    if let Some(taken) = heap::profile::take(block) {
        heap::profile::freed(taken);
    }
    heap::add_if_prepared(Counts::of_free(size))
}

/// Counts an allocation, or a reallocation of so many bytes `before`, samples it if it is its turn, and
/// records it if it is large. The stack of the sample begins with the frame of this function, which is the
/// only one of Hairline's: it is never inlined, and its callers always are.
#[cold]
#[inline(never)]
pub(crate) fn look_at(
    block: *mut u8,
    size: usize,
    before: Option<usize>,
    is_large: bool,
    counts_always: bool,
) {
    if heap::switch().is_unannounced() && !announce(counts_always) {
        return;
    }
    let live = (size as u64).wrapping_sub(before.unwrap_or(0) as u64);
    heap::add(Counts { live, allocations: 1, frees: u64::from(before.is_some()) });
    let switch = heap::switch();
    if heap::is_turn_of(size, switch) {
        heap::profile::from_here(|at| heap::profile::sample(block, size, switch.profile(), at));
    }
    if is_large {
        record_large(size);
    }
}

/// Counts the free of a thread that has no counts.
#[cold]
#[inline(never)]
pub(crate) fn freed_first(size: usize, counts_always: bool) {
    if !heap::switch().is_unannounced() || announce(counts_always) {
        heap::add(Counts::of_free(size));
    }
}

/// Whether a call of the allocator is to be looked at.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    heap::switch().is_on()
}

/// Whether a block that is about to be freed or moved may have a sample.
#[inline(always)]
pub(crate) fn may_be_sampled(block: *mut u8) -> bool {
    heap::switch().profile() != 0 && heap::profile::may_have(block)
}

/// Takes the sample of a block that is about to be moved, if it has one.
#[inline(never)]
pub(crate) fn take(block: *mut u8) -> Option<Taken> {
    heap::profile::take(block)
}

/// Notes that a block was not moved, whose sample was taken.
#[cold]
pub(crate) fn put_back(taken: Taken, block: *mut u8) {
    heap::profile::put_back(taken, block);
}

/// Notes that a block was moved, whose sample was taken.
#[cold]
pub(crate) fn left(taken: Taken) {
    heap::profile::freed(taken);
}

/// Announces the allocator to the sessions, at its first call. Takes no lock. Returns whether that call
/// counts.
#[cold]
#[inline(never)]
fn announce(counts_always: bool) -> bool {
    hooks::set_sampler(Samples::Heap, sample);
    registry::announce(Bridge::Heap, update);
    heap::set_announced(counts_always);
    heap::switch().is_on()
}

/// Records a large allocation, unless it comes from inside of an event, from a thread of Hairline's own, or
/// from one that ends.
#[cold]
#[inline(never)]
fn record_large(size: usize) {
    if let Some(epoch) = LARGE.epoch()
        && epoch != Epoch::UNREGISTERED
        && !this_thread::is_barred()
        && !own_thread::is_own()
    {
        valued::instant(&LARGE, epoch, &(size as u64, ()));
    }
}

/// The state of the samples.
struct Sampling {
    /// The session that records the counts.
    epoch: Option<Epoch>,
    /// The counts at the start of the recording.
    base: Counts,
    /// The last sample, and its time in the trace.
    last: Option<(Counts, u64)>,
    /// The last values of the counters.
    recorded: [Option<i64>; 3],
}

/// A value of a counter and its time in the trace.
type Timed = (i64, u64);

static SAMPLING: Mutex<Sampling> = Mutex::new(Sampling::NONE);

impl Sampling {
    const NONE: Self = Self {
        epoch: None,
        base: Counts { live: 0, allocations: 0, frees: 0 },
        last: None,
        recorded: [None; 3],
    };
}

/// Follows a change of session or filter: begins or ends the counts.
fn update() {
    for callsite in [&LIVE_SINCE_START, &LIVE, &ALLOCATIONS, &FREES, &LARGE] {
        registry::register(callsite, constants::constants);
    }
    let busy = this_thread::busy();
    let Some(mut sampling) = SAMPLING.lock_unless_lost() else { return };
    // Under the lock, so that the last call leaves what is true then.
    let epoch = ALLOCATIONS.epoch();
    let begins = epoch.is_some() && (epoch != sampling.epoch || !heap::switch().is_session());
    if begins {
        let base = if heap::switch().is_always() { Counts::default() } else { heap::sum() };
        *sampling = Sampling { epoch, base, ..Sampling::NONE };
    }
    heap::set_session(epoch.is_some());
    drop(sampling);
    let shared = epoch.filter(|_| begins).and_then(current::current);
    drop(busy); // not earlier: a signal handler's event could wait for a lock that this thread holds
    if let Some(shared) = shared {
        shared.wake(); // the first sample
    }
}

/// Samples the counts, on the own thread of the session with this epoch. Returns the time until the next
/// sample, `None` if the session does not record them.
fn sample(epoch: u32, when: Sampled) -> Option<Duration> {
    let epoch = Epoch::from_raw(epoch);
    let shared = epoch.and_then(current::current)?;
    let busy = this_thread::busy();
    let mut sampling = SAMPLING.lock_unless_lost()?;
    let of = sampling.epoch.filter(|of| Some(*of) == epoch)?;
    let is_on = heap::switch().is_session() || when == Sampled::AtEnd;
    let values = if is_on { sampling.take(heap::sum(), shared.now(), when) } else { [None; 3] };
    if when == Sampled::AtEnd {
        sampling.epoch = None;
    }
    drop(sampling);
    drop(busy);
    let live = if heap::switch().is_always() { &LIVE } else { &LIVE_SINCE_START };
    for (callsite, value) in [live, &ALLOCATIONS, &FREES].into_iter().zip(values) {
        if let Some(value) = value {
            record(callsite, of, value);
            if when == Sampled::AtEnd && !std::ptr::eq(callsite, live) {
                record(callsite, of, (0, shared.now())); // the end of the last rate
            }
        }
    }
    is_on.then_some(PERIOD)
}

/// Records a value of a counter at a time that may be past: that of the sample, which this thread may be
/// late to record.
fn record(callsite: &'static Callsite, epoch: Epoch, (value, at): Timed) {
    let (values, extras) = ([Value::I64(value)], Extras::new());
    cold::event(epoch, &Event { past: Some(at), ..Event::new(callsite, &values, &extras) });
}

impl Sampling {
    /// Takes a sample. Returns the values of the counters that have changed: live bytes at the time of this
    /// sample, and rates at that of the sample before. A counter keeps its value up to the next one, so a
    /// rate stands where it was true.
    fn take(&mut self, counts: Counts, now: u64, when: Sampled) -> [Option<Timed>; 3] {
        let rates = match self.last {
            Some((_, at)) if when == Sampled::Regularly && now.saturating_sub(at) < LEAST_PERIOD => {
                return [None; 3];
            }
            Some((before, at)) => {
                let Counts { allocations, frees, .. } = counts.since(before);
                [allocations, frees].map(|count| Some((per_second(count, now.saturating_sub(at)), at)))
            }
            None => [None; 2],
        };
        self.last = Some((counts, now));
        let live = (counts.since(self.base).live.cast_signed(), now);
        let mut values = [Some(live), rates[0], rates[1]];
        for (value, recorded) in values.iter_mut().zip(&mut self.recorded) {
            let Some((number, _)) = *value else { continue };
            // The last rates are recorded in any case, with their end.
            if recorded.replace(number) == Some(number) && when == Sampled::Regularly {
                *value = None;
            }
        }
        values
    }
}

/// Returns `count` events in `ns` nanoseconds as events per second, rounded.
fn per_second(count: u64, ns: u64) -> i64 {
    let ns = u128::from(ns.max(1));
    let rate = (u128::from(count) * 1_000_000_000 + ns / 2) / ns;
    i64::try_from(rate).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_rounded_and_never_overflows() {
        assert_eq!(per_second(3, 50_000_000), 60);
        assert_eq!(per_second(2, 3_000_000_000), 1);
        assert_eq!(per_second(1, 3_000_000_000), 0);
        assert_eq!(per_second(u64::MAX, 0), i64::MAX);
    }

    #[test]
    fn a_rate_stands_at_the_sample_before_and_is_not_repeated() {
        let counts = |live, allocations| Counts { live, allocations, frees: 0 };
        let mut sampling = Sampling::NONE;
        assert_eq!(sampling.take(counts(5, 1), 100, Sampled::Regularly), [Some((5, 100)), None, None]);
        assert_eq!(sampling.take(counts(9, 9), 101, Sampled::Regularly), [None; 3]); // too soon
        let second = 1_000_000_000;
        let expected = [None, Some((4, 100)), Some((0, 100))];
        assert_eq!(sampling.take(counts(5, 5), 100 + second, Sampled::Regularly), expected);
        assert_eq!(sampling.take(counts(5, 9), 100 + 2 * second, Sampled::Regularly), [None; 3]);
        let at = 100 + 2 * second;
        let expected = [Some((6, at + 1)), Some((second as i64, at)), Some((0, at))];
        assert_eq!(sampling.take(counts(6, 10), at + 1, Sampled::AtEnd), expected);
    }
}
