//! The registry of all callsites that were hit: their strings, and which of them are on.
//!
//! The list is walked without a lock. Registration, the start and the stop of a session and a change of
//! filter hold the registry's lock. So a callsite that is registered meanwhile ends up on or off as the last
//! of them decides. A thread that holds the lock has marked itself busy: an event that interrupts it there is
//! counted and does not wait for the lock.
//!
//! # Code that is unloaded
//!
//! A plugin can be unloaded with its callsites and their texts. The registry has copies of all texts, and the
//! entries of its list have what it needs of the callsites ([`Listed`]). A function that stores into the
//! callsites keeps the system from unloading code meanwhile: [`change`].

#![allow(unsafe_code)] // callsites are statics behind raw pointers

use std::hash::{BuildHasher, Hash};
use std::panic::Location;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::time::Instant;

use crate::filter::Filter;
use crate::on::base::lock::{Fixed, Grow, Mutex, MutexGuard};
use crate::on::base::memory::{Bytes, List, Table, leak};
use crate::on::base::platform::Modules;
use crate::on::base::{forever, lock, platform, this_thread};
use crate::on::callsite::listed::Listed;
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::watched::{Watched, includes};
use crate::on::callsite::{Callsite, Constants, Epoch, FirstHit, Key, Link, StringId};
use crate::site::{CallsiteKind, Site};
use crate::slow::SlowRules;
use crate::vocabulary::{Level, Unit};

static HEAD: Link<Listed> = Link::end();

/// The epoch of the running session; 0 without a session.
static ACTIVE_EPOCH: AtomicU32 = AtomicU32::new(0);

/// The most verbose level of `tracing` and `log` that the running session records.
static ACTIVE_LEVEL: AtomicU8 = AtomicU8::new(0);

/// Number of changes of which callsites are on.
static CHANGES: AtomicU32 = AtomicU32::new(0);

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
    runtime: Table<Runtime>,
    /// How often code had been unloaded when the list was last checked for that, where that is known.
    unloads: Option<u64>,
}

impl Registry {
    const EMPTY: Self =
        Self { strings: Strings::new(), callsites: 0, active: None, runtime: Table::new(), unloads: None };

    fn is_active(&self, epoch: Epoch) -> bool {
        self.active.as_ref().is_some_and(|session| session.epoch == epoch)
    }

    /// Sets the epoch of a callsite, if the running session records its events. `listed` is its entry.
    fn set_epoch(&mut self, callsite: &Callsite, listed: &Listed) {
        let Some(session) = &mut self.active else { return callsite.set_epoch(None) };
        let is_included = session.includes(listed);
        session.has_matched |= is_included && listed.is_filtered;
        let is_on = is_included && listed.level >= session.level;
        let watch = session.watched.watch(listed);
        session.has_stacks |= is_on && session.watched.asks_for_stacks(listed);
        session.has_slow_stacks |= is_on && watch.has_slow_stacks();
        callsite.set_watch(watch);
        let is_closed = listed.is_gate && session.watched.hold_limit != 0;
        let epoch = if is_closed { Epoch::UNREGISTERED } else { session.epoch };
        callsite.set_epoch(is_on.then_some(epoch));
    }

    /// Calls `f` for each callsite whose code is loaded.
    fn for_each_loaded(&mut self, modules: &Modules, mut f: impl FnMut(&mut Self, &Callsite, &Listed)) {
        let unloads = modules.unloads();
        if unloads.is_none() || unloads != self.unloads {
            listed().for_each(|listed| listed.forget_if_unloaded(modules));
            self.unloads = unloads;
        }
        for listed in listed() {
            // SAFETY: no code was unloaded since the check above, nor since an earlier one with the same
            // count, and none is as long as `modules` exist.
            if let Some(callsite) = unsafe { listed.callsite() } {
                f(self, callsite, listed);
            }
        }
    }

    /// Sets the epochs of all callsites.
    fn set_epochs(&mut self, modules: &Modules) {
        self.for_each_loaded(modules, Self::set_epoch);
    }

