//! The expansion of each kind of event: a static callsite, a test of its word, and a call. Arguments and
//! options are sorted.

/// Makes a callsite with its place in the source.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_callsite {
    ($kind:ident, $category:expr, $name:expr, $keys:expr) => {
        $crate::__hairline_callsite!($kind, $category, $name, $keys, $crate::__private::CounterOptions::NONE)
    };
    ($kind:ident, $category:expr, $name:expr, $keys:expr, $counter:expr) => {
        $crate::__hairline_callsite!($kind, $category, $name, $keys, $counter, $crate::__private::Looks::NONE)
    };
    ($kind:ident, $category:expr, $name:expr, $keys:expr, $counter:expr, $looks:expr) => {
        $crate::__private::Callsite::new(
            $crate::__private::CallsiteKind::$kind,
            $category,
            $name,
            $keys,
            &$crate::__private::Site {
                file: $crate::__private::core::file!(),
                line: $crate::__private::core::line!(),
                module: $crate::__private::core::module_path!(),
                counter: $counter,
                slow_after: $looks.slow_after,
                stack: $looks.stack,
            },
        )
    };
}

/// Defines the statics of an event with arguments. Items have no hygiene, so their names differ from all
/// names of the user's expressions.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_statics {
    ($kind:ident, $category:expr, $name:expr, $keys:tt, looks $looks:expr) => {
        $crate::__hairline_statics!($kind, $category, $name, $keys,
            $crate::__private::CounterOptions::NONE, $looks);
    };
    ($kind:ident, $category:expr, $name:expr, [$(($key:expr))*] $(, $constant:expr)*) => {
        static __HAIRLINE_KEYS: [$crate::__private::Key; { <[&str]>::len(&[$($key),*]) }] =
            [$($crate::__private::Key::new($key)),*];
        static __HAIRLINE_CALLSITE: $crate::__private::Callsite =
            $crate::__hairline_callsite!($kind, $category, $name, &__HAIRLINE_KEYS $(, $constant)*);
    };
}

/// Defines a callsite and records its event. If the callsite is on, calls the function `on` with the
/// callsite, its epoch and the arguments. If it is off, evaluates `off` and no argument.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_record {
    (($($callsite:tt)+) off: $off:expr, on: $on:path, $($argument:expr),+ $(,)?) => {{
        $crate::__hairline_statics!($($callsite)+);
        match __HAIRLINE_CALLSITE.registered_epoch() {
            $crate::__private::Option::None => $off,
            $crate::__private::Option::Some(__hairline_epoch) => $on(&__HAIRLINE_CALLSITE, __hairline_epoch, $($argument),+),
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_scope_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], [] $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys $(, looks $looks)?)
            off: $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::scope_with,
            &$crate::__hairline_values!($(($value))*),
        )
    };
    ($category:expr, $name:expr, [], [], [.flow(&$flow:expr)], [] $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, [] $(, looks $looks)?)
            off: $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::Scope::begin_flow,
            $crate::__private::core::convert::AsRef::as_ref(&$flow),
        )
    };
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [.name(&$own_name:expr)], []
     $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys $(, looks $looks)?)
            off: $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::scope_named,
            &$crate::__hairline_values!($(($value))*),
            $crate::__private::core::convert::AsRef::<str>::as_ref(&$own_name),
        )
    };
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)+], [] $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys $(, looks $looks)?)
            off: $crate::__private::Scope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::scope_rich,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new()$($options)+,
        )
    };
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [($track:expr)]
     $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys $(, looks $looks)?)
            off: $crate::__private::TrackScope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::track_scope,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new().own_track(&$track)$($options)*,
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_instant_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], [] $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Instant, $category, $name, $keys $(, looks $looks.of_instant())?)
            off: (),
            on: $crate::__private::instant_with,
            &$crate::__hairline_values!($(($value))*),
        )
    };
    ($category:expr, $name:expr, [], [], [], [($track:expr)]) => {
        $crate::__hairline_record!(
            (Instant, $category, $name, [])
            off: (),
            on: $crate::__private::instant_on,
            &$track,
        )
    };
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [$(($track:expr))?]
     $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Instant, $category, $name, $keys $(, looks $looks.of_instant())?)
            off: (),
            on: $crate::__private::event_rich,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new()$(.track(&$track))?$($options)*,
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_begin_with {
    ($category:expr, $name:expr, [], [], [], [($track:expr)]) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, [])
            off: $crate::__private::track_left_out(&$track),
            on: $crate::__private::track_begin_bare,
            &$track,
        )
    };
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [($track:expr)]) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys)
            off: $crate::__private::track_left_out(&$track),
            on: $crate::__private::track_begin,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new().own_track(&$track)$($options)*,
        )
    };
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt, looks $looks:expr) => {
        $crate::__private::core::compile_error!("`slow:` and `stack:` need a guard: use scope! or trace_scope!")
    };
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt) => {
        $crate::__private::core::compile_error!(
            "a slice without a guard needs one track: trace_begin!(category, name, track: &track)"
        )
    };
}

