//! Low-overhead in-process tracing: scopes, instants and counters, written to a trace that the
//! [Perfetto UI](https://ui.perfetto.dev) opens.
//!
//! ```
//! use hairline::{Session, trace_counter, trace_instant, trace_scope};
//!
//! # fn main() -> Result<(), hairline::Error> {
//! # let path = std::env::temp_dir().join(format!("hairline-doc-{}.pftrace", std::process::id()));
//! let session = Session::builder().output(&path).categories("net,db.*,-db.verbose").start()?;
//! {
//!     trace_scope!("net", "request", bytes = 512);     // a slice, to the end of the block
//!     trace_instant!("net", "retry", attempt = 2);
//!     trace_counter!("net", "in_flight", 17);
//! }
//! let summary = session.stop()?;
//! # if cfg!(feature = "enable") {
//! assert_eq!((summary.records, summary.lost.total()), (4, 0));
//! # }
//! # let _ = std::fs::remove_file(path);
//! # Ok(())
//! # }
//! ```
//!
//! A program needs no session code. It records if its environment has the variable `HAIRLINE`:
//! `HAIRLINE=trace.pftrace ./program`. In the repository, `docs/guide/sessions.md` lists all variables, and
//! `docs/guide` explains one task after the other.
//!
//! [`prelude`] has the names that most programs use.
//!
//! # What an event costs
//!
//! While recording is off, an event is a load and a branch. While it is on, a scope takes 1.1 to 1.7
//! times as long as the two clock reads that it needs, depending on the processor and the format. The macro
//! writes the final bytes of the trace into the thread's own chunk of a ring, without a lock or an
//! allocation. The drain thread copies these bytes to the output. The repository's `report` measures the
//! cost on your machine.
//!
//! # What a trace holds
//!
//! A trace holds whole scopes. If the ring is full, events are dropped and counted by reason in
//! [`Summary::lost`]. A scope whose begin was dropped has no end either. [`SessionBuilder::overflow`] chooses
//! another policy: to wait for room, or to keep the newest events (a flight recorder).
//!
//! A scope must end on its own thread, so it must not be held across an `.await`: record the future with
//! [`TraceFuture`] or [`macro@trace`].
//!
//! # When the process is killed
//!
//! Recorded events are not lost: the command `hairline recover` (crate `hairline-cli`) completes the trace.
//! The feature `recovery` does it in a program. If the ring would not survive a kill, because `/dev/shm` has
//! no room for it, a note of the [`Summary`] says so.
//!
//! # Features
//!
//! Without the default feature `enable` every macro compiles to nothing, and the same code still builds. Each
//! item that needs another feature names it. In the repository, `docs/guide/instrumenting.md` has a table of
//! all features.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod error;
mod expansion;
mod filter;
mod heap;
mod heap_profile;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "log")]
mod logger;
mod map_key;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(unix, not(target_vendor = "apple")))] // the systems whose programs are ELF files
mod note;
#[cfg(not(feature = "enable"))]
mod off;
#[cfg(feature = "enable")]
mod on;
mod options;
mod output;
pub mod prelude;
mod process_counters;
#[cfg(feature = "recovery")]
#[cfg_attr(docsrs, doc(cfg(feature = "recovery")))]
pub mod recovery;
mod sampling;
mod site;
mod slow;
#[cfg(feature = "subscriber")]
mod spans;
mod summary;
#[cfg(feature = "sync")]
#[cfg_attr(docsrs, doc(cfg(feature = "sync")))]
pub mod sync;
mod traceparent;
mod vocabulary;
#[cfg(feature = "enable")]
#[doc(hidden)] // for the command
pub mod wire;
mod wrapped;

#[cfg(not(feature = "enable"))]
use off as imp;
#[cfg(feature = "enable")]
use on as imp;

