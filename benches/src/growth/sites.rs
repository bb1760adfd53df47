//! A thousand callsites at a thousand places in the code, each with its own name, and the floor at as many
//! places.

use hairline::trace_scope;

use crate::machine::clock_read;

/// The callsites in each function.
pub(super) const PER_FUNCTION: usize = 10;

/// Records a scope at each of its callsites, or reads the clock twice at as many places.
pub(super) type Function = fn(traced: bool);

/// A function. The names of its callsites begin with these digits.
macro_rules! function {
    (@scopes $digits:tt $($last:tt)*) => { $(function!(@scope $digits $last);)* };
    (@scope [$($digit:tt)*] $last:tt) => {{
        trace_scope!("bench", concat!("place ", $(stringify!($digit),)* stringify!($last)));
    }};
    (@reads $($last:tt)*) => { $({ let _ = stringify!($last); clock_read(); clock_read(); })* };
    ($($digit:tt)*) => {{
        #[inline(never)]
        fn ten(traced: bool) {
            if traced {
                function!(@scopes [$($digit)*] 0 1 2 3 4 5 6 7 8 9);
            } else {
                function!(@reads 0 1 2 3 4 5 6 7 8 9);
            }
        }
        ten as Function
    }};
}

macro_rules! hundred_functions {
    (@tens $($ten:tt)*) => { [$(hundred_functions!(@ones $ten 0 1 2 3 4 5 6 7 8 9)),*] };
    (@ones $ten:tt $($one:tt)*) => { [$(function!($ten $one)),*] };
    () => { hundred_functions!(@tens 0 1 2 3 4 5 6 7 8 9) };
}

static FUNCTIONS: [[Function; 10]; 10] = hundred_functions!();

/// All functions, in the order of their names.
pub(super) fn functions() -> Vec<Function> {
    FUNCTIONS.as_flattened().to_vec()
}
