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
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::on::callsite::Epoch;

/// Whether there are hooks. Without them no root is kept.
static HAS_HOOKS: AtomicBool = AtomicBool::new(false);

/// The roots of a thread that are kept: the last ones. A program may make several tasks before it spawns
/// them.
const KEPT: usize = 16;

thread_local! {
    static BEGUN: Cell<[Option<Arc<Root>>; KEPT]> = const { Cell::new([const { None }; KEPT]) };
    /// That of the task which the thread polls, if this is its first poll.
    static QUESTION: Cell<Option<Arc<Question>>> = const { Cell::new(None) };
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
        self.answer();
    }

    /// The task is over. It may never have been polled.
    pub(super) fn end(self: &Arc<Self>) {
        self.state.store(OVER, Relaxed);
        self.answer();
    }

    /// The task has been spawned, perhaps by a runtime without hooks.
    pub fn set_spawned(&self) {
        let _ = self.state.compare_exchange(NEW, SPAWNED, Relaxed, Relaxed);
    }

    /// Whether the task was over before the end of its session.
    pub(super) fn is_over_in(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.state.load(Relaxed) == OVER
    }

    /// Answers the question of the task that this thread polls.
    fn answer(self: &Arc<Self>) {
        if let Some(question) = ask(None) {
            if self.begun_at <= question.asked_at {
                let _ = question.answer.set(Arc::clone(self)); // only once
            }
            ask(Some(question));
        }
    }
}

/// Returns when the last root began on this thread that was neither spawned nor polled. It counts as spawned
/// from now on.
pub(super) fn take_begun() -> Option<u64> {
    let last = |begun: &Cell<[Option<Arc<Root>>; KEPT]>| {
        let mut list = begun.take();
        let new = list.iter_mut().rev().find(|root| root.as_ref().is_some_and(|root| root.is_new()));
        let last = new.and_then(Option::take);
        begun.set(list);
        last
    };
    let root = BEGUN.try_with(last).ok()??;
    root.set_spawned();
    Some(root.begun_at)
}

/// Whether a task is a root.
#[derive(Debug)]
pub(super) struct Question {
    /// The root began before.
    pub(super) asked_at: u64,
    pub(super) answer: OnceLock<Arc<Root>>,
}

impl Question {
    pub(super) fn new(asked_at: u64) -> Self {
        Self { asked_at, answer: OnceLock::new() }
    }
}

/// The first poll of a task begins, or goes on: asks the roots that this thread polls or drops. Returns the
/// question before.
pub(super) fn ask(question: Option<Arc<Question>>) -> Option<Arc<Question>> {
    QUESTION.try_with(|asked| asked.replace(question)).ok().flatten()
}
