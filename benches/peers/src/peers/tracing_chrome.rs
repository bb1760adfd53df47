//! tracing-chrome: JSON, written by a thread that gets each event through a channel.

use hairline_benches::machine::pin_to_last_core;
use tracing_chrome::ChromeLayerBuilder;
use tracing_subscriber::layer::SubscriberExt;

use super::{Peer, span};
use crate::kill::{Killed, chrome_ends, scopes_and_die};

pub const PEER: Peer = Peer {
    name: "tracing-chrome",
    package: "tracing-chrome",
    setup: "without arguments and locations, into a sink; flushed between batches, not timed",
    cost: |bench| {
        let (layer, guard) = ChromeLayerBuilder::new()
            .writer(std::io::sink())
            .include_args(false)
            .include_locations(false)
            .build();
        pin_to_last_core(); // not its thread, which is there already
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        span(bench, || guard.flush());
        Ok(())
    },
    killed: Some(Killed {
        record: |path| {
            let builder = ChromeLayerBuilder::new().file(path).include_args(false).include_locations(false);
            let (layer, _guard) = builder.build();
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
            scopes_and_die(|| drop(tracing::info_span!("span").entered()));
            Ok(())
        },
        repair: None,
        ends: chrome_ends,
    }),
};
