//! The hooks of a runtime, which tokio has with `--cfg tokio_unstable`: they see all of its tasks.

#![allow(unsafe_code)] // the hook before a poll, of which tokio grants that polls do not overlap

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hairline::__tasks::{HookedTasks, Root};
use hairline::TracedTask;
use tokio::runtime::{Builder, TaskMeta};
use tokio::task::Id;

/// Sets the hooks of a runtime. Each spawn calls `spawned`.
pub(crate) fn set(builder: &mut Builder, spawned: fn()) {
    #[cfg(feature = "schedule-latency")]
    builder.track_task_schedule_latency();
    let tasks = Arc::new(HookedTasks::new());
    // If the program sets a hook of its own for an end, nothing may begin: it would be kept for ever.
    let ends = Arc::new(());
    let spawns = Begins { tasks: Arc::clone(&tasks), ends: Arc::downgrade(&ends) };
    let polls = Begins { tasks: Arc::clone(&tasks), ends: Arc::downgrade(&ends) };
    let after_poll = (Arc::clone(&tasks), Arc::clone(&ends));
    let at_end = (tasks, ends);
    builder
        .on_task_spawn(move |task| {
            if spawns.is_on() {
                spawns.tasks.spawn(number(task.id()), task.spawned_at());
            }
            spawned();
        })
        .on_before_task_poll(move |task| {
            if polls.is_on() {
                // SAFETY: A runtime polls a task on one thread at a time, and a poll happens before the next one.
                unsafe { polls.tasks.begin_poll(number(task.id()), task.spawned_at(), queued(task)) };
            }
        })
        .on_after_task_poll(move |task| {
            let (tasks, _set) = &after_poll;
            tasks.end_poll(number(task.id()));
        })
        .on_task_terminate(move |task| {
            let (tasks, _set) = &at_end;
            tasks.end(number(task.id()));
        });
}

/// What the hooks of a begin have.
struct Begins {
    tasks: Arc<HookedTasks>,
    /// The hooks of an end each have one.
    ends: Weak<()>,
}

impl Begins {
    fn is_on(&self) -> bool {
        HookedTasks::is_on() && self.ends.strong_count() == 2
    }
}

/// Returns the time that a task was in the queue, if the runtime measures it.
fn queued(task: &TaskMeta<'_>) -> Option<Duration> {
    #[cfg(feature = "schedule-latency")]
    return task.schedule_latency();
    #[cfg(not(feature = "schedule-latency"))]
    return Some(task).and(None);
}

/// Returns the number in an id, which tokio shows only as text and to a hasher.
fn number(id: Id) -> u64 {
    struct Number(u64);
    impl Hasher for Number {
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }
    let mut hasher = Number(0);
    id.hash(&mut hasher);
    hasher.finish()
}

/// A task that records itself, while it is spawned. If the runtime has no hooks, or has them not for this
/// kind of task, the task of the next spawn is another one.
pub(crate) struct Spawning(Option<Arc<Root>>);

impl Spawning {
    pub(crate) fn new<F>(task: &TracedTask<F>) -> Self {
        Self(task.root())
    }
}

impl Drop for Spawning {
    fn drop(&mut self) {
        if let Some(root) = &self.0 {
            root.set_spawned();
        }
    }
}
