//! The facts about waits for locks that a trace has: who had the lock, and where they took it.
//!
//! A program records a contended wait as a slice of the category `lock` whose name begins with `wait: `. Its
//! arguments are the facts of its begin. Those of its end are the arguments of an instant inside of it. They
//! are few, so each is kept once, and a wait carries the tags of its facts.
//!
//! A hold of a lock (`hold: `, on a lane below its thread) is no work of its own: the slices of its thread
//! are the reason. So it is explained only if somebody asks for it by its name.
//!
//! The wait of an async task is an interval with the same name and arguments, below the life that waits. Its
//! holder may be a task.

use std::collections::HashMap;

use hairline_convert::slices::{Keys, Slice};
use hairline_convert::{Categories, Event, EventKind, TrackId};
use hairline_formats::Value;

/// A task in a trace: its process, and its number there.
pub(super) type TaskId = (Option<TrackId>, u64);

/// The category of the slices, and how their names begin.
pub(super) const LOCK: &str = "lock";
pub(super) const PREFIX: &str = "wait: ";
/// How the names of holds begin.
const HOLD: &str = "hold: ";
/// The argument of a wait that names a task.
const TASK: &str = "held_by_task";
/// The names of the instants at their ends. FXT has arrows from slices alone: there they are slices of 0 ns.
pub(super) const RELEASED: &str = "released";
pub(super) const NOTIFIED: &str = "notified";

/// The name of a lock, of that of the slices.
pub(super) fn lock_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// Whether a slice of this name is about the end of the wait around it.
pub(super) fn is_end(name: &str) -> bool {
    name == RELEASED || name == NOTIFIED
}

/// Whether a slice is a wait.
pub(super) fn is_wait(keys: &Keys, slice: &Slice) -> bool {
    keys.text(slice.name).starts_with(PREFIX) && keys.text(slice.category) == LOCK
}

/// Whether slices of this category and name are holds of a lock.
pub(super) fn is_hold(category: &str, name: &str) -> bool {
    category == LOCK && name.starts_with(HOLD)
}

/// What a wait says of its begin or of its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Facts {
    /// The place of the waiter, if this is about the begin.
    at: String,
    holder: Holder,
    /// The place at which the holder took the lock, or at which it notified.
    held_at: String,
    kind: Kind,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    #[default]
    Lock,
    /// A permit of a semaphore.
    Semaphore,
    /// Room in a channel.
    Channel,
    Notification,
    /// A condition variable.
    Condition,
    Barrier,
    /// Another thread that initializes something.
    Initialization,
}

impl Kind {
    fn of(text: &str) -> Self {
        match text {
            "semaphore" => Self::Semaphore,
            "channel" => Self::Channel,
            "notification" => Self::Notification,
            "condition variable" => Self::Condition,
            "barrier" => Self::Barrier,
            "initialization" => Self::Initialization,
            _ => Self::Lock,
        }
    }
}

/// The tags of the facts of a wait's begin and end. 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tags {
    pub(super) begin: u32,
    pub(super) end: u32,
    /// The process of a wait that is an interval: the number of a task means one of it.
    pub(super) process: Option<TrackId>,
    /// Whether the task went on without what it waited for.
    pub(super) is_dropped: bool,
}

/// Who had the lock when the wait began; where that is not known, who ended the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    #[default]
    Unknown,
    /// The thread with this id.
    Thread(u64),
    /// The thread with this id released the lock, which it had perhaps with others.
    Releaser(u64),
    /// The first thread had the lock, and then others: the last of them, which released it, is the second.
    Passed(u64, u64),
    /// The thread with this id notified a condition variable.
    Notifier(u64),
    /// The task with this number.
    Task(TaskId),
}

impl Holder {
    /// The id of the thread.
    pub(super) fn thread(self) -> Option<u64> {
        match self {
            Self::Thread(tid) | Self::Releaser(tid) | Self::Notifier(tid) | Self::Passed(_, tid) => Some(tid),
            Self::Unknown | Self::Task(_) => None,
        }
    }
}

