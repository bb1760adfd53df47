//! tracing-perfetto: each span is a protobuf message, which is written when the span closes.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use hairline_benches::machine::pin_to_last_core;
use tracing_perfetto::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;

use crate::ends;
use crate::peer::{Failure, Flood, Killed, Peer, Trace};
use crate::peers::spans::{span, spans};
use crate::scopes::scopes_and_die;

pub const PEER: Peer = Peer {
    name: "tracing-perfetto",
    package: "tracing-perfetto",
    setup: "without debug annotations, into a sink; to a file as its documentation shows it, by a \
            Mutex<File>",
    cost: |bench| {
        pin_to_last_core();
        let layer = PerfettoLayer::new(std::io::sink).with_debug_annotations(false);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        spans(bench, || {});
        Ok(())
    },
    floods: &[Flood {
        name: "file",
        record: |path, run| {
            start(path)?;
            run.scopes(span); // writes each of them at once
            Ok(Trace::InTheFile(ends::in_trace))
        },
    }],
    killed: Some(Killed {
        record: |path| {
            start(path)?;
            scopes_and_die(span);
            Ok(())
        },
        repair: None,
        ends: ends::in_trace,
    }),
};

fn start(path: &Path) -> Result<(), Failure> {
    let layer = PerfettoLayer::new(Mutex::new(File::create(path)?)).with_debug_annotations(false);
    Ok(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?)
}