pub use builder::SessionBuilder;
pub use error::Error;
pub use filter::Filter;
pub use heap::Heap;
pub use heap_profile::HeapProfile;
pub use imp::{Listening, Registered, Session, expand_path, listen};
#[cfg(feature = "log")]
#[cfg_attr(docsrs, doc(cfg(feature = "log")))]
pub use logger::Logger;
pub use map_key::MapKey;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use metrics::MetricsRecorder;
pub use options::{ClockSource, Format, Overflow, parse_size};
pub use output::MemoryOutput;
pub use process_counters::check_counters;
#[cfg(feature = "recovery")]
#[doc(no_inline)]
pub use recovery::recover;
pub use summary::{Lost, Summary, ThreadSummary};
pub use traceparent::Traceparent;
pub use vocabulary::{Level, Ordering, Unit};
pub use wrapped::{Bytes, Interned, Koid, bytes, interned, koid};
#[cfg(feature = "serde")]
pub use wrapped::{Serialized, serialize};

pub use hairline_macros::trace;
#[cfg(feature = "subscriber")]
#[cfg_attr(docsrs, doc(cfg(feature = "subscriber")))]
pub use imp::tracing::Subscriber;
#[cfg(feature = "tracing")]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
pub use imp::tracing::{Layer, layer};
#[cfg(all(feature = "futures", not(feature = "enable")))]
pub use off::TraceStream;
#[cfg(not(feature = "enable"))]
pub use off::{
    Argument, AsyncScope, Flow, OnTrack, Scope, TraceFuture, Traced, TracedTask, Track, TrackScope,
    future_arg,
};
#[cfg(all(feature = "futures", feature = "enable"))]
pub use on::bridges::trace_future::TraceStream;
#[cfg(feature = "enable")]
pub use on::{
    bridges::futures::{Traced, future_arg},
    bridges::tasks::TracedTask,
    bridges::trace_future::TraceFuture,
    event::argument::Argument,
    event::flow::Flow,
    event::on_track::OnTrack,
    event::track::Track,
    thread::guards::{Scope, interval::AsyncScope, on_track::TrackScope},
};
#[cfg(feature = "subscriber")]
#[cfg_attr(docsrs, doc(cfg(feature = "subscriber")))]
pub use spans::{Category, Mode};

#[cfg(feature = "enable")]
#[doc(hidden)] // for the command
pub use on::base::clock::has_steady_counter;

/// For `hairline-tokio`.
#[cfg(feature = "sync")]
#[doc(hidden)]
pub mod __tasks {
    pub use crate::imp::locks::awaited::{Awaited, Waiting};
    pub use crate::imp::locks::depth::DepthCounter;
    #[cfg(feature = "enable")]
    pub use crate::imp::{HookedTasks, Root};
    pub use crate::imp::{is_sample_due, note, session};
}

/// For the macros.
#[cfg(feature = "enable")]
#[doc(hidden)]
pub mod __private {
    pub use crate::expansion::*;

    #[cfg(debug_assertions)]
    pub use crate::on::base::lock::holds_a_lock;
    pub use crate::on::bridges::futures::Life;
    pub use crate::on::callsite::{Callsite, Key};
    pub use crate::on::event::argument::{Argument, counter_value};
    #[cfg(debug_assertions)]
    pub use crate::on::event::argument::{Held, List};
    pub use crate::on::event::extras::Extras;
    pub use crate::on::event::text::Text;
    pub use crate::on::macros::calls::{
        async_scope, counter, counter_on, event_rich, instant_with, life, scope_named, scope_rich,
        scope_with, track_begin, track_end, track_scope,
    };
    pub use crate::on::session::trigger::trigger;
    pub use crate::on::thread::events::{counter_track, instant_on};
    pub use crate::on::thread::guards::interval::AsyncScope;
    pub use crate::on::thread::guards::on_track::{
        TrackScope, track_begin_bare, track_end_bare, track_left_out, track_was_used,
    };
    pub use crate::on::thread::guards::{Scope, log};
    pub use crate::on::thread::plain::instant;
    pub use crate::site::{CallsiteKind, CounterOptions, Looks, Site};
}

/// For the macros.
#[cfg(not(feature = "enable"))]
#[doc(hidden)]
pub mod __private {
    pub use crate::expansion::*;
    pub use crate::site::{CallsiteKind, CounterOptions, Site};

    pub use crate::off::{AsyncScope, Callsite, Extras, Key, Life, Scope, TrackScope, argument, number};
}
