//! Passes the link to the browser.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::view::token::Token;

/// An address that leads this user to the link, once.
///
/// Every user of the machine can read the arguments of every process, so the link is no argument for a
/// browser. A file with the link does not work either: a sandboxed browser sees other files than this
/// process.
#[derive(Debug)]
pub(super) struct Launch {
    code: Token,
    link: String,
    is_used: AtomicBool,
}

impl Launch {
    pub(super) fn new(link: String) -> io::Result<Self> {
        Ok(Self { code: Token::new()?, link, is_used: AtomicBool::new(false) })
    }

    pub(super) fn path(&self) -> String {
        format!("/open/{}", self.code)
    }

    /// The address for the browser.
    pub(super) fn address(&self, server: SocketAddr) -> String {
        format!("http://{server}{}", self.path())
    }

    /// Returns the link to the first caller.
    pub(super) fn take_link(&self) -> Option<&str> {
        // The flag guards nothing but itself.
        (!self.is_used.swap(true, Ordering::Relaxed)).then_some(&self.link)
    }
}
