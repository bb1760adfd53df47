//! The registry of all callsites that were hit: their strings, and which of them are on.
//!
//! The list is walked without a lock. Registration, the start and the stop of a session and a change of
//! filter hold the registry's lock. So a callsite that is registered meanwhile ends up on or off as the last
//! of them decides. A thread that holds the lock has marked itself busy: an event that interrupts it there is
//! counted and does not wait for the lock.

#![allow(unsafe_code)] // callsites are statics behind raw pointers

use std::panic::Location;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::time::Instant;

use crate::filter::Filter;
use crate::on::base::lock::{Fixed, Grow, Map, Mutex, MutexGuard};
use crate::on::base::{lock, this_thread};
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::{Callsite, Constants, Epoch, FirstHit, Link, StringId, pointee};
use crate::site::{CallsiteKind, Site};
use crate::slow::SlowRules;
use crate::vocabulary::Level;

static HEAD: Link<Callsite> = Link::end();

/// The epoch of the running session; 0 without a session.
static ACTIVE_EPOCH: AtomicU32 = AtomicU32::new(0);

/// The most verbose level of `tracing` and `log` that the running session records.
static ACTIVE_LEVEL: AtomicU8 = AtomicU8::new(0);

/// Functions to call after callsites were switched on or off, by [`Bridge`].
static ON_CHANGE: [AtomicPtr<()>; 3] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 3];

/// A bridge that keeps a copy of which callsites are on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bridge {
    #[cfg(feature = "subscriber")]
    Tracing = 0,
    #[cfg(feature = "log")]
    Log = 1,
    Heap = 2,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::EMPTY);

/// The data under the registry's lock.
pub(crate) struct Registry {
    strings: Strings,
    callsites: u32,
    /// The running session.
    active: Option<ActiveSession>,
    /// Callsites created at run time.
    runtime: Map<RuntimeKey, &'static Callsite>,
}

impl Registry {
    const EMPTY: Self = Self {
        strings: Strings { ids: Map::with_hasher(Fixed::new()), texts: Vec::new() },
        callsites: 0,
        active: None,
        runtime: Map::with_hasher(Fixed::new()),
    };

    fn is_active(&self, epoch: Epoch) -> bool {
        self.active.as_ref().is_some_and(|session| session.epoch == epoch)
    }

    /// Sets the epoch of the callsite, if the running session records its events.
    fn set_epoch(&mut self, callsite: &Callsite) {
        let Some(session) = &mut self.active else { return callsite.set_epoch(None) };
        let is_included = session.includes(callsite);
        session.has_matched |= is_included && callsite.is_filtered();
        let is_on = is_included && callsite.level() >= session.level;
        callsite.set_slow_after(session.slow_after(callsite));
        callsite.set_epoch(is_on.then_some(session.epoch));
    }

    /// Sets the epochs of all callsites.
    fn set_epochs(&mut self) {
        callsites().for_each(|callsite| self.set_epoch(callsite));
    }
}

/// The session that decides which callsites are on.
pub(crate) struct ActiveSession {
    pub(crate) epoch: Epoch,
    pub(crate) filter: Filter,
    /// The most verbose level of `tracing` and `log` that is recorded.
    pub(crate) level: Level,
    /// Whether the filter has included a callsite.
    pub(crate) has_matched: bool,
    /// Which slices are slow; `None` if the session writes no snapshots of them.
    pub(crate) slow: Option<SlowRules>,
}

