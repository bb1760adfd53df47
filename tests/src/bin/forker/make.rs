//! Makes a child of each kind, and waits for its end.

#![allow(unsafe_code)] // forks

use hairline_tests::children::{self, Way};
use hairline_tests::torture::Random;

use crate::child::live;
use crate::ends::{again, leave, wait_for};
use crate::handler;
use crate::orders::{Kind, orders};
use crate::steps::begin_child;
use crate::told::{fail, process};

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
            live(parent, kind, &of_child, depth, |random, depth| make(Kind::Fork, random, depth));
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
