//! A program that starts a session of its own while `HAIRLINE` is set: its session is the environment's.
//!
//! The environment is set for one run, by the person who wants the trace. So its settings replace those of
//! the program, which gets a handle to the same session.

use std::sync::Arc;

use crate::builder::Requester;
use crate::on::base::stderr::{self, Level};
use crate::on::base::this_thread;
use crate::on::lifecycle::{connect, entry, inherited};
use crate::on::session::current;
use crate::on::session::shared::Shared;

/// Returns the running session, if the environment requested it. Starts it before, if nothing has.
pub(crate) fn environments_session() -> Option<Arc<Shared>> {
    if this_thread::is_barred() {
        return None;
    }
    connect::connect();
    // The program replaces settings that a forked child has from a session of the program.
    if !inherited::is_pending() || inherited::is_from_environment() {
        let _busy = this_thread::busy();
        entry::start_before_own_session();
    }
    current::running().filter(is_not_the_programs)
}

/// Returns the session of a command, of the tracing service or of the environment that was a moment sooner
/// than that of the program.
pub(crate) fn sooner_session() -> Option<Arc<Shared>> {
    if this_thread::is_barred() {
        return None; // it may be the thread that starts one
    }
    current::started().filter(is_not_the_programs)
}

fn is_not_the_programs(session: &Arc<Shared>) -> bool {
    session.settings.requester.has_variables()
}

/// Reports that the program's settings do not apply, with the names of those that are not the defaults.
pub(crate) fn report(session: &Shared, settings: &[&str]) {
    let without_effect = match settings {
        [] => String::new(),
        _ => format!("; the program's own settings have no effect: {}", settings.join(", ")),
    };
    let path = session.settings.path.as_deref();
    let to = path.map_or_else(String::new, |path| format!(": recording to {}", path.display()));
    let who = match session.settings.requester {
        Requester::Command => "a command records this process",
        Requester::Service => "the tracing service records this process",
        _ => "HAIRLINE is set",
    };
    stderr::write(Level::Error, format_args!("{who}{to}{without_effect}"));
}
