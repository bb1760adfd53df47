//! `hairline explain` tells what a span of `tracing` waited for. Nothing in the trace says that one was
//! dropped before it was ready, and one of several that are open at once is on the track of the span around
//! them.

use std::future::pending;
use std::sync::Arc;

use hairline_tests::recording::{FORMATS, record};
use hairline_tokio::{TraceRuntime, sync};
use tokio::time::sleep;
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;

use super::awaited::{REQUESTS, SHORT, first_lines_of, require, work};

/// Records requests that are spans, at each call. Returns the first lines of what `explain` says of them.
fn first_lines(request: impl AsyncFn(u64)) -> impl Fn() -> [String; 2] {
    move || {
        let subscriber = tracing_subscriber::registry().with(hairline::layer());
        let _default = tracing::subscriber::set_default(subscriber);
        let traces = FORMATS.map(|format| {
            record(format, |_| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().traced().build();
                runtime.expect("a runtime").block_on(async {
                    for number in 0..REQUESTS {
                        request(number).instrument(info_span!(target: "web", "request")).await;
                    }
                });
            })
        });
        traces.each_ref().map(first_lines_of)
    }
}

async fn handle(number: u64) {
    sleep(SHORT).await;
    sleep(work(number)).await;
    sleep(SHORT).await;
}

#[test]
fn the_span_that_loses_a_select_is_not_the_cause() {
    let words = ["Cause: intervals inside of them, most of all `handle`."];
    let first = first_lines(async |number| {
        tokio::select! {
            biased;
            () = pending().instrument(info_span!("shutdown")) => {}
            () = handle(number).instrument(info_span!("handle")) => {}
        }
    });
    require(&first, &words, &["shutdown"]);
    let first = first_lines(async |number| {
        tokio::select! {
            biased;
            () = handle(number).instrument(info_span!("handle")) => {}
            () = pending().instrument(info_span!("shutdown")) => {}
        }
    });
    require(&first, &words, &["shutdown"]);
}

#[test]
fn what_is_recorded_as_a_span_is_dropped_does_not_make_it_the_cause() {
    let (config, is_reloaded) = (Arc::new(sync::Mutex::named("config", ())), sync::Notify::new());
    let first = first_lines(async |number| {
        let _held = config.lock().await;
        tokio::select! {
            biased;
            _ = config.lock().instrument(info_span!("reload")) => {}
            () = is_reloaded.notified().instrument(info_span!("reloaded")) => {}
            () = handle(number).instrument(info_span!("handle")) => {}
        }
    });
    require(&first, &["Cause: intervals inside of them, most of all `handle`."], &["config", "reload"]);
}

#[test]
fn the_shorter_of_two_spans_at_once_is_not_the_cause() {
    let cache = Arc::new(sync::Mutex::named("cache", ()));
    let first = first_lines(async |number| {
        let held = Arc::clone(&cache).lock_owned().await;
        let refresh = async move {
            sleep(work(number) / 2).await;
            drop(held);
        };
        let read = async { drop(cache.lock().await) };
        tokio::join!(
            read.instrument(info_span!("read")),
            sleep(work(number)).instrument(info_span!("ask")),
            refresh
        );
    });
    require(&first, &["Cause: intervals inside of them, most of all `ask`."], &["`read`", "`cache`"]);
}

#[test]
fn of_spans_in_spans_the_innermost_is_the_cause() {
    let first = first_lines(async |number| {
        let query = async {
            sleep(SHORT / 4).await;
            sleep(work(number)).instrument(info_span!("query")).await;
            sleep(SHORT / 4).await;
        };
        query.instrument(info_span!("handle")).await;
        sleep(SHORT / 4).instrument(info_span!("render")).await;
    });
    require(
        &first,
        &["Cause: intervals inside of them, most of all `query`.", "inside `query`."],
        &["render"],
    );
}

#[test]
fn a_wait_inside_of_a_span_is_a_wait() {
    let cache = Arc::new(sync::Mutex::named("cache", ()));
    let first = first_lines(async |number| {
        let (held, is_held) = (Arc::clone(&cache), Arc::new(sync::Notify::new()));
        let has_it = Arc::clone(&is_held);
        let flush = async move {
            let _held = held.lock().await;
            has_it.notify_one();
            sleep(work(number)).await;
        };
        let flusher = tokio::spawn(hairline::TraceFuture::traced_task(flush, "db", "flusher"));
        is_held.notified().await;
        drop(cache.lock().await);
        flusher.await.expect("no panic");
    });
    require(&first, &["Cause: waiting for the lock `cache`.", " flusher", ", at "], &["They also wait"]);
}
