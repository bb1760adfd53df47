//! Who had the locks that the slices of one name waited for.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use hairline_convert::slices::Key;

use crate::explain::locks::{HeldBy, Holder, Kind, PREFIX, Tags, TaskId, lock_name};
use crate::explain::shares::{Share, largest, percent};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Place, Target, Wait, total, whole};
use crate::table::plain;

/// The waits of the slices of a band for one lock.
pub(super) struct Lock {
    pub(super) name: String,
    kind: Kind,
    /// Their time in the band.
    pub(super) time: i64,
    /// How much longer a slice waits for the lock than a typical one.
    pub(super) extra: i64,
    /// Who had the lock, with the time of the waits: the longest first.
    pub(super) holders: Vec<Held>,
    /// The places of the waiters.
    pub(super) places: Vec<Share>,
    /// Whether most of the waits were dropped before their end.
    pub(super) are_dropped: bool,
}

/// One of those who had a lock.
pub(super) struct Held {
    pub(super) holder: Holder,
    /// The tasks that had it, one after the other, if they have one name: `holder` is the first of them.
    pub(super) tasks: usize,
    /// Where the lock was taken.
    pub(super) place: String,
    pub(super) time: i64,
    /// Whether it is the time for which that one had the lock, and not that of waits which began meanwhile.
    pub(super) is_timed: bool,
    /// The innermost slice that the holder had open during most of the waits.
    pub(super) inside: Option<Key>,
    /// Where others woke those that waited, for most of the waits.
    pub(super) woken: Option<Place>,
}

/// Who had a lock, as they are shown together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    One(Holder),
    /// The tasks of this name.
    Tasks(Key),
    /// Those of one name, which gave it to those of another one.
    Given(Key, Key),
}

/// The limit for the rows of each list.
const ROWS: usize = 100;

/// Whether a wait took time of the slices of a target: a task that goes on without what it waits for may
/// have waited for something else.
pub(super) fn counts(survey: &Survey, target: &Target, tags: Tags) -> bool {
    !tags.is_dropped || target.counts_dropped() && survey.locks.kind(tags) != Kind::Notification
}

/// The locks that the slices of a band wait for longer than those of the base, the longest first.
pub(super) fn locks(survey: &Survey, target: &Target, (band, base): (&Band, &Band)) -> Vec<Lock> {
    let key = |wait: &Wait| (wait.name, survey.locks.kind(wait.tags));
    let of = |band: &'_ Band| {
        let all = band.inside.waits.iter().filter(|(wait, _)| counts(survey, target, wait.tags));
        all.map(|(wait, inner)| (*wait, whole(&inner.own))).collect::<Vec<_>>()
    };
    let [of_band, of_base] = [of(band), of(base)];
    let time = |waits: &[(Wait, i64)], name: (Key, Kind)| {
        total(waits.iter().filter(|(wait, _)| key(wait) == name).map(|(_, time)| *time))
    };
    let mut names: Vec<_> = of_band.iter().map(|(wait, _)| key(wait)).collect();
    names.sort_unstable();
    names.dedup();
    let lock = |name: (Key, Kind)| {
        let sum = time(&of_band, name);
        let extra = band.per_slice(sum).saturating_sub(base.per_slice(time(&of_base, name)));
        let waits: Vec<_> = of_band.iter().filter(|(wait, _)| key(wait) == name).copied().collect();
        let are_dropped = total(waits.iter().filter(|(wait, _)| wait.tags.is_dropped).map(|(_, time)| *time));
        let mut places: HashMap<Tags, i64> = HashMap::new();
        waits.iter().for_each(|(wait, time)| {
            let sum = places.entry(wait.tags).or_default();
            *sum = sum.saturating_add(*time);
        });
        let mut places = largest(&places, |tags| survey.locks.place(*tags).to_owned(), ROWS);
        places.retain(|place| !place.what.is_empty());
        let (name, kind) = (lock_name(survey.keys().text(name.0)).to_owned(), name.1);
        let (holders, are_dropped) = (holders(survey, target, &waits), are_dropped > sum / 2);
        Lock { name, kind, time: sum, extra, holders, places, are_dropped }
    };
    let mut locks: Vec<_> = names.into_iter().map(lock).filter(|lock| lock.extra > 0).collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.extra));
    locks
}

