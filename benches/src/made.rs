//! Ten thousands of callsites.
//!
//! That many macros would take a minute to compile, and would also measure the machine's instruction cache.
//! So these are created at run time, in the same way as by the macros. `growth::sites` has a thousand real
//! ones to compare with.

use hairline::__private::{Callsite, CallsiteKind, CounterOptions, Scope, Site};

/// Creates callsites of scopes that were never hit. Each has its own name, which begins with `prefix`.
pub fn callsites(prefix: &str, count: usize) -> &'static [Callsite] {
    static SITE: Site = Site {
        file: file!(),
        line: line!(),
        module: module_path!(),
        counter: CounterOptions::NONE,
        slow_after: 0,
        stack: false,
    };
    let callsite =
        |n| Callsite::new(CallsiteKind::Scope, "bench", format!("{prefix} {n}").leak(), &[], &SITE);
    (0..count).map(callsite).collect::<Vec<_>>().leak()
}

/// Does the same as [`trace_scope!`](hairline::trace_scope).
#[inline(always)]
pub fn scope(callsite: &'static Callsite) {
    let _scope = match callsite.epoch() {
        None => Scope::none(callsite),
        Some(epoch) => Scope::begin(callsite, epoch),
    };
}
