//! The way of the link into the browser that this command starts.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::view::token::Token;

/// An address that leads to the link, once, and only this user.
///
/// Every user of the machine can read the arguments of every process, so the link is no argument for a
/// browser. Nor is a file with the link in it: a browser in a sandbox of its own sees other files than this
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

    /// The link, for the first caller.
    pub(super) fn take_link(&self) -> Option<&str> {
        // The flag guards nothing but itself.
        (!self.is_used.swap(true, Ordering::Relaxed)).then_some(&self.link)
    }
}