fn holders(survey: &Survey, target: &Target, waits: &[(Wait, i64)]) -> Vec<Held> {
    let name_of = |task| survey.tasks.life(task).map(|life| life.name);
    let key = |held: HeldBy| {
        let who = match held.holder {
            Holder::Task(task) => name_of(task).map_or(Who::One(held.holder), Who::Tasks),
            Holder::Given(Some(taker), by) => match (name_of(taker), name_of(by)) {
                (Some(taker), Some(by)) => Who::Given(taker, by),
                _ => Who::One(held.holder),
            },
            other => Who::One(other),
        };
        (who, survey.locks.held_at(held), held.is_timed)
    };
    let mut times: HashMap<_, i64> = HashMap::new();
    for (wait, time) in waits {
        let sum = times.entry(key(wait.held)).or_default();
        *sum = sum.saturating_add(*time);
    }
    let held_in = target.held_in.iter().map(|((held, name), time)| (*held, Place::Inside(*name), *time));
    let inside = by_holder(held_in, key);
    let woken = by_holder(target.woken.iter().map(|((held, place), time)| (*held, *place, *time)), key);
    let looked_at = |of: (Who, &str, bool)| {
        let turns = target.turns.all().iter().filter(|turn| key(turn.wait.held) == of);
        total(turns.map(|turn| turn.duration()))
    };
    let mut tasks: HashMap<_, BTreeMap<TaskId, Holder>> = HashMap::new();
    for (wait, _) in waits {
        if let Holder::Task(task) | Holder::Given(Some(task), _) = wait.held.holder {
            tasks.entry(key(wait.held)).or_default().insert(task, wait.held.holder);
        }
    }
    let held = |(of, time): ((Who, &str, bool), i64)| {
        let most = |places: &HashMap<_, HashMap<Place, i64>>| {
            let most = places.get(&of)?.iter().max_by_key(|(place, time)| (**time, **place));
            let (place, _) = most.filter(|(_, time)| **time > looked_at(of) / 2)?;
            Some(*place).filter(|place| !matches!(place, Place::Inside(name) if of.0 == Who::Tasks(*name)))
        };
        let (inside, woken) = (most(&inside).and_then(Place::name), most(&woken));
        let tasks = tasks.get(&of);
        let holder = match of.0 {
            Who::One(holder) => holder,
            Who::Tasks(_) | Who::Given(..) => {
                tasks.and_then(BTreeMap::first_key_value).map_or(Holder::Unknown, |(_, first)| *first)
            }
        };
        let (place, tasks) = (of.1.to_owned(), tasks.map_or(0, BTreeMap::len));
        Held { holder, tasks, place, time, is_timed: of.2, inside, woken }
    };
    let mut all: Vec<_> = times.into_iter().map(held).collect();
    all.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.place.cmp(&b.place)));
    all
}

/// Adds up the time of waits by who had the lock and by place.
fn by_holder<K: Eq + Hash>(
    waits: impl Iterator<Item = (HeldBy, Place, i64)>,
    key: impl Fn(HeldBy) -> K,
) -> HashMap<K, HashMap<Place, i64>> {
    let mut places: HashMap<_, HashMap<Place, i64>> = HashMap::new();
    for (held, place, time) in waits {
        let sum = places.entry(key(held)).or_default().entry(place).or_default();
        *sum = sum.saturating_add(time);
    }
    places
}

impl Place {
    /// The name of the slice.
    fn name(self) -> Option<Key> {
        if let Self::Inside(name) = self { Some(name) } else { None }
    }

    /// As a part of a sentence.
    pub(super) fn text(self, survey: &Survey) -> String {
        match self {
            Self::Inside(name) => format!("inside `{}`", plain(survey.keys().text(name))),
            Self::On(track) => format!("on the thread {}", plain(&survey.track_names.name(track))),
        }
    }
}

/// One task, or several ones of the same name, as a part of a sentence.
fn tasks(survey: &Survey, first: TaskId, count: usize) -> String {
    let name = task_name(survey, first).map(plain);
    match (name, count) {
        (None, _) => format!("the task {}", first.1),
        (Some(name), 0 | 1) => format!("the task {name} ({})", first.1),
        (Some(name), _) => format!("{count} tasks {name}"),
    }
}

/// The name of a task, if the trace has it.
pub(super) fn task_name(survey: &Survey, task: TaskId) -> Option<&str> {
    survey.tasks.life(task).map(|life| survey.keys().text(life.name))
}

