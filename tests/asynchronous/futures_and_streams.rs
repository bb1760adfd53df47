//! `traced` and `#[trace]` on futures that are polled by hand.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::StreamExt;
use hairline::{TraceFuture, TraceStream, future_arg, trace, trace_async, trace_future, trace_instant};
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
        assert_eq!(trace.rows(LIVES), "lines\t-\t1\nnext\tlines\t1", "{format:?}");
        assert_eq!(trace.rows("select count(*) from flow"), "3", "{format:?}");
    }
}

#[test]
fn a_stream_waits_for_its_consumer_between_items() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (mut send, receive) = futures::channel::mpsc::unbounded();
            let mut stream = TraceStream::traced(receive, "io", "lines");
            for item in 0..3 {
                if item != 1 {
                    assert!(poll_once(pin!(stream.next())).is_pending());
                }
                send.start_send(item).expect("a receiver");
                assert_eq!(poll_once(pin!(stream.next())), Poll::Ready(Some(item)));
                std::thread::sleep(Duration::from_millis(2));
            }
            assert!(poll_once(pin!(stream.next())).is_pending());
            trace_instant!("io", "dropped");
        });
        // The first item, the last one, and that which does not come.
        let nexts =
            "select count(*), max(n.dur) < 2000000, min(n.ts >= l.ts and n.ts + n.dur <= l.ts + l.dur)
                     from slice n, slice l where n.name = 'next' and l.category = 'io' and l.name = 'lines'
                     and l.dur > 6000000";
        assert_eq!(trace.rows(nexts), "3\t1\t1", "{format:?}");
    }
}

#[test]
fn a_stream_that_is_older_than_the_session_has_polls_alone() {
    for format in FORMATS {
        let (mut send, receive) = futures::channel::mpsc::unbounded();
        let mut stream = None;
        record(format, |_| stream = Some(TraceStream::traced(receive, "io", "lines")));
        let mut stream = stream.expect("a stream");
        let trace = record(format, |_| {
            assert!(poll_once(pin!(stream.next())).is_pending());
            send.start_send(1).expect("a receiver");
            assert_eq!(poll_once(pin!(stream.next())), Poll::Ready(Some(1)));
            assert!(poll_once(pin!(stream.next())).is_pending());
        });
        assert_eq!(trace.rows("select name, count(*) from slice group by name"), "lines\t3", "{format:?}");
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

#[test]
fn a_future_has_arguments_and_a_parent_and_gets_arguments_at_its_end() {
    /// Its value's code adds an argument of its own, and is ready at the second poll.
    async fn query(table: &str) -> usize {
        tokio::task::yield_now().await;
        future_arg("rows", table.len());
        future_arg("status", "found");
        table.len()
    }

    #[trace("web", args(id))]
    async fn answer(id: u32) -> u32 {
        future_arg("status", 200 + id);
        // An inner future gets its own.
        trace_future!("web", "inner", async { future_arg("inner", true) }).await;
        id
    }

    for format in FORMATS {
        let trace = record(format, |_| {
            future_arg("of no future", 1);
            let request = trace_async!("web", "request");
            // A value of the future's expression lives as long as the future.
            let rows =
                block_on(trace_future!("db", "query", query(&String::from("users")), n = 1, track: &request));
            assert_eq!(rows, 5);
            assert_eq!(block_on(answer(4)), 4);
            let cancelled = trace_future!("db", "cancelled", async {
                future_arg("polled", 1);
                std::future::pending::<()>().await;
            });
            assert!(poll_once(Box::pin(cancelled).as_mut()).is_pending());
            let stream = trace_future!("io", "lines", futures::stream::iter([1, 2]), from = "memory");
            assert_eq!(block_on(stream.count()), 2);
            let panics = trace_future!("db", "panics", async {
                future_arg("polled", 2);
                panic!("on purpose");
            });
            let panics = std::panic::AssertUnwindSafe(|| block_on(panics));
            assert!(std::panic::catch_unwind(panics).is_err());
        });
        let arguments = "select s.name, group_concat(replace(key, 'debug.', '') || '=' || display_value, ' ') from slice s \
             join args using (arg_set_id) \
             where replace(key, 'debug.', '') in ('n', 'rows', 'status', 'id', 'inner', 'polled', 'from') \
             group by s.id order by s.ts";
        let expected = "query\tn=1 rows=5 status=found\nanswer\tid=4 status=204\ninner\tinner=true\n\
             cancelled\tpolled=1\nlines\tfrom=memory\npanics\tpolled=2";
        assert_eq!(trace.rows(arguments), expected, "{format:?}");
        let lives = trace.rows(LIVES);
        assert!(lives.contains("query\trequest\t1"), "{format:?}: {lives}");
        assert!(lives.contains("inner\tanswer\t1"), "{format:?}: {lives}");
    }
}

/// A list whose values' code adds an argument, and panics at a number that is not even.
struct Evens(Vec<Even>);
struct Even(u32);

impl hairline::Argument for Even {
    type Held<'a> = u32;

    fn hold(&self) -> u32 {
        future_arg(["zero", "one", "two", "three", "four"][self.0 as usize], true);
        assert!(self.0.is_multiple_of(2), "on purpose");
        self.0
    }
}

impl hairline::Argument for Evens {
    type Held<'a> = <Vec<Even> as hairline::Argument>::Held<'a>;

    fn hold(&self) -> Self::Held<'_> {
        self.0.hold()
    }
}

#[test]
fn an_argument_is_lost_neither_to_a_values_own_code_nor_to_the_future_around() {
    for format in FORMATS {
        let trace = record(format, |session| {
            session.set_categories("*,-quiet").expect("a filter");
            let outer = trace_future!("web", "outer", async {
                future_arg("before", 1);
                future_arg("evens", Evens(vec![Even(2), Even(4)]));
                let odd = || future_arg("odd", Evens(vec![Even(3)]));
                assert!(std::panic::catch_unwind(odd).is_err());
                trace_future!("quiet", "not recorded", async {
                    future_arg("of the inner one", 1);
                    trace_future!("web", "innermost", async { future_arg("own", 1) }).await;
                })
                .await;
                future_arg("after", 1);
            });
            block_on(outer);
        });
        let arguments = "select s.name, replace(key, 'debug.', ''), display_value from slice s \
             join args using (arg_set_id) where replace(key, 'debug.', '') glob '[a-z]*' \
             and s.track_id not in (select id from thread_track) \
             and key not glob 'source*' and key not glob '*legacy*' order by s.ts, args.id";
        let lines = trace.rows(arguments);
        let expected = "outer\tbefore\t1\nouter\ttwo\ttrue\nouter\tfour\ttrue\nouter\tevens[0]\t2\n\
             outer\tevens[1]\t4\nouter\tthree\ttrue\nouter\tafter\t1\ninnermost\town\t1";
        assert_eq!(lines, expected, "{format:?}");
        assert!(trace.rows(LIVES).contains("innermost\touter\t1"), "{format:?}");
    }
}
