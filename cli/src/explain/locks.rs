//! The facts about waits for locks that a trace has: who had the lock, and where they took it.
//!
//! A program records a contended wait as a slice of the category `lock` whose name begins with `wait: `. Its
//! arguments are the facts. They are few, so each is kept once, and a slice carries the tag of its facts.

use std::collections::HashMap;

use hairline_convert::{Categories, Event, EventKind};
use hairline_formats::Value;

/// The category of the slices, and how their names begin.
const CATEGORY: &str = "lock";
const PREFIX: &str = "wait: ";

/// The name of a lock, of that of the slices.
pub(super) fn lock_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

/// What a wait says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Facts {
    /// The place of the waiter.
    pub(super) at: String,
    pub(super) holder: Holder,
    /// The place at which the holder took the lock, or at which it notified.
    pub(super) held_at: String,
}

/// Who had the lock when the wait began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    #[default]
    Unknown,
    /// The thread with this id.
    Thread(u64),
    /// So many readers.
    Readers(u64),
    /// The thread with this id notified a condition variable, which ended the wait.
    Notifier(u64),
}

impl Holder {
    /// The id of the thread.
    pub(super) fn thread(self) -> Option<u64> {
        match self {
            Self::Thread(tid) | Self::Notifier(tid) => Some(tid),
            Self::Unknown | Self::Readers(_) => None,
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
    /// Adds the facts of an event, if it begins or ends a wait.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let Some(facts) = of_event(event).filter(|facts| !self.tags.contains_key(facts)) else { return };
        if self.facts.len() >= MOST_FACTS {
            self.left_out += 1;
            return;
        }
        self.tags.insert(facts.clone(), self.facts.len() as u32);
        self.facts.push(facts);
    }

    /// The tag of the facts of an event, which is not 0, if it begins or ends a wait.
    pub(super) fn tag(&self, event: &Event<'_>) -> Option<u32> {
        if self.tags.is_empty() {
            return None;
        }
        of_event(event).map(|facts| self.tags.get(&facts).copied().unwrap_or(UNKNOWN))
    }

    pub(super) fn facts(&self, tag: u32) -> &Facts {
        self.facts.get(tag as usize).unwrap_or(&self.facts[0])
    }
}

fn of_event(event: &Event<'_>) -> Option<Facts> {
    let is_end = event.kind == EventKind::End;
    let is_begin = matches!(event.kind, EventKind::Begin | EventKind::Complete { .. })
        && matches!(event.categories, Categories::One(category) if category.text == CATEGORY)
        && event.name.text.starts_with(PREFIX);
    if !is_begin && !is_end {
        return None;
    }
    let (mut facts, mut notified_at) = (Facts::default(), String::new());
    event.args.each(&mut |name, value| match (name.text, value) {
        ("at", Value::Str(text) | Value::Interned { text, .. }) => text.clone_into(&mut facts.at),
        ("held_at", Value::Str(text) | Value::Interned { text, .. }) => text.clone_into(&mut facts.held_at),
        ("notified_at", Value::Str(text) | Value::Interned { text, .. }) => {
            text.clone_into(&mut notified_at);
        }
        ("held_by", value) if !matches!(facts.holder, Holder::Notifier(_)) => {
            facts.holder = number(&value).map_or(facts.holder, Holder::Thread);
        }
        ("readers", value) if facts.holder == Holder::Unknown => {
            facts.holder = number(&value).map_or(facts.holder, Holder::Readers);
        }
        ("notified_by", value) => facts.holder = number(&value).map_or(facts.holder, Holder::Notifier),
        _ => {}
    });
    if matches!(facts.holder, Holder::Notifier(_)) {
        facts.held_at = notified_at;
    } else if is_end {
        return None;
    }
    Some(facts)
}

fn number(value: &Value<'_>) -> Option<u64> {
    match *value {
        Value::I64(number) => u64::try_from(number).ok(),
        Value::U64(number) | Value::Koid(number) => Some(number),
        _ => None,
    }
}
