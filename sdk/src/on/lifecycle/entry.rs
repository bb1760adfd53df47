//! The first event: of a callsite, and of the process, which starts the session that the environment asks for.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::builder::Config;
use crate::error::Error;
use crate::on::base::stderr::{self, Level};
use crate::on::callsite::{Callsite, CallsiteKind, Key, Site};
use crate::on::lifecycle::inherited::{HEEDED, STARTING, STATE, UNHEEDED};
use crate::on::lifecycle::{connect, env, inherited, start};
use crate::on::session::report;
use crate::on::thread::cold;

impl Callsite {
    /// A callsite, as the macros make it.
    #[must_use]
    pub const fn new(
        kind: CallsiteKind,
        category: &'static str,
        name: &'static str,
        keys: &'static [Key],
        site: &'static Site,
    ) -> Self {
        Self::with_first_hit(kind, category, name, keys, site, first_hit)
    }
}

/// Registers a callsite at its first hit. Returns its word then.
#[cold]
pub(crate) fn first_hit(callsite: &'static Callsite) -> u32 {
    connect::connect();
    cold::first_hit(callsite, start_once)
}

/// The longest that an event waits while another thread starts the session, which takes some 20 ms. Not for ever: the thread that
/// starts it may need something that the waiting one holds, such as the lock of the program's allocator.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Time between two looks whether the session has started.
const LOOK: Duration = Duration::from_micros(100);

/// Starts the session that the environment asks for, if it does, at the first call. A call that comes meanwhile waits for it. No lock
/// is held.
pub(crate) fn start_once() {
    match STATE.compare_exchange(UNHEEDED, STARTING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {
            let begun = inherited::take()
                .map_or_else(start_asked_for, |config| start_unless_running(config).map(drop));
            STATE.store(HEEDED, Ordering::Release);
            if let Err(e) = begun {
                stderr::write(Level::Error, format_args!("{e}; not tracing"));
            }
        }
        Err(STARTING) => wait_for_start(),
        Err(_) => {}
    }
}

#[cold]
fn wait_for_start() {
    let until = Instant::now() + LONGEST_WAIT;
    while STATE.load(Ordering::Acquire) == STARTING && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// The session that the environment asks for.
fn start_asked_for() -> Result<(), Error> {
    if let Some(settings) = env::settings()?
        && start_unless_running(settings.into_config()?)?
    {
        report::set_environments();
    }
    Ok(())
}

/// Starts a session that belongs to the process: the exit handler stops it. Returns whether it was started: the
/// program's own session may have come first, and decides.
fn start_unless_running(config: Config) -> Result<bool, Error> {
    match start::start(config) {
        Ok(_) => Ok(true),
        Err(Error::AlreadyRunning) => Ok(false),
        Err(e) => Err(e),
    }
}
