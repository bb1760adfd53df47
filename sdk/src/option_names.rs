//! The error for an option that no event has, for both builds: with the feature `enable` and without.

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_no_option {
    ($other:ident) => {
        ::core::compile_error!(::core::concat!(
            "no event has an option `",
            ::core::stringify!($other),
            "`: use name, track, flow, end_flow, correlation or slow; an argument is `",
            ::core::stringify!($other),
            " = value`"
        ))
    };
}
