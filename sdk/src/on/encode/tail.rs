//! The stream's tail: what was lost. Written by the session at its end, or by whoever recovers the trace of a process that did
//! not come to it.

use hairline_formats::track_event as te;
use hairline_formats::{Value, fxt};

use crate::on::base::platform::process::Thread;
use crate::on::encode::stream::{OWN_SEQUENCE, inline};
use crate::options::Format;
use crate::summary::Lost;

/// What the tail says.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) format: Format,
    /// The traced process, and its track.
    pub(crate) pid: u32,
    pub(crate) process_track: u64,
    /// On whose track FXT shows the losses.
    pub(crate) thread: Thread,
    /// The trace's time, in ns.
    pub(crate) now: u64,
    pub(crate) lost: Lost,
    /// Bytes of the ring, and of the trace before its tail.
    pub(crate) ring: u64,
    pub(crate) written: u64,
    /// Chunks that were read to their end.
    pub(crate) chunks: u64,
    /// Flushes that were asked for and done.
    pub(crate) flushes: u64,
}

impl Tail {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.format == Format::TrackEvent {
            let stats = te::TraceStats {
                size: self.ring,
                bytes_written: self.written,
                chunks_written: self.chunks,
                chunks_discarded: 0,
                events_lost: self.lost.total(),
                flushes_requested: self.flushes,
                flushes_succeeded: self.flushes,
            };
            te::trace_stats(&mut out, OWN_SEQUENCE, &stats);
        }
        if self.lost != Lost::default() {
            self.put_losses(&mut out);
        }
        out
    }

    fn put_losses(&self, out: &mut Vec<u8>) {
        let Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged } = self.lost;
        let reasons = [
            ("buffer full", buffer_full),
            ("re-entrant", reentrant),
            ("too large", too_large),
            ("thread exit", thread_exit),
            ("output", output),
            ("arguments", arguments),
            ("damaged chunks", damaged),
        ];
        if self.format == Format::TrackEvent {
            // On the process's track: the writer thread has none.
            let event = te::Event {
                needs_state: false,
                categories: &[te::Name::Text("hairline")],
                name: Some(te::Name::Text(LOST)),
                track_uuid: Some(self.process_track),
                annotations: &reasons.map(|(reason, n)| (te::Name::Text(reason), Value::U64(n))),
                ..te::Event::new(OWN_SEQUENCE, te::EventType::Instant, self.now)
            };
            return te::event(out, &event);
        }
        if buffer_full > 0 {
            fxt::provider_event(out, self.pid, fxt::PROVIDER_EVENT_BUFFER_FULL);
        }
        let (pid, tid) = (u64::from(self.pid), u64::from(self.thread.tid));
        let owner = (inline("process"), Value::Koid(pid));
        fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, tid, inline(&self.thread.name), &[owner]);
        let event = fxt::Event {
            kind: fxt::EventKind::Instant,
            timestamp: self.now,
            thread: fxt::ThreadRef::Inline { process: pid, thread: tid },
            category: inline("hairline"),
            name: inline(LOST),
            args: &reasons.map(|(reason, n)| (inline(reason), Value::U64(n))),
            payload: None,
        };
        fxt::event(out, &event);
    }
}

/// The name of the event that shows every loss of the session, by reason, at its end.
const LOST: &str = "lost in all";
