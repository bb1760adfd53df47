//! Messages of the `log` crate, in the trace.
//!
//! A [`Record`] lives as long as its message is logged; what of it is static is a callsite, found again by its target and its
//! place in the source.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use log::{LevelFilter, Metadata, Record};

use crate::on::base::lock::{Map, Mutex};
use crate::on::base::this_thread;
use crate::on::callsite::made::Blank;
use crate::on::callsite::registry::Keeper;
use crate::on::callsite::tables::log::{SITES, Sites};
use crate::on::callsite::{Callsite, CounterOptions, Kind, Site, registry};
use crate::on::event::extras::Extras;
use crate::on::event::text::Text;
use crate::on::lifecycle::{asked, entry, inherited};
use crate::on::thread::events;
use crate::vocabulary::Level;

/// Callsites that are made. They stay for the rest of the process, and a program may make up targets.
const MAX_SITES: usize = 1 << 14;

/// Whether a message with this target would be recorded.
pub(crate) fn would_record(metadata: &Metadata<'_>) -> bool {
    asked::would_record(metadata.target())
}

/// Records the message, if the session takes its target.
pub(crate) fn record(record: &Record<'_>) {
    if !ASKED.load(Ordering::Acquire) {
        ask();
    }
    if registry::active_epoch() == 0 && !inherited::is_pending() {
        return;
    }
    let Some(site) = site(record) else { return };
    let word = site.registered_word();
    if word == 0 {
        return;
    }
    let level = match record.level() {
        log::Level::Trace => Level::Trace,
        log::Level::Debug => Level::Debug,
        log::Level::Info => Level::Info,
        log::Level::Warn => Level::Warn,
        log::Level::Error => Level::Error,
    };
    let text = Text::display(record.args());
    let text = text.as_str();
    // Without a name of its own it has the callsite's.
    let extras = if text.is_empty() { Extras::new() } else { Extras::new().name(text) };
    events::log_with(site, word, level, text, &extras);
}

/// The callsite, made at the first message. None from inside of an event, which may be holding the lock.
fn site(record: &Record<'_>) -> Option<&'static Callsite> {
    let _busy = this_thread::enter()?;
    let file = record.file_static().unwrap_or("");
    let line = record.line().filter(|_| !file.is_empty()).unwrap_or(0);
    let (target, file_at) = (record.target(), file.as_ptr().addr());
    let sites = SITES.read()?;
    let elsewhere = (sites.len() >= MAX_SITES).then_some(&ELSEWHERE);
    if let Some(site) = find(&sites, target, file_at, line).or(elsewhere) {
        return Some(site);
    }
    drop(sites);
    let module = record.module_path_static().unwrap_or("");
    // Most messages have their module as target, which is static. Other targets are copied, before the lock.
    let blank = if target == module { Blank::new(Box::default()) } else { Blank::with_category(target) };
    let mut sites = SITES.write_with_room(|sites| (sites, 1))?;
    if let Some(site) = find(&sites, target, file_at, line) {
        return Some(site); // of another thread; the lock is released before the blank is freed
    }
    if sites.len() >= MAX_SITES {
        return Some(&ELSEWHERE);
    }
    let site =
        blank.fill(Kind::Instant, module, NAME, Site { file, line, module, ..NOWHERE }, entry::first_hit);
    sites.insert((site.category(), file_at, line), site);
    Some(site)
}

fn find(sites: &Sites, target: &str, file_at: usize, line: u32) -> Option<&'static Callsite> {
    let sites: &Map<(&str, usize, u32), _> = sites;
    sites.get(&(target, file_at, line)).copied()
}

/// The name of messages that say nothing.
const NAME: &str = "log";
const NOWHERE: Site = Site { file: "", line: 0, module: "", counter: CounterOptions::NONE };

/// For what comes after [`MAX_SITES`].
static ELSEWHERE: Callsite = Callsite::new(Kind::Instant, "log", NAME, &[], &NOWHERE);

/// Whether a message was there already, which starts the session that the environment asks for.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Up to where another logger wants messages, if `log::max_level` is kept.
static FLOOR: AtomicUsize = AtomicUsize::new(UNKEPT);
const UNKEPT: usize = usize::MAX;

/// From now on `log::max_level` is everything while a session runs, else `other`.
pub(crate) fn keep_max_level(other: LevelFilter) {
    FLOOR.store(other as usize, Ordering::Release);
    // Everything at first, so that there is a first message.
    log::set_max_level(LevelFilter::Trace);
    ASKED.store(false, Ordering::Release);
}

#[cold]
fn ask() {
    if this_thread::is_barred() {
        return;
    }
    asked::start_asked();
    if FLOOR.load(Ordering::Acquire) != UNKEPT {
        registry::on_change(Keeper::Log, set_max_level);
        set_max_level();
    }
    ASKED.store(true, Ordering::Release);
}

fn set_max_level() {
    // One after the other, so that the last one sets what is true then.
    static TURN: Mutex<()> = Mutex::new(());
    let _busy = this_thread::busy();
    let _turn = TURN.lock_unless_lost();
    let floor = LevelFilter::iter().nth(FLOOR.load(Ordering::Relaxed)).unwrap_or(LevelFilter::Off);
    log::set_max_level(if registry::active_epoch() == 0 { floor } else { LevelFilter::Trace });
}
