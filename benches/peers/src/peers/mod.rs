//! The peers, one file each: how it is set up, and its rows.

mod fastrace;
mod hairline;
mod micromegas;
mod minitrace;
mod nothing;
mod perfetto_recorder;
mod perfetto_sdk;
mod puffin;
mod tracing_chrome;
mod tracing_perfetto;
mod tracing_perfetto_sdk;
mod tracy;

use crate::bench::{Bench, Row};
use crate::flood::Flood;
use crate::kill::Killed;

pub type Failure = Box<dyn std::error::Error>;

/// Something that is measured.
pub struct Peer {
    pub name: &'static str,
    /// The package, whose version Cargo.lock says.
    pub package: &'static str,
    /// How it is set up, which is to be the fastest way that its documentation names.
    pub setup: &'static str,
    /// Measures it. The process is its own, so what is global may be set.
    pub cost: fn(&mut Bench) -> Result<(), Failure>,
    /// The traces it can make by itself. None: all stays in the program's memory, or goes over the network.
    pub floods: &'static [Flood],
    /// What is left of it when the program is killed. None: nothing is, it is all in the program's memory.
    pub killed: Option<Killed>,
}

pub const ALL: &[Peer] = &[
    hairline::FXT,
    hairline::TRACK_EVENT,
    perfetto_recorder::TAKEN,
    perfetto_recorder::RESERVED,
    micromegas::PEER,
    micromegas::SMALL,
    tracy::PEER,
    puffin::PEER,
    minitrace::PEER,
    fastrace::PEER,
    perfetto_sdk::PEER,
    nothing::SUBSCRIBER,
    hairline::SUBSCRIBER_FXT,
    hairline::SUBSCRIBER_TRACK_EVENT,
    nothing::LAYER,
    hairline::LAYER_FXT,
    hairline::LAYER_TRACK_EVENT,
    tracing_chrome::PEER,
    tracing_perfetto::PEER,
    tracing_perfetto_sdk::PEER,
];

/// A span of `tracing`, whoever listens.
fn span() {
    drop(tracing::info_span!("span").entered());
}

/// Measures such spans.
fn spans(bench: &mut Bench, between: impl FnMut()) {
    bench.row_between(Row::Span, between, |_| span());
    bench.two_threads(Row::Span, || (|| {}, |_| span()));
}
