//! The writer thread's own part of the trace: what stands before the threads' records, and between them.

use hairline_formats::track_event as te;
use hairline_formats::{fxt, truncate_utf8};

use crate::on::base::clock;
use crate::on::base::platform::system::System;
use crate::on::base::platform::{process, system};
use crate::on::encode::MAX_NAME;
use crate::options::Format;

/// The sequence of the packets written here.
pub(crate) const OWN_SEQUENCE: u32 = 1;

/// Timestamps are nanoseconds in both formats.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// Arguments of the command line that are kept, and bytes of each: a blob holds 32,000.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT: usize = 400;

/// What a stream repeats from time to time: a place to begin in a long trace, and what all clocks show. Nothing in FXT, which
/// has neither.
pub(crate) fn heartbeat(format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    if format == Format::TrackEvent {
        te::synchronization_marker(&mut out, OWN_SEQUENCE);
        te::clock_snapshot(&mut out, OWN_SEQUENCE, &system::clocks());
    }
    out
}

/// The stream's head: what a reader needs before the first record. `uuid` is the trace's own number.
pub(crate) fn head(format: Format, uuid: u128) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::TrackEvent => put_packets(&mut out, uuid),
        Format::Fxt => put_records(&mut out, uuid),
    }
    out
}

/// Whether `head` can be the head of the trace with this number.
pub(crate) fn is_head(head: &[u8], uuid: u128) -> bool {
    let mut number = Vec::new();
    te::trace_uuid(&mut number, OWN_SEQUENCE, uuid);
    head.windows(number.len()).any(|window| window == number)
}

fn put_packets(out: &mut Vec<u8>, uuid: u128) {
    te::synchronization_marker(out, OWN_SEQUENCE);
    put_about(out, uuid);
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
fn put_about(out: &mut Vec<u8>, uuid: u128) {
    te::trace_uuid(out, OWN_SEQUENCE, uuid);
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

fn put_records(out: &mut Vec<u8>, uuid: u128) {
    let (pid, name) = (process::id(), process::name());
    fxt::magic(out);
    fxt::provider_info(out, pid, &name);
    fxt::provider_section(out, pid);
    fxt::initialization(out, TICKS_PER_SECOND);
    fxt::kernel_object(out, fxt::KERNEL_OBJECT_PROCESS, u64::from(pid), inline(&name), &[]);
    // FXT has no place for a command line and a machine; Perfetto's own packets travel in a blob.
    let mut packets = Vec::new();
    put_about(&mut packets, uuid);
    fxt::blob(out, inline("process tree"), fxt::BLOB_PERFETTO, &packets);
}

pub(crate) fn inline(text: &str) -> fxt::StringRef<'_> {
    fxt::StringRef::Inline(truncate_utf8(text, MAX_NAME))
}
