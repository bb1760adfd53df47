//! What the macros expand to, for both builds: with the feature `enable` and without.
//!
//! A program may have a crate named `core` or `std`, or none of the latter. So the macros name both as this
//! crate knows them.

pub use core;
pub use core::module_path;
pub use core::option::Option;
pub use std::boxed::Box;

/// Tells the compiler the type of a block that returns this. Never called.
#[must_use]
pub fn output<T>() -> T {
    loop {
        std::hint::spin_loop();
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __hairline_no_option {
    ($other:ident) => {
        $crate::__private::core::compile_error!($crate::__private::core::concat!(
            "no event has an option `",
            $crate::__private::core::stringify!($other),
            "`: use name, track, flow, end_flow, correlation, slow or stack; an argument is `",
            $crate::__private::core::stringify!($other),
            " = value`"
        ))
    };
}
