//! Listeners to `tracing` that do nothing: the cost of a span without its listener.

use hairline_benches::machine::pin_to_last_core;
use hairline_benches::spans::{Nothing, NothingLayer};
use tracing_subscriber::layer::SubscriberExt;

use crate::peer::Peer;
use crate::peers::spans::spans;

pub const SUBSCRIBER: Peer = Peer {
    name: "a subscriber that does nothing",
    package: "tracing-core",
    setup: "wants every span",
    cost: |bench| {
        tracing::subscriber::set_global_default(Nothing)?;
        pin_to_last_core();
        spans(bench, || {});
        Ok(())
    },
    floods: &[],
    killed: None,
};

pub const LAYER: Peer = Peer {
    name: "a layer that does nothing",
    package: "tracing-subscriber",
    setup: "on the registry",
    cost: |bench| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(NothingLayer))?;
        pin_to_last_core();
        spans(bench, || {});
        Ok(())
    },
    floods: &[],
    killed: None,
};
