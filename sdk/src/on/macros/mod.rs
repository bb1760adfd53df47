//! The macros that record. Their twins that do nothing are in `off/macros.rs`.
//!
//! A macro with only a category and a name is complete here. [`sorting`] sorts arguments and options, and
//! then [`recording`] expands each kind of event into a call of a function, those with arguments in
//! [`calls`].

pub(crate) mod calls;
mod recording;
mod sorting;

/// Records a slice from here to the end of the enclosing block.
///
/// ```
/// # use hairline::trace_scope;
/// # let (addr, headers) = ("peer", [1, 2]);
/// fn request(bytes: usize) {
///     trace_scope!("net", "request", bytes);
///     // ...
/// }
/// # request(1);
/// trace_scope!("net", "send", bytes = 512, peer = %addr, headers = ?headers);
/// ```
///
/// Category and name are constant expressions of type `&'static str`. A category like `"net,slow"` is two
/// categories, and the event is recorded if one of them is on. They cannot name `Self` or a generic
/// parameter, since all instances of a function share one callsite; the option `name:` can.
///
/// # Arguments
///
/// Arguments are evaluated only while the category is recorded. `key = value` takes integers, floats, bools,
/// strings, pointers, options, and arrays, slices and maps of these ([`Argument`](crate::Argument)). `key =
/// %value` formats with `Display`, and `key = ?value` with `Debug`. A variable alone is an argument with the
/// variable's name.
///
/// # Options
///
/// Options follow the arguments, with a colon:
///
/// | option | |
/// |---|---|
/// | `name: expression` | a name made at run time, which replaces the constant name |
/// | `track: &track` | on a [`Track`](crate::Track); the guard may move to another thread |
/// | `flow: &flow`, `end_flow: &flow` | an arrow from the last event of the [`Flow`](crate::Flow) |
/// | `correlation: id` | a number or string shared with related events; the UI colours by it |
/// | `stack: true` | the call stack at the begin, see [`stacks`](crate::SessionBuilder::stacks); not with `track:` |
/// | `slow: duration` | a constant limit, see [`trigger_on_slow`](crate::SessionBuilder::trigger_on_slow) |
///
/// ```
/// # use hairline::{trace_scope, Flow, Track};
/// # let (table, request) = ("users", Flow::new());
/// trace_scope!("db", "query", rows = 3, name: format!("query {table}"), flow: &request);
/// ```
///
/// A scope must end on the thread where it began. Do not hold it across an `.await`.
#[macro_export]
macro_rules! trace_scope {
    ($($tokens:tt)+) => {
        let _hairline_scope = $crate::scope!($($tokens)+);
    };
}

/// Begins a slice and returns its guard. The slice ends when the guard is dropped.
///
/// ```
/// let mut reading = hairline::scope!("io", "read");
/// // ...
/// reading.arg("bytes", 512); // known only now
/// drop(reading);
/// ```
///
/// Arguments and options are those of [`trace_scope!`](crate::trace_scope). The guard is a
/// [`Scope`](crate::Scope), or with the option `track:` a [`TrackScope`](crate::TrackScope).
#[macro_export]
macro_rules! scope {
    ($category:expr, $name:expr $(,)?) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Scope, $category, $name, &[]);
        match __HAIRLINE_CALLSITE.epoch() {
            $crate::__private::Option::None => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            $crate::__private::Option::Some(__hairline_epoch) => {
                $crate::__private::Scope::begin(&__HAIRLINE_CALLSITE, __hairline_epoch)
            }
        }
    }};
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_scope_with $category, $name) [] [] [] [] $($arguments)+)
    };
}

/// Records an instant on this thread.
///
/// ```
/// # use hairline::trace_instant;
/// let attempt = 3;
/// trace_instant!("net", "retry", attempt, reason = "timeout");
/// ```
///
/// Arguments and options are those of [`trace_scope!`](crate::trace_scope). `track:` also takes the guard of
/// a [`trace_async!`](crate::trace_async).
#[macro_export]
macro_rules! trace_instant {
    ($category:expr, $name:expr $(,)?) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Instant, $category, $name, &[]);
        match __HAIRLINE_CALLSITE.epoch() {
            $crate::__private::Option::None => {}
            $crate::__private::Option::Some(__hairline_epoch) => $crate::__private::instant(&__HAIRLINE_CALLSITE, __hairline_epoch),
        }
    }};
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_instant_with $category, $name) [] [] [] [] $($arguments)+)
    };
}

