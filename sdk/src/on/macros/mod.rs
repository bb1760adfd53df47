//! The macros, recording. Their twins that do nothing are in `off/macros.rs`.
//!
//! A macro that is given nothing but category and name ends here. What has arguments or options goes on in [`sorting`],
//! and then, as the kind of event that it is, in [`recording`].

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
/// Category and name are constant expressions of type `&'static str`; a category like `"net,slow"` is two, and the
/// event is recorded if either is.
///
/// # Arguments
///
/// They are evaluated only when the category is being recorded. `key = value` takes integers, floats, bools, strings,
/// pointers, options, arrays, slices and maps of these ([`Argument`](crate::Argument)); `key = %value` formats with
/// `Display`, `key = ?value` with `Debug`; a variable's name alone is its key.
///
/// # Options
///
/// After the arguments, with a colon:
///
/// | option | |
/// |---|---|
/// | `name: expression` | a name made at run time, in place of the constant one |
/// | `track: &track` | on a [`Track`](crate::Track) instead of this thread's; the guard may move to another thread |
/// | `flow: &flow`, `end_flow: &flow` | an arrow from the flow's last event to this one; see [`Flow`](crate::Flow) |
/// | `correlation: id` | a number or string shared with events that belong together; the UI colours by it |
///
/// ```
/// # use hairline::{trace_scope, Flow, Track};
/// # let (table, request) = ("users", Flow::new());
/// trace_scope!("db", "query", rows = 3, name: format!("query {table}"), flow: &request);
/// ```
///
/// A scope must end on the thread it began on; it does not belong across an `.await`.
#[macro_export]
macro_rules! trace_scope {
    ($($tokens:tt)+) => {
        let _hairline_scope = $crate::scope!($($tokens)+);
    };
}

/// Like [`trace_scope!`](crate::trace_scope), with the guard in hand: the slice ends when the guard is dropped.
///
/// ```
/// let mut reading = hairline::scope!("io", "read");
/// // ...
/// reading.arg("bytes", 512); // known only now
/// drop(reading);
/// ```
///
/// The guard is a [`Scope`](crate::Scope), or with the option `track:` a [`TrackScope`](crate::TrackScope).
#[macro_export]
macro_rules! scope {
    ($category:expr, $name:expr $(,)?) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Scope, $category, $name, &[]);
        match __HAIRLINE_CALLSITE.epoch() {
            ::core::option::Option::None => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            ::core::option::Option::Some(word) => $crate::__private::Scope::begin(&__HAIRLINE_CALLSITE, word),
        }
    }};
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_scope_with $category, $name) [] [] [] [] $($arguments)+)
    };
}

/// Records a moment on this thread.
///
/// ```
/// # use hairline::trace_instant;
/// let attempt = 3;
/// trace_instant!("net", "retry", attempt, reason = "timeout");
/// ```
///
/// Arguments and options as in [`trace_scope!`](crate::trace_scope); `track:` also takes the guard of a [`trace_async!`](crate::trace_async).
#[macro_export]
macro_rules! trace_instant {
    ($category:expr, $name:expr $(,)?) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Instant, $category, $name, &[]);
        match __HAIRLINE_CALLSITE.epoch() {
            ::core::option::Option::None => {}
            ::core::option::Option::Some(word) => $crate::__private::instant(&__HAIRLINE_CALLSITE, word),
        }
    }};
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_instant_with $category, $name) [] [] [] [] $($arguments)+)
    };
}

/// Records the value that a counter has from now on: an integer, a float or a bool.
///
/// ```
/// # use hairline::{trace_counter, Track, Unit};
/// trace_counter!("net", "in_flight", 17);
/// trace_counter!("net", "received", 4096, unit: Unit::Bytes);
/// trace_counter!("gpu", "rate", 59.9, unit: "frames/s", track: &Track::thread());
/// ```
///
/// A counter belongs to the process: every thread and every callsite that names it adds to one track.
///
/// # Options
///
/// | option | |
/// |---|---|
/// | `unit: Unit::Bytes`, `unit: "frames"` | what the numbers count: a constant |
/// | `multiplier: 1024` | what a number is to be multiplied with to be in that unit: a constant |
/// | `track: &track` | a counter of that track: of one thread, with [`Track::thread`](crate::Track::thread) |
/// | `name: expression` | a name made at run time |
/// | `incremental: true` | written as differences, which takes fewer bytes; integers on the track of the recording thread alone, in TrackEvent |
#[macro_export]
macro_rules! trace_counter {
    ($category:expr, $name:expr, $value:expr $(, $($options:tt)*)?) => {
        $crate::__hairline_counter!(
            ($category, $name, $value) [$crate::__private::CounterOptions::NONE] [] $($($options)*)?
        )
    };
}

/// Begins a slice on a [`Track`](crate::Track), which [`trace_end!`](crate::trace_end) ends, perhaps on another thread.
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
/// Arguments and options as in [`trace_scope!`](crate::trace_scope); `track:` must be there. What was begun last on a track is what ends
/// first; a slice whose begin was lost has no end either.
#[macro_export]
macro_rules! trace_begin {
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_begin_with $category, $name) [] [] [] [] $($arguments)+)
    };
    ($category:expr, $name:expr $(,)?) => {
        ::core::compile_error!("a slice without a guard needs a track: trace_begin!(category, name, track: &track)")
    };
}

/// Ends the slice that was begun last on a [`Track`](crate::Track), by [`trace_begin!`](crate::trace_begin). It may have arguments.
///
/// It is recorded if the begin was, whatever categories are being recorded by now.
#[macro_export]
macro_rules! trace_end {
    ($track:expr $(,)?) => {
        $crate::__hairline_arguments!((__hairline_end_with "", "") [] [] [] [($track)])
    };
    ($track:expr, $($arguments:tt)+) => {
        $crate::__hairline_arguments!((__hairline_end_with "", "") [] [] [] [($track)] $($arguments)+)
    };
}

/// Begins an interval on a track of its own and gives an [`AsyncScope`](crate::AsyncScope), which ends it when it is
/// dropped, on whichever thread. Intervals of one name that overlap are shown side by side under that name; one that
/// begins when another has ended may have its track.
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
/// Arguments and options as in [`trace_scope!`](crate::trace_scope); `track:` is the track that its own is put under, by default the
/// process's.
#[macro_export]
macro_rules! trace_async {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_arguments!((__hairline_async_with $category, $name) [] [] [] [] $($($arguments)*)?)
    };
}

/// Records a message to be read by people, formatted as by `format!`. The format string is the event's name.
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
            &$crate::__private::Text::display(&::core::format_args!($format $($arguments)*)),
        )
    };
}

/// Asks the running flight recorder ([`Overflow::Overwrite`](crate::Overflow)) for a snapshot into its output. With a name, records
/// an instant with this name first, in the category `hairline`, if that is on. Does not wait: the recorder takes the snapshot within
/// 200 ms.
///
/// In a signal handler call `trigger!()`, without a name: it sets a flag and does nothing else. `trigger!("name")` records an event. On a
/// thread or at a callsite that has not recorded before, an event allocates memory, which a signal handler must not do. A
/// panic hook may call both.
///
/// Triggers that follow one another sooner than [`trigger_interval`](crate::SessionBuilder::trigger_interval) give one snapshot. Without a
/// flight recorder, or with one that has no file as its output, nothing is written.
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

/// The life of an async function that `#[trace]` is on.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_life {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_arguments!((__hairline_life_with $category, $name) [] [] [] [] $($($arguments)*)?)
    };
}
