//! puffin: a byte stream of each thread, handed over when its outermost scope ends.

use hairline_benches::machine::pin_to_last_core;
use puffin::{GlobalProfiler, profile_scope, set_scopes_on};

use crate::anywhere::callsites;
use crate::bench::{Bench, Row};
use crate::peer::{Failure, Peer};

pub const PEER: Peer = Peer {
    name: "puffin",
    package: "puffin",
    setup: "as its own benchmark, inside of a scope that stays open; a frame between batches, not timed",
    cost,
    floods: &[],
    killed: None,
};

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    pin_to_last_core();
    bench.row(Row::Disabled, |_| {
        profile_scope!("disabled");
    });
    set_scopes_on(true);
    let scope = |_| {
        profile_scope!("scope");
    };
    bench.row_between(Row::Scope, frames(), scope);
    bench.anywhere(
        frames(),
        callsites!({
            profile_scope!("scope");
        }),
    );
    bench.two_threads(Row::Scope, || (frames(), scope));
    Ok(())
}

/// Returns a function that starts a frame, and a scope around the next operations of the thread.
fn frames() -> impl FnMut() {
    let mut outer = None;
    move || {
        drop(outer.take());
        GlobalProfiler::lock().new_frame();
        outer = Some(Outer::begin());
    }
}

/// The scope around a batch.
struct Outer {
    _scope: Option<puffin::ProfilerScope>,
}

impl Outer {
    fn begin() -> Self {
        Self { _scope: puffin::profile_scope_custom!("outer") }
    }
}