impl ActiveSession {
    /// Returns the duration from which a slice of the callsite is slow, in ns; 0 if none is.
    fn slow_after(&self, callsite: &Callsite) -> u64 {
        let Some(rules) = self.slow.as_ref().filter(|_| callsite.kind() == CallsiteKind::Scope) else {
            return 0;
        };
        let rule = rules.limit(callsite.categories(), callsite.name());
        rule.map_or(callsite.site().slow_after, |limit| limit.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    /// Whether the filter includes one of the callsite's categories.
    fn includes(&self, callsite: &Callsite) -> bool {
        if !callsite.is_filtered() {
            return true;
        }
        let mut categories = callsite.categories().peekable();
        match categories.peek() {
            None => self.filter.matches(""),
            Some(_) => categories.any(|category| self.filter.matches(category)),
        }
    }
}

// Nothing is allocated or freed under the registry's lock: see `base/lock/growing.rs`.

/// The interned strings of this process, numbered from 1 in the order of first use. The empty string is 0, as
/// in both formats.
struct Strings {
    ids: Map<&'static str, StringId>,
    texts: Vec<&'static str>,
}

impl Grow for Strings {
    fn with_room(entries: usize) -> Self {
        Self { ids: Grow::with_room(entries), texts: Grow::with_room(entries) }
    }

    fn entries(&self) -> usize {
        self.texts.entries()
    }

    fn has_room(&self, more: usize) -> bool {
        self.ids.has_room(more) && self.texts.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.ids.take_over(&mut smaller.ids);
        self.texts.take_over(&mut smaller.texts);
    }
}

impl Strings {
    /// Interns a string that is not empty. The caller has made room for one more.
    fn intern(&mut self, text: &'static str) -> StringId {
        *self.ids.entry(text).or_insert_with(|| {
            self.texts.push(text);
            #[allow(clippy::cast_possible_truncation)]
            // a program has fewer than 4 billion distinct static strings
            let id = StringId(self.texts.len() as u32);
            id
        })
    }
}

/// Identifies a callsite that is created at run time.
#[derive(PartialEq, Eq, Hash)]
struct RuntimeKey {
    category: &'static str,
    name: &'static str,
    file: &'static str,
    line: u32,
}

/// Returns the callsite of scopes with this category and name at the caller's place in the source. The first
/// call creates it.
#[track_caller]
pub(crate) fn callsite_of(
    category: &'static str,
    name: &'static str,
    first_hit: FirstHit,
) -> &'static Callsite {
    let at = Location::caller();
    let (file, line) = (at.file(), at.line());
    let Some(_busy) = this_thread::enter() else {
        // The thread is inside an event that may hold the lock. Nothing is recorded then.
        static NOWHERE: Site = Site::NOWHERE;
        static NOTHING: Callsite =
            Callsite::with_first_hit(CallsiteKind::Scope, "", "", &[], &NOWHERE, |_| None);
        return &NOTHING;
    };
    let key = || RuntimeKey { category, name, file, line };
    if let Some(callsite) = with(|registry| registry.runtime.get(&key()).copied()) {
        return callsite;
    }
    let memory = CallsiteMemory::new(Box::default());
    let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.runtime, 1));
    if let Some(callsite) = registry.runtime.get(&key()) {
        return callsite; // another thread's; the lock is released before `memory` is freed
    }
    let site = Site { file, line, ..Site::NOWHERE };
    let callsite = memory.fill(CallsiteKind::Scope, category, name, site, first_hit);
    registry.runtime.insert(key(), callsite);
    callsite
}

/// Interns a string that no callsite has. Returns [`StringId::NONE`] if this thread may not wait for the
/// lock.
pub(crate) fn intern_unless_barred(text: &'static str) -> StringId {
    if this_thread::is_barred() { StringId::NONE } else { intern(text) }
}

/// Interns a string; [`StringId::NONE`] for the empty string. For a thread in an event of its own, which
/// holds no lock.
pub(crate) fn intern(text: &'static str) -> StringId {
    if text.is_empty() {
        return StringId::NONE;
    }
    let _busy = this_thread::busy();
    let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.strings, 1));
    registry.strings.intern(text)
}

/// Returns the id of a string, if it is interned. For the same callers as [`intern`].
pub(crate) fn interned(text: &str) -> Option<StringId> {
    with(|registry| registry.strings.ids.get(text).copied())
}

/// Returns the string with this id.
pub(crate) fn string_with(id: StringId) -> Option<&'static str> {
    let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
    with(|registry| registry.strings.texts.get(index).copied())
}

/// Returns the registered callsite with this serial number.
pub(crate) fn callsite_with(serial: u32) -> Option<&'static Callsite> {
    callsites().find(|callsite| callsite.serial() == serial)
}

/// Calls `f` with the registry, under its lock. `f` allocates and frees nothing.
fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let _busy = this_thread::busy();
    f(&mut REGISTRY.lock())
}

/// Iterates over all registered callsites.
fn callsites() -> impl Iterator<Item = &'static Callsite> {
    std::iter::successors(pointee(HEAD.get()), |c| c.next())
}

/// Adds the callsite to the list and applies the filter; without effect if that was done before. `constants`
/// builds the constant parts of its records. Its second argument interns a string.
pub(crate) fn register(
    callsite: &'static Callsite,
    constants: impl FnOnce(&'static Callsite, fn(&'static str) -> StringId) -> Constants,
) {
    if this_thread::is_detached() {
        callsite.set_epoch(None);
        return;
    }
    if callsite.epoch() != Some(Epoch::UNREGISTERED) {
        return;
    }
    // Built before the lock: two threads may both build them, with the same result.
    let mut constants = constants(callsite, intern);
    with(|registry| {
        if callsite.epoch() != Some(Epoch::UNREGISTERED) {
            return;
        }
        // In a forked child, the parent may have listed it.
        if !callsite.is_listed() {
            callsite.set_constants(registry.callsites, &mut constants);
            registry.callsites += 1;
            callsite.push(&HEAD);
        }
        registry.set_epoch(callsite);
    });
}

/// Registers `hook` to be called after callsites are switched on or off. The caller brings its copy up to
/// date for changes before this call.
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) fn on_change(bridge: Bridge, hook: fn()) {
    let slot = &ON_CHANGE[bridge as usize];
    if slot.load(Ordering::Acquire).is_null() {
        // A change holds the same lock. So it is complete by now, or it will find the hook.
        with(|_| slot.store(hook as *mut (), Ordering::Release));
    }
}

/// Like [`on_change`], without the lock, which an allocation must not take. For a bridge that has no copy to
/// bring up to date: changes under way may miss it.
pub(crate) fn announce(bridge: Bridge, hook: fn()) {
    ON_CHANGE[bridge as usize].store(hook as *mut (), Ordering::Release);
}

