//! What the two async programs share: how their spans are recorded, and futures that count their polls.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::prelude::*;

pub type Failure = Box<dyn Error + Send + Sync>;

/// The value that follows an argument.
pub fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// The lines that a user adds to a program to record its spans, by the argument `--with`. `peer` writes them
/// with tracing-chrome to the file that the variable PEER names, and returns what completes the file.
pub fn install() -> Result<Option<FlushGuard>, Failure> {
    match &*argument("--with").ok_or("--with is missing")? {
        "none" => {}
        "subscriber" => tracing::subscriber::set_global_default(hairline::Subscriber::new())?,
        "layer" => tracing_subscriber::registry().with(hairline::layer()).try_init()?,
        "peer" => {
            let path = std::env::var_os("PEER").ok_or("PEER is missing")?;
            let (layer, guard) = ChromeLayerBuilder::new().file(path).include_args(true).build();
            tracing_subscriber::registry().with(layer).try_init()?;
            return Ok(Some(guard));
        }
        other => return Err(format!("--with {other}: none, subscriber, layer or peer").into()),
    }
    Ok(None)
}

/// Counts the polls of a future.
pub struct Counted<F> {
    future: Pin<Box<F>>,
    polls: &'static AtomicU64,
}

impl<F> Counted<F> {
    pub fn new(polls: &'static AtomicU64, future: F) -> Self {
        Self { future: Box::pin(future), polls }
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Relaxed);
        self.future.as_mut().poll(context)
    }
}
