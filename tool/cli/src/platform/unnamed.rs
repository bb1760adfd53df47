//! Systems that do not name the user at the other end of a connection.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::platform::facts::Client;

/// The users whose requests are answered: all that have the link. Its token has 128 random bits.
#[derive(Debug)]
pub(crate) struct Trusted;

impl Trusted {
    /// Creates the list of trusted users.
    #[allow(clippy::unnecessary_wraps)] // on other systems it can fail
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Who the client of this connection is.
    pub(crate) fn client(&self, _client: SocketAddr, _server: SocketAddr) -> Client {
        Client::Trusted
    }
}

/// The connection to a process that listens: none.
#[derive(Debug)]
pub(crate) enum Socket {}

impl Socket {
    /// Fails: no process listens here.
    pub(crate) fn of(_pid: u32) -> io::Result<Option<Self>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "processes listen on Linux only"))
    }

    pub(crate) fn send(&self, _bytes: &[u8], _file: Option<&File>) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn receive(&self, _within: Duration) -> io::Result<Option<Vec<u8>>> {
        match *self {}
    }
}

/// None are known.
pub(crate) fn processes_named(_name: &str) -> Vec<u32> {
    Vec::new()
}

/// None do.
pub(crate) fn listening_processes() -> Vec<u32> {
    Vec::new()
}

/// Not known.
pub(crate) fn name_of(_pid: u32) -> String {
    String::new()
}

/// Not known.
pub(crate) fn user_of(_pid: u32) -> Option<u32> {
    None
}