/// Notifies the bridges that callsites were switched on or off. Runs code of the program.
///
/// Not `tracing` in a forked child, where `tracing` may have lost a lock of its own. The child keeps the
/// state of the time of the fork.
pub(crate) fn notify_bridges() {
    let [tracing, log, heap] = &ON_CHANGE;
    let notified = [tracing, log, heap].into_iter().skip(usize::from(lock::is_forked()));
    for hook in notified.map(|hook| hook.load(Ordering::Acquire)).filter(|hook| !hook.is_null()) {
        // SAFETY: only `on_change` stores here, a `fn()`.
        let hook: fn() = unsafe { std::mem::transmute(hook) };
        hook();
    }
}

/// Whether a callsite of this category and level is on in the running session.
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) fn matches(category: &str, level: Level) -> bool {
    let records = |session: &ActiveSession| level >= session.level && session.filter.matches(category);
    with(|registry| registry.active.as_ref().is_some_and(records))
}

/// Returns the most verbose level of `tracing` and `log` that the running session records, as a number.
/// Without a session that of the last one.
#[cfg(feature = "log")]
pub(crate) fn active_level() -> u8 {
    ACTIVE_LEVEL.load(Ordering::Relaxed)
}

/// Returns the categories of all registered callsites, sorted. No set and no sort of the standard library:
/// each user would compile their code.
pub(crate) fn categories() -> Vec<&'static str> {
    let mut sorted = Vec::new();
    for category in callsites().filter(|callsite| callsite.is_filtered()).flat_map(Callsite::categories) {
        if let Err(place) = sorted.binary_search(&category) {
            sorted.insert(place, category);
        }
    }
    sorted
}

/// Returns the patterns of the rules that match no registered callsite of slices.
pub(crate) fn unmatched(rules: &SlowRules) -> Vec<String> {
    let slices = callsites().filter(|callsite| callsite.kind() == CallsiteKind::Scope);
    let slices: Vec<_> = slices.map(|callsite| (callsite.categories(), callsite.name())).collect();
    rules.unmatched(slices.iter().cloned())
}

/// Returns the epoch of the running session.
pub(crate) fn active_epoch() -> Option<Epoch> {
    Epoch::from_raw(ACTIVE_EPOCH.load(Ordering::Relaxed))
}

/// Switches the callsites that `filter` and `level` match on, with `epoch`, and all others off. The caller
/// then calls [`notify_bridges`].
/// `slow`: which slices are slow; `None` if the session writes no snapshots of them.
pub(crate) fn activate(epoch: Epoch, filter: Filter, level: Level, slow: Option<SlowRules>) {
    let before = with(|registry| {
        let session = ActiveSession { epoch, filter, level, has_matched: false, slow };
        let before = registry.active.replace(session);
        ACTIVE_LEVEL.store(level as u8, Ordering::Relaxed);
        ACTIVE_EPOCH.store(epoch.get(), Ordering::Relaxed);
        registry.set_epochs();
        before
    });
    drop(before); // outside of the lock
}

/// Replaces the filter, if the session with `epoch` is still running.
pub(crate) fn set_filter(epoch: Epoch, mut filter: Filter) {
    with(|registry| {
        if let Some(session) = registry.active.as_mut().filter(|session| session.epoch == epoch) {
            std::mem::swap(&mut session.filter, &mut filter);
            registry.set_epochs();
        }
    });
    drop(filter); // the one before, outside of the lock
    notify_bridges();
}

/// Switches all callsites off, if the session with `epoch` is still running. Returns that session.
pub(crate) fn deactivate(epoch: Epoch) -> Option<ActiveSession> {
    let before = with(|registry| {
        let is_running = registry.is_active(epoch);
        if is_running {
            ACTIVE_EPOCH.store(0, Ordering::Relaxed);
            callsites().for_each(|c| c.set_epoch(None));
        }
        if is_running { registry.active.take() } else { None }
    });
    notify_bridges();
    before
}

/// The registry, locked for a fork.
pub(crate) struct Held(MutexGuard<'static, Registry>);

/// Locks the registry for a fork; `None` if that is not possible until `until`.
pub(crate) fn hold(until: Instant) -> Option<Held> {
    REGISTRY.try_lock_until(until).map(Held)
}

impl Held {
    /// Ends the parent's session in a forked child, and returns it.
    pub(crate) fn take_session(&mut self) -> Option<ActiveSession> {
        ACTIVE_EPOCH.store(0, Ordering::Relaxed);
        self.0.active.take()
    }

    /// Resets every callsite to its state before the first hit.
    pub(crate) fn expect_first_events(&self) {
        callsites().for_each(|c| c.set_epoch(Some(Epoch::UNREGISTERED)));
    }
}

/// Switches all callsites off for ever in a forked child, without a lock.
pub(crate) fn detach_after_fork() {
    this_thread::set_detached();
    ACTIVE_EPOCH.store(0, Ordering::Relaxed);
    callsites().for_each(|c| c.set_epoch(None));
}
