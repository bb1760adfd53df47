//! `hairline::layer()` beside other layers: each has what it wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hairline_tests::recording::{FORMATS, Trace, record_in, turn};
use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;

use crate::TEXT;

/// Counts spans and events.
#[derive(Clone, Default)]
struct Counts(Arc<[AtomicU32; 2]>);

impl Counts {
    /// What it counted since it was asked last.
    fn take(&self) -> [u32; 2] {
        [0, 1].map(|n| self.0[n].swap(0, Relaxed))
    }
}

impl<S: Subscriber> Layer<S> for Counts {
    fn on_new_span(&self, _: &tracing::span::Attributes<'_>, _: &tracing::Id, _: Context<'_, S>) {
        self.0[0].fetch_add(1, Relaxed);
    }

    fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0[1].fetch_add(1, Relaxed);
    }
}

fn program() {
    for _ in 0..2 {
        tracing::info_span!(target: "net", "net").in_scope(|| tracing::info!(target: "db", "row"));
        tracing::debug_span!(target: "db", "db").in_scope(|| tracing::debug!(target: "net", "byte"));
    }
}

fn slices(trace: &Trace) -> String {
    trace.rows(&format!(
        "select {TEXT} as text, count(), sum(p.id is null), sum(s.dur < 0) \
         from slice s left join slice p on s.parent_id = p.id group by text order by text"
    ))
}

#[test]
fn another_layer_has_all_spans_and_events_whatever_is_recorded() {
    let turn = turn();
    for format in FORMATS {
        let counts = Counts::default();
        let below = tracing_subscriber::registry().with(counts.clone()).with(hairline::layer());
        let above = tracing_subscriber::registry().with(hairline::layer()).with(counts.clone());
        for dispatch in [tracing::Dispatch::new(below), tracing::Dispatch::new(above)] {
            tracing::dispatcher::with_default(&dispatch, || {
                program();
                assert_eq!(counts.take(), [4, 4], "{format:?}, before");
                let trace = record_in(&turn, format, |b| b.categories("db"), |_| program());
                assert_eq!(counts.take(), [4, 4], "{format:?}, in a session");
                assert_eq!(slices(&trace), "db\t2\t2\t0\nrow\t2\t2\t0", "{format:?}");
                program();
                assert_eq!(counts.take(), [4, 4], "{format:?}, after");
            });
        }
    }
}

#[test]
fn a_filter_of_another_layer_is_that_layers_own() {
    let turn = turn();
    for format in FORMATS {
        let counts = Counts::default();
        let filtered = counts.clone().with_filter(LevelFilter::INFO);
        let dispatch =
            tracing::Dispatch::new(tracing_subscriber::registry().with(hairline::layer()).with(filtered));
        tracing::dispatcher::with_default(&dispatch, || {
            program();
            assert!(!tracing::enabled!(tracing::Level::DEBUG), "{format:?}: nobody wants it");
            assert_eq!(counts.take(), [2, 2], "{format:?}, before");
            let trace = record_in(&turn, format, |b| b, |_| program());
            assert_eq!(counts.take(), [2, 2], "{format:?}, in a session");
            assert_eq!(
                slices(&trace),
                "byte\t2\t0\t0\ndb\t2\t2\t0\nnet\t2\t2\t0\nrow\t2\t0\t0",
                "{format:?}"
            );
        });
    }
}
