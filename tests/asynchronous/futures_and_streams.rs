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

// As async-trait writes it.
#[trace("t", args(id))]
fn boxed_block<'a>(text: &'a str, id: usize) -> std::pin::Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
    Box::pin(async move {
        after(2).await;
        text.len() + id
    })
}

// As async-trait wrote it at first.
#[trace("t", args(id))]
fn boxed_function<'a>(text: &'a str, id: usize) -> std::pin::Pin<Box<dyn Future<Output = usize> + 'a>> {
    async fn inner(text: &str, id: usize) -> Result<usize, std::num::ParseIntError> {
        let id: usize = id.to_string().parse()?;
        after(2).await;
        if text.is_empty() {
            return Ok(id);
        }
        Ok(text.len() + id)
    }
    Box::pin(async move { inner(text, id).await.unwrap_or_default() })
}

#[trace("t", args(id))]
fn boxed_call(id: usize) -> std::pin::Pin<Box<dyn Future<Output = usize>>> {
    async fn inner(id: usize) -> Result<usize, std::num::ParseIntError> {
        after(2).await;
        Ok("1".parse::<usize>()? + id)
    }
    let future = async move { inner(id).await.unwrap_or_default() };
    Box::pin(future)
}

#[trace("t", args(id))]
fn opaque_block(id: usize) -> impl Future<Output = Result<usize, std::num::ParseIntError>> {
    async move {
        after(2).await;
        Ok("1".parse::<usize>()? + id)
    }
}

#[trace("t", args(id))]
fn opaque_call(id: usize) -> impl Future<Output = u32> + Send + 'static {
    after(id as u32)
}

#[test]
fn a_function_that_returns_a_future_has_the_life_of_that_future() {
    for format in FORMATS {
        let trace = record(format, |_| {
            assert_eq!(block_on(boxed_block("text", 1)), 5);
            assert_eq!(block_on(boxed_function("text", 1)), 5);
            assert_eq!(block_on(boxed_call(1)), 2);
            assert_eq!(block_on(opaque_block(1)), Ok(2));
            assert_eq!(block_on(opaque_call(2)), 2);
        });
        let names = ["boxed_block", "boxed_function", "boxed_call", "opaque_block", "opaque_call"];
        let lives: Vec<_> = names.iter().map(|name| format!("{name}\t-\t1")).collect();
        assert_eq!(trace.rows(LIVES), lives.join("\n"), "{format:?}");
        let polls = trace.rows(POLLS);
        assert_eq!(polls.lines().count(), 2 * names.len(), "{format:?}: two polls each\n{polls}");
        let ids = "select count(*) from slice s join args a using (arg_set_id) where replace(a.key, 'debug.', '') = 'id' \
             and s.track_id not in (select id from thread_track)";
        assert_eq!(trace.rows(ids), "5", "{format:?}");
    }
}
