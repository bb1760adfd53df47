//! tracing-perfetto-sdk: perfetto-sdk as a layer.

use hairline_benches::machine::pin_to_last_core;
use tracing_perfetto_sdk::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;

use super::{Peer, perfetto_sdk, span};

pub const PEER: Peer = Peer {
    name: "tracing-perfetto-sdk",
    package: "tracing-perfetto-sdk",
    setup: "without debug annotations; in process, a ring of 64 MiB",
    cost: |bench| {
        tracing_perfetto_sdk::init_in_process();
        let mut session = perfetto_sdk::session("tracing")?;
        pin_to_last_core();
        let layer = PerfettoLayer::without_debug_annotations();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        span(bench, || {});
        session.stop_blocking();
        Ok(())
    },
    killed: None,
};
