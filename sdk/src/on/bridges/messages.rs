//! The callsites of messages of the `log` crate, whether [`Logger`](crate::Logger) records them or
//! tracing-log passes them on.

use crate::on::base::lock::Map;
use crate::on::base::this_thread;
use crate::on::callsite::Callsite;
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::tables::messages::{SITES, Sites};
use crate::on::lifecycle::{connect, entry};
use crate::site::{CallsiteKind, Site};

/// The most callsites made for messages. They stay for the rest of the process, and a program may invent
/// targets.
const MAX_SITES: usize = 1 << 14;

/// The callsite of all messages beyond [`MAX_SITES`].
static OVERFLOW: Callsite = Callsite::new(CallsiteKind::Instant, "log", NAME, &[], &Site::NOWHERE);

/// The name of messages without a place in the source.
const NAME: &str = "log";

/// Where a message is from. Its callsite is found by all but the module.
#[derive(Debug)]
pub(crate) struct Place<'m> {
    pub(crate) category: &'m str,
    /// Empty if it is not known.
    pub(crate) file: &'m str,
    /// 0 if it is not known.
    pub(crate) line: u32,
    pub(crate) module: &'m str,
}

/// Returns the callsite of the messages from this place, made at the first one, with the name of the first
/// one: `literal`, or else its place. Returns `None` from inside of an event, which may hold the lock.
pub(crate) fn site(place: &Place<'_>, literal: Option<&str>) -> Option<&'static Callsite> {
    if this_thread::is_barred() {
        return None;
    }
    connect::connect(); // before the table's lock
    let _busy = this_thread::busy();
    let sites = SITES.read()?;
    let elsewhere = (sites.len() >= MAX_SITES).then_some(&OVERFLOW);
    if let Some(site) = find(&sites, place).or(elsewhere) {
        return Some(site);
    }
    drop(sites);
    // Copied before the lock. What a record has as static text may be in a plugin, which can be unloaded.
    let [file, module] = [place.file, place.module].map(Box::<str>::from);
    let memory = CallsiteMemory::new(Box::default()).with_category(place.category);
    let memory = match literal {
        Some(literal) => memory.with_name(literal),
        None if place.file.is_empty() => memory.with_name(NAME),
        None => memory.with_name(&format!("event {}:{}", place.file, place.line)),
    };
    let mut sites = SITES.write_with_room(|sites| (sites, 1))?;
    if let Some(site) = find(&sites, place) {
        return Some(site); // another thread made it; the lock is released before the memory is freed
    }
    if sites.len() >= MAX_SITES {
        return Some(&OVERFLOW);
    }
    let site = Site { file: Box::leak(file), line: place.line, module: Box::leak(module), ..Site::NOWHERE };
    let callsite = memory.fill(CallsiteKind::Instant, "", "", site, entry::first_hit);
    sites.insert((callsite.category(), callsite.site().file, place.line), callsite);
    Some(callsite)
}

fn find(sites: &Sites, place: &Place<'_>) -> Option<&'static Callsite> {
    let sites: &Map<(&str, &str, u32), _> = sites;
    sites.get(&(place.category, place.file, place.line)).copied()
}
