//! Records the messages of the `log` crate.
//!
//! A [`Record`] lives as long as its message is logged. Its static parts become a callsite, which later
//! messages find by target and place in the source.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use log::{LevelFilter, Metadata, Record};

use crate::on::base::lock::{Map, Mutex};
use crate::on::base::this_thread;
use crate::on::callsite::registry::Bridge;
use crate::on::callsite::runtime::CallsiteMemory;
use crate::on::callsite::tables::log::{SITES, Sites};
use crate::on::callsite::{Callsite, registry};
use crate::on::event::Event;
use crate::on::event::extras::Extras;
use crate::on::event::text::Text;
use crate::on::lifecycle::{enabled, entry, inherited};
use crate::on::thread::events;
use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Level;

/// The most callsites made for messages. They stay for the rest of the process, and a program may invent
/// targets.
const MAX_SITES: usize = 1 << 14;

/// Returns whether a message with this target would be recorded.
pub(crate) fn would_record(metadata: &Metadata<'_>) -> bool {
    enabled::would_record(metadata.target(), level_of(metadata.level()))
}

/// Records the message, if the session's filter includes its target.
pub(crate) fn record(record: &Record<'_>) {
    if !HAS_ASKED.load(Ordering::Acquire) {
        start_at_first_message();
    }
    if registry::active_epoch().is_none() && !inherited::is_pending() {
        return;
    }
    let level = level_of(record.level());
    if (level as u8) < registry::active_level() {
        return;
    }
    let Some(site) = site(record) else { return };
    let Some(epoch) = site.registered_epoch() else { return };
    let constant = constant(record);
    let text = Text::display(record.args());
    // A macro of the program may have several messages in one place: the callsite has the first one's name.
    let name = constant.filter(|name| *name != site.name());
    let extras = Extras { name, ..Extras::new() };
    let event = Event::new(site, &[], &extras);
    events::log_message(&event, epoch, level, text.as_str(), level != Level::Info);
}

/// Returns the message, if it is a literal.
fn constant(record: &Record<'_>) -> Option<&'static str> {
    record.args().as_str().filter(|text| !text.is_empty())
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Trace => Level::Trace,
        log::Level::Debug => Level::Debug,
        log::Level::Info => Level::Info,
        log::Level::Warn => Level::Warn,
        log::Level::Error => Level::Error,
    }
}

/// Returns the message's callsite, made at the first message. Returns `None` from inside of an event, which
/// may hold the lock.
fn site(record: &Record<'_>) -> Option<&'static Callsite> {
    let _busy = this_thread::enter()?;
    let file = record.file_static().unwrap_or("");
    let line = record.line().filter(|_| !file.is_empty()).unwrap_or(0);
    let (target, file_at) = (record.target(), file.as_ptr().addr());
    let sites = SITES.read()?;
    let elsewhere = (sites.len() >= MAX_SITES).then_some(&OVERFLOW);
    if let Some(site) = find(&sites, target, file_at, line).or(elsewhere) {
        return Some(site);
    }
    drop(sites);
    let module = record.module_path_static().unwrap_or("");
    // Most messages have their module as target, which is static. Other targets are copied, before the lock.
    let memory = CallsiteMemory::new(Box::default());
    let memory = if target == module { memory } else { memory.with_category(target) };
    let memory = match constant(record) {
        None if !file.is_empty() => memory.with_name(&format!("event {file}:{line}")),
        _ => memory,
    };
    let mut sites = SITES.write_with_room(|sites| (sites, 1))?;
    if let Some(site) = find(&sites, target, file_at, line) {
        return Some(site); // another thread made it; the lock is released before the memory is freed
    }
    if sites.len() >= MAX_SITES {
        return Some(&OVERFLOW);
    }
    let site = memory.fill(
        CallsiteKind::Instant,
        module,
        constant(record).unwrap_or(NAME),
        Site { file, line, module, ..Site::NOWHERE },
        entry::first_hit,
    );
    sites.insert((site.category(), file_at, line), site);
    Some(site)
}

fn find(sites: &Sites, target: &str, file_at: usize, line: u32) -> Option<&'static Callsite> {
    let sites: &Map<(&str, usize, u32), _> = sites;
    sites.get(&(target, file_at, line)).copied()
}

/// The name of messages without a place in the source.
const NAME: &str = "log";

/// The callsite of all messages beyond [`MAX_SITES`].
static OVERFLOW: Callsite = Callsite::new(CallsiteKind::Instant, "log", NAME, &[], &Site::NOWHERE);

/// Whether the first message was logged. It starts the session that the environment asks for.
static HAS_ASKED: AtomicBool = AtomicBool::new(false);

/// The level up to which the program's own logger wants messages, if `log::max_level` is managed here.
static OTHER_LEVEL: AtomicUsize = AtomicUsize::new(NOT_KEPT);
const NOT_KEPT: usize = usize::MAX;

/// From now on sets `log::max_level`: to the session's level while a session runs, and never below `other`.
pub(crate) fn keep_max_level(other: LevelFilter) {
    OTHER_LEVEL.store(other as usize, Ordering::Release);
    // Everything at first: the first message starts the session.
    log::set_max_level(LevelFilter::Trace);
    HAS_ASKED.store(false, Ordering::Release);
}

#[cold]
fn start_at_first_message() {
    if this_thread::is_barred() {
        return;
    }
    enabled::start_from_environment();
    if OTHER_LEVEL.load(Ordering::Acquire) != NOT_KEPT {
        registry::on_change(Bridge::Log, set_max_level);
        set_max_level();
    }
    HAS_ASKED.store(true, Ordering::Release);
}

fn set_max_level() {
    // Under a lock, so that the last call sets the level that is true then.
    static UPDATE: Mutex<()> = Mutex::new(());
    let _busy = this_thread::busy();
    let _update = UPDATE.lock_unless_lost();
    let other = LevelFilter::iter().nth(OTHER_LEVEL.load(Ordering::Relaxed)).unwrap_or(LevelFilter::Off);
    // `log` numbers its levels from `Off` to `Trace`, this crate from `Trace` to `Fatal`.
    let recorded = (Level::Fatal as u8).saturating_sub(registry::active_level()).into();
    let recorded = if registry::active_epoch().is_none() { 0 } else { recorded };
    let recorded = LevelFilter::iter().nth(recorded).unwrap_or(LevelFilter::Off);
    log::set_max_level(recorded.max(other));
}
