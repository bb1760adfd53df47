//! Stacks of events, from the threads to the session's own thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use hairline_sampler::{Asked, Next, Sample, Stacks, Undisturbed, Watch};

use crate::on::base::memory::leak;
use crate::on::base::platform::own_thread::{self, Handle, OwnThread};
use crate::on::base::wakes::{Wakes, Woken};
use crate::on::base::{clock, forever, this_thread};
use crate::sampling::OwnStacks;

pub(crate) use hairline_sampler::Watched;

/// The stacks that the ring has room for between two reads.
const STACKS_IN_RING: u32 = 256;

/// After so many stacks the reader is woken.
const WAKES_AFTER: u64 = STACKS_IN_RING as u64 / 4;

/// The bytes of a stack that are copied: stacks of async code are deep.
const BYTES: u32 = 32 << 10;

/// The longest sleep of the watcher: an end of its session in the moment of its start does not wake it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The ring; null before the first stack of the process. It is never freed: a thread may be in it.
static STACKS: AtomicPtr<Stacks> = AtomicPtr::new(std::ptr::null_mut());
/// Stacks for which there was no memory.
static LOST_WITHOUT_RING: AtomicU64 = AtomicU64::new(0);
/// How far the ring has been read.
static POSITION: AtomicU64 = AtomicU64::new(0);
/// The number of the reader, in the upper half; 0: nobody reads.
static READS: AtomicU64 = AtomicU64::new(0);
/// Whether stacks are those of frame pointers. Relaxed: it guards no memory.
static FOLLOWS: AtomicBool = AtomicBool::new(false);
/// The thread that reads.
static READER: Wakes = Wakes::new();
/// The slices that may become slow; null before the first reader that watches. It is never freed.
static WATCH: AtomicPtr<Watch> = AtomicPtr::new(std::ptr::null_mut());
/// The thread that watches.
static WATCHER: Wakes = Wakes::new();

/// Returns the ring, which the first stack of the process makes; `None` without memory for it.
fn ring() -> Option<&'static Stacks> {
    // Acquire pairs with the Release below.
    if let Some(stacks) = forever::get(STACKS.load(Ordering::Acquire)) {
        return Some(stacks);
    }
    let made = leak(Stacks::new(STACKS_IN_RING, BYTES).ok()?);
    made.follow_frame_pointers(FOLLOWS.load(Ordering::Relaxed));
    let first = STACKS.compare_exchange(std::ptr::null_mut(), made, Ordering::Release, Ordering::Acquire);
    // Of two threads that make one, that of the second is never used.
    forever::get(first.map_or_else(|first| first, |_| made))
}

