//! All callsites that were hit, the strings they use, and which of them are on.
//!
//! The list is lock-free to walk. Registration, a session's start and stop and a change of filter
//! hold the registry's lock, so that a callsite registered meanwhile ends up on or off as the last of
//! them says. A thread that holds the lock has marked its writer busy, so an event that interrupts it there is
//! counted and does not wait for the lock.

#![allow(unsafe_code)] // callsites are statics behind raw pointers

use std::panic::Location;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Instant;

use crate::filter::Filter;
use crate::on::base::lock::{Fixed, Grow, Map, Mutex, MutexGuard};
use crate::on::base::{lock, this_thread};
use crate::on::callsite::made::Blank;
use crate::on::callsite::{
    Callsite, Constants, CounterOptions, FirstHit, Kind, Link, Site, UNREGISTERED, pointee,
};

static HEAD: Link<Callsite> = Link::end();

/// The epoch of the session that runs, 0 if there is none.
static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Called when callsites were switched on or off: who keeps a copy of that brings it up to date.
static ON_CHANGE: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];

/// Who keeps a copy of what is on.
#[cfg(any(feature = "subscriber", feature = "log"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keeper {
    #[cfg(feature = "subscriber")]
    Tracing = 0,
    #[cfg(feature = "log")]
    Log = 1,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry::EMPTY);

pub(crate) struct Registry {
    strings: Strings,
    callsites: u32,
    /// The running session's epoch and filter.
    active: Option<(u32, Filter)>,
    /// Callsites made at run time.
    made: Map<Made, &'static Callsite>,
}

impl Registry {
    const EMPTY: Self = Self {
        strings: Strings { numbers: Map::with_hasher(Fixed::new()), texts: Vec::new() },
        callsites: 0,
        active: None,
        made: Map::with_hasher(Fixed::new()),
    };
}

// Nothing is allocated or freed under the lock: see `lock/growing.rs`.

/// All strings of callsites, numbered from 1 in the order of first use; the empty string is 0, as both formats have it.
struct Strings {
    numbers: Map<&'static str, u32>,
    texts: Vec<&'static str>,
}

impl Grow for Strings {
    fn with_room(entries: usize) -> Self {
        Self { numbers: Grow::with_room(entries), texts: Grow::with_room(entries) }
    }

    fn entries(&self) -> usize {
        self.texts.entries()
    }

    fn has_room(&self, more: usize) -> bool {
        self.numbers.has_room(more) && self.texts.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.numbers.take_over(&mut smaller.numbers);
        self.texts.take_over(&mut smaller.texts);
    }
}

impl Strings {
    /// The number of a string that is not empty. There is room for one more.
    fn number(&mut self, text: &'static str) -> u32 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            #[allow(clippy::cast_possible_truncation)]
            // 4 billion distinct static strings do not fit a program
            let number = self.texts.len() as u32;
            number
        })
    }
}

/// What a callsite that is made at run time is found again by.
#[derive(PartialEq, Eq, Hash)]
struct Made {
    category: &'static str,
    name: &'static str,
    file: &'static str,
    line: u32,
}

/// The callsite of scopes with this category and name at the caller's place in the source, made at the first call.
#[track_caller]
pub(crate) fn callsite_of(
    category: &'static str,
    name: &'static str,
    first_hit: FirstHit,
) -> &'static Callsite {
    let at = Location::caller();
    let (file, line) = (at.file(), at.line());
    let Some(_busy) = this_thread::enter() else {
        // Inside of an event, which may be holding the lock: nothing is recorded there.
        static NOWHERE: Site = Site { file: "", line: 0, module: "", counter: CounterOptions::NONE };
        static NOTHING: Callsite = Callsite::with_first_hit(Kind::Scope, "", "", &[], &NOWHERE, |_| 0);
        return &NOTHING;
    };
    let made = || Made { category, name, file, line };
    if let Some(callsite) = with(|registry| registry.made.get(&made()).copied()) {
        return callsite;
    }
    let blank = Blank::new(Box::default());
    let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.made, 1));
    if let Some(callsite) = registry.made.get(&made()) {
        return callsite; // of another thread; the lock is released before the blank is freed
    }
    let site = Site { file, line, module: "", counter: CounterOptions::NONE };
    let callsite = blank.fill(Kind::Scope, category, name, site, first_hit);
    registry.made.insert(made(), callsite);
    callsite
}

/// The number of a string that no callsite needs to have; 0, none, where the lock may not be waited for.
pub(crate) fn number_of(text: &'static str) -> u32 {
    if this_thread::is_barred() { 0 } else { intern(text) }
}

/// The number of a string; 0 of the empty one.
fn intern(text: &'static str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    let _busy = this_thread::busy();
    let mut registry = REGISTRY.lock_with_room(|registry| (&mut registry.strings, 1));
    registry.strings.number(text)
}

/// The string with this number, if there is one.
pub(crate) fn text_of(number: u64) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    with(|registry| registry.strings.texts.get(index).copied())
}

/// The registered callsite with this serial number.
pub(crate) fn callsite_with(serial: u32) -> Option<&'static Callsite> {
    callsites().find(|callsite| callsite.serial() == serial)
}

/// Calls `f` with the registry, under its lock. `f` allocates and frees nothing.
fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let _busy = this_thread::busy();
    f(&mut REGISTRY.lock())
}

