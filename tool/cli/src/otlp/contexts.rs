//! The ids of spans: from the context that came with a request, else made.
//!
//! A flow that goes from process to process, or that an argument `traceparent` names, is a request. Its id is
//! the span id of the span that it begins at, and the parent of the span that it goes to. Its trace id is
//! that of the argument, else the one that the SDK computes from the flow's id (`Flow::to_traceparent`).
//!
//! * A span with a request that belongs to another trace than the span around it is a root there, or has its
//!   parent in another process, and a link to the span around it.
//! * Whether a request begins at a span: if the format says so, or if the span is the first of the flow and a
//!   span of another process follows. A trace of one process in Perfetto's format does not tell, so the
//!   request is taken for one that came in.
//! * A header that is not valid names no request. No span has the id 0, and no two have the same.
//! * The id of a span without a request is made of the trace's id and the place of its first event, so it is
//!   the same whatever is chosen.
//! * Other flows, those within a process, become links to the span before.

use std::collections::{HashMap, HashSet};

use hairline::Flow;

use crate::otlp::attribute::Attribute;
use crate::otlp::span::{Kind, Span, Spans, TraceId, mix};

/// The upper half of the trace id of a flow without a predecessor: see `Flow::to_traceparent`.
const OWN: u64 = 0x6861_6972_6c69_6e65;

/// A flow through several spans.
#[derive(Default)]
struct Request {
    trace: Option<TraceId>,
    /// The times and spans, sorted.
    steps: Vec<(i64, usize)>,
    /// The span at which it begins, if the format says so.
    begins_at: Option<usize>,
    /// Its first span in each process.
    firsts: HashMap<usize, usize>,
}

impl Request {
    fn is_request(&self) -> bool {
        self.trace.is_some() || self.firsts.len() > 1
    }

    fn trace(&self, id: u64) -> TraceId {
        self.trace.unwrap_or([id.rotate_left(32) ^ OWN, id])
    }

    /// The span at which the request begins, if it is in this trace.
    fn first(&self) -> Option<usize> {
        let first = self.steps.first().filter(|_| self.firsts.len() > 1).map(|(_, span)| *span);
        self.begins_at.or(first)
    }
}

/// Reads a header as the SDK does: the id of the flow, and the trace id.
fn context(text: &str) -> Option<(u64, TraceId)> {
    let flow = Flow::from_traceparent(text)?;
    let header = flow.to_traceparent()?;
    let half = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (high, low) = header.trace_id().split_at_checked(16)?;
    Some((flow.id(), [half(high)?, half(low)?]))
}

fn requests(spans: &Spans) -> HashMap<u64, Request> {
    let mut requests = HashMap::<u64, Request>::new();
    for (n, span) in spans.all.iter().enumerate() {
        // The id 0 is no flow, and no id of a span.
        for (flow, time, begins) in span.flows.iter().filter(|(flow, ..)| *flow != 0) {
            let request = requests.entry(*flow).or_default();
            request.steps.push((*time, n));
            if *begins {
                request.begins_at = Some(n);
            }
        }
        let of_points = span.points.iter().flat_map(|point| &point.attributes);
        for (name, value) in span.attributes.iter().chain(of_points) {
            if let (Attribute::Text(text), "traceparent") = (value, name.as_str())
                && let Some((flow, trace)) = context(text)
            {
                requests.entry(flow).or_default().trace = Some(trace);
            }
        }
    }
    for request in requests.values_mut() {
        request.steps.sort_unstable();
        for (_, span) in &request.steps {
            request.firsts.entry(spans.all[*span].process).or_insert(*span);
        }
    }
    requests
}

/// Gives all spans their ids, parents and links.
pub(super) fn assign(spans: &mut Spans) {
    let requests = requests(spans);
    let mut ids = HashSet::new();
    for n in 0..spans.all.len() {
        let span = &spans.all[n];
        let mut flows: Vec<_> = span.flows.iter().map(|(flow, ..)| *flow).collect();
        flows.dedup();
        let of_span = || flows.iter().filter_map(|flow| Some((*flow, requests.get(flow)?)));
        let known = || of_span().filter(|(_, request)| request.is_request());
        // Of a request that ends here, only the arrow is left.
        let incoming = known().find(|(_, request)| {
            let is_in = |first: usize| spans.all[first].process != span.process;
            request.first().is_none_or(is_in) && request.firsts.get(&span.process) == Some(&n)
        });
        let outgoing = known().find(|(flow, request)| request.first() == Some(n) && !ids.contains(flow));
        let around = span.parent.map(|parent| (spans.all[parent].trace, spans.all[parent].id));
        let made = mix(spans.salt ^ mix(span.number));
        let mut id = outgoing.map_or(made, |(flow, _)| flow);
        while id == 0 || !ids.insert(id) {
            id = mix(id);
        }
        let (kind, trace) = match (incoming, outgoing) {
            (Some((flow, request)), _) => (Kind::Server, request.trace(flow)),
            (None, Some((flow, request))) => (Kind::Client, request.trace(flow)),
            (None, None) => {
                let of_request =
                    || known().next().map_or([mix(made), made], |(flow, request)| request.trace(flow));
                (Kind::Internal, around.map_or_else(of_request, |(trace, _)| trace))
            }
        };
        let mut links = Vec::new();
        let local = around.filter(|(around, _)| *around == trace);
        if local.is_none() {
            links.extend(around);
        }
        let remote = incoming.map(|(flow, _)| flow);
        let parent_id = local.map(|(_, id)| id).or(remote).unwrap_or(0);
        if local.is_some() {
            links.extend(remote.map(|flow| (trace, flow)));
        }
        let span = &mut spans.all[n];
        (span.trace, span.id, span.parent_id, span.kind, span.is_kept) = (trace, id, parent_id, kind, true);
        span.links = links;
    }
    link(spans, &requests);
}

