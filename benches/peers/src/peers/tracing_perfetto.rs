//! tracing-perfetto: each event is a protobuf message that is written at once.

use hairline_benches::machine::pin_to_last_core;
use tracing_perfetto::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;

use super::{Peer, span};
use crate::kill::{Killed, scopes_and_die, track_event_ends};

pub const PEER: Peer = Peer {
    name: "tracing-perfetto",
    package: "tracing-perfetto",
    setup: "without debug annotations, into a sink",
    cost: |bench| {
        pin_to_last_core();
        let layer = PerfettoLayer::new(std::io::sink).with_debug_annotations(false);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        span(bench, || {});
        Ok(())
    },
    killed: Some(Killed {
        record: |path| {
            let layer = PerfettoLayer::new(std::sync::Mutex::new(std::fs::File::create(path)?));
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
            scopes_and_die(|| drop(tracing::info_span!("span").entered()));
            Ok(())
        },
        repair: None,
        ends: track_event_ends,
    }),
};
