//! Spans of the `tracing` crate, for all peers that listen to it.

use crate::bench::{Bench, Row};

/// One span: created, entered, exited and closed.
pub fn span() {
    drop(tracing::info_span!("span").entered());
}

/// Measures such spans.
pub fn spans(bench: &mut Bench, between: impl FnMut()) {
    bench.row_between(Row::Span, between, |_| span());
    bench.two_threads(Row::Span, || (|| {}, |_| span()));
}
