//! fastrace: spans of a thread in a queue, under a parent from the program.

use fastrace::Event;
use fastrace::local::{LocalCollector, LocalSpan};
use hairline_benches::machine::pin_to_last_core;

use crate::anywhere::callsites;
use crate::bench::{Bench, NAME, Row, TEXT};
use crate::peer::{Failure, Peer};

pub const PEER: Peer = Peer {
    name: "fastrace",
    package: "fastrace",
    setup: "local spans into a local collector, which is emptied between batches, not timed",
    cost,
    floods: &[],
    killed: None,
};

fn cost(bench: &mut Bench) -> Result<(), Failure> {
    pin_to_last_core();
    let text = std::hint::black_box(TEXT);
    bench.row(Row::Disabled, |_| drop(LocalSpan::enter_with_local_parent("disabled")));
    let mut collect = collecting();
    let scope = |_| drop(LocalSpan::enter_with_local_parent("scope"));
    bench.row_between(Row::Scope, &mut collect, scope);
    bench.row_between(Row::Arguments, &mut collect, |i| {
        let span = LocalSpan::enter_with_local_parent("arguments");
        drop(span.with_properties(|| [("number", i.to_string()), ("text", text.to_owned())]));
    });
    bench.row_between(Row::Instant, &mut collect, |_| LocalSpan::add_event(Event::new("instant")));
    bench.anywhere(&mut collect, callsites!({ drop(LocalSpan::enter_with_local_parent("scope")) }));
    let name = std::hint::black_box(NAME);
    bench.row_between(Row::Named, &mut collect, |_| {
        drop(LocalSpan::enter_with_local_parent(name.to_owned()));
    });
    bench.row_between(Row::Late, &mut collect, |i| {
        let _span = LocalSpan::enter_with_local_parent("late");
        LocalSpan::add_property(|| ("number", i.to_string()));
    });
    bench.two_threads(Row::Scope, || (collecting(), scope));
    Ok(())
}

/// Returns a function that empties the thread's collector.
fn collecting() -> impl FnMut() {
    let mut collector = None;
    move || {
        drop(collector.take().map(LocalCollector::collect));
        collector = Some(LocalCollector::start());
    }
}