/// Takes the stack of the calling thread for an event of it at this time.
#[inline(never)]
pub(crate) fn take(time: u64) {
    let tag = READS.load(Ordering::Relaxed);
    if tag == 0 {
        return;
    }
    let Some(stacks) = ring() else {
        LOST_WITHOUT_RING.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let undisturbed = Undisturbed::new();
    let Some(here) = stacks.claim(&undisturbed) else { return }; // counted there
    let wakes = here.number() % WAKES_AFTER == WAKES_AFTER - 1;
    here.sample([time, tag | u64::from(this_thread::tid()), time]);
    if wakes {
        READER.wake();
    }
}

/// Watches a slice that the calling thread has begun at `now`: its stack is taken when it has taken `limit`
/// ns.
pub(crate) fn watch(now: u64, limit: u64) -> Watched {
    if !WATCHER.has_thread() {
        return Watched::NONE;
    }
    // Acquire pairs with the Release of `Watcher::start`.
    let Some(watch) = forever::get(WATCH.load(Ordering::Acquire)) else { return Watched::NONE };
    let tag = READS.load(Ordering::Relaxed);
    let (watched, wakes) = watch.begin(this_thread::tid(), now, limit, tag);
    // Again: the watcher that sleeps may be that of a session which has begun meanwhile.
    if wakes {
        WATCHER.wake();
    }
    watched
}

/// Ends the watch of the slice that the calling thread has begun at `begun`.
pub(crate) fn unwatch(watched: Watched, begun: u64) {
    if watched != Watched::NONE
        && let Some(watch) = forever::get(WATCH.load(Ordering::Acquire))
    {
        watch.end(watched, this_thread::tid(), begun);
    }
}

/// Ends the watch of the slices that the calling thread has begun at a time with this lower half.
pub(crate) fn unwatch_begun(begun: u32) {
    if let Some(watch) = forever::get(WATCH.load(Ordering::Acquire)) {
        watch.end_of(this_thread::tid(), begun);
    }
}

/// In a forked child: no thread is in the ring any more, and what it has is the parent's.
pub(crate) fn leave_in_child() {
    READS.store(0, Ordering::Relaxed);
    STACKS.store(std::ptr::null_mut(), Ordering::Relaxed);
    POSITION.store(0, Ordering::Relaxed);
    [&READER, &WATCHER].into_iter().for_each(Wakes::leave_in_child);
    if let Some(watch) = forever::get(WATCH.swap(std::ptr::null_mut(), Ordering::Relaxed)) {
        watch.leave_in_child(); // the handler still has it
    }
}

/// The reader of the stacks. While it exists, threads take them.
#[derive(Debug)]
pub(crate) struct Reader {
    tag: u64,
    /// The thread that reads.
    here: Option<Woken>,
    lost_before: u64,
    watcher: Option<Watcher>,
}

impl Reader {
    /// Begins to take stacks.
    pub(crate) fn begin(own: OwnStacks) -> Self {
        FOLLOWS.store(own == OwnStacks::ByFramePointers, Ordering::Relaxed);
        static LAST: AtomicU64 = AtomicU64::new(0);
        let tag = (LAST.fetch_add(1, Ordering::Relaxed) % u64::from(u32::MAX) + 1) << 32;
        if let Some(stacks) = forever::get(STACKS.load(Ordering::Acquire)) {
            stacks.follow_frame_pointers(own == OwnStacks::ByFramePointers);
        }
        READS.store(tag, Ordering::Relaxed);
        Self { tag, here: None, lost_before: lost_so_far(), watcher: None }
    }

    /// Watches slices from here on.
    ///
    /// # Errors
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if the program handles `SIGPROF`; those of the start of a
    /// thread; [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        let stacks = ring().ok_or(io::ErrorKind::OutOfMemory)?;
        self.watcher = Some(Watcher::start(stacks, self.tag)?);
        Ok(())
    }

    /// Makes the calling thread the one that reads.
    pub(crate) fn is_here(&mut self) {
        let handle = Arc::new(Handle::default());
        handle.set_to_current();
        self.here = Some(READER.set(handle));
    }

    /// Shows the stacks since the last call, with the thread and the time.
    pub(crate) fn read(&mut self, mut each: impl FnMut((u32, u64), &Sample<'_>)) {
        let Some(stacks) = forever::get(STACKS.load(Ordering::Acquire)) else { return };
        let position = stacks.read(POSITION.load(Ordering::Relaxed), |note, sample| {
            let [time, of, _] = note;
            // A thread may be late with a stack of the session before.
            if of & !u64::from(u32::MAX) == self.tag {
                each((of as u32, time), sample);
            }
        });
        POSITION.store(position, Ordering::Relaxed);
    }

    /// Returns the number of stacks that found no room.
    pub(crate) fn lost(&self) -> u64 {
        lost_so_far() - self.lost_before
    }

    /// Takes no more stacks. What the ring has can still be read.
    pub(crate) fn stop(&mut self) {
        // A later session may read already.
        let _ = READS.compare_exchange(self.tag, 0, Ordering::Relaxed, Ordering::Relaxed);
        self.watcher = None;
    }
}

/// Returns the stacks that found no room in this process.
fn lost_so_far() -> u64 {
    let in_ring = forever::get(STACKS.load(Ordering::Acquire)).map_or(0, Stacks::lost);
    let without_place = forever::get(WATCH.load(Ordering::Acquire)).map_or(0, Watch::without);
    in_ring + without_place + LOST_WITHOUT_RING.load(Ordering::Relaxed)
}

/// Whether a thread has taken a stack in this process.
pub(crate) fn are_taken() -> bool {
    !STACKS.load(Ordering::Relaxed).is_null()
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread that watches the open slices.
#[derive(Debug)]
struct Watcher {
    woken: Option<Woken>,
    thread: Option<OwnThread>,
    shared: Arc<Watching>,
}

/// What the thread shares with its owner.
#[derive(Debug, Default)]
struct Watching {
    handle: Arc<Handle>,
    ends: AtomicBool,
}

impl Watcher {
    fn start(stacks: &'static Stacks, tag: u64) -> io::Result<Self> {
        let watch = match forever::get(WATCH.load(Ordering::Acquire)) {
            Some(watch) => watch,
            None => leak(stacks.watch()),
        };
        watch.install()?;
        watch.keep_only(tag);
        let shared = Arc::new(Watching::default());
        let of_thread = Arc::clone(&shared);
        let thread = own_thread::spawn(c"hairline-watch", move || live(watch, &of_thread))?;
        WATCH.store(std::ptr::from_ref(watch).cast_mut(), Ordering::Release);
        let woken = WATCHER.set(Arc::clone(&shared.handle));
        Ok(Self { woken: Some(woken), thread: Some(thread), shared })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.woken = None;
        self.shared.ends.store(true, Ordering::Relaxed); // the unpark below publishes it
        self.shared.handle.unpark();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

fn live(watch: &Watch, shared: &Watching) {
    shared.handle.set_to_current();
    let mut asked = Asked::default();
    while !shared.ends.load(Ordering::Relaxed) {
        let sleep = match watch.look(clock::boottime(), &mut asked) {
            Next::After(ns) => Duration::from_nanos(ns),
            Next::WhenWoken => LONGEST_SLEEP,
        };
        std::thread::park_timeout(sleep);
    }
}
