//! The start of a session with its effects on the process: handlers, signals, the automatic start.

use std::sync::Arc;

use hairline_shm::Uncancelled;

use crate::builder::Config;
use crate::error::Error;
use crate::on::base::platform;
use crate::on::lifecycle::{connect, inherited, panics, process_counters, signals};
use crate::on::session::shared::Shared;
use crate::on::session::start::Starting;
use crate::on::traced::output::ServiceOutput;

/// Starts a session.
///
/// # Errors
/// When nothing can record on this platform, when a session runs already, when the settings contradict each
/// other, or when a resource that they need cannot be created.
pub(crate) fn start(config: Config) -> Result<Arc<Shared>, Error> {
    start_for(config, None)
}

/// Starts a session whose output is the tracing service, if there is one.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_for(config: Config, service: Option<Box<ServiceOutput>>) -> Result<Arc<Shared>, Error> {
    if !platform::CAN_RECORD {
        return Err(Error::Unsupported);
    }
    let _uncancelled = Uncancelled::new();
    connect::connect();
    let starting = Starting::new(config.clock)?;
    if inherited::take().is_some() {
        inherited::set_done(); // the first start in a forked child replaces the inherited settings
    }
    Starting::check(&config)?;
    signals::install(&config)?;
    panics::install(&config);
    process_counters::install(&config);
    starting.finish(config, service)
}