impl Lock {
    /// What it is. That of a condition variable is known only where somebody notified.
    pub(super) fn kind(&self) -> &'static str {
        let is_notifier = |held: &Held| matches!(held.holder, Holder::Notifier(_));
        match self.kind {
            Kind::Lock if self.holders.iter().any(is_notifier) => "condition variable",
            Kind::Lock => "lock",
            Kind::Semaphore => "semaphore",
            Kind::Channel => "channel",
            Kind::Notification => "notification",
            Kind::Condition => "condition variable",
            Kind::Barrier => "barrier",
            Kind::Initialization => "initialization",
        }
    }

    /// Whether it is no semaphore, channel or notification.
    pub(super) fn is_lock(&self) -> bool {
        self.kind == Kind::Lock
    }

    /// What is waited for, as a part of a sentence.
    pub(super) fn what(&self) -> String {
        let (kind, name) = (self.kind(), plain(&self.name));
        match self.kind {
            Kind::Semaphore => format!("a permit of the {kind} `{name}`"),
            Kind::Channel => format!("room in the {kind} `{name}`"),
            _ => format!("the {kind} `{name}`"),
        }
    }

    /// Says who had the lock, as a part of a sentence.
    pub(super) fn held(&self, survey: &Survey) -> String {
        let one = |held: &Held| {
            let thread = |tid| format!("the thread {}", plain(&survey.thread_name(tid)));
            let who = match held.holder {
                Holder::Task(task) => format!("held by {}", tasks(survey, task, held.tasks)),
                Holder::Given(taker, by) => {
                    let taker = taker.map_or_else(
                        || "a task that is not recorded".to_owned(),
                        |taker| tasks(survey, taker, held.tasks),
                    );
                    format!("taken by {taker} and released by {}", tasks(survey, by, held.tasks))
                }
                Holder::Thread(tid) => format!("held by {}", thread(tid)),
                Holder::Releaser(tid) => format!("released by {}", thread(tid)),
                Holder::Passed(first, last) => format!(
                    "held by {} as they began to wait, and released by {}",
                    thread(first),
                    thread(last)
                ),
                Holder::Notifier(tid) => format!("notified by {}", thread(tid)),
                Holder::Free => "free, but they did not run yet,".to_owned(),
                Holder::Relocks => "notified, but they did not have its lock again yet,".to_owned(),
                Holder::Unknown if !held.place.is_empty() => "held by a task that is not recorded".to_owned(),
                Holder::Unknown => match held.woken {
                    Some(place) if self.kind == Kind::Notification => format!("woken {}", place.text(survey)),
                    Some(place) => format!("{}; woken {}", self.without_holder(), place.text(survey)),
                    None => self.without_holder().to_owned(),
                },
            };
            let at =
                if held.place.is_empty() { String::new() } else { format!(", at {}", plain(&held.place)) };
            let inside = held.inside.map(|name| match survey.keys().text(name) {
                wait if wait.starts_with(PREFIX) => format!(", which waits for `{}`", plain(lock_name(wait))),
                inside => format!(", inside `{}`", plain(inside)),
            });
            let comma = if at.is_empty() && inside.is_none() { "" } else { "," };
            let (share, inside) = (percent(held.time, self.time), inside.unwrap_or_default());
            // Others may get the lock before the one that waits.
            let when = match held.holder {
                _ if held.is_timed => format!("{comma} for {share} of that time"),
                Holder::Task(_) | Holder::Thread(_) if held.time == self.time => {
                    ", as they began to wait".to_owned()
                }
                Holder::Task(_) | Holder::Thread(_) => {
                    format!(", as waits that take {share} of that time began")
                }
                _ if self.kind != Kind::Lock && held.time == self.time => String::new(),
                _ => format!("{comma} for {share} of that time"),
            };
            let woken = match (held.woken, held.holder) {
                (Some(_), Holder::Unknown) if held.place.is_empty() => String::new(),
                (Some(place), _) => format!(", and woken {}", place.text(survey)),
                (None, _) => String::new(),
            };
            format!("{who}{at}{inside}{when}{woken}")
        };
        let are_few = |held: &&Held| held.time >= self.time / 50;
        let held = self.holders.iter().filter(are_few).take(3).map(one).collect::<Vec<_>>().join("; ");
        if self.are_dropped {
            format!("{held}; the waits were dropped, as after a timeout, or as something else was ready")
        } else {
            held
        }
    }

    fn without_holder(&self) -> &'static str {
        match self.kind {
            Kind::Lock => "the trace does not have the holder",
            Kind::Semaphore => "too few permits were free, and the trace does not have who had the others",
            Kind::Channel => "the channel was full",
            Kind::Notification => "the trace does not have who notifies",
            Kind::Condition => "the trace has no notification that ended the waits",
            Kind::Barrier => "the trace does not have who came last",
            Kind::Initialization => "the trace does not have who initializes it",
        }
    }

    /// The place at which most of the time was waited, as a part of a sentence.
    pub(super) fn place(&self) -> String {
        self.places.first().map_or_else(String::new, |place| match percent(place.time, self.time) {
            all if all == "100 %" => format!(", at {}", plain(&place.what)),
            share => format!(", {share} at {}", plain(&place.what)),
        })
    }
}
