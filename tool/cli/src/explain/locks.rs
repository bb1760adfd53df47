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

use hairline_convert::{Categories, Event, EventKind, TrackId};
use hairline_formats::Value;

use crate::explain::conditions::Conditions;
pub(super) use crate::explain::holder::{HeldBy, Holder, TaskId};
use crate::explain::turns::{Asked, Release, Releases, Turn};
use crate::table::plain;
use crate::track_names::TrackNames;

/// The category of the slices, and how their names begin.
pub(super) const LOCK: &str = "lock";
pub(super) const PREFIX: &str = "wait: ";
/// How the names of releases begin.
const RELEASE: &str = "release: ";
/// How the names of notifications of a condition variable begin.
const NOTIFY: &str = "notify: ";
/// The argument with the address of a lock.
const ADDRESS: &str = "lock";
/// How the names of holds begin.
const HOLD: &str = "hold: ";
/// The argument of a wait that names a task.
const TASK: &str = "held_by_task";
/// The argument of a release that names the task which has the guard by then, if it is another one.
const RELEASED_BY_TASK: &str = "released_by_task";
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

/// The command that explains slices of this name, as the end of a sentence, if they are waits.
pub(super) fn command_for_wait(name: &str) -> Option<String> {
    let is_plain = !name.contains(['\'', '*', '/']);
    (is_plain && name.starts_with(PREFIX)).then(|| format!("`hairline explain TRACE '{}'`.", plain(name)))
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
    /// The name of a condition variable.
    name: String,
    /// The address of the lock, if the trace has who releases it.
    lock: Option<u64>,
    /// Whether the last notification was for nothing. Not part of the facts that are kept.
    is_again: bool,
    /// Whether this is about a release of one that has the lock with others.
    is_shared: bool,
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

/// All facts, by their tags.
#[derive(Debug)]
pub(super) struct Locks {
    facts: Vec<Facts>,
    tags: HashMap<Facts, u32>,
    releases: Releases,
    conditions: Conditions,
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
        Self {
            facts: vec![Facts::default(); 2],
            tags: HashMap::new(),
            releases: Releases::default(),
            conditions: Conditions::default(),
            left_out: 0,
        }
    }
}

impl Locks {
    /// Adds the facts of an event, if it is the begin of a wait or about its end.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        if let Some(name) = notified(event) {
            return self.conditions.add_notification(event.track, name, event.time);
        }
        let Some(mut facts) = of_event(event) else { return };
        let (is_condition, is_again) = (facts.kind == Kind::Condition, std::mem::take(&mut facts.is_again));
        let tag = self.tag_of(facts);
        if event.name.text == NOTIFIED {
            self.conditions.notified(event.track, tag);
        } else if is_condition {
            self.conditions.begins(event.track, event.time, is_again);
        }
    }

    /// The tag of facts, which are kept if there is room.
    fn tag_of(&mut self, facts: Facts) -> u32 {
        if let Some(tag) = self.tags.get(&facts) {
            return *tag;
        }
        if self.facts.len() >= MOST_FACTS {
            self.left_out += 1;
            return UNKNOWN;
        }
        let tag = self.facts.len() as u32;
        self.tags.insert(facts.clone(), tag);
        self.facts.push(facts);
        tag
    }

    /// The tag of the facts of an event, which is not 0, if it has any.
    pub(super) fn tag(&self, event: &Event<'_>) -> Option<u32> {
        if self.tags.is_empty() {
            return None;
        }
        of_event(event)
            .map(|facts| Facts { is_again: false, ..facts })
            .map(|facts| self.tags.get(&facts).copied().unwrap_or(UNKNOWN))
    }

    fn facts(&self, tag: u32) -> &Facts {
        self.facts.get(tag as usize).unwrap_or(&self.facts[0])
    }

    /// Where a thread waited.
    pub(super) fn place(&self, tags: Tags) -> &str {
        &self.facts(tags.begin).at
    }

    /// Who had the lock for which a thread waited, by what the wait itself says.
    pub(super) fn holder(&self, tags: Tags) -> HeldBy {
        let held = |holder, place| HeldBy { holder, place, is_timed: false };
        let (begin, end) = (self.facts(tags.begin), self.facts(tags.end));
        if let (Holder::Thread(first), Holder::Releaser(last)) = (begin.holder, end.holder)
            && first != last
        {
            return held(Holder::Passed(first, last), tags.end);
        }
        let is_known = begin.holder != Holder::Unknown || end.holder == Holder::Unknown;
        if is_known { held(self.first(tags), tags.begin) } else { held(end.holder, tags.end) }
    }

    /// Who had the lock as the wait began.
    fn first(&self, tags: Tags) -> Holder {
        match self.facts(tags.begin).holder {
            Holder::Task((_, task)) => Holder::Task((tags.process, task)),
            other => other,
        }
    }

    /// Where a lock was taken.
    pub(super) fn held_at(&self, held: HeldBy) -> &str {
        &self.facts(held.place).held_at
    }

    /// Adds a release of a lock.
    pub(super) fn release(&mut self, event: &Event<'_>) {
        let Some(facts) = of_release(event) else { return };
        let Some(lock) = facts.lock else { return };
        let (holder, is_shared) = (facts.holder, facts.is_shared);
        let by = HeldBy { holder, place: self.tag_of(Facts { lock: None, ..facts }), is_timed: true };
        self.releases.add(event.track, lock, Release { time: event.time, by, is_shared });
    }

    /// Sorts what was added. Call it before the first question about turns.
    pub(super) fn finish(&mut self, names: &TrackNames, has_losses: bool) {
        self.releases.finish(names, has_losses);
        self.conditions.finish(names);
    }

    /// The tag of what ended a wait that began at this time, if the wait itself has this one.
    pub(super) fn ended_by(&self, track: TrackId, start: i64, end: u32) -> u32 {
        self.conditions.ended_by(track, start).unwrap_or(end)
    }

    /// Who had the lock during a wait of a process: one at least.
    pub(super) fn turns(&self, process: Option<TrackId>, tags: Tags, (start, end): (i64, i64)) -> Vec<Turn> {
        let facts = self.facts(tags.begin);
        if let (Kind::Condition, Holder::Notifier(tid)) = (facts.kind, self.facts(tags.end).holder)
            && let Some(notified) = self.conditions.last_notification(tid, &facts.name, (start, end))
            && end.saturating_sub(notified) > end.saturating_sub(start) / 20
        {
            let held = HeldBy { is_timed: true, ..self.holder(tags) };
            let relocks = HeldBy { holder: Holder::Relocks, place: 0, is_timed: true };
            let again = Turn { held: relocks, start: notified, end };
            return vec![Turn { held, start, end: notified }, again];
        }
        let turns = facts.lock.map(|lock| {
            let (first, last) = (self.first(tags), self.facts(tags.end).holder);
            self.releases.during(&Asked { lock: (process, lock), start, end, first, last })
        });
        let turns = turns.unwrap_or_default();
        if turns.is_empty() { vec![Turn { held: self.holder(tags), start, end }] } else { turns }
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
        value if name.text == ADDRESS => facts.lock = address(&value),
        Value::Bool(is_again) if name.text == "again" => facts.is_again = is_again,
        value if name.text == by => facts.holder = number(&value).map_or(Holder::Unknown, holder),
        value if name.text == TASK => {
            facts.holder = number(&value).map_or(Holder::Unknown, |task| Holder::Task((None, task)));
        }
        _ => {}
    });
    if facts.kind == Kind::Condition {
        lock_name(name).clone_into(&mut facts.name);
    }
    Some(facts)
}

