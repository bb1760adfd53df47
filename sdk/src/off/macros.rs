//! The macros that do nothing. The compiler checks the types of their arguments, which are never evaluated.

/// Would record a slice to the end of the enclosing block.
#[macro_export]
macro_rules! trace_scope {
    ($($tokens:tt)+) => {
        let _hairline_scope = $crate::scope!($($tokens)+);
    };
}

/// Would record a slice until the guard is dropped.
#[macro_export]
macro_rules! scope {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_unused!((Scope) [$crate::__hairline_names!($category, $name)] $($($arguments)*)?)
    };
}

/// Would record an instant.
#[macro_export]
macro_rules! trace_instant {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_unused!(() [$crate::__hairline_names!($category, $name)] $($($arguments)*)?)
    };
}

/// Would record the value of a counter.
#[macro_export]
macro_rules! trace_counter {
    ($category:expr, $name:expr, $value:expr $(, $($options:tt)*)?) => {
        $crate::__hairline_unused!(() [$crate::__hairline_names!($category, $name), $crate::__private::number(&$value)] $($($options)*)?)
    };
}

/// Would begin a slice on a track.
#[macro_export]
macro_rules! trace_begin {
    ($category:expr, $name:expr, $($arguments:tt)+) => {
        $crate::__hairline_unused!(() [$crate::__hairline_names!($category, $name)] $($arguments)+)
    };
}

/// Would end a slice on a track.
#[macro_export]
macro_rules! trace_end {
    ($track:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_unused!(() [$track] $($($arguments)*)?)
    };
}

/// Would begin an interval on a track of its own.
#[macro_export]
macro_rules! trace_async {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {
        $crate::__hairline_unused!((AsyncScope) [$crate::__hairline_names!($category, $name)] $($($arguments)*)?)
    };
}

/// Would record the life of a future.
#[macro_export]
macro_rules! trace_future {
    ($category:expr, $name:expr, $future:expr $(, $($arguments:tt)*)?) => {
        match $future {
            __hairline_future => {
                $crate::__hairline_life!($category, $name $(, $($arguments)*)?).wrap(__hairline_future)
            }
        }
    };
}

/// Would record a log message.
#[macro_export]
macro_rules! trace_log {
    ($level:expr, $category:expr, $format:literal $($arguments:tt)*) => {
        $crate::__hairline_unused!(() [$level, $crate::__hairline_names!($category, $format), $crate::__private::core::format_args!($format $($arguments)*)])
    };
}

/// Would request a snapshot.
#[macro_export]
macro_rules! trigger {
    () => {};
    ($name:expr) => {
        $crate::__hairline_unused!(()[$crate::__hairline_names!("", $name)])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_life {
    ($category:expr, $name:expr $(, $($arguments:tt)*)?) => {{
        $crate::__hairline_unused!(() [$crate::__hairline_names!($category, $name)] $($($arguments)*)?);
        $crate::__private::Life::none(&$crate::__private::Callsite::OFF)
    }};
}

/// Category and name, which must be constants here as well as with the feature.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_names {
    ($category:expr, $name:expr) => {{
        const NAMES: [&str; 2] = [$category, $name];
        NAMES
    }};
}

/// The value of an option, if there is one of this name.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_option {
    (name $value:expr) => {
        $value
    };
    (track $value:expr) => {
        $value
    };
    (flow $value:expr) => {
        $value
    };
    (end_flow $value:expr) => {
        $value
    };
    (correlation $value:expr) => {
        $value
    };
    (slow $value:expr) => {{
        const SLOW: $crate::__private::core::time::Duration = $value;
        SLOW
    }};
    (stack $value:expr) => {{
        const STACK: bool = $value;
        STACK
    }};
    // Of counters.
    (unit $value:expr) => {
        $value
    };
    (multiplier $value:expr) => {
        $value
    };
    (incremental $value:expr) => {
        $value
    };
    ($other:ident $value:expr) => {
        $crate::__hairline_no_option!($other)
    };
}

/// Collects the expressions of an event: `(guard) [expressions] rest...`. The option `track:` makes the guard
/// of a scope a `TrackScope`.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_unused {
    (() [$($used:expr),*] $(,)?) => {
        if false {
            $(let _ = &$used;)*
        }
    };
    (($guard:ident) [$($used:expr),*] $(,)?) => {{
        if false {
            $(let _ = &$used;)*
        }
        $crate::$guard::none(&$crate::__private::Callsite::OFF)
    }};
    ((Scope) [$($used:expr),*] track: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!((TrackScope) [$($used,)* $value] $($($rest)*)?)
    };
    ($guard:tt [$($used:expr),*] $option:ident: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!($guard
            [$($used,)* $crate::__hairline_option!($option $value)] $($($rest)*)?)
    };
    ($guard:tt [$($used:expr),*] $key:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!($guard [$($used,)* $value] $($($rest)*)?)
    };
    ($guard:tt [$($used:expr),*] $key:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!($guard [$($used,)* $value] $($($rest)*)?)
    };
    ($guard:tt [$($used:expr),*] $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!($guard [$($used,)* $crate::__private::argument(&$value)] $($($rest)*)?)
    };
    ($guard:tt [$($used:expr),*] $key:ident $(, $($rest:tt)*)?) => {
        $crate::__hairline_unused!($guard [$($used,)* $crate::__private::argument(&$key)] $($($rest)*)?)
    };
    ($guard:tt $used:tt $($other:tt)+) => {
        $crate::__private::core::compile_error!($crate::__private::core::concat!(
            "no argument or option: `", $crate::__private::core::stringify!($($other)+),
            "`; an argument is `key = value`, `key = %value`, `key = ?value` or a variable's name, and an \
             option is `name: value`"
        ))
    };
}
