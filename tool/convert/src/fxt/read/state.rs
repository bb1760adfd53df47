//! The state of an FXT reader.

use std::io::Read;

use hairline_formats::Zeros;

use crate::fxt::read::blobs::Blobs;
use crate::fxt::read::current::Current;
use crate::fxt::read::log::PendingLog;
use crate::fxt::read::prepared::Prepared;
use crate::fxt::read::profile::Profile;
use crate::fxt::read::tracks::Tracks;
use crate::starts::Starts;
use crate::{Report, StateChange, TrackId};

/// Reads FXT.
///
/// ```
/// use hairline_convert::{Context, FxtReader, Item, TraceReader};
/// use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// fxt::initialization(&mut trace, 1_000_000); // ticks are microseconds
/// fxt::event(&mut trace, &fxt::Event {
///     kind: EventKind::Instant,
///     timestamp: 5,
///     thread: ThreadRef::Inline { process: 7, thread: 8 },
///     category: StringRef::Inline("net"),
///     name: StringRef::Inline("retry"),
///     args: &[],
///     payload: None,
/// });
/// let (mut reader, mut context, mut times) = (FxtReader::new(&trace[..]), Context::new(), Vec::new());
/// while let Some(item) = reader.next(&mut context)? {
///     if let Item::Event(event) = item {
///         times.push(event.time);
///     }
/// }
/// assert_eq!(times, [5_000]); // in nanoseconds
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug)]
pub struct FxtReader<R> {
    pub(super) current: Current<R>,
    pub(super) tracks: Tracks,
    pub(super) blobs: Blobs,
    /// A log message whose instant may follow.
    pub(super) log: PendingLog,
    /// Whether the current record is to be read again.
    pub(super) held: bool,
    /// The result for the current record, returned after its tracks.
    pub(super) ready: Option<Step>,
    /// The current event.
    pub(super) prepared: Prepared,
    /// The number of values of the current counter record that were returned.
    pub(super) given: usize,
    pub(super) started: bool,
    /// The copy of a record.
    pub(super) own: Vec<u8>,
    /// The changes of thread states in the current record.
    pub(super) changes: Vec<StateChange>,
    pub(super) profile: Profile,
    pub(super) provider: String,
    pub(super) starts: Starts,
    pub(super) report: Report,
    /// The zeros that were counted already.
    pub(super) zeros: Zeros,
    /// The same for texts that are not UTF-8.
    pub(super) wrong_texts: u64,
    pub(super) position: u64,
}

/// The result of reading a record.
#[derive(Debug)]
pub(super) enum Step {
    /// No item.
    Nothing,
    /// The end of the input.
    End,
    /// The prepared event.
    Event,
    /// A log message without an instant.
    Log(i64, TrackId),
    Foreign(&'static str),
    /// Changes of thread states.
    Scheduling,
    Sample,
    /// A record that later items depend on.
    Copied,
    Provider,
    /// The number of lost events; 0 if unknown.
    Lost(u64),
}

impl<R: Read> FxtReader<R> {
    /// Creates a reader. `input` needs no buffer.
    pub fn new(input: R) -> Self {
        Self {
            current: Current::new(input),
            tracks: Tracks::default(),
            blobs: Blobs::default(),
            log: PendingLog::default(),
            held: false,
            ready: None,
            prepared: Prepared::default(),
            given: 0,
            started: false,
            own: Vec::new(),
            changes: Vec::new(),
            profile: Profile::default(),
            provider: String::new(),
            starts: Starts::default(),
            report: Report::default(),
            zeros: Zeros::default(),
            wrong_texts: 0,
            position: 0,
        }
    }
}
