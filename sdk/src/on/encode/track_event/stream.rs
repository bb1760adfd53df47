//! The drain thread's own packets: head, heartbeat, late ends and tail of the stream.

use hairline_formats::track_event as te;

use crate::on::base::clock;
use crate::on::base::memory::Bytes;
use crate::on::base::platform::system::System;
use crate::on::base::platform::{process, system};
use crate::on::encode::OWN_SEQUENCE;
use crate::on::encode::tail::Tail;
use crate::on::encode::track_event::packet::{Interning, Packet};
use crate::on::event::extras::NewFlows;
use crate::on::event::{Event, Moment};

/// The most arguments of the command line that are kept, and the most bytes of each. A blob holds 32,000
/// bytes.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT: usize = 400;

/// Writes the packets that a reader needs before the first packet of a thread.
pub(crate) fn put_head(out: &mut Vec<u8>, uuid: u128) {
    te::synchronization_marker(out, OWN_SEQUENCE);
    put_about(out, uuid);
    let command_line = command_line();
    let command_line: Vec<&str> = command_line.iter().map(String::as_str).collect();
    let track = te::ProcessTrack {
        uuid: process::track_uuid(),
        pid: process::id().cast_signed(),
        name: process::name(),
        cmdline: &command_line,
    };
    te::process_descriptor(out, OWN_SEQUENCE, &track);
}

/// Writes a place at which a reader can begin in a long trace, and the time of all clocks.
pub(crate) fn put_heartbeat(out: &mut Vec<u8>) {
    te::synchronization_marker(out, OWN_SEQUENCE);
    te::clock_snapshot(out, OWN_SEQUENCE, &system::clocks());
}

/// Writes the description of the trace and its machine, which readers of packets expect.
pub(crate) fn put_about(out: &mut Vec<u8>, uuid: u128) {
    put_uuid(out, uuid);
    te::clock_snapshot(out, OWN_SEQUENCE, &system::clocks());
    te::system_info(out, OWN_SEQUENCE, &System::current().info());
    put_process_tree(out, clock::boottime());
}

/// Writes the trace's own number.
pub(crate) fn put_uuid(out: &mut Vec<u8>, uuid: u128) {
    te::trace_uuid(out, OWN_SEQUENCE, uuid);
}

/// Returns the command line, cut so that a blob holds it.
fn command_line() -> Vec<String> {
    let cut = |a: &String| hairline_formats::truncate_utf8(a, MAX_ARGUMENT).to_owned();
    process::command_line().iter().take(MAX_ARGUMENTS).map(cut).collect()
}

/// Writes the process and its command line.
///
/// trace_processor takes the command line from this packet, and the name of the process from the first
/// argument, whatever name the track has. So the first argument is the bare name of the executable. Its path
/// is in the process's track.
fn put_process_tree(out: &mut Vec<u8>, now: u64) {
    let (name, arguments) = (process::name(), command_line());
    let arguments = arguments.iter().skip(1).map(String::as_str);
    let command_line: Vec<&str> = std::iter::once(name).chain(arguments).collect();
    let own = te::Process { pid: process::id().cast_signed(), parent: None, command_line: &command_line };
    te::process_tree(out, OWN_SEQUENCE, now, &own);
}

/// Writes the end of a slice on a track.
pub(crate) fn put_late_end(out: &mut Bytes, event: &Event<'_>, now: u64) {
    let packet = Packet {
        sequence: OWN_SEQUENCE,
        interning: Interning::SelfContained,
        counter: None,
        location: None,
        body_iid: 0,
        cpu: None,
        at: &Moment::alone(now, NewFlows::default()),
    };
    packet.put(out, event);
}

/// Writes the statistics of the trace, and the events of the tail.
pub(crate) fn put_tail(out: &mut Vec<u8>, tail: &Tail) {
    let stats = te::TraceStats {
        size: tail.ring,
        bytes_written: tail.before.bytes,
        chunks_written: tail.before.chunks,
        chunks_discarded: 0,
        events_lost: tail.lost.total(),
        flushes_requested: tail.before.flushes,
        flushes_succeeded: tail.before.flushes,
    };
    te::trace_stats(out, OWN_SEQUENCE, &stats);
    for (name, args) in tail.events() {
        let args: Vec<_> = args.into_iter().map(|(name, value)| (te::Name::Text(name), value)).collect();
        let event = te::Event {
            needs_state: false,
            categories: &[te::Name::Text("hairline")],
            name: Some(te::Name::Text(name)),
            track_uuid: Some(tail.process_track), // the drain thread has no track
            annotations: &args,
            ..te::Event::new(OWN_SEQUENCE, te::EventType::Instant, tail.now)
        };
        te::event(out, &event);
    }
}

/// Writes the packet that ends a session's trace.
pub(crate) fn put_session_end(out: &mut Vec<u8>, end: te::SessionEnd) {
    te::session_end(out, OWN_SEQUENCE.0 as u8, end);
}
