//! All macros among the names that a program may have: of crates (`core` and `alloc` are its dependencies),
//! of items, and of what an attribute would have to allow.
#![deny(warnings)]
#![forbid(unreachable_code, unused_variables)]
#![allow(dead_code, non_camel_case_types, non_upper_case_globals, unused_imports)]

macro_rules! all_among {
    ($($name:ident { $($items:tt)* })+) => {$(
        mod $name {
            use hairline::{Flow, Level, Track, scope, trace, trace_async, trace_begin, trace_counter, trace_end, trace_future};
            use hairline::{trace_instant, trace_log, trace_scope, trigger};

            const MILLISECOND: std::time::Duration = std::time::Duration::from_millis(1);

            include!("all.rs");

            mod others {
                $($items)*
            }
            use others::*;
        }
    )+};
}

all_among! {
    no_others {}
    constants {
        pub const epoch: u32 = 1;
        pub const value: u32 = 1;
        pub const values: u32 = 1;
        pub const guard: u32 = 1;
        pub static callsite: u32 = 1;
    }
    units {
        pub struct epoch;
        pub struct value;
        pub struct values;
        pub struct guard;
    }
    types {
        pub struct Option;
        pub struct Some;
        pub struct None;
        pub struct Box;
        pub struct Callsite;
        pub struct Scope;
        pub trait AsRef {}
        pub trait Into {}
    }
    modules {
        pub mod __private {}
        pub mod hairline_macros {}
    }
}

fn main() {
    core::business();
    alloc::business();
}
