//! What the macros never do, and code without `unsafe` can: scopes of callsites that are none, and on tracks.

#![cfg(feature = "enable")]

use hairline::__private::{Callsite, CallsiteKind, CounterOptions, Extras, Scope, Site};
use hairline::{Flow, Format, MemoryOutput, Session, Track};

static SITE: Site =
    Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE, slow_after: 0, stack: false };

/// More ends than a chunk holds.
const ENDS: usize = 1000;

/// Begins scopes by `begin`, which must record none that has an end.
fn require_none(format: Format, callsite: &'static Callsite, begin: impl Fn(&'static Callsite) -> Scope) {
    let memory = MemoryOutput::new();
    let session = Session::builder().output_memory(&memory).format(format).chunk_size(4096);
    let session = session.start().expect("a session");
    let recorded = (0..ENDS).filter(|_| begin(callsite).is_recorded()).count();
    let summary = session.stop().expect("no error");
    assert_eq!((recorded, summary.lost.total()), (0, 0), "{format:?}");
}

/// The first event at a callsite takes the cold path, which goes by the callsite's kind.
#[test]
fn only_a_begin_that_has_kept_room_for_its_end_has_one() {
    static INSTANT: Callsite = Callsite::new(CallsiteKind::Instant, "t", "instant", &[], &SITE);
    static COUNTER: Callsite = Callsite::new(CallsiteKind::Counter, "t", "counter", &[], &SITE);
    static SCOPE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "scope", &[], &SITE);
    let track = Track::new("track");
    let flow = Flow::new();
    for format in [Format::Fxt, Format::TrackEvent] {
        for callsite in [&INSTANT, &COUNTER] {
            require_none(format, callsite, |callsite| {
                let epoch = callsite.registered_epoch().expect("it is on");
                Scope::begin_rich(callsite, epoch, &(), &Extras::new().flow(&flow))
            });
        }
        require_none(format, &SCOPE, |callsite| {
            let epoch = callsite.registered_epoch().expect("it is on");
            Scope::begin_rich(callsite, epoch, &(), &Extras::new().track(&track))
        });
    }
}