/// Records the value of a counter: an integer, a float or a bool.
///
/// ```
/// # use hairline::{trace_counter, Track, Unit};
/// trace_counter!("net", "in_flight", 17);
/// trace_counter!("net", "received", 4096, unit: Unit::Bytes);
/// trace_counter!("gpu", "rate", 59.9, unit: "frames/s", track: &Track::thread());
/// ```
///
/// A counter belongs to the process: all threads and callsites with the same name write to one track.
///
/// # Options
///
/// | option | |
/// |---|---|
/// | `unit: Unit::Bytes`, `unit: "frames"` | the unit, a constant |
/// | `multiplier: 1024` | the factor from a value to the unit, a constant |
/// | `track: &track` | a counter of that track: of one thread, with [`Track::thread`](crate::Track::thread) |
/// | `name: expression` | a name made at run time |
/// | `incremental: true` | values are written as differences, in fewer bytes |
///
/// `incremental` applies to integers on the track of the recording thread, in a `TrackEvent` trace.
#[macro_export]
macro_rules! trace_counter {
    ($category:expr, $name:expr, $value:expr $(, $($options:tt)*)?) => {
        $crate::__hairline_counter!(
            ($category, $name, $value) [$crate::__private::CounterOptions::NONE] [] $($($options)*)?
        )
    };
}

/// Begins a slice on a [`Track`](crate::Track). [`trace_end!`](crate::trace_end) ends it, on any thread.
///
/// ```
/// use hairline::{Track, trace_begin, trace_end};
///
/// let queue = Track::process().child("queue");
/// trace_begin!("queue", "job", number = 7, track: &queue);
/// // ...
/// trace_end!(&queue, result = "done");
/// ```
///
/// Arguments and options are those of [`trace_scope!`](crate::trace_scope). `track:` is required. The slice
/// that began last on a track ends first. A slice whose begin was lost has no end either.
#[macro_export]
macro_rules! trace_begin {
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_begin_with $category, $name) [] [] [] [] $($arguments)+)
    };
    ($category:expr, $name:expr $(,)?) => {
        $crate::__private::core::compile_error!(
            "a slice without a guard needs a track: trace_begin!(category, name, track: &track)"
        )
    };
}

/// Ends the slice that [`trace_begin!`](crate::trace_begin) began last on a [`Track`](crate::Track). Takes
/// arguments.
///
/// The end is recorded if the begin was, also if its category is off by now.
///
/// ```
/// use hairline::{Track, trace_begin, trace_end};
///
/// let download = Track::new("download");
/// trace_begin!("net", "body", track: &download);
/// trace_end!(&download, bytes = 512);
/// ```
#[macro_export]
macro_rules! trace_end {
    ($track:expr $(,)?) => {
        $crate::__hairline_arguments!((__hairline_end_with "", "") [] [] [] [($track)])
    };
    ($track:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_end_with "", "") [] [] [] [($track)] $($arguments)+)
    };
}

