//! Makes callsites of this crate for those of `tracing`.

use std::cell::Cell;

use hairline_formats::Value;
use tracing_core::{Event, Metadata};

use crate::on::base::this_thread;
use crate::on::bridges::tracing::fields::{Fields, with_scratch};
use crate::on::bridges::tracing::kept::Kept;
use crate::on::bridges::tracing::{forwarded, requests};
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::tables::tracing::SITES;
use crate::on::callsite::{Callsite, Key};
use crate::on::lifecycle::{connect, enabled, entry};
use crate::on::thread::slices;
use crate::site::{CallsiteKind, Site};
use crate::spans::Category;
use crate::vocabulary::Level;

/// Returns the key of a callsite in `by_callsite`: its address.
fn address(callsite: &'static Callsite) -> u64 {
    std::ptr::from_ref(callsite).addr() as u64
}

/// A key, and the callsite that was found by it.
type Found = (usize, Option<&'static Callsite>);

/// Number of callsites that a thread finds without the lock.
const NEAR: usize = 64;

thread_local! {
    /// The callsites that this thread found last, by some bits of the address of their metadata.
    static FOUND: [Cell<Found>; NEAR] = const { [const { Cell::new((0, None)) }; NEAR] };
}

/// Returns the callsite for this metadata, made at the first call. Returns `None` from inside of an event,
/// which may hold the lock.
#[inline]
pub(crate) fn site(metadata: &'static Metadata<'static>, category: Category) -> Option<&'static Callsite> {
    if this_thread::is_barred() {
        return None;
    }
    // Each category has a key of its own. Metadata is larger than the number of categories, so these keys are
    // no other metadata's.
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
    connect::connect(); // before the table's lock
    let _busy = this_thread::busy();
    if let Some(site) = SITES.read()?.by_metadata.get(&address) {
        return Some(site);
    }
    let level = argument_level(metadata).filter(|_| category != Category::Level);
    let level = level.map(|_| Key::new(LEVEL));
    let memory = CallsiteMemory::new(
        metadata.fields().iter().map(|field| Key::new(field.name())).chain(level).collect(),
    );
    let mut sites = SITES.write_with_room(|sites| (sites, 1))?;
    if let Some(site) = sites.by_metadata.get(&address) {
        return Some(site); // another thread made it; the lock is released before the memory is freed
    }
    let site = make(memory, metadata, category);
    sites.by_metadata.insert(address, site);
    sites.by_callsite.insert(self::address(site), metadata);
    Some(site)
}

/// The argument with a level other than INFO.
const LEVEL: &str = "level";

/// Returns the level, if it is not INFO and no field has its name.
fn argument_level(metadata: &Metadata<'_>) -> Option<Level> {
    let level = level_of(metadata);
    (level != Level::Info && metadata.fields().field(LEVEL).is_none()).then_some(level)
}

/// Adds the level, if it is not INFO. It is recorded if the callsite has a key for it.
pub(crate) fn add_level(fields: &mut Fields, metadata: &Metadata<'_>) {
    if let Some(level) = argument_level(metadata) {
        fields.kept.add(LEVEL, &Value::Str(level.name()));
    }
}

/// As [`add_level`], for a span. The level's key is after those of the fields.
pub(crate) fn add_level_of_span(kept: &mut Kept, metadata: &Metadata<'_>) {
    if let Some(level) = argument_level(metadata) {
        kept.add_text(metadata.fields().len(), level.name());
    }
}

/// Returns the metadata that [`site`] made the callsite from.
pub(crate) fn metadata(callsite: &'static Callsite) -> Option<&'static Metadata<'static>> {
    let _busy = this_thread::enter()?;
    SITES.read()?.by_callsite.get(&address(callsite)).copied()
}

/// Returns whether a callsite with this metadata would be recorded.
pub(crate) fn would_record(metadata: &Metadata<'_>, category: Category) -> bool {
    enabled::would_record(name_of(metadata, category), level_of(metadata))
}

/// Records an event: with a message a log message, else an instant with its fields.
pub(crate) fn event(event: &Event<'_>, category: Category) {
    if forwarded::is_message(event.metadata()) {
        return forwarded::record(event, category, level_of(event.metadata()));
    }
    let Some(site) = site(event.metadata(), category) else { return };
    let Some(epoch) = site.registered_epoch() else { return };
    let level = level_of(event.metadata());
    with_scratch(|fields| {
        event.record(fields);
        add_level(fields, event.metadata());
        let message = Some(fields.message.as_str()).filter(|message| !message.is_empty());
        let flow = if site.carries_flow() { requests::flow_of(fields.kept.iter(), epoch) } else { None };
        let extras = slices::extras_of(flow.as_ref());
        fields.with_values(site, |values| slices::event_of(site, epoch, values, &extras, message, level));
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

/// Makes the callsite. Its keys are the fields, and the level if it is recorded. Allocates nothing.
fn make(
    memory: CallsiteMemory,
    metadata: &'static Metadata<'static>,
    category: Category,
) -> &'static Callsite {
    let site = Site {
        file: metadata.file().unwrap_or(""),
        line: metadata.line().unwrap_or(0),
        module: metadata.module_path().unwrap_or(""),
        ..Site::NOWHERE
    };
    let kind = if metadata.is_span() { CallsiteKind::Scope } else { CallsiteKind::Instant };
    memory.with_level(level_of(metadata)).with_flow_in(requests::TRACEPARENT).fill(
        kind,
        name_of(metadata, category),
        metadata.name(),
        site,
        entry::first_hit,
    )
}
