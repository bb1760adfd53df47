//! Makes a child of each kind, and waits for its end.

#![allow(unsafe_code)] // forks

use std::ffi::CString;
use std::sync::OnceLock;
use std::time::Duration;

use hairline_tests::children::{self, Arguments, Fate, Way};
use hairline_tests::forked::describe;
use hairline_tests::torture::Random;

use crate::child::{leave, live};
use crate::handler;
use crate::orders::{Kind, orders};
use crate::steps::begin_child;
use crate::told::{fail, process};

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

/// Makes a child, and waits for its end. It and its children are `depth` generations at most; one that no
/// handler announced has no children, since it may do only what a signal handler may.
pub(crate) fn make(kind: Kind, random: &Random, depth: u32) {
    let what = format!("{} in {}, {}", kind.name(), orders().mode, orders().template);
    let depth = if kind.is_bare() { 1 } else { depth };
    let (parent, of_child) = (process(), Random::new(random.next()));
    let by = |way: Way| {
        // SAFETY: each kind of child does only what it may: the table in `main.rs`.
        let child = unsafe { way() };
        if child == 0 {
            begin_child();
            live(parent, kind, &of_child, depth);
        }
        child
    };
    let child = match kind {
        Kind::Fork => {
            let _open = hairline::scope!("forker", "open at the fork");
            by(children::fork)
        }
        Kind::BareFork if !children::has_bare_fork() => return,
        Kind::BareFork => by(children::bare_fork),
        Kind::Clone => by(children::clone),
        Kind::Spawn => children::spawn(&again()),
        Kind::Exec => {
            let again = again();
            let _open = hairline::scope!("forker", "open at the fork");
            // SAFETY: the child becomes another program, or ends.
            let child = unsafe { children::fork() };
            if child == 0 {
                begin_child();
                children::exec(&again);
                leave("_exit");
            }
            child
        }
        Kind::Handler | Kind::Returned | Kind::BareHandler => return handler::make(kind, random, &what),
    };
    if child < 0 {
        return fail(&format!("{what}: no child: {}", std::io::Error::last_os_error()));
    }
    wait_for(child, &what, depth);
}

/// This program as one that records a little and ends. The first call allocates.
pub(crate) fn again() -> Arguments {
    static ME: OnceLock<CString> = OnceLock::new();
    let path = || std::env::current_exe().expect("a path").into_os_string().into_encoded_bytes();
    Arguments::new(ME.get_or_init(|| CString::new(path()).expect("no NUL")), c"return")
}
