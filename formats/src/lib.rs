//! Writers and readers of the trace formats of [Hairline](https://docs.rs/hairline). Each layout is defined
//! once for both.
//!
//! | module | format |
//! |---|---|
//! | [`fxt`] | the Fuchsia trace format: records of 64-bit words |
//! | [`track_event`] | Perfetto's TrackEvent: a stream of protobuf packets |
//! | `trace_event_json` | the Trace Event Format: JSON (feature `json`, on by default) |
//! | [`proto`] | the protobuf wire format underneath TrackEvent |
//!
//! The crate opens no files, starts no threads and has no unsafe code. Writers append to any output of words
//! or bytes ([`fxt::PutWords`], [`proto::PutBytes`]). Readers stream from any [`std::io::Read`] in bounded
//! memory.
//!
//! Readers expect hostile input. No input makes them panic or allocate more memory than a multiple of its
//! size. They skip unknown parts, and each error has the offset of its byte.
//!
//! Features: `read` adds the readers of whole traces. `json` (on by default) adds `trace_event_json`, and
//! turns `read` on.
//!
//! ```
//! use hairline_formats::{Value, fxt};
//!
//! let mut trace = Vec::new();
//! fxt::magic(&mut trace);
//! fxt::event(&mut trace, &fxt::Event {
//!     kind: fxt::EventKind::Instant,
//!     timestamp: 1_000,
//!     thread: fxt::ThreadRef::Inline { process: 1, thread: 2 },
//!     category: fxt::StringRef::Inline("net"),
//!     name: fxt::StringRef::Inline("retry"),
//!     args: &[(fxt::StringRef::Inline("attempt"), Value::I64(3))],
//!     payload: None,
//! });
//! assert_eq!(trace.len() % 8, 0);
//! ```

mod error;
pub mod fxt;
#[cfg(feature = "read")]
mod input;
mod numbered;
pub mod proto;
mod session;
mod switch;
mod text;
#[cfg(feature = "json")]
pub mod trace_event_json;
pub mod track_event;
mod unended;
mod value;
#[cfg(feature = "read")]
mod zeros;

pub use error::{DecodeError, DecodeErrorKind};
pub use session::{FIRST, LAST, is_of_session};
pub use switch::{SideState, SwitchSide};
pub use text::truncate_utf8;
pub use value::{Entries, Path, Value};
#[cfg(feature = "read")]
pub use zeros::Zeros;

/// The argument that marks the end of a slice out of order: a slice inside of its own was still open. Its
/// value is the name of the slice that should have ended.
pub const OUT_OF_ORDER: &str = "hairline_out_of_order";
