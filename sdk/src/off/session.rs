//! A session that records nothing.

use crate::builder::SessionBuilder;
use crate::error::Error;
use crate::filter::Filter;
use crate::summary::Summary;

/// A session that records nothing and creates no output: the crate feature `enable` is off.
#[derive(Debug)]
#[must_use = "dropping the session stops it"]
pub struct Session(());

impl Session {
    /// Returns the settings of a new session.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// Checks the filter.
    ///
    /// # Errors
    /// [`Error::Filter`] if the filter is malformed.
    pub fn set_categories(&self, filter: &str) -> Result<(), Error> {
        Filter::parse(filter).map(drop)
    }

    /// Does nothing.
    ///
    /// # Errors
    /// Returns none.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writes nothing and returns an empty summary.
    ///
    /// # Errors
    /// Returns none.
    pub fn snapshot(&self, _: impl AsRef<std::path::Path>) -> Result<Summary, Error> {
        Ok(Summary::default())
    }

    /// Returns an empty summary.
    ///
    /// # Errors
    /// Returns none.
    pub fn stop(self) -> Result<Summary, Error> {
        Ok(Summary::default())
    }
}

impl SessionBuilder {
    /// Checks the filter and records nothing.
    ///
    /// # Errors
    /// [`Error::Filter`] if the filter is malformed.
    pub fn start(self) -> Result<Session, Error> {
        self.into_config().map(|_| Session(()))
    }

    /// Checks nothing: there is no buffer.
    ///
    /// # Errors
    /// Returns none.
    pub fn check_buffer(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns the path as it is: there is no session that would replace placeholders.
#[must_use]
pub fn expand_path(
    template: impl AsRef<std::path::Path>,
    _program: &str,
    _number: u64,
) -> std::path::PathBuf {
    template.as_ref().to_owned()
}

/// Nothing: the crate feature `enable` is off.
#[derive(Debug)]
#[must_use = "dropping it ends the listening"]
pub struct Listening(());

impl Listening {
    /// Does nothing.
    pub fn keep_on(self) {}
}

/// Does nothing.
///
/// # Errors
/// Returns none.
pub fn listen() -> Result<Listening, Error> {
    Ok(Listening(()))
}

/// Nothing: the crate feature `enable` is off.
#[derive(Debug)]
#[must_use = "dropping it ends the registration"]
pub struct Registered(());

impl Registered {
    /// Does nothing.
    pub fn keep_on(self) {}
}

impl SessionBuilder {
    /// Does nothing.
    ///
    /// # Errors
    /// When an option has an invalid value.
    pub fn output_traced(self) -> Result<Registered, Error> {
        self.into_config().map(|_| Registered(()))
    }
}
