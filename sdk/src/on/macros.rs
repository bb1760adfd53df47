//! The macros, recording. Their twins that do nothing are in `off/macros.rs`.
//!
//! Each ends in `__hairline_arguments!`, which sorts what follows category and name, one argument or option at a time:
//!
//! ```text
//! (then, category, name) [keys] [values] [options] [track] rest...
//! ```
//!
//! and then calls `then` with the lists. A macro without arguments and options does not take that way.

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
        match __HAIRLINE_CALLSITE.word() {
            0 => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::Scope::begin(&__HAIRLINE_CALLSITE, word),
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
        match __HAIRLINE_CALLSITE.word() {
            0 => {}
            word => $crate::__private::instant(&__HAIRLINE_CALLSITE, word),
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
    ($category:expr, $name:expr, $value:expr $(,)?) => {{
        static __HAIRLINE_KEYS: [$crate::__private::Key; 1] = [$crate::__private::Key::new("value")];
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Counter, $category, $name, &__HAIRLINE_KEYS);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::counter(&__HAIRLINE_CALLSITE, word, &$crate::__private::number($value)),
        }
    }};
    ($category:expr, $name:expr, $value:expr, $($options:tt)+) => {
        $crate::__hairline_counter!(
            ($category, $name, $value) [$crate::__private::CounterOptions::NONE] [] $($options)+
        )
    };
}

/// Sorts a counter's options: those that are constants of its callsite, and the others.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_counter {
    ($head:tt [$fixed:expr] [$($extras:tt)*] unit: $unit:literal $(, $($rest:tt)*)?) => {
        $crate::__hairline_counter!($head
            [$crate::__private::CounterOptions { unit: $crate::Unit::Named($unit), ..$fixed }]
            [$($extras)*] $($($rest)*)?)
    };
    ($head:tt [$fixed:expr] [$($extras:tt)*] $option:ident: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_counter_option!($option $head [$fixed] [$($extras)*] ($value) $($($rest)*)?)
    };
    (($category:expr, $name:expr, $value:expr) [$fixed:expr] [] $(,)?) => {{
        static __HAIRLINE_KEYS: [$crate::__private::Key; 1] = [$crate::__private::Key::new("value")];
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Counter, $category, $name, &__HAIRLINE_KEYS, $fixed);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::counter(&__HAIRLINE_CALLSITE, word, &$crate::__private::number($value)),
        }
    }};
    (($category:expr, $name:expr, $value:expr) [$fixed:expr] [$(($option:ident $extra:expr))+] $(,)?) => {{
        static __HAIRLINE_KEYS: [$crate::__private::Key; 1] = [$crate::__private::Key::new("value")];
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Counter, $category, $name, &__HAIRLINE_KEYS, $fixed);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::event_rich(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__private::number($value),
                &$crate::__private::Extras::new()$(.$option(&$extra))+,
            ),
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_counter_option {
    (unit $head:tt [$fixed:expr] $extras:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_counter!($head
            [$crate::__private::CounterOptions { unit: $value, ..$fixed }] $extras $($rest)*)
    };
    (multiplier $head:tt [$fixed:expr] $extras:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_counter!($head
            [$crate::__private::CounterOptions { multiplier: $value, ..$fixed }] $extras $($rest)*)
    };
    (incremental $head:tt [$fixed:expr] $extras:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_counter!($head
            [$crate::__private::CounterOptions { incremental: $value, ..$fixed }] $extras $($rest)*)
    };
    (track $head:tt $fixed:tt [$($extras:tt)*] ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_counter!($head $fixed [$($extras)* (track $value)] $($rest)*)
    };
    (name $head:tt $fixed:tt [$($extras:tt)*] ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_counter!($head $fixed [$($extras)* (name $value)] $($rest)*)
    };
    ($other:ident $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "a counter has no option `", ::core::stringify!($other), "`: use unit, multiplier, incremental, track or name"
        ))
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
    ($level:expr, $category:expr, $format:literal $($arguments:tt)*) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!(Instant, $category, $format, &[]);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::log(
                &__HAIRLINE_CALLSITE,
                word,
                $level,
                &$crate::__private::Text::display(&::core::format_args!($format $($arguments)*)),
            ),
        }
    }};
}

/// A callsite, with its place in the source.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_callsite {
    ($kind:ident, $category:expr, $name:expr, $keys:expr) => {
        $crate::__hairline_callsite!($kind, $category, $name, $keys, $crate::__private::CounterOptions::NONE)
    };
    ($kind:ident, $category:expr, $name:expr, $keys:expr, $counter:expr) => {
        $crate::__private::Callsite::new(
            $crate::__private::Kind::$kind,
            $category,
            $name,
            $keys,
            &$crate::__private::Site {
                file: ::core::file!(),
                line: ::core::line!(),
                module: ::core::module_path!(),
                counter: $counter,
            },
        )
    };
}