    /// Switches all callsites off.
    fn clear_epochs(&mut self, modules: &Modules) {
        self.for_each_loaded(modules, |_, callsite, _| callsite.set_epoch(None));
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
    /// Whether the filter of the events that have stacks has included a callsite that is on.
    pub(crate) has_stacks: bool,
    /// Whether a slice that is on has a stack where it is slow.
    pub(crate) has_slow_stacks: bool,
    pub(crate) watched: Watched,
}

impl ActiveSession {
    /// Whether the filter includes one of the callsite's categories.
    fn includes(&self, callsite: &Listed) -> bool {
        !callsite.is_filtered || includes(&self.filter, callsite)
    }
}

// Nothing is allocated or freed under the registry's lock: see `base/lock/growing.rs`.

/// The texts of this process. Those that are interned are numbered from 1 in the order of first use. The
/// empty string is 0, as in both formats.
struct Strings {
    all: Table<Text>,
    interned: List<&'static str>,
    /// The copies are made here. A text fits, or a new page replaces this one, which stays where it is.
    page: Bytes,
}

/// A text, copied into memory that is never freed.
#[derive(Clone, Copy)]
struct Text {
    text: &'static str,
    /// Its number, if it is interned.
    id: StringId,
}

impl Grow for Strings {
    fn with_room(entries: usize) -> Self {
        Self { all: Grow::with_room(entries), interned: Grow::with_room(entries), page: Bytes::new() }
    }

    fn entries(&self) -> usize {
        self.all.entries()
    }

    fn has_room(&self, more: usize) -> bool {
        self.all.has_room(more) && self.interned.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.all.take_over(&mut smaller.all);
        self.interned.take_over(&mut smaller.interned);
        std::mem::swap(&mut self.page, &mut smaller.page);
    }
}

/// Bytes of a page of texts.
const PAGE: usize = 4000;

/// The hash of a text, or of several.
fn hash_of(text: impl Hash) -> u64 {
    Fixed::<std::hash::DefaultHasher>::new().hash_one(text)
}

impl Strings {
    const fn new() -> Self {
        Self { all: Table::new(), interned: List::new(), page: Bytes::new() }
    }

    /// Adds a text, which is new. The caller has made room for it, also on the page.
    fn add(&mut self, hash: u64, text: &str) {
        let start = self.page.len();
        self.page.extend_from_slice(text.as_bytes());
        // SAFETY: a copy of a `str`. The page neither moves, since it has room, nor is it freed.
        let text = unsafe {
            let bytes = std::slice::from_raw_parts(self.page.as_ptr().add(start), text.len());
            std::str::from_utf8_unchecked(bytes)
        };
        self.all.insert(hash, Text { text, id: StringId::NONE });
    }

    /// Returns the entry of a text, if it is known. Interns the text if `interns`.
    fn find(&mut self, hash: u64, text: &str, interns: bool) -> Option<Text> {
        let known = self.all.get_mut(hash, |known| known.text == text)?;
        if interns && known.id.is_none() {
            self.interned.push(known.text);
            #[allow(clippy::cast_possible_truncation)] // a program has fewer than 4 billion texts
            let id = StringId(self.interned.len() as u32);
            known.id = id;
        }
        Some(*known)
    }

    /// Whether a text fits on the page.
    fn has_page_for(&self, text: &str) -> bool {
        self.page.has_room(text.len())
    }
}

/// Returns the copy of a text, which is made at the first call. For a thread in an event of its own, which
/// holds no lock.
fn copy_of(text: &str, interns: bool) -> Text {
    if text.is_empty() {
        return Text { text: "", id: StringId::NONE };
    }
    let _busy = this_thread::busy();
    let hash = hash_of(text);
    let mut page = Bytes::new(); // freed after the lock is released, if another thread was faster
    loop {
        let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.strings, 1));
        let strings = &mut registry.strings;
        if let Some(known) = strings.find(hash, text, interns) {
            return known;
        }
        if !strings.has_page_for(text) && page.has_room(text.len()) {
            // The texts on the page before stay where they are.
            std::mem::forget(std::mem::replace(&mut strings.page, std::mem::take(&mut page)));
        }
        if strings.has_page_for(text) {
            strings.add(hash, text);
        } else {
            drop(registry);
            page.reserve(text.len().max(PAGE));
        }
    }
}

/// A callsite that is created at run time, and its identity.
struct Runtime {
    category: &'static str,
    name: &'static str,
    file: &'static str,
    line: u32,
    keys: &'static [&'static str],
    callsite: &'static Callsite,
}

/// Returns the callsite of scopes with this category, this name and these keys at this place in the source.
/// The first call creates it.
pub(crate) fn callsite_of(
    at: &Location<'_>,
    category: &str,
    name: &str,
    keys: &'static [&'static str],
    first_hit: FirstHit,
) -> &'static Callsite {
    made(CallsiteKind::Scope, (at.file(), at.line(), Unit::None), (category, name), keys, first_hit)
}

/// The same for a counter with this name, of no place.
#[cfg(feature = "sync")]
pub(crate) fn counter_of(category: &str, name: &str, unit: Unit, first_hit: FirstHit) -> &'static Callsite {
    made(CallsiteKind::Counter, ("", 0, unit), (category, name), &["value"], first_hit)
}

