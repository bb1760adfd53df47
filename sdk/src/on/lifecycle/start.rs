//! How a session starts: what it asks of the process, then the session itself.

use std::sync::Arc;

use crate::builder::Config;
use crate::error::Error;
use crate::on::lifecycle::{connect, inherited, signals};
use crate::on::session::shared::Shared;
use crate::on::session::start::Starting;

/// Starts a session.
///
/// # Errors
/// When one runs already, the settings make no sense, or what they ask for cannot be had.
pub(crate) fn start(config: Config) -> Result<Arc<Shared>, Error> {
    connect::connect();
    let starting = Starting::new(config.clock)?;
    if inherited::take().is_some() {
        inherited::set_heeded(); // whoever starts first in a forked child decides
    }
    Starting::check(&config)?;
    signals::install(&config)?;
    starting.finish(config)
}