/// Begins an interval on a track of its own and returns an [`AsyncScope`](crate::AsyncScope). The interval
/// ends when the guard is dropped, on any thread.
///
/// The UI shows overlapping intervals of one name side by side under that name. An interval may reuse the
/// track of an earlier one that has ended.
///
/// ```
/// use hairline::{trace_async, trace_instant};
///
/// let request = trace_async!("net", "request", id = 7);
/// std::thread::spawn(move || {
///     let parse = trace_async!("net", "parse", track: &request); // below the request
///     drop(parse);
///     trace_instant!("net", "answered", track: &request);
///     drop(request);
/// })
/// .join()
/// .unwrap();
/// ```
///
/// Arguments and options are those of [`trace_scope!`](crate::trace_scope). `track:` is the parent of the
/// interval's track, by default the process.
///
/// With `track: &parent`, where `parent` is an [`Arc`](std::sync::Arc) of a guard, the interval becomes an
/// owner of its parent, which ends when its last owner is dropped. So the interval is sure to end first, and
/// is a slice below its parent, on the parent's own track. If it overlaps another interval there, it has a
/// track of its own below the parent's.
///
/// ```
/// use std::sync::Arc;
///
/// use hairline::trace_async;
///
/// let request = Arc::new(trace_async!("net", "request"));
/// let query = trace_async!("db", "query", track: &request); // a slice below the request
/// drop(query);
/// ```
///
/// In an FXT trace an interval without a parent has a track that no other interval shares; its children, and
/// theirs, are slices below each other on one track below it.
#[macro_export]
macro_rules! trace_async {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_arguments!((__hairline_async_with $category, $name) [] [] [] [] $($($arguments)*)?)
    };
}

/// Records the life of a future and its polls, as [`TraceFuture::traced`](crate::TraceFuture::traced) does,
/// with arguments and a parent. Returns a [`Traced`](crate::Traced).
///
/// ```
/// use hairline::{future_arg, trace_async, trace_future};
///
/// # async fn query(table: &str) -> usize { table.len() }
/// # async fn serve() {
/// let request = trace_async!("web", "request");
/// let table = "users";
/// let rows = trace_future!("db", "query", query(table), table, track: &request).await;
/// # let _ = rows;
/// # }
/// ```
///
/// Category and name are as in [`trace_scope!`](crate::trace_scope), and so are the arguments. They are
/// evaluated after the future's expression, when its life begins. `track:` is the parent, as in
/// [`trace_async!`](crate::trace_async); by default that is the future that the thread polls.
/// [`future_arg`](crate::future_arg) adds arguments that are known at the end.
///
/// A stream is recorded in the same way, with the feature `futures`.
#[macro_export]
macro_rules! trace_future {
    ($category:expr, $name:expr, $future:expr $(, $($arguments:tt)*)?) => {
        match $future {
            // Values made in the future's expression live as long as they do without the macro.
            __hairline_future => {
                $crate::__hairline_life!($category, $name $(, $($arguments)*)?).wrap(__hairline_future)
            }
        }
    };
}

/// Records a log message, formatted as by `format!`. The format string is the name of the event.
///
/// ```
/// use hairline::{Level, trace_log};
///
/// let attempt = 3;
/// trace_log!(Level::Warn, "net", "no answer after {attempt} attempts");
/// ```
#[macro_export]
macro_rules! trace_log {
    ($level:expr, $category:expr, $format:literal $($arguments:tt)*) => {
        $crate::__hairline_record!(
            (Instant, $category, $format, [])
            off: (),
            on: $crate::__private::log,
            $level,
            &$crate::__private::Text::display(&$crate::__private::core::format_args!($format $($arguments)*)),
        )
    };
}

/// Requests a snapshot of the running flight recorder ([`Overflow::Overwrite`](crate::Overflow)) into its
/// output. With a name, first records an instant with this name in the category `hairline`, if that category
/// is on. Does not wait: the recorder takes the snapshot within 200 ms.
///
/// In a signal handler call `trigger!()`, without a name: it sets a flag and does nothing else.
/// `trigger!("name")` records an event. On a thread or at a callsite that has not recorded before, an event
/// allocates memory, which a signal handler must not do. A panic hook may call both.
///
/// Triggers within [`trigger_interval`](crate::SessionBuilder::trigger_interval) of each other give one
/// snapshot. Nothing is written without a flight recorder, or if its output is no file.
///
/// ```
/// # let queue = [0; 10];
/// if queue.len() > 1000 {
///     hairline::trigger!("queue too long");
/// }
/// ```
#[macro_export]
macro_rules! trigger {
    () => {
        $crate::__private::trigger()
    };
    ($name:expr) => {{
        $crate::trace_instant!("hairline", $name);
        $crate::__private::trigger();
    }};
}

/// Begins the life of an async function with the attribute `#[trace]`.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_life {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_arguments!((__hairline_life_with $category, $name) [] [] [] [] $($($arguments)*)?)
    };
}