/// All facts, by their tags.
#[derive(Debug)]
pub(super) struct Locks {
    facts: Vec<Facts>,
    tags: HashMap<Facts, u32>,
    /// The waits beyond the limit, whose facts are not known.
    pub(super) left_out: u64,
}

/// The limit for different facts.
const MOST_FACTS: usize = 1 << 16;

/// The tag of facts that are not known.
const UNKNOWN: u32 = 1;

impl Default for Locks {
    fn default() -> Self {
        // No slice that is a wait has the tag 0.
        Self { facts: vec![Facts::default(); 2], tags: HashMap::new(), left_out: 0 }
    }
}

impl Locks {
    /// Adds the facts of an event, if it is the begin of a wait or about its end.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let Some(facts) = of_event(event).filter(|facts| !self.tags.contains_key(facts)) else { return };
        if self.facts.len() >= MOST_FACTS {
            self.left_out += 1;
            return;
        }
        self.tags.insert(facts.clone(), self.facts.len() as u32);
        self.facts.push(facts);
    }

    /// The tag of the facts of an event, which is not 0, if it has any.
    pub(super) fn tag(&self, event: &Event<'_>) -> Option<u32> {
        if self.tags.is_empty() {
            return None;
        }
        of_event(event).map(|facts| self.tags.get(&facts).copied().unwrap_or(UNKNOWN))
    }

    fn facts(&self, tag: u32) -> &Facts {
        self.facts.get(tag as usize).unwrap_or(&self.facts[0])
    }

    /// Where a thread waited.
    pub(super) fn place(&self, tags: Tags) -> &str {
        &self.facts(tags.begin).at
    }

    /// Who had the lock for which a thread waited, and where it took it.
    pub(super) fn holder(&self, tags: Tags) -> (Holder, &str) {
        let (begin, end) = (self.facts(tags.begin), self.facts(tags.end));
        if let (Holder::Thread(first), Holder::Releaser(last)) = (begin.holder, end.holder)
            && first != last
        {
            return (Holder::Passed(first, last), &end.held_at);
        }
        let is_known = begin.holder != Holder::Unknown || end.holder == Holder::Unknown;
        let known = if is_known { begin } else { end };
        let holder = match known.holder {
            Holder::Task((_, task)) => Holder::Task((tags.process, task)),
            other => other,
        };
        (holder, &known.held_at)
    }

    pub(super) fn kind(&self, tags: Tags) -> Kind {
        self.facts(tags.begin).kind
    }
}

fn of_event(event: &Event<'_>) -> Option<Facts> {
    if !matches!(event.categories, Categories::One(category) if category.text == LOCK) {
        return None;
    }
    let name = event.name.text;
    let (by, at, holder): (_, _, fn(u64) -> Holder) = match event.kind {
        EventKind::Begin | EventKind::Complete { .. } if name.starts_with(PREFIX) => {
            ("held_by", "held_at", Holder::Thread)
        }
        EventKind::Begin | EventKind::Complete { .. } | EventKind::Instant if name == RELEASED => {
            ("released_by", "released_at", Holder::Releaser)
        }
        EventKind::Begin | EventKind::Complete { .. } | EventKind::Instant if name == NOTIFIED => {
            ("notified_by", "notified_at", Holder::Notifier)
        }
        _ => return None,
    };
    let mut facts = Facts::default();
    event.args.each(&mut |name, value| match value {
        Value::Str(text) | Value::Interned { text, .. } if name.text == at => {
            text.clone_into(&mut facts.held_at);
        }
        Value::Str(text) | Value::Interned { text, .. } if name.text == "at" => {
            text.clone_into(&mut facts.at);
        }
        Value::Str(text) | Value::Interned { text, .. } if name.text == "kind" => facts.kind = Kind::of(text),
        value if name.text == by => facts.holder = number(&value).map_or(Holder::Unknown, holder),
        value if name.text == TASK => {
            facts.holder = number(&value).map_or(Holder::Unknown, |task| Holder::Task((None, task)));
        }
        _ => {}
    });
    Some(facts)
}

/// A value as the number of a thread or a task.
pub(super) fn number(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::I64(number) => u64::try_from(number).ok(),
        Value::U64(number) | Value::Koid(number) => Some(number),
        _ => None,
    }
}
