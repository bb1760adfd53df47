//! The field `traceparent` of spans and events: flows from and to other processes.

use hairline::{Flow, Mode};
use tracing::{field, info, info_span};

use crate::spans::each;

const ARROWS: &str = "select a.name, b.name from flow join slice a on slice_out = a.id \
     join slice b on slice_in = b.id where a.name not glob 'event *' and b.name not glob 'event *' \
     order by a.ts, b.ts";
const TO_EVENTS: &str = "select a.name from flow join slice a on slice_out = a.id \
     join slice b on slice_in = b.id where b.name glob 'event *' order by a.ts";

#[test]
fn spans_with_a_header_of_this_process_are_one_chain() {
    let program = || {
        let flow = Flow::new();
        let header = flow.to_traceparent().expect("a header");
        info_span!("send", traceparent = header.as_str()).in_scope(|| {});
        info_span!("serve", traceparent = %header).in_scope(|| {});
        let late = info_span!("late", traceparent = field::Empty);
        late.record("traceparent", header.as_str());
        late.in_scope(|| {});
        info!(traceparent = %header, "answered");
        info_span!("without", other = 1).in_scope(|| {});
        info_span!("bad", traceparent = "00-").in_scope(|| {});
        drop(info_span!("never entered", traceparent = %header));
        info_span!("next").in_scope(|| {});
    };
    each(Mode::Threads, program, |trace, what| {
        assert_eq!(trace.rows(ARROWS), "send\tserve\nserve\tlate", "{what}");
        assert_eq!(trace.rows(TO_EVENTS), "late", "{what}");
    });
}

#[test]
fn a_span_with_a_header_of_another_process_goes_on_with_its_flow() {
    let program = || {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let serve = info_span!("serve", traceparent = header);
        serve.in_scope(|| info_span!("inner").in_scope(|| {}));
        info_span!("answer", traceparent = header).in_scope(|| {});
    };
    let header = "select count(*) from slice join args using (arg_set_id) where key glob '*traceparent'";
    each(Mode::Auto, program, |trace, what| {
        let verdict = trace.ask(&[header]);
        assert_eq!(verdict.results[0].text(), "2", "{what}");
        // The begin is in another process, so this trace has no arrow to the first span.
        assert!(verdict.complaints.iter().all(|stat| stat.name.contains("flow")), "{what}");
    });
}

// Many requests at once: each is sent, then each is answered.
#[test]
fn each_of_many_requests_is_one_arrow() {
    const REQUESTS: usize = 4000;
    let program = || {
        let headers: Vec<_> = (0..REQUESTS).filter_map(|_| Flow::new().to_traceparent()).collect();
        for header in &headers {
            info_span!("send", traceparent = %header).in_scope(|| {});
        }
        for header in &headers {
            info_span!("answer", traceparent = %header).in_scope(|| {});
        }
    };
    let arrows = "select count(*) from flow join slice a on slice_out = a.id join slice b on slice_in = b.id \
         where a.name = 'send' and b.name = 'answer'";
    each(Mode::Threads, program, |trace, what| {
        assert_eq!(trace.rows(arrows), REQUESTS.to_string(), "{what}");
    });
}

// The program's own event begins the flow, and a span has its header.
#[test]
fn a_flow_that_an_event_began_goes_on_in_a_span_with_its_header() {
    let program = || {
        let flow = Flow::new();
        drop(hairline::scope!("t", "prepare", flow: &flow));
        let header = flow.to_traceparent().expect("a header");
        info_span!("send", traceparent = %header).in_scope(|| {});
        info_span!("serve", traceparent = %header).in_scope(|| {});
    };
    each(Mode::Threads, program, |trace, what| {
        assert_eq!(trace.rows(ARROWS), "prepare\tsend\nsend\tserve", "{what}");
    });
}
