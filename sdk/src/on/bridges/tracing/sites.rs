//! The callsites of `tracing`, as callsites of this crate.

use std::cell::Cell;

use tracing_core::{Event, Interest, Metadata};

use crate::on::base::this_thread;
use crate::on::bridges::tracing::Category;
use crate::on::bridges::tracing::fields::with_scratch;
use crate::on::callsite::made::Blank;
use crate::on::callsite::tables::tracing::SITES;
use crate::on::callsite::{Callsite, CounterOptions, Key, Kind, Site, registry};
use crate::on::lifecycle::{asked, entry};
use crate::on::thread::slices;
use crate::vocabulary::Level;

/// What a callsite is found by.
fn address(callsite: &'static Callsite) -> u64 {
    std::ptr::from_ref(callsite).addr() as u64
}

/// Callsites that a thread finds without the lock.
const NEAR: usize = 64;

thread_local! {
    /// By some bits of the address of their metadata: what this thread has found last.
    static FOUND: [Cell<(usize, Option<&'static Callsite>)>; NEAR] = const { [const { Cell::new((0, None)) }; NEAR] };
}

/// The callsite, made at the first call. None from inside of an event, which may be holding the lock.
#[inline]
pub(crate) fn site(metadata: &'static Metadata<'static>, category: Category) -> Option<&'static Callsite> {
    if this_thread::is_barred() {
        return None;
    }
    // One for each category: metadata is larger than there are kinds of them, so that the next one's is elsewhere.
    let address = std::ptr::from_ref(metadata).addr() + category as usize;
    FOUND.with(|found| {
        let near = &found[address / 64 % NEAR];
        match near.get() {
            (of, Some(site)) if of == address => Some(site),
            _ => {
                let site = find(metadata, category, address as u64)?;
                near.set((address, Some(site)));
                Some(site)
            }
        }
    })
}

#[cold]
fn find(metadata: &'static Metadata<'static>, category: Category, address: u64) -> Option<&'static Callsite> {
    let _busy = this_thread::busy();
    if let Some(site) = SITES.read()?.by_metadata.get(&address) {
        return Some(site);
    }
    let blank = Blank::new(metadata.fields().iter().map(|field| Key::new(field.name())).collect());
    let mut sites = SITES.write_with_room(|sites| (sites, 1))?;
    if let Some(site) = sites.by_metadata.get(&address) {
        return Some(site); // of another thread; the lock is released before the blank is freed
    }
    let site = make(blank, metadata, category);
    sites.by_metadata.insert(address, site);
    sites.by_callsite.insert(self::address(site), metadata);
    Some(site)
}

/// What `site` made the callsite from.
pub(crate) fn metadata(callsite: &'static Callsite) -> Option<&'static Metadata<'static>> {
    let _busy = this_thread::enter()?;
    SITES.read()?.by_callsite.get(&address(callsite)).copied()
}

/// Whether a callsite with this metadata would be recorded.
pub(crate) fn would_record(metadata: &Metadata<'_>, category: Category) -> bool {
    asked::would_record(name_of(metadata, category))
}

/// An event: an instant with its fields, or with a message a log message.
pub(crate) fn event(event: &Event<'_>, category: Category) {
    let Some(site) = site(event.metadata(), category) else { return };
    let word = site.registered_word();
    if word == 0 {
        return;
    }
    let level = level_of(event.metadata());
    with_scratch(|fields| {
        event.record(fields);
        let message = Some(fields.message.as_str()).filter(|message| !message.is_empty());
        fields.with_values(site, |values| slices::event_of(site, word, values, message, level));
    });
}

fn level_of(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing_core::Level::TRACE => Level::Trace,
        tracing_core::Level::DEBUG => Level::Debug,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::WARN => Level::Warn,
        tracing_core::Level::ERROR => Level::Error,
    }
}

fn name_of<'m>(metadata: &Metadata<'m>, category: Category) -> &'m str {
    match category {
        Category::Target => metadata.target(),
        Category::Level => level_of(metadata).name(),
    }
}

/// Makes the callsite, whose keys are the fields but for the message. Allocates nothing.
fn make(blank: Blank, metadata: &'static Metadata<'static>, category: Category) -> &'static Callsite {
    let site = Site {
        file: metadata.file().unwrap_or(""),
        line: metadata.line().unwrap_or(0),
        module: metadata.module_path().unwrap_or(""),
        counter: CounterOptions::NONE,
    };
    let kind = if metadata.is_span() { Kind::Scope } else { Kind::Instant };
    blank.fill(kind, name_of(metadata, category), metadata.name(), site, entry::first_hit)
}

/// Whether the callsite is on, to be kept in tracing's own cache until the session or its filter changes.
pub(crate) fn interest(metadata: &'static Metadata<'static>, category: Category) -> Interest {
    // Inside of an event: to be asked again, not never.
    let Some(site) = site(metadata, category) else { return Interest::sometimes() };
    // The first of all starts the session that the environment asks for, before tracing is to hear of changes: it is
    // in the midst of asking, and may hold a lock.
    let _ = site.registered_word();
    registry::on_change(registry::Keeper::Tracing, tracing_core::callsite::rebuild_interest_cache);
    match site.word() {
        0 => Interest::never(),
        _ => Interest::always(),
    }
}