fn made(
    kind: CallsiteKind,
    (file, line, unit): (&str, u32, Unit),
    (category, name): (&str, &str),
    keys: &'static [&'static str],
    first_hit: FirstHit,
) -> &'static Callsite {
    let Some(_busy) = this_thread::enter() else {
        // The thread is inside an event that may hold the lock. Nothing is recorded then.
        static NOWHERE: Site = Site::NOWHERE;
        static NOTHING: Callsite =
            Callsite::with_first_hit(CallsiteKind::Scope, "", "", &[], &NOWHERE, |_| None);
        return &NOTHING;
    };
    let hash = hash_of((category, name, file, line, keys));
    let is = |known: &Runtime| {
        (known.category, known.name, known.file, known.line, known.keys) == (category, name, file, line, keys)
            && known.callsite.kind() == kind
    };
    if let Some(callsite) = with(|registry| registry.runtime.get(hash, is).map(|known| known.callsite)) {
        return callsite;
    }
    let [category, name, file] = [category, name, file].map(|text| copy_of(text, false).text);
    let memory = CallsiteMemory::new(keys.iter().map(|key| Key::new(key)).collect());
    let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.runtime, 1));
    if let Some(known) = registry.runtime.get(hash, is) {
        return known.callsite; // another thread's; the lock is released before `memory` is freed
    }
    let site = Site { file, line, ..Site::of_unit(unit) };
    let callsite = memory.fill(kind, category, name, site, first_hit);
    registry.runtime.insert(hash, Runtime { category, name, file, line, keys, callsite });
    callsite
}

/// Interns a string that no callsite has. Returns [`StringId::NONE`] if this thread may not wait for the
/// lock.
pub(crate) fn intern_unless_barred(text: &'static str) -> StringId {
    if this_thread::is_barred() { StringId::NONE } else { intern(text) }
}

/// Interns a string; [`StringId::NONE`] for the empty string. For a thread in an event of its own, which
/// holds no lock.
pub(crate) fn intern(text: &str) -> StringId {
    copy_of(text, true).id
}

/// Returns the string with this id.
pub(crate) fn string_with(id: StringId) -> Option<&'static str> {
    let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
    with(|registry| registry.strings.interned.get(index).copied())
}

/// Returns the entry of the callsite with this serial number.
pub(crate) fn listed_with(serial: u32) -> Option<&'static Listed> {
    listed().find(|listed| listed.serial == serial)
}

/// Calls `f` with the registry, under its lock. `f` allocates and frees nothing.
fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let _busy = this_thread::busy();
    f(&mut REGISTRY.lock())
}

/// Calls `f` with the registry, under its lock, while no code is unloaded. `f` allocates and frees nothing.
///
/// The system's lock comes first: a thread may register a callsite in a signal handler that interrupts the
/// system's own use of that lock. And a thread that has it does not wait for the registry's, which a fork
/// holds: the child would find the system's lock held for ever. A child does not take it at all: a thread
/// that does not exist there may have held it at the fork.
fn change<R>(f: impl FnOnce(&mut Registry, &Modules) -> R) -> R {
    let _busy = this_thread::busy();
    if lock::is_forked() {
        return f(&mut REGISTRY.lock(), &Modules::in_child());
    }
    let mut f = Some(f);
    let mut wait = lock::Wait::new();
    loop {
        let mut result = None;
        platform::with_modules(&mut |modules| {
            if let Some(mut registry) = REGISTRY.try_lock() {
                result = f.take().map(|f| f(&mut registry, modules));
            }
        });
        if let Some(result) = result {
            return result;
        }
        wait.a_little();
    }
}

