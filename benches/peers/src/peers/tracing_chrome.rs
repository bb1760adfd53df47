//! tracing-chrome: JSON, written by a thread that gets each event through a channel.

use hairline_benches::machine::pin_to_last_core;
use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

use crate::ends;
use crate::peer::{Failure, Flood, Killed, Peer, Trace};
use crate::peers::spans::{span, spans};
use crate::scopes::scopes_and_die;

pub const PEER: Peer = Peer {
    name: "tracing-chrome",
    package: "tracing-chrome",
    setup: "without arguments and locations, into a sink; flushed between batches, not timed",
    cost: |bench| {
        let guard = start(ChromeLayerBuilder::new().writer(std::io::sink()))?;
        pin_to_last_core(); // not its thread, which is there already
        spans(bench, || guard.flush());
        Ok(())
    },
    floods: &[Flood {
        name: "file",
        record: |path, run| {
            let guard = start(ChromeLayerBuilder::new().file(path))?;
            run.scopes(span);
            drop(guard); // waits for its thread
            Ok(Trace::InTheFile(ends::in_lines_of_json))
        },
    }],
    killed: Some(Killed {
        record: |path| {
            let _guard = start(ChromeLayerBuilder::new().file(path))?;
            scopes_and_die(span);
            Ok(())
        },
        repair: None,
        ends: ends::in_lines_of_json,
    }),
};

fn start(builder: ChromeLayerBuilder<Registry>) -> Result<FlushGuard, Failure> {
    let (layer, guard) = builder.include_args(false).include_locations(false).build();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
    Ok(guard)
}
