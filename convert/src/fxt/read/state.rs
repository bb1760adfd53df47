//! What is known of the trace, and of the record at hand.

use std::io::Read;

use crate::fxt::read::blobs::Blobs;
use crate::fxt::read::current::Current;
use crate::fxt::read::log::PendingLog;
use crate::fxt::read::prepared::Prepared;
use crate::fxt::read::tracks::Tracks;
use crate::model::TrackId;
use crate::report::Report;

/// Reads FXT.
#[derive(Debug)]
pub struct FxtReader<R> {
    pub(super) current: Current<R>,
    pub(super) tracks: Tracks,
    pub(super) blobs: Blobs,
    /// A message whose instant may follow.
    pub(super) log: PendingLog,
    /// The record that was gone on to is to be looked at again.
    pub(super) held: bool,
    /// What came of looking at it, to be emitted after its tracks.
    pub(super) ready: Option<Step>,
    /// The event that it is.
    pub(super) prepared: Prepared,
    /// Arguments of it that were given out already, as counters.
    pub(super) given: usize,
    pub(super) started: bool,
    /// What a record says in its own words.
    pub(super) own: Vec<u8>,
    pub(super) provider: String,
    pub(super) report: Report,
    pub(super) position: u64,
}

/// What comes of looking at a record.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing that is to be emitted.
    Nothing,
    /// The input is at its end.
    End,
    /// The one that is prepared.
    Event,
    /// A message that no instant goes with.
    Log(i64, TrackId),
    Foreign(&'static str),
    Provider,
    /// So many events; 0: some.
    Lost(u64),
}

impl<R: Read> FxtReader<R> {
    /// Reads from `input`, which needs no buffer.
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
            provider: String::new(),
            report: Report::default(),
            position: 0,
        }
    }
}
