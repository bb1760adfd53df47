//! Finds out which tasks of a runtime record themselves: for the hooks of the runtime, which would record
//! them once more.
//!
//! ```text
//! tokio::spawn(f.traced_task(..))   a root begins; the hook of the spawn finds it among those of its thread
//! the first poll                    the root says so, and the task is its own from then on
//! ```
//!
//! A runtime passes a number to its hooks, not the future. So a spawn is taken for that of a root if one has
//! begun on this thread that was neither spawned nor polled. If no root that began before is polled, the task
//! is recorded after all.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use crate::on::callsite::Epoch;

/// Whether there are hooks. Without them no root is kept.
static HAS_HOOKS: AtomicBool = AtomicBool::new(false);

/// The roots of a thread that are kept: the last ones. A program may make several tasks before it spawns
/// them.
const KEPT: usize = 16;

thread_local! {
    static BEGUN: Cell<[Option<Arc<Root>>; KEPT]> = const { Cell::new([const { None }; KEPT]) };
    static CLAIM: Cell<Claim> = const { Cell::new(Claim::None) };
}

/// There are hooks from now on.
pub(super) fn expect_hooks() {
    HAS_HOOKS.store(true, Relaxed);
}

/// A task that records itself. Its state guards no other memory, so all accesses are relaxed.
#[derive(Debug)]
pub struct Root {
    epoch: Epoch,
    begun_at: u64,
    state: AtomicU8,
}

const NEW: u8 = 0;
const SPAWNED: u8 = 1;
const OVER: u8 = 2;

impl Root {
    /// A task begins on this thread. Returns `None` if there are no hooks.
    pub(super) fn begin(epoch: Epoch, begun_at: u64) -> Option<Arc<Self>> {
        if !HAS_HOOKS.load(Relaxed) {
            return None;
        }
        let root = Arc::new(Self { epoch, begun_at, state: AtomicU8::new(NEW) });
        let mut forgotten = Some(Arc::clone(&root)); // freed when the list is back in its place
        let _ = BEGUN.try_with(|begun| {
            let mut list = begun.take();
            let is_free = |root: &Option<Arc<Self>>| root.as_ref().is_none_or(|root| !root.is_new());
            let at = list.iter().position(is_free).unwrap_or(0);
            mem::swap(&mut list[at], &mut forgotten);
            list[at..].rotate_left(1); // the last one began last
            begun.set(list);
        });
        Some(root)
    }

    fn is_new(&self) -> bool {
        self.state.load(Relaxed) == NEW
    }

    /// The task is polled for the first time.
    pub(super) fn poll(self: &Arc<Self>) {
        self.set_spawned();
        self.claim();
    }

    /// The task is over. It may never have been polled.
    pub(super) fn end(self: &Arc<Self>) {
        self.state.store(OVER, Relaxed);
        self.claim();
    }

    /// The task has been spawned, perhaps by a runtime without hooks.
    pub fn set_spawned(&self) {
        let _ = self.state.compare_exchange(NEW, SPAWNED, Relaxed, Relaxed);
    }

    /// Whether the task was over before the end of its session.
    pub(super) fn is_over_in(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.state.load(Relaxed) == OVER
    }

    /// Says that the task which this thread polls is this one, if that is asked.
    fn claim(self: &Arc<Self>) {
        let _ = CLAIM.try_with(|claim| {
            let new = match claim.take() {
                Claim::Asked(spawned_at) if self.begun_at <= spawned_at => Claim::By(Arc::clone(self)),
                old => old,
            };
            claim.set(new);
        });
    }
}

/// Whether a root has begun on this thread that was neither spawned nor polled. It counts as spawned from now
/// on.
pub(super) fn is_spawn_of_root() -> bool {
    let last = |begun: &Cell<[Option<Arc<Root>>; KEPT]>| {
        let mut list = begun.take();
        let new = list.iter_mut().rev().find(|root| root.as_ref().is_some_and(|root| root.is_new()));
        let last = new.and_then(Option::take);
        begun.set(list);
        last
    };
    match BEGUN.try_with(last) {
        Ok(Some(root)) => {
            root.set_spawned();
            true
        }
        _ => false,
    }
}

/// Which root the task is that a thread polls.
#[derive(Debug, Default)]
pub(super) enum Claim {
    /// That is known.
    #[default]
    None,
    /// That is asked: one that began before this time.
    Asked(u64),
    By(Arc<Root>),
}

impl Claim {
    /// Makes this the thread's claim. Returns the one before.
    pub(super) fn replace(self) -> Self {
        CLAIM.try_with(|claim| claim.replace(self)).unwrap_or_default()
    }
}
