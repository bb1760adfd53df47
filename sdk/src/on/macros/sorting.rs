//! Sorts the arguments and options after category and name, one at a time:
//!
//! ```text
//! (then, category, name) [keys] [values] [options] [track] rest...
//! ```
//!
//! Then calls `then` with the lists. A counter has no arguments, and options of two kinds.

/// Sorts arguments into keys and held values, sorts options, and then calls `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_arguments {
    (($then:ident $category:expr, $name:expr $(, looks $looks:expr)?)
     [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $(,)?) => {
        $crate::$then!($category, $name, [$($keys)*], [$($values)*], $options, $track $(, looks $looks)?)
    };
    ($head:tt $keys:tt $values:tt $options:tt [$($track:tt)*] track: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head $keys $values $options [$($track)* ($value)] $($($rest)*)?)
    };
    ($head:tt $keys:tt $values:tt $options:tt $track:tt $option:ident: $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_option!($option $head $keys $values $options $track ($value) $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt
     $key:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* ($crate::__private::core::stringify!($key))]
            [$($values)* ($crate::__private::Text::display(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt
     $key:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* ($crate::__private::core::stringify!($key))]
            [$($values)* ($crate::__private::Text::debug(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt
     $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* ($crate::__private::core::stringify!($key))]
            [$($values)* ($crate::__private::Argument::hold(&$value))] $options $track $($($rest)*)?)
    };
    ($head:tt [$($keys:tt)*] [$($values:tt)*] $options:tt $track:tt $key:ident $(, $($rest:tt)*)?) => {
        $crate::__hairline_arguments!($head [$($keys)* ($crate::__private::core::stringify!($key))]
            [$($values)* ($crate::__private::Argument::hold(&$key))] $options $track $($($rest)*)?)
    };
    ($head:tt $keys:tt $values:tt $options:tt $track:tt $($other:tt)+) => {
        $crate::__private::core::compile_error!($crate::__private::core::concat!(
            "no argument or option: `", $crate::__private::core::stringify!($($other)+),
            "`; an argument is `key = value`, `key = %value`, `key = ?value` or a variable's name, and an \
             option is `name: value`"
        ))
    };
}

/// Adds an option to the list, and goes on.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_option {
    (name $head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_arguments!($head $keys $values [$($options)* .name(&$value)] $track $($rest)*)
    };
    (flow $head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_arguments!($head $keys $values [$($options)* .flow(&$value)] $track $($rest)*)
    };
    (end_flow $head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_arguments!($head $keys $values [$($options)* .end_flow(&$value)] $track $($rest)*)
    };
    (correlation $head:tt $keys:tt $values:tt [$($options:tt)*] $track:tt
     ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_arguments!($head $keys $values
            [$($options)* .correlation($value)] $track $($rest)*)
    };
    (slow $head:tt $keys:tt $values:tt $options:tt $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_look!(slow $head $keys $values $options $track ($value) $($rest)*)
    };
    (stack $head:tt $keys:tt $values:tt $options:tt $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_look!(stack $head $keys $values $options $track ($value) $($rest)*)
    };
    ($other:ident $($rest:tt)*) => {
        $crate::__hairline_no_option!($other)
    };
}

/// Adds an option that is a constant of the callsite, and goes on.
#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_look {
    ($option:ident ($then:ident $category:expr, $name:expr) $($rest:tt)*) => {
        $crate::__hairline_look!($option
            ($then $category, $name, looks $crate::__private::Looks::NONE) $($rest)*)
    };
    ($option:ident ($then:ident $category:expr, $name:expr, looks $looks:expr)
     $keys:tt $values:tt $options:tt $track:tt ($value:expr) $($rest:tt)*) => {
        $crate::__hairline_arguments!(($then $category, $name, looks $looks.$option($value))
            $keys $values $options $track $($rest)*)
    };
}

/// Sorts a counter's options into constants of its callsite and options of the event.
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
    (($category:expr, $name:expr, $value:expr) [$fixed:expr] [] $(,)?) => {
        $crate::__hairline_record!(
            (Counter, $category, $name, [("value")], $fixed)
            off: (),
            on: $crate::__private::counter,
            &$crate::__hairline_values!(($crate::__private::counter_value($value))),
        )
    };
    (($category:expr, $name:expr, $value:expr) [$fixed:expr] [(track $track:expr)] $(,)?) => {
        $crate::__hairline_record!(
            (Counter, $category, $name, [("value")], $fixed)
            off: (),
            on: $crate::__private::counter_on,
            &$crate::__hairline_values!(($crate::__private::counter_value($value))),
            $crate::__private::counter_track(&$track),
        )
    };
    (($category:expr, $name:expr, $value:expr) [$fixed:expr] [$(($option:ident $extra:expr))+] $(,)?) => {
        $crate::__hairline_record!(
            (Counter, $category, $name, [("value")], $fixed)
            off: (),
            on: $crate::__private::event_rich,
            &$crate::__hairline_values!(($crate::__private::counter_value($value))),
            &$crate::__private::Extras::new()$(.$option(&$extra))+,
        )
    };
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
        $crate::__private::core::compile_error!($crate::__private::core::concat!(
            "a counter has no option `", $crate::__private::core::stringify!($other),
            "`: use unit, multiplier, incremental, track or name"
        ))
    };
}
