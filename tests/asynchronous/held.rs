//! Guards of `span.enter()` that are held across an `.await`. It compiles, and the nesting cannot be right.
//! But it costs no more with many tasks than with few, and is counted.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use hairline_tests::recording::{FORMATS, Trace, record_in_any_order};
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

/// The listeners, by name.
fn listeners() -> [(&'static str, Dispatch); 2] {
    let layer = tracing_subscriber::registry().with(hairline::layer());
    [("layer", Dispatch::new(layer)), ("subscriber", Dispatch::new(hairline::Subscriber::new()))]
}

/// Waits once.
async fn wait() {
    let mut has_waited = false;
    poll_fn(|_| if std::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

async fn request() {
    let span = tracing::info_span!("request");
    let _entered = span.enter();
    wait().await;
}

struct Nobody;
impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Polls all requests until they wait, and then to their ends, in the order in which they came.
fn all_at_once(requests: usize) {
    let waker = Waker::from(Arc::new(Nobody));
    let mut context = Context::from_waker(&waker);
    let mut all: Vec<Pin<Box<dyn Future<Output = ()>>>> =
        (0..requests).map(|_| Box::pin(request()) as _).collect();
    for is_last in [false, true] {
        for request in &mut all {
            assert_eq!(request.as_mut().poll(&mut context).is_ready(), is_last);
        }
    }
}

fn slices(trace: &Trace) -> u64 {
    trace.rows("select count() from slice where name = 'request'").parse().expect("a number")
}

#[test]
fn many_tasks_have_a_slice_each_and_are_counted() {
    const REQUESTS: u64 = 2000;
    for format in FORMATS {
        for (name, dispatch) in listeners() {
            let trace = record_in_any_order(
                format,
                |b| b,
                |_| tracing::dispatcher::with_default(&dispatch, || all_at_once(REQUESTS as usize)),
            );
            // The slices of the last few begin again.
            let expected = REQUESTS..=REQUESTS + 10;
            assert!(expected.contains(&slices(&trace)), "{format:?}, {name}: {}", slices(&trace));
            let counted = trace.summary.out_of_order;
            // All but the last one, and what begins again when ends have ended the slices of others.
            assert!((REQUESTS - 1..=REQUESTS + 10).contains(&counted), "{format:?}, {name}: {counted}");
            assert!(trace.summary.notes.iter().any(|note| note.contains("across an `.await`")), "{name}");
        }
    }
}

#[test]
fn a_few_tasks_have_the_right_times_in_parts_and_are_counted() {
    for format in FORMATS {
        for (name, dispatch) in listeners() {
            let trace = record_in_any_order(
                format,
                |b| b,
                |_| tracing::dispatcher::with_default(&dispatch, || all_at_once(3)),
            );
            // The second one in two parts, the third one in three.
            assert_eq!(slices(&trace), 6, "{format:?}, {name}");
            assert_eq!(trace.summary.out_of_order, 2, "{format:?}, {name}");
            let marked = "select s.name, s.dur >= 0 from slice s join args using (arg_set_id)
                          where key like '%hairline_out_of_order'";
            assert_eq!(trace.rows(marked), "request\t1\nrequest\t1", "{format:?}, {name}");
        }
    }
}

// Were an exit's cost that of all entries, this would take many minutes. (The registry's own is.)
#[test]
fn two_hundred_thousand_held_entries_are_left_one_after_the_other() {
    const ENTRIES: u64 = 200_000;
    let subscriber = listeners().into_iter().nth(1).expect("the subscriber");
    for format in FORMATS {
        let trace = record_in_any_order(
            format,
            |b| b,
            |_| {
                tracing::dispatcher::with_default(&subscriber.1, || {
                    let spans: Vec<_> = (0..ENTRIES).map(|_| tracing::info_span!("request")).collect();
                    let entered: Vec<_> = spans.iter().map(tracing::Span::enter).collect();
                    drop(entered); // from the first to the last
                });
            },
        );
        let counted = trace.summary.out_of_order;
        assert!((ENTRIES - 1..=ENTRIES + 10).contains(&counted), "{format:?}: {counted}");
        let records = 2 * ENTRIES..=2 * ENTRIES + 20;
        assert!(records.contains(&trace.summary.records), "{format:?}: {}", trace.summary.records);
    }
}

#[test]
fn spans_that_another_thread_leaves_end_on_the_thread_that_entered_them() {
    const SPANS: u64 = 400; // the judge knows no deeper stack than 512
    for format in FORMATS {
        for (name, dispatch) in listeners() {
            let trace = record_in_any_order(
                format,
                |b| b,
                |_| {
                    tracing::dispatcher::with_default(&dispatch, || {
                        let spans: Vec<_> = (0..SPANS).map(|_| tracing::info_span!("request")).collect();
                        let entered: Vec<_> = spans.iter().map(tracing::Span::enter).collect();
                        std::thread::scope(|threads| {
                            threads.spawn(|| tracing::dispatcher::with_default(&dispatch, || drop(entered)));
                        });
                        // Deep again, for the thread to see what the other one has left.
                        let spans: Vec<_> = (0..40).map(|_| tracing::info_span!("after")).collect();
                        let entered: Vec<_> = spans.iter().map(tracing::Span::enter).collect();
                        entered.into_iter().rev().for_each(drop);
                    });
                },
            );
            let ended = trace.rows("select count() from slice where name = 'request' and dur >= 0");
            assert_eq!(ended, SPANS.to_string(), "{format:?}, {name}: {:?}", trace.summary);
            assert!(trace.summary.out_of_order >= SPANS, "{format:?}, {name}: {:?}", trace.summary);
        }
    }
}
