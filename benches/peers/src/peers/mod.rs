//! The peers. Each has a file with its setup and its rows.

mod fastrace;
pub mod hairline;
mod micromegas;
mod minitrace;
mod nothing;
mod perfetto_recorder;
pub mod perfetto_sdk;
mod puffin;
mod spans;
mod tracing_chrome;
mod tracing_perfetto;
mod tracing_perfetto_sdk;
mod tracy;

use crate::peer::Peer;

/// All peers, in the order of the tables.
pub const ALL: &[Peer] = &[
    hairline::FXT,
    hairline::TRACK_EVENT,
    hairline::TRACED,
    perfetto_recorder::TAKEN,
    perfetto_recorder::RESERVED,
    micromegas::PEER,
    micromegas::SMALL,
    tracy::PEER,
    puffin::PEER,
    minitrace::PEER,
    fastrace::PEER,
    perfetto_sdk::PEER,
    perfetto_sdk::TRACED,
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
