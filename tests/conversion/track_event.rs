//! pftrace to pftrace.

use hairline::{Format, Session};
use hairline_convert::Source;
use hairline_tests::equal::Shown;
use hairline_tests::recording::record;

use crate::{convert, read};

#[test]
fn a_recording_is_the_same_when_it_is_written_again() {
    let trace = record(Format::TrackEvent, |_: &Session| {
        hairline::trace_scope!("net", "read", bytes = 512);
        hairline::trace_counter!("net", "queue", 7);
    });
    let (converted, report) = convert(&read(trace.path()), Source::TrackEvent);
    assert!(report.is_empty(), "{report:?}");
    Shown::of(trace.path()).require_equal(&Shown::of_clean(&converted));
}