/// Every registered callsite.
fn callsites() -> impl Iterator<Item = &'static Callsite> {
    std::iter::successors(pointee(HEAD.get()), |c| c.next())
}

/// Makes the callsite known and applies the filter. Idempotent. `constants` puts together what never changes in
/// its records; its argument numbers a string.
pub(crate) fn register(
    callsite: &'static Callsite,
    constants: impl FnOnce(&'static Callsite, fn(&'static str) -> u32) -> Constants,
) {
    if this_thread::is_detached() {
        callsite.set_word(0);
        return;
    }
    if callsite.word() != UNREGISTERED {
        return;
    }
    // Put together first: two threads may both do so, with the same outcome.
    let mut constants = constants(callsite, intern);
    with(|registry| {
        if callsite.word() != UNREGISTERED {
            return;
        }
        // In a forked child it may have been, by the parent.
        if !callsite.is_listed() {
            callsite.lay_down(registry.callsites, &mut constants);
            registry.callsites += 1;
            callsite.push(&HEAD);
        }
        callsite.set_word(word(registry.active.as_ref(), callsite));
    });
}

fn word(active: Option<&(u32, Filter)>, callsite: &Callsite) -> u32 {
    match active {
        Some((epoch, filter)) if callsite.kind() == Kind::End || takes(filter, callsite) => *epoch,
        _ => 0,
    }
}

/// From now on `hook` is called when callsites were switched on or off; what was before that, the caller sees.
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) fn on_change(keeper: Keeper, hook: fn()) {
    let place = &ON_CHANGE[keeper as usize];
    if place.load(Ordering::Acquire).is_null() {
        // Under the lock that a change is made under: it is over now, or will find the hook.
        with(|_| place.store(hook as *mut (), Ordering::Release));
    }
}

/// Tells those who keep a copy that callsites were switched on or off. Runs code of the program.
///
/// Not `tracing` in a forked child: that may have lost a lock of its own. There it keeps what was on when the parent forked.
pub(crate) fn changed() {
    let [tracing, log] = &ON_CHANGE;
    let told = [tracing, log].into_iter().skip(usize::from(lock::is_forked()));
    for hook in told.map(|hook| hook.load(Ordering::Acquire)).filter(|hook| !hook.is_null()) {
        // SAFETY: `on_change` alone stores here, a `fn()`.
        let hook: fn() = unsafe { std::mem::transmute(hook) };
        hook();
    }
}

/// Whether a callsite of this category would be on now.
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) fn takes_category(category: &str) -> bool {
    with(|registry| registry.active.as_ref().is_some_and(|(_, filter)| filter.matches(category)))
}

/// Whether the filter takes one of the callsite's categories.
fn takes(filter: &Filter, callsite: &Callsite) -> bool {
    let mut categories = callsite.categories().peekable();
    if categories.peek().is_none() { filter.matches("") } else { categories.any(|c| filter.matches(c)) }
}

/// The epoch of the session that runs, 0 if there is none.
pub(crate) fn active_epoch() -> u32 {
    ACTIVE.load(Ordering::Relaxed)
}

/// Switches every callsite that `filter` matches on, with `epoch`, and the others off. [`changed`] is to be
/// called then.
pub(crate) fn activate(epoch: u32, filter: Filter) {
    let before = with(|registry| {
        let before = registry.active.replace((epoch, filter));
        ACTIVE.store(epoch, Ordering::Relaxed);
        callsites().for_each(|c| c.set_word(word(registry.active.as_ref(), c)));
        before
    });
    drop(before);
}

/// Applies another filter, if the session with `epoch` still runs.
pub(crate) fn set_filter(epoch: u32, filter: Filter) {
    let mut filter = Some((epoch, filter));
    with(|registry| {
        if registry.active.as_ref().is_some_and(|(e, _)| *e == epoch) {
            std::mem::swap(&mut registry.active, &mut filter);
            callsites().for_each(|c| c.set_word(word(registry.active.as_ref(), c)));
        }
    });
    drop(filter); // the one that does not apply any more
    changed();
}

/// Switches every callsite off, if the session with `epoch` is the one that runs.
pub(crate) fn deactivate(epoch: u32) {
    let before = with(|registry| {
        let is_it = registry.active.as_ref().is_some_and(|(e, _)| *e == epoch);
        if is_it {
            ACTIVE.store(0, Ordering::Relaxed);
            callsites().for_each(|c| c.set_word(0));
        }
        is_it.then(|| registry.active.take())
    });
    drop(before);
    changed();
}

/// The registry, held for a fork.
pub(crate) struct Held(MutexGuard<'static, Registry>);

pub(crate) fn hold(until: Instant) -> Option<Held> {
    REGISTRY.try_lock_until(until).map(Held)
}

impl Held {
    /// In a forked child: the parent's session does not run here. Its filter.
    pub(crate) fn take_filter(&mut self) -> Option<Filter> {
        ACTIVE.store(0, Ordering::Relaxed);
        self.0.active.take().map(|(_, filter)| filter)
    }

    /// Every callsite is as if it had never been hit.
    pub(crate) fn expect_first_events(&self) {
        callsites().for_each(|c| c.set_word(UNREGISTERED));
    }
}

/// In a forked child: everything off, for good, without a lock.
pub(crate) fn detach_after_fork() {
    this_thread::set_detached();
    ACTIVE.store(0, Ordering::Relaxed);
    callsites().for_each(|c| c.set_word(0));
}
