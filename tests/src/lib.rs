//! What Hairline's tests stand on.
//!
//! A test records a trace with the public API and hands it to the [`judge`]: Perfetto's own trace_processor,
//! which says what it read and what it found wrong.
//!
//! ```no_run
//! # let trace = std::path::Path::new("app.pftrace");
//! let verdict = hairline_tests::judge::load(trace, &["select category, name from slice order by ts"]);
//! verdict.require_clean();
//! assert_eq!(verdict.results[0].text(), "net\trequest\ndb\tquery");
//! ```
//!
//! [`equal`] compares what it shows of two traces. [`output`] has outputs that are slow or wait, [`outside`]
//! an alarm and forked children, [`children`] every way to make one. [`forked`] and [`mortal`] check the
//! traces of programs that fork or are killed, [`regions`] finds what those leave. [`alloc`] counts heap
//! allocations, for the claim that there are none on the event path.

pub mod alloc;
pub mod calm;
pub mod children;
pub mod clock;
pub mod crowd;
pub mod equal;
pub mod forked;
pub mod judge;
pub mod marking;
pub mod mortal;
pub mod output;
pub mod outside;
pub mod pages;
pub mod programs;
pub mod recording;
pub mod regions;
pub mod seccomp;
pub mod thread_0;
pub mod torture;
pub mod unlocked;
pub mod walk;

pub use judge::{Judge, JudgeError, Row, Rows, Stat, Verdict};

#[cfg(test)]
#[global_allocator]
static COUNTING: alloc::CountingAlloc = alloc::CountingAlloc;
