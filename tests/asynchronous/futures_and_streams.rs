//! `traced` and `#[trace]` on futures that are polled by hand.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures::StreamExt;
use hairline::{TraceFuture, TraceStream, trace, trace_instant};
use hairline_tests::recording::{FORMATS, record};

use crate::LIVES;

/// Ready at the nth poll.
fn after(n: u32) -> impl Future<Output = u32> {
    let mut left = n;
    poll_fn(move |_| {
        left -= 1;
        if left == 0 { Poll::Ready(n) } else { Poll::Pending }
    })
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll_once(future.as_mut()) {
            return output;
        }
    }
}

const POLLS: &str = "select t.name, s.name, s.dur >= 0 from slice s join thread_track tt on s.track_id = tt.id \
     join thread t using (utid) order by s.ts";
const FLOWS: &str = "select so.name, si.name from flow f join slice so on f.slice_out = so.id \
     join slice si on f.slice_in = si.id order by so.ts";

// life      [ read .............................. ]
// first     [ read ]──┐             ┌─>[ read ]
// second              └─> [ read ] ─┘
#[test]
fn a_future_is_one_interval_and_a_slice_for_each_poll_linked_by_a_flow() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mut future = Box::pin(after(3).traced("io", "read"));
            assert!(poll_once(future.as_mut()).is_pending());
            let mut future = std::thread::Builder::new()
                .name("second".to_owned())
                .spawn(move || {
                    assert!(poll_once(future.as_mut()).is_pending());
                    future
                })
                .unwrap()
                .join()
                .unwrap();
            assert_eq!(poll_once(future.as_mut()), Poll::Ready(3));
            trace_instant!("io", "after the end"); // before the drop
        });
        assert_eq!(trace.rows(LIVES), "read\t-\t1", "{format:?}");
        let polls = trace.rows(POLLS);
        let threads: Vec<&str> = polls.lines().map(|l| l.split('\t').next().unwrap()).collect();
        assert_eq!(threads[1], "second", "{format:?}: {polls}");
        assert_eq!(polls.lines().filter(|l| l.ends_with("\tread\t1")).count(), 3, "{format:?}");
        assert_eq!(trace.rows(FLOWS), "read\tread\nread\tread", "{format:?}");
        let ends = "select max(ts + dur) <= (select ts from slice where name = 'after the end') from slice where name = 'read'";
        assert_eq!(trace.rows(ends), "1", "{format:?}: it ends when it is ready");
    }
}

#[test]
fn a_future_that_is_dropped_ends_there_and_one_that_is_never_polled_has_a_life_too() {
    for format in FORMATS {
        let trace = record(format, |_| {
            {
                let mut unfinished = pin!(after(5).traced("io", "unfinished"));
                assert!(poll_once(unfinished.as_mut()).is_pending());
            }
            drop(after(1).traced("io", "never polled"));
        });
        assert_eq!(trace.rows(LIVES), "unfinished\t-\t1\nnever polled\t-\t1", "{format:?}");
        assert_eq!(
            trace.rows("select count(*) from slice where track_id in (select id from thread_track)"),
            "1"
        );
    }
}

#[trace("t", args(n))]
async fn outer(n: u32) -> Result<u32, std::num::ParseIntError> {
    let first = inner(n).await?;
    let second = inner(n + 1).await?;
    let bad: u32 = "x".parse()?;
    Ok(first + second + bad)
}

#[trace("t", name = "inner step")]
async fn inner(n: u32) -> Result<u32, std::num::ParseIntError> {
    after(2).traced("t", "leaf").await;
    Ok(n)
}

#[trace("t")]
async fn borrows<'a, T>(text: &'a T) -> &'a str
where
    T: ?Sized + AsRef<str> + 'a,
{
    after(1).await;
    text.as_ref()
}

#[test]
fn futures_lie_below_the_future_that_polls_them() {
    for format in FORMATS {
        let trace = record(format, |_| {
            assert!(block_on(outer(1)).is_err());
            assert_eq!(block_on(borrows("text")), "text");
        });
        assert_eq!(
            trace.rows(LIVES),
            "outer\t-\t1\ninner step\touter\t1\nleaf\tinner step\t1\ninner step\touter\t1\nleaf\tinner step\t1\nborrows\t-\t1",
            "{format:?}"
        );
        assert_eq!(trace.arguments(), "outer: n = 1", "{format:?}");
        // Polls nest on the thread as the calls do.
        let depths = trace.rows(
            "select distinct s.name, s.depth from slice s join thread_track tt on s.track_id = tt.id order by s.depth, s.name",
        );
        assert_eq!(depths, "borrows\t0\nouter\t0\ninner step\t1\nleaf\t2", "{format:?}");
    }
}

#[test]
fn a_stream_lives_until_its_last_item() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mut stream = TraceStream::traced(futures::stream::iter(0..3), "io", "lines");
            let mut items = Vec::new();
            loop {
                match poll_once(pin!(stream.next())) {
                    Poll::Ready(Some(item)) => items.push(item),
                    Poll::Ready(None) => break,
                    Poll::Pending => unreachable!(),
                }
            }
            assert_eq!(items, [0, 1, 2]);
            trace_instant!("io", "after the end");
        });
        assert_eq!(trace.rows(LIVES), "lines\t-\t1", "{format:?}");
        assert_eq!(trace.rows("select count(*) from flow"), "3", "{format:?}");
    }
}

#[test]
fn a_panic_in_a_poll_leaves_nothing_open() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let mut future = Box::pin(async { panic!("on purpose") }.traced("t", "panics"));
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _: Poll<()> = poll_once(future.as_mut());
            }));
            assert!(caught.is_err());
            drop(future);
            // What comes next does not lie below it.
            drop(after(1).traced("t", "next"));
        });
        assert_eq!(trace.rows(LIVES), "panics\t-\t1\nnext\t-\t1", "{format:?}");
        assert_eq!(trace.rows("select sum(dur < 0) from slice"), "0", "{format:?}");
    }
}
