//! How a child ends, and how its end is waited for.

#![allow(unsafe_code)] // the ways to end

use std::ffi::CString;
use std::sync::OnceLock;
use std::time::Duration;

use hairline_tests::children::{self, Arguments, Fate};
use hairline_tests::forked::describe;
use hairline_tests::torture::Random;

use crate::orders::Kind;
use crate::told::{fail, process};

/// How a child ends.
pub(crate) fn end(random: &Random, kind: Kind) -> &'static str {
    let ends: &[&str] = if kind.is_bare() { &["_exit", "killed"] } else { &["exit", "_exit", "killed"] };
    ends[random.below(ends.len() as u64) as usize]
}

pub(crate) fn leave(end: &str) -> ! {
    // SAFETY: takes numbers.
    unsafe {
        match end {
            "exit" => libc::exit(0),
            "killed" => libc::kill(process(), libc::SIGKILL),
            _ => 0,
        };
    }
    children::exit_at_once(0)
}

/// Longer than a child can take, on a machine with much else to do. A session's end alone may take 3 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a child. One that crashes stops first, by `handler::stop`, so that it can be looked at.
pub(crate) fn wait_for(child: libc::pid_t, what: &str, depth: u32) {
    // Its own children are reported by the child, which takes some time for that.
    let patience = PATIENCE + (depth - 1) * Duration::from_secs(15);
    match children::fate_of(child, patience) {
        Fate::Exited(0) | Fate::Signalled(libc::SIGKILL) => {}
        Fate::Hangs => {
            fail(&format!("{what}: the child {child} hangs\n{}", describe(child)));
            children::kill(child);
        }
        Fate::Stopped => {
            fail(&format!("{what}: the child {child} crashed\n{}", describe(child)));
            children::kill(child);
        }
        fate => fail(&format!("{what}: the child {child}: {fate:?}")),
    }
}

/// This program as one that records a little and ends. The first call allocates.
pub(crate) fn again() -> Arguments {
    static ME: OnceLock<CString> = OnceLock::new();
    let path = || std::env::current_exe().expect("a path").into_os_string().into_encoded_bytes();
    Arguments::new(ME.get_or_init(|| CString::new(path()).expect("no NUL")), c"return")
}
