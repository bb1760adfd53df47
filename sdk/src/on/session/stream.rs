//! The writer thread's own part of the trace: what stands before the threads' records and after them.

use std::io;

use hairline_formats::track_event as te;
use hairline_formats::{Value, fxt, truncate_utf8};

use super::Shared;
use super::sink::Sink;
use crate::on::system::{self, System};
use crate::on::thread::MAX_NAME;
use crate::on::{clock, process};
use crate::options::Lost;

/// The sequence of the packets written here.
pub(crate) const OWN_SEQUENCE: u32 = 1;

/// Timestamps are nanoseconds in both formats.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// Arguments of the command line that are kept, and bytes of each: a blob holds 32,000.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT: usize = 400;

/// What a stream repeats from time to time: a place to begin in a long trace, and what all clocks show.
pub(super) fn write_heartbeat(shared: &Shared, sink: &mut Sink) -> io::Result<()> {
    if !shared.is_track_event() {
        return Ok(()); // FXT has neither
    }
    let mut out = Vec::new();
    te::synchronization_marker(&mut out, OWN_SEQUENCE);
    te::clock_snapshot(&mut out, OWN_SEQUENCE, &system::clocks());
    sink.write(&out)
}

/// The stream's head: what a reader needs before the first record.
pub(super) fn write_start(shared: &Shared, sink: &mut Sink) -> io::Result<()> {
    let mut out = Vec::new();
    if shared.is_track_event() {
        put_packets(&mut out, shared);
    } else {
        put_records(&mut out, shared);
    }
    sink.write(&out)
}

/// What the writer thread has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Chunks that were read to their end.
    pub(super) chunks: u64,
    /// Flushes that were asked for and done.
    pub(super) flushes: u64,
}

/// The stream's tail: what was lost.
pub(super) fn write_end(shared: &Shared, sink: &mut Sink, counts: Counts) -> io::Result<()> {
    let mut out = Vec::new();
    let lost = shared.lost();
    if shared.is_track_event() {
        let region = shared.region();
        let stats = te::TraceStats {
            size: u64::from(region.chunk_count()) * u64::from(region.chunk_size()),
            bytes_written: sink.written,
            chunks_written: counts.chunks,
            chunks_discarded: 0,
            events_lost: lost.total(),
            flushes_requested: counts.flushes,
            flushes_succeeded: counts.flushes,
        };
        te::trace_stats(&mut out, OWN_SEQUENCE, &stats);
    }
    if lost != Lost::default() {
        put_losses(&mut out, shared, lost);
    }
    sink.write(&out)
}

fn put_packets(out: &mut Vec<u8>, shared: &Shared) {
    te::synchronization_marker(out, OWN_SEQUENCE);
    put_about(out, shared);
    let command_line = command_line();
    let command_line: Vec<&str> = command_line.iter().map(String::as_str).collect();
    let track = te::ProcessTrack {
        uuid: process::track_uuid(),
        pid: process::id().cast_signed(),
        name: &process::name(),
        cmdline: &command_line,
    };
    te::process_descriptor(out, OWN_SEQUENCE, &track);
}

/// The trace and its machine, for importers of packets.
fn put_about(out: &mut Vec<u8>, shared: &Shared) {
    te::trace_uuid(out, OWN_SEQUENCE, shared.uuid());
    te::clock_snapshot(out, OWN_SEQUENCE, &system::clocks());
    te::system_info(out, OWN_SEQUENCE, &System::current().info());
    put_process_tree(out, clock::boottime());
}

/// The command line, as much of it as a blob holds.
fn command_line() -> Vec<String> {
    let arguments = process::command_line();
    arguments.iter().take(MAX_ARGUMENTS).map(|a| truncate_utf8(a, MAX_ARGUMENT).to_owned()).collect()
}

/// trace_processor takes the command line from here, and the process's name from its first entry, whatever the
/// track is called: so that is the bare name. The path it was started by stands in the process's track.
fn put_process_tree(out: &mut Vec<u8>, now: u64) {
    let (name, arguments) = (process::name(), command_line());
    let arguments = arguments.iter().skip(1).map(String::as_str);
    let command_line: Vec<&str> = std::iter::once(name.as_str()).chain(arguments).collect();
    let me = te::Process { pid: process::id().cast_signed(), parent: None, command_line: &command_line };
    te::process_tree(out, OWN_SEQUENCE, now, &me);
}

fn put_records(out: &mut Vec<u8>, shared: &Shared) {
    let (pid, name) = (process::id(), process::name());
    fxt::magic(out);
    fxt::provider_info(out, pid, &name);
    fxt::provider_section(out, pid);
    fxt::initialization(out, TICKS_PER_SECOND);
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_PROCESS, u64::from(pid), inline(&name), &[]);
    // FXT has no place for a command line and a machine; Perfetto's own packets travel in a blob.
    let mut packets = Vec::new();
    put_about(&mut packets, shared);
    fxt::blob(out, inline("process tree"), fxt::BLOB_PERFETTO, &packets);
}

/// The name of the event that shows every loss of the session, by reason, at its end.
const LOST: &str = "lost in all";

fn put_losses(out: &mut Vec<u8>, shared: &Shared, lost: Lost) {
    let Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments } = lost;
    let reasons = [
        ("buffer full", buffer_full),
        ("re-entrant", reentrant),
        ("too large", too_large),
        ("thread exit", thread_exit),
        ("output", output),
        ("arguments", arguments),
    ];
    let now = shared.clock().load().now();
    if shared.is_track_event() {
        // On the process's track: the writer thread has none.
        let event = te::Event {
            needs_state: false,
            categories: &[te::Name::Text("hairline")],
            name: Some(te::Name::Text(LOST)),
            track_uuid: Some(process::track_uuid()),
            annotations: &reasons.map(|(reason, n)| (te::Name::Text(reason), Value::U64(n))),
            ..te::Event::new(OWN_SEQUENCE, te::EventType::Instant, now)
        };
        return te::event(out, &event);
    }
    let pid = process::id();
    if buffer_full > 0 {
        fxt::provider_event(out, pid, fxt::PROVIDER_EVENT_BUFFER_FULL);
    }
    let thread = process::Thread::current();
    let owner = (inline("process"), Value::Koid(u64::from(pid)));
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(thread.tid), inline(&thread.name), &[owner]);
    let event = fxt::Event {
        kind: fxt::EventKind::Instant,
        timestamp: now,
        thread: fxt::ThreadRef::Inline { process: u64::from(pid), thread: u64::from(thread.tid) },
        category: inline("hairline"),
        name: inline(LOST),
        args: &reasons.map(|(reason, n)| (inline(reason), Value::U64(n))),
        payload: None,
    };
    fxt::event(out, &event);
}

fn inline(text: &str) -> fxt::StringRef<'_> {
    fxt::StringRef::Inline(truncate_utf8(text, MAX_NAME))
}
