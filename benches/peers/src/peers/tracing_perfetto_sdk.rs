//! tracing-perfetto-sdk: perfetto-sdk as a layer.

use hairline_benches::machine::pin_to_last_core;
use tracing_perfetto_sdk::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;

use crate::ends;
use crate::peer::{Failure, Flood, Peer, Trace};
use crate::peers::perfetto_sdk::{RING, session, start_producer, to_file};
use crate::peers::spans::{span, spans};

pub const PEER: Peer = Peer {
    name: "tracing-perfetto-sdk",
    package: "tracing-perfetto-sdk",
    setup: "without debug annotations; else as perfetto-sdk",
    cost: |bench| {
        start()?;
        let mut session = session("tracing", RING)?;
        pin_to_last_core();
        spans(bench, || {});
        session.stop_blocking();
        Ok(())
    },
    floods: &[Flood {
        name: "file",
        record: |path, run| {
            start()?;
            let mut session = session("tracing", &to_file(path)?)?;
            run.scopes(span);
            session.stop_blocking();
            Ok(Trace::InTheFile(ends::in_trace))
        },
    }],
    killed: None,
};

fn start() -> Result<(), Failure> {
    start_producer(); // the layer's own start then finds one
    tracing_perfetto_sdk::init_in_process();
    let layer = PerfettoLayer::without_debug_annotations();
    Ok(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?)
}