/// Ends a slice on a track. Unlike other events, an end looks for its begin also if its callsite is off.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_end_with {
    ($category:expr, $name:expr, [], [], [], [($track:expr)]) => {{
        $crate::__hairline_statics!(End, $category, $name, []);
        if $crate::__private::track_was_used(&$track) {
            $crate::__private::track_end_bare(
                &__HAIRLINE_CALLSITE,
                __HAIRLINE_CALLSITE.registered_epoch(),
                &$track,
            );
        }
    }};
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], [($track:expr)]) => {{
        $crate::__hairline_statics!(End, $category, $name, $keys);
        if $crate::__private::track_was_used(&$track) {
            $crate::__private::track_end(
                &__HAIRLINE_CALLSITE,
                __HAIRLINE_CALLSITE.registered_epoch(),
                &$crate::__hairline_values!($(($value))*),
                $crate::__private::core::convert::AsRef::as_ref(&$track),
            );
        }
    }};
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt) => {
        $crate::__private::core::compile_error!("an end has a track and arguments: trace_end!(&track, key = value)")
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_async_with {
    ($category:expr, $name:expr, [], [], [], [] $(, looks $looks:expr)?) => {{
        $crate::__hairline_statics!(Scope, $category, $name, [] $(, looks $looks.of_interval())?);
        match __HAIRLINE_CALLSITE.registered_epoch() {
            $crate::__private::Option::None => $crate::__private::AsyncScope::none(&__HAIRLINE_CALLSITE),
            $crate::__private::Option::Some(__hairline_epoch) => {
                $crate::__private::AsyncScope::begin_bare(&__HAIRLINE_CALLSITE, __hairline_epoch)
            }
        }
    }};
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [$($options:tt)*], [$(($track:expr))?]
     $(, looks $looks:expr)?) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys $(, looks $looks.of_interval())?)
            off: $crate::__private::AsyncScope::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::async_scope,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new()$(.track(&$track))?$($options)*,
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_life_with {
    ($category:expr, $name:expr, $keys:tt, [$(($value:expr))*], [], [$(($track:expr))?]) => {
        $crate::__hairline_record!(
            (Scope, $category, $name, $keys)
            off: $crate::__private::Life::none(&__HAIRLINE_CALLSITE),
            on: $crate::__private::life,
            &$crate::__hairline_values!($(($value))*),
            &$crate::__private::Extras::new()$(.track(&$track))?,
        )
    };
    ($category:expr, $name:expr, $keys:tt, $values:tt, $options:tt, $track:tt $(, looks $looks:expr)?) => {
        $crate::__private::core::compile_error!("a future has arguments, and of the options only `track`")
    };
}

/// Nests values, `(a, (b, ()))`: the compiler knows the type of each. `calls.rs` says why builds that are not
/// optimised have a slice instead.
#[cfg(not(debug_assertions))]
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_values {
    () => {
        ()
    };
    (($first:expr) $($rest:tt)*) => {
        ($first, $crate::__hairline_values!($($rest)*))
    };
}

/// Lists values, whose types the callee finds out.
#[cfg(debug_assertions)]
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_values {
    ($(($value:expr))*) => {
        $crate::__private::List(&[$($crate::__private::Held::value(&$value)),*])
    };
}