/// Iterates over the entries of all registered callsites.
fn listed() -> impl Iterator<Item = &'static Listed> {
    std::iter::successors(forever::get(HEAD.get()), |listed| forever::get(listed.next.get()))
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
    // Built before the lock: two threads may both build them, with the same result. The entry of one of them
    // is then never used.
    let constants = constants(callsite, intern);
    let new = match Listed::of(callsite) {
        Some(_) => None, // in a forked child: the parent has listed it
        None => Some(leak(Listed::new(callsite, |text| copy_of(text, false).text))),
    };
    with(|registry| {
        if callsite.epoch() != Some(Epoch::UNREGISTERED) {
            return;
        }
        if let (None, Some(new)) = (Listed::of(callsite), new) {
            callsite.set_constants(registry.callsites, &constants);
            new.serial = registry.callsites;
            registry.callsites += 1;
            new.push(callsite, &HEAD);
        }
        if let Some(listed) = Listed::of(callsite) {
            registry.set_epoch(callsite, listed);
        }
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

/// Whether a bridge of `tracing` or `log` is in use, to whose events the level applies.
pub(crate) fn has_levels() -> bool {
    let [tracing, log, _] = &ON_CHANGE;
    [tracing, log].iter().any(|hook| !hook.load(Ordering::Relaxed).is_null())
}

/// Counts a change that is complete. Release pairs with the Acquire of [`changes`]: a thread that sees the
/// number sees the change.
fn count_change() {
    CHANGES.fetch_add(1, Ordering::Release);
}

/// Returns the number of changes of which callsites are on. A bridge that finds another number after it has
/// brought its copy up to date begins anew.
#[cfg(feature = "subscriber")]
pub(crate) fn changes() -> u32 {
    CHANGES.load(Ordering::Acquire)
}

/// Returns the most verbose level of `tracing` and `log` that the running session records, as a number.
/// Without a session that of the last one.
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) fn active_level() -> u8 {
    ACTIVE_LEVEL.load(Ordering::Relaxed)
}

/// Returns the categories of all registered callsites, sorted. No set and no sort of the standard library:
/// each user would compile their code.
pub(crate) fn categories() -> Vec<&'static str> {
    let mut sorted = Vec::new();
    for category in listed().filter(|listed| listed.is_filtered).flat_map(Listed::categories) {
        if let Err(place) = sorted.binary_search(&category) {
            sorted.insert(place, category);
        }
    }
    sorted
}

/// Returns the patterns of the rules that match no registered callsite of slices.
pub(crate) fn unmatched(rules: &SlowRules) -> Vec<String> {
    let slices = listed().filter(|listed| listed.kind == CallsiteKind::Scope);
    let slices: Vec<_> = slices.map(|listed| (listed.categories(), listed.name)).collect();
    rules.unmatched(slices.iter().cloned())
}

/// Returns the epoch of the running session.
#[inline]
pub(crate) fn active_epoch() -> Option<Epoch> {
    Epoch::from_raw(ACTIVE_EPOCH.load(Ordering::Relaxed))
}

/// Switches the callsites that `filter` and `level` match on, with `epoch`, and all others off. The caller
/// then calls [`notify_bridges`].
pub(crate) fn activate(epoch: Epoch, filter: Filter, level: Level, watched: Watched) {
    let before = change(|registry, modules| {
        watched.set_limits();
        let session = ActiveSession {
            epoch,
            filter,
            level,
            has_matched: false,
            has_stacks: false,
            has_slow_stacks: false,
            watched,
        };
        let before = registry.active.replace(session);
        ACTIVE_LEVEL.store(level as u8, Ordering::Relaxed);
        ACTIVE_EPOCH.store(epoch.get(), Ordering::Relaxed);
        registry.set_epochs(modules);
        count_change();
        before
    });
    drop(before); // outside of the lock
}

/// Replaces the filter and the level, those that are given, if the session with `epoch` is still running.
pub(crate) fn set_filter(epoch: Epoch, mut filter: Option<Filter>, level: Option<Level>) {
    change(|registry, modules| {
        if let Some(session) = registry.active.as_mut().filter(|session| session.epoch == epoch) {
            if let Some(filter) = &mut filter {
                std::mem::swap(&mut session.filter, filter);
            }
            if let Some(level) = level {
                session.level = level;
                ACTIVE_LEVEL.store(level as u8, Ordering::Relaxed);
            }
            registry.set_epochs(modules);
            count_change();
        }
    });
    drop(filter); // the one before, outside of the lock
    notify_bridges();
}

/// Switches all callsites off, if the session with `epoch` is still running. Returns that session.
pub(crate) fn deactivate(epoch: Epoch) -> Option<ActiveSession> {
    let before = change(|registry, modules| {
        let is_running = registry.is_active(epoch);
        if is_running {
            ACTIVE_EPOCH.store(0, Ordering::Relaxed);
            registry.clear_epochs(modules);
            count_change();
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
        for_each_in_child(|callsite| callsite.set_epoch(Some(Epoch::UNREGISTERED)));
    }
}

/// Switches all callsites off for ever in a forked child, without a lock.
pub(crate) fn detach_after_fork() {
    this_thread::set_detached();
    ACTIVE_EPOCH.store(0, Ordering::Relaxed);
    for_each_in_child(|callsite| callsite.set_epoch(None));
}

/// Calls `f` for each callsite whose code is loaded, in a forked child.
fn for_each_in_child(mut f: impl FnMut(&Callsite)) {
    let modules = Modules::in_child();
    for listed in listed() {
        listed.forget_if_unloaded(&modules);
        // SAFETY: just checked, and this is the child's only thread.
        if let Some(callsite) = unsafe { listed.callsite() } {
            f(callsite);
        }
    }
}
