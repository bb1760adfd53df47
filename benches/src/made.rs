//! Callsites by the ten thousand.
//!
//! As many macros would be a minute to compile, and would measure the machine's instruction cache as well. So these are made as the
//! macros make theirs, but at run time; `growth::sites` has a thousand of the macros' own to compare with.

use hairline::__private::{Callsite, CounterOptions, Kind, Scope, Site};

/// Callsites of scopes that were never hit, each with a name of its own that begins with `prefix`.
pub fn callsites(prefix: &str, count: usize) -> &'static [Callsite] {
    static SITE: Site =
        Site { file: file!(), line: line!(), module: module_path!(), counter: CounterOptions::NONE };
    let callsite = |n| Callsite::new(Kind::Scope, "bench", format!("{prefix} {n}").leak(), &[], &SITE);
    (0..count).map(callsite).collect::<Vec<_>>().leak()
}

/// What [`trace_scope!`](hairline::trace_scope) does.
#[inline(always)]
pub fn scope(callsite: &'static Callsite) {
    let _scope = match callsite.epoch() {
        None => Scope::none(callsite),
        Some(epoch) => Scope::begin(callsite, epoch),
    };
}