/// Sorts arguments into keys and held values, and options, one at a time, then calls `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_arguments {
    (($then:ident $category:expr, $name:expr) [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $(,)?) => {
        $crate::$then!($category, $name, [$($keys)*], [$($values)*], $options, $track)
    };
    ($head:tt $keys:tt $values:tt $options:tt [$($track:tt)*] track: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head $keys $values $options [$($track)* ($value)] $($($rest)*)?)
    };
    ($head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt correlation: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head $keys $values [$($options)* .correlation($value)] $track $($($rest)*)?)
    };
    ($head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt $option:ident: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head $keys $values [$($options)* .$option(&$value)] $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $key:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* (::core::stringify!($key))]
            [$($values)* ($crate::__private::Text::display(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $key:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* (::core::stringify!($key))]
            [$($values)* ($crate::__private::Text::debug(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* (::core::stringify!($key))]
            [$($values)* ($crate::__private::Argument::hold(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $key:ident $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* (::core::stringify!($key))]
            [$($values)* ($crate::__private::Argument::hold(&$key))] $options $track $($($rest)*)?)
    };
}

/// The statics of an event with arguments. Items have no hygiene: the names are such that no expression of the user's means them.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_statics {
    ($kind:ident, $category:expr, $name:expr, [$(($key:expr))*]) => {
        static __HAIRLINE_KEYS: [$crate::__private::Key; { <[&str]>::len(&[$($key),*]) }] = [$($crate::__private::Key::new($key)),*];
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!($kind, $category, $name, &__HAIRLINE_KEYS);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_scope_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], []) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::Scope::begin_with(&__HAIRLINE_CALLSITE, word, &$crate::__hairline_pairs!($(($value))*)),
        }
    }};
    ($category:expr, $name:expr, [], [], [.flow(&$flow:expr)], []) => {{
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite = $crate::__hairline_callsite!(Scope, $category, $name, &[]);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::Scope::begin_flow(&__HAIRLINE_CALLSITE, word, ::core::convert::AsRef::as_ref(&$flow)),
        }
    }};
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)+], []) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::Scope::begin_rich(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__hairline_pairs!($(($value))*),
                &$crate::__private::Extras::new()$($options)+,
            ),
        }
    }};
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [($track:expr)]) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::TrackScope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::TrackScope::begin(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__hairline_pairs!($(($value))*),
                &$crate::__private::Extras::new().own_track(&$track)$($options)*,
            ),
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_instant_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], []) => {{
        $crate::__hairline_statics!(Instant, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::instant_with(&__HAIRLINE_CALLSITE, word, &$crate::__hairline_pairs!($(($value))*)),
        }
    }};
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [$(($track:expr))?]) => {{
        $crate::__hairline_statics!(Instant, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => {}
            word => $crate::__private::event_rich(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__hairline_pairs!($(($value))*),
                &$crate::__private::Extras::new()$(.track(&$track))?$($options)*,
            ),
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_begin_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [($track:expr)]) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::track_left_out(&$track),
            word => $crate::__private::track_begin(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__hairline_pairs!($(($value))*),
                &$crate::__private::Extras::new().own_track(&$track)$($options)*,
            ),
        }
    }};
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt) => {
        ::core::compile_error!("a slice without a guard needs one track: trace_begin!(category, name, track: &track)")
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_end_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], [($track:expr)]) => {{
        $crate::__hairline_statics!(End, $category, $name, $keys);
        if $crate::__private::track_was_used(&$track) {
            $crate::__private::track_end(
                &__HAIRLINE_CALLSITE,
                __HAIRLINE_CALLSITE.registered_word(),
                &$track,
                &$crate::__hairline_pairs!($(($value))*),
            );
        }
    }};
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt) => {
        ::core::compile_error!("an end has a track and arguments: trace_end!(&track, key = value)")
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_async_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [$(($track:expr))?]) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::AsyncScope::none(&__HAIRLINE_CALLSITE),
            word => $crate::__private::AsyncScope::begin(
                &__HAIRLINE_CALLSITE,
                word,
                &$crate::__hairline_pairs!($(($value))*),
                &$crate::__private::Extras::new()$(.track(&$track))?$($options)*,
            ),
        }
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

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_life_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], []) => {{
        $crate::__hairline_statics!(Scope, $category, $name, $keys);
        match __HAIRLINE_CALLSITE.registered_word() {
            0 => $crate::__private::Life::none(&__HAIRLINE_CALLSITE),
            _ => $crate::__private::Life::begin(&__HAIRLINE_CALLSITE, &$crate::__hairline_pairs!($(($value))*)),
        }
    }};
}

/// `(a, (b, ()))`.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_pairs {
    () => {
        ()
    };
    (($first:expr) $($rest:tt)*) => {
        ($first, $crate::__hairline_pairs!($($rest)*))
    };
}
