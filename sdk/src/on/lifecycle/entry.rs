//! The first event of a callsite, and of the process.
//!
//! The first event of the process starts the session that the environment requests.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hairline_shm::Uncancelled;

use crate::builder::{Config, Requester};
use crate::error::Error;
use crate::on::base::stderr::{self, Level};
use crate::on::callsite::{Callsite, Epoch, Key, registry};
use crate::on::event::track::Track;
use crate::on::lifecycle::inherited::{DONE, NOT_STARTED, STARTING, STATE};
use crate::on::lifecycle::listen::Listening;
use crate::on::lifecycle::{connect, env, inherited, listen, start, traced};
use crate::on::thread::cold;
use crate::site::{CallsiteKind, Site};

impl Callsite {
    /// Creates the callsite of a macro.
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

impl Track {
    /// Returns the track of the calling thread. The handle refers to that thread wherever it is used.
    pub fn thread() -> Self {
        connect::connect(); // this may be the first contact of the process
        Self::of_this_thread()
    }
}

/// Connects the layers, starts the session that the environment asks for if nothing has started one, and
/// registers the callsite. Returns the callsite's epoch after that.
#[cold]
pub(crate) fn first_hit(callsite: &'static Callsite) -> Option<Epoch> {
    let _uncancelled = Uncancelled::new(); // the start opens files
    connect::connect();
    cold::first_hit(callsite, start_once)
}

/// The longest wait of an event while another thread starts the session, which takes less than 1 ms. The wait
/// has a limit, because the starting thread may need a resource of the waiting thread, such as the lock of
/// the program's allocator.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Time between two checks whether the session has started.
const POLL: Duration = Duration::from_micros(100);

/// Starts the session that the environment or the inherited settings request, at the first call. A call
/// during the start waits for its end. No lock is held.
pub(crate) fn start_once() {
    start_once_or("not tracing");
}

/// Like [`start_once`], before the program starts a session of its own.
pub(crate) fn start_before_own_session() {
    start_once_or("the session of the program's own settings starts instead");
}

/// Like [`start_once`]. `otherwise` is reported after the reason if the session cannot start.
fn start_once_or(otherwise: &str) {
    // Acquire pairs with the Release of `STATE`'s stores: the caller sees the session that another thread has
    // started.
    match STATE.compare_exchange(NOT_STARTED, STARTING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {
            listen::go_on_in_child();
            traced::go_on_in_child();
            let started = match inherited::take() {
                Some(config) => start_unless_running(config).map(drop),
                None if inherited::environment_is_parents() => Ok(()),
                None => start_from_environment(),
            };
            STATE.store(DONE, Ordering::Release);
            if let Err(e) = started {
                stderr::write(Level::Error, format_args!("{e}; {otherwise}"));
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
        std::thread::sleep(POLL);
    }
}

/// Starts the session that the environment requests, if it requests one.
fn start_from_environment() -> Result<(), Error> {
    env::report_unknown();
    if env::asks_for_traced() {
        traced::start(env::settings_for_service()?)?.keep_on();
    }
    if env::asks_to_listen() {
        return listen::start().map(Listening::keep_on);
    }
    start_requested().map_err(env::with_variable)
}

fn start_requested() -> Result<(), Error> {
    let Some(builder) = env::settings()? else { return Ok(()) };
    let mut config = builder.into_config()?;
    config.requester = Requester::Environment;
    if start_unless_running(config)? {
        let rest = "; of the crates `tracing` and `log` up to INFO, the rest with HAIRLINE_LEVEL=trace";
        let rest = if registry::has_levels() && !env::names_level() { rest } else { "" };
        stderr::write(Level::Info, format_args!("tracing{rest}"));
    } else {
        let message = "HAIRLINE has no effect: the program's own session was first";
        stderr::write(Level::Error, format_args!("{message}"));
    }
    Ok(())
}

/// Starts a session that the exit handler stops. Returns false if the program's own session was first, and
/// runs.
fn start_unless_running(config: Config) -> Result<bool, Error> {
    match start::start(config) {
        Ok(_) => Ok(true),
        Err(Error::AlreadyRunning) => Ok(false),
        Err(e) => Err(e),
    }
}