/// The name of the condition variable that an event notifies.
fn notified<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    let is_moment = matches!(event.kind, EventKind::Begin | EventKind::Complete { .. } | EventKind::Instant);
    let is_lock = matches!(event.categories, Categories::One(category) if category.text == LOCK);
    event.name.text.strip_prefix(NOTIFY).filter(|_| is_moment && is_lock)
}

/// What a release says of the one that had the lock. The release of a thread, without a kind, is on its own
/// track: the thread is known only when all tracks are.
fn of_release(event: &Event<'_>) -> Option<Facts> {
    let is_release = matches!(event.kind, EventKind::Begin | EventKind::Complete { .. } | EventKind::Instant)
        && event.name.text.starts_with(RELEASE)
        && matches!(event.categories, Categories::One(category) if category.text == LOCK);
    if !is_release {
        return None;
    }
    let mut facts = Facts { holder: Holder::Releaser(0), ..Facts::default() };
    let (mut thread, mut task, mut released_by) = (None, None, None);
    let mut is_of_tasks = false;
    event.args.each(&mut |name, value| match value {
        Value::Str(text) | Value::Interned { text, .. } if name.text == "at" => {
            text.clone_into(&mut facts.held_at);
        }
        Value::Str(_) | Value::Interned { .. } => is_of_tasks |= name.text == "kind",
        value if name.text == ADDRESS => facts.lock = address(&value),
        value if name.text == TASK => task = number(&value),
        value if name.text == RELEASED_BY_TASK => released_by = number(&value),
        value if name.text == "held_by" => thread = number(&value),
        Value::Bool(is_shared) if name.text == "shared" => facts.is_shared = is_shared,
        _ => {}
    });
    if is_of_tasks {
        let task = task.map(|task| (None, task));
        facts.holder = match (released_by, thread) {
            (Some(by), None) => Holder::Given(task, (None, by)),
            (_, thread) => task.map(Holder::Task).or(thread.map(Holder::Thread)).unwrap_or_default(),
        };
    }
    Some(facts)
}

/// A value as the address of a lock, which is only compared.
fn address(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::I64(address) => Some(address.cast_unsigned()),
        Value::U64(address) => Some(address),
        _ => None,
    }
}

/// A value as the number of a thread or a task.
pub(super) fn number(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::I64(number) => u64::try_from(number).ok(),
        Value::U64(number) | Value::Koid(number) => Some(number),
        _ => None,
    }
}
