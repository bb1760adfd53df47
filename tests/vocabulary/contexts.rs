//! Flows that come with a `traceparent` header.

use hairline::{Flow, Session, Traceparent, trace_scope};
use hairline_tests::recording::{FORMATS, record, turn};

const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn header(flow: &Flow) -> Traceparent {
    flow.to_traceparent().expect("its id is not 0")
}

#[test]
fn a_flow_is_the_same_behind_its_header() {
    let _turn = turn();
    let flow = Flow::new();
    assert!(!header(&flow).is_sampled(), "no session runs");
    let received = Flow::from_traceparent(header(&flow)).expect("a valid header");
    assert_eq!(received.id(), flow.id());
    assert_eq!(header(&received), header(&flow));
    assert_eq!(header(&flow).parent_id(), format!("{:016x}", flow.id()));
    assert_eq!(format!("{:>57}", header(&flow)), format!("  {}", header(&flow)));
}

/// Level 2: the flag says that the trace id is random. An id from elsewhere may be any number.
#[test]
fn the_flag_random_is_that_of_flows_of_this_process() {
    let _turn = turn();
    let flow = Flow::new();
    assert!(header(&flow).as_str().ends_with("-02"), "{}", header(&flow));
    assert!(header(&flow.child()).as_str().ends_with("-02"), "{}", header(&flow.child()));
    let other = Flow::from_id(7);
    assert!(header(&other).as_str().ends_with("-00"), "{}", header(&other));
    assert!(header(&other.child()).as_str().ends_with("-00"), "{}", header(&other.child()));
}

#[test]
fn a_clone_and_a_child_have_the_trace_id_of_their_flow() {
    let received = Flow::from_traceparent(HEADER).expect("a valid header");
    assert_eq!(header(&received.clone()).as_str(), HEADER);
    for flow in [received, Flow::new()] {
        let child = flow.child();
        assert_ne!(child.id(), flow.id());
        assert_eq!(header(&child).trace_id(), header(&flow).trace_id());
        assert_eq!(header(&child.child()).trace_id(), header(&flow).trace_id());
    }
}

#[test]
fn a_header_that_is_not_valid_is_no_flow() {
    for bad in [
        "",
        "00",
        "x",
        &HEADER[1..],
        &HEADER.to_uppercase(),
        &format!("{HEADER}-"),
        "\u{20ac}".repeat(55).as_str(),
    ] {
        assert!(Flow::from_traceparent(bad).is_none(), "{bad}");
    }
    assert!(Flow::from_id(0).to_traceparent().is_none());
}

#[test]
fn headers_of_the_http_crate_carry_a_flow() {
    let (flow, mut headers) = (Flow::new(), http::HeaderMap::new());
    headers.insert("traceparent", http::HeaderValue::from_static("not valid"));
    assert!(Flow::from_headers(&headers).is_none());
    flow.add_to_headers(&mut headers);
    assert_eq!(Flow::from_headers(&headers).map(|flow| flow.id()), Some(flow.id()));
    headers.append("traceparent", http::HeaderValue::from_static(HEADER));
    assert!(Flow::from_headers(&headers).is_none(), "two headers are not valid");
}

#[test]
fn a_flow_with_a_header_is_recorded_with_its_id_and_the_header_as_argument() {
    for format in FORMATS {
        let mut sent = None;
        let trace = record(format, |_: &Session| {
            let received = Flow::from_traceparent(HEADER).expect("a valid header");
            {
                trace_scope!("t", "serve", traceparent = header(&received), flow: &received);
                let flow = received.child();
                trace_scope!("t", "ask", traceparent = flow.to_traceparent(), flow: &flow);
                sent = flow.to_traceparent();
            }
            trace_scope!("t", "again", flow: &received);
        });
        let sent = sent.expect("a header");
        let verdict = trace
            .ask(&["select s.name, a.display_value from slice s join args a using (arg_set_id) \
             where key glob '*traceparent' order by s.ts"]);
        // The begin of the flow is in another process.
        assert!(verdict.complaints.iter().all(|stat| stat.name.contains("flow")), "{format:?}");
        let expected = format!("serve\t{HEADER}\nask\t{sent}");
        assert_eq!(verdict.results[0].text(), expected, "{format:?}");
        assert_eq!(sent.trace_id(), &HEADER[3..35]);
    }
}
