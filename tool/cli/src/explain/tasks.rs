//! The tasks of async runtimes: their numbers and names, and when they were queued.
//!
//! The life of a task is an interval with the argument `task`: its number in its process. In the life are
//! slices `queued` of the category `task`: the task could run, and no worker polled it.

use std::collections::{HashMap, HashSet};

use hairline_convert::slices::{Key, Keys, Slice};
use hairline_convert::{Categories, Event, EventKind, TrackId};
use hairline_formats::Value;

use crate::explain::locks::{LOCK, PREFIX, TaskId, is_hold, number};
use crate::track_names::TrackNames;

pub(super) const CATEGORY: &str = "task";
const QUEUED: &str = "queued";
/// The interval below the life of a stream while its next item is waited for.
const NEXT: &str = "next";
pub(super) const WAKE: &str = "wake";
/// The argument with the number of a task.
pub(super) const NUMBER: &str = "task";
/// The argument of a life that is a call that blocks.
const CALL: (&str, &str) = ("kind", "blocking");
/// The category and name of the slices of a worker that has nothing to do.
const PARKED: (&str, &str) = ("tokio", "parked");

/// The limit for tasks. The names of further ones are not known.
const MOST_TASKS: usize = 1 << 20;
/// The limit for the tasks of one number: more than one are of processes that the trace does not tell apart.
const MOST_OF_NUMBER: usize = 4;

/// The tasks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    lives: HashMap<TaskId, Vec<Life>>,
    /// The tracks with slices `queued`, which are those of lives.
    queues: HashSet<TrackId>,
    /// The categories and names of lives, which are those of their polls.
    names: HashSet<(Key, Key)>,
    /// The names of lives that are calls that block.
    calls: HashSet<Key>,
    /// Whether a runtime has tasks that are not recorded.
    are_partial: bool,
    pub(super) left_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) name: Key,
    pub(super) track: TrackId,
}

impl Tasks {
    /// Adds what an instant says, or the begin of an interval.
    pub(super) fn add(&mut self, event: &Event<'_>, names: &TrackNames, keys: &mut Keys) {
        self.are_partial |= is_of_partial(event);
        let is_begin = matches!(event.kind, EventKind::Begin | EventKind::Complete { .. });
        if !is_begin || names.tid(event.track).is_some() {
            return;
        }
        let is_of = |category| matches!(event.categories, Categories::One(one) if one.text == category);
        if is_of(CATEGORY) && event.name.text == QUEUED {
            self.queues.insert(event.track);
            return;
        }
        if is_of(LOCK) && event.name.text.starts_with(PREFIX) {
            return;
        }
        let (mut task, mut is_call) = (None, false);
        event.args.each(&mut |name, value| match value {
            Value::Str(kind) | Value::Interned { text: kind, .. } => {
                is_call |= (name.text, kind) == CALL;
            }
            value if name.text == NUMBER => task = number(&value),
            _ => {}
        });
        let Some(task) = task else { return };
        if self.lives.len() >= MOST_TASKS {
            self.left_out += 1;
            return;
        }
        let lives = self.lives.entry((names.process_of(event.track), task)).or_default();
        let (name, category) = (keys.key(event.name), keys.categories(&event.categories));
        self.names.insert((category, name));
        if is_call {
            self.calls.insert(name);
        }
        let life = Life { name, track: event.track };
        if lives.len() < MOST_OF_NUMBER && !lives.contains(&life) {
            lives.push(life);
        }
    }