/// Links each step of a flow to the step before, if they are neither in one span nor parent and child.
fn link(spans: &mut Spans, requests: &HashMap<u64, Request>) {
    let mut flows: Vec<_> = requests.iter().collect();
    flows.sort_by_key(|(flow, _)| **flow);
    let mut linked = HashSet::new();
    for (_, request) in flows {
        for pair in request.steps.windows(2) {
            let [(_, from), (_, to)] = [pair[0], pair[1]];
            let link = (spans.all[from].trace, spans.all[from].id);
            let span: &mut Span = &mut spans.all[to];
            if from != to && span.parent_id != link.1 && linked.insert((to, link)) {
                span.links.push(link);
            }
        }
    }
}

/// Which traces are kept: those that any rule asks for; all without a rule.
pub(super) struct Sampling {
    pub(super) slower_than: Option<i64>,
    pub(super) errors: bool,
    pub(super) one_in: Option<u64>,
}

impl Sampling {
    /// Leaves out spans. Returns the number of traces that are left out.
    pub(super) fn apply(&self, spans: &mut Spans) -> usize {
        if self.slower_than.is_none() && !self.errors && self.one_in.is_none() {
            return 0;
        }
        let mut kept = HashMap::<TraceId, bool>::new();
        for span in &spans.all {
            let is_root = span.parent.is_none_or(|parent| spans.all[parent].trace != span.trace);
            let duration = span.end.saturating_sub(span.start);
            let is_slow = is_root && self.slower_than.is_some_and(|least| duration >= least);
            let is_drawn = self.one_in.is_some_and(|n| mix(span.trace[1]).is_multiple_of(n));
            *kept.entry(span.trace).or_default() |= is_slow || is_drawn || self.errors && span.is_failed;
        }
        for span in &mut spans.all {
            span.is_kept = kept.get(&span.trace).copied().unwrap_or(true);
        }
        kept.values().filter(|kept| !**kept).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::span::Process;

    #[test]
    fn a_context_is_a_trace_id_and_a_flow() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(
            context(header),
            Some((0x00f0_67aa_0ba9_02b7, [0x4bf9_2f35_77b3_4da6, 0xa3ce_929d_0e0e_4736]))
        );
        for bad in [
            "",
            "00",
            "00-4bf9-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-+0f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(context(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_trace_id_of_a_new_flow_is_that_of_its_header() {
        let flow = hairline::Flow::from_id(0x1234_5678_9abc_def0);
        let header = flow.to_traceparent().expect("its id is not 0");
        assert_eq!(context(header.as_str()), Some((flow.id(), Request::default().trace(flow.id()))));
    }

    /// Spans of one process with these flows.
    fn spans_with(flows: &[u64], count: u64) -> Spans {
        let flows: Vec<_> = flows.iter().map(|flow| (*flow, 0, true)).collect();
        let span = |number| Span { number, flows: flows.clone(), ..Span::default() };
        Spans { processes: vec![Process::default()], all: (0..count).map(span).collect(), ..Spans::default() }
    }

    #[test]
    fn ids_are_never_zero_and_never_the_same() {
        let mut spans = spans_with(&[0], 1000);
        assign(&mut spans);
        let ids: HashSet<_> = spans.all.iter().map(|span| span.id).collect();
        assert!(ids.len() == 1000 && !ids.contains(&0));
        assert!(spans.all.iter().all(|span| span.trace != [0, 0]));
    }

    #[test]
    fn one_in_two_traces_without_a_request_is_half_of_them() {
        let mut spans = spans_with(&[], 1000);
        assign(&mut spans);
        let left_out = Sampling { slower_than: None, errors: false, one_in: Some(2) }.apply(&mut spans);
        assert!((400..600).contains(&left_out), "{left_out}");
    }
}
