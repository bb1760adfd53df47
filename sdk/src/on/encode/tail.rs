//! The facts at the end of a stream. The session writes them, or the recovery of a process that was killed.

use hairline_formats::Value;
use hairline_formats::track_event::TrackUuid;
use hairline_shm::LOSS_REASONS;

use crate::on::base::platform::process::Thread;
use crate::summary::Lost;

/// The name of the event that shows all losses of the session, by reason.
const LOST: &str = "lost in all";

/// The name of the event that shows what the session was to record, and the system refused.
const REFUSED: &str = "not recorded";

/// The facts at the end of a stream.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The traced process, and its track.
    pub(crate) pid: u32,
    pub(crate) process_track: TrackUuid,
    /// The thread on whose track FXT shows the losses.
    pub(crate) thread: Thread,
    /// The time of the trace, in ns.
    pub(crate) now: u64,
    pub(crate) lost: Lost,
    /// Bytes of the ring.
    pub(crate) ring: u64,
    pub(crate) before: BeforeTail,
    /// What the system refused, and the sentence that says why and what helps.
    pub(crate) refused: Vec<(&'static str, String)>,
}

/// The name and the arguments of an event.
type TailEvent<'t> = (&'static str, Vec<(&'static str, Value<'t>)>);

/// The counts of a stream before its tail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BeforeTail {
    pub(crate) bytes: u64,
    /// Chunks that were read to their end.
    pub(crate) chunks: u64,
    /// Flushes that were requested and done.
    pub(crate) flushes: u64,
}

impl Tail {
    /// Returns the events of the tail. There is none if all was recorded.
    pub(crate) fn events(&self) -> Vec<TailEvent<'_>> {
        let mut events = Vec::new();
        if self.lost != Lost::default() {
            events.push((LOST, self.losses().map(|(reason, n)| (reason, Value::U64(n))).to_vec()));
        }
        if !self.refused.is_empty() {
            let refused = self.refused.iter().map(|(what, why)| (*what, Value::Str(why)));
            events.push((REFUSED, refused.collect()));
        }
        events
    }

    /// Returns all reasons with their losses, in the order of [`LOSS_REASONS`].
    fn losses(&self) -> [(&'static str, u64); LOSS_REASONS.len()] {
        let Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring } =
            self.lost;
        let numbers =
            [buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring];
        std::array::from_fn(|n| (LOSS_REASONS[n].as_str(), numbers[n]))
    }
}