    /// Says that tasks that are not recorded may be what others wait for.
    pub(super) fn partial(&self) -> Option<&'static str> {
        self.are_partial.then_some(
            "Tasks that are not spawned through hairline, as those of libraries, are not in the trace: with \
             `--cfg tokio_unstable` they are.",
        )
    }

    /// Whether slices of a name on threads are polls of tasks.
    pub(super) fn are_polls(&self, category: Key, name: Key) -> bool {
        self.names.contains(&(category, name))
    }

    /// Whether a life of this name is a call that waits for a thread of the pool for calls that block.
    pub(super) fn is_call(&self, name: Key) -> bool {
        self.calls.contains(&name)
    }

    /// Whether the intervals of a track are lives of tasks: they have queues.
    pub(super) fn is_life(&self, track: TrackId) -> bool {
        self.queues.contains(&track)
    }

    /// The life of a task, if the trace has one of this number. An interval of the program may have an
    /// argument of the same name, but has no queue.
    pub(super) fn life(&self, task: TaskId) -> Option<Life> {
        let lives = self.lives.get(&task)?;
        let mut queued = lives.iter().filter(|life| self.is_life(life.track));
        match (queued.next(), queued.next(), &lives[..]) {
            (Some(life), None, _) | (None, _, [life]) => Some(*life),
            _ => None,
        }
    }
}

/// Whether an event says that the trace has some of the tasks of a runtime.
fn is_of_partial(event: &Event<'_>) -> bool {
    let mut is_partial = false;
    let is_tokio = matches!(event.categories, Categories::One(category) if category.text == PARKED.0);
    if is_tokio && event.name.text == "recorded tasks" {
        event.args.each(&mut |name, value| {
            let (Value::Str(tasks) | Value::Interned { text: tasks, .. }) = value else { return };
            is_partial |= name.text == "tasks" && !tasks.starts_with("all");
        });
    }
    is_partial
}

/// Whether a slice is the time of a task in the queue.
pub(super) fn is_queued(keys: &Keys, slice: &Slice) -> bool {
    keys.text(slice.name) == QUEUED && keys.text(slice.category) == CATEGORY
}

/// Whether an interval is the time for which the next item of a stream is waited for.
pub(super) fn is_next(keys: &Keys, slice: &Slice) -> bool {
    keys.text(slice.name) == NEXT && keys.text(slice.category) == CATEGORY
}

/// Whether the slices of a category and name are no work of their own: a worker has nothing to do, a life
/// waits, which explains the life, or a lock is held.
pub(super) fn is_no_work(name: (&str, &str), is_on_thread: bool) -> bool {
    let is_wait = [QUEUED, NEXT].map(|wait| (CATEGORY, wait)).contains(&name)
        || name.0 == LOCK && name.1.starts_with(PREFIX);
    name == PARKED || is_hold(name.0, name.1) || is_wait && !is_on_thread
}

/// Whether a slice is that of a worker that has nothing to do.
pub(super) fn is_parked(keys: &Keys, (category, name): (Key, Key)) -> bool {
    (keys.text(category), keys.text(name)) == PARKED
}

/// Whether a slice is the wake of a task: FXT has arrows from slices alone.
pub(super) fn is_wake_slice(keys: &Keys, slice: &Slice) -> bool {
    slice.duration == 0 && keys.text(slice.name) == WAKE && keys.text(slice.category) == CATEGORY
}

/// The tag of the wakes of tasks, which are no ends of waits.
pub(super) const WAKE_TAG: u32 = u32::MAX;

/// The tag of the end of an interval whose future was dropped before it was ready.
pub(super) const DROPPED_TAG: u32 = u32::MAX - 1;
/// The argument of such an end.
const DROPPED: &str = "dropped";

/// Whether an event is such an end.
pub(super) fn is_drop(event: &Event<'_>) -> bool {
    let mut is_drop = false;
    if event.kind == EventKind::End {
        event.args.each(&mut |name, value| {
            is_drop |= name.text == DROPPED && matches!(value, Value::Bool(true));
        });
    }
    is_drop
}

/// Whether an event is the wake of a task.
pub(super) fn is_wake(event: &Event<'_>) -> bool {
    event.kind == EventKind::Instant
        && event.name.text == WAKE
        && matches!(event.categories, Categories::One(one) if one.text == CATEGORY)
}
