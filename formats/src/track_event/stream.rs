//! Packets about the stream as a whole: who was recorded, and what is missing.

use crate::proto::{put_bytes, put_message, put_sint64, put_str, put_uint};
use crate::track_event::fields::{
    buffer_stats, clock, process_tree as tree, process_tree_process as process, system_info as system, trace,
    trace_packet, trace_stats as stats, trace_uuid as uuid_fields, utsname,
};
use crate::track_event::sequence::packet;

/// The trace's own number, the same in all its files.
pub fn trace_uuid(out: &mut Vec<u8>, sequence: u32, uuid: u128) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::TRACE_UUID, |u| {
            put_uint(u, uuid_fields::MSB, (uuid >> 64) as u64);
            put_uint(u, uuid_fields::LSB, uuid as u64);
        });
    });
}

/// What [`synchronization_marker`] writes: the UUID 82477a76-b28d-42ba-81dc-33326d57a079.
pub const SYNCHRONIZATION_MARKER: [u8; 16] =
    [0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79];

/// A place where a reader can begin that was dropped into the middle of a long trace: to be written about every 10 s,
/// and never compressed.
pub fn synchronization_marker(out: &mut Vec<u8>, sequence: u32) {
    packet(out, sequence, |p| put_bytes(p, trace_packet::SYNCHRONIZATION_MARKER, &SYNCHRONIZATION_MARKER));
}

/// The most bytes that a packet of [`compressed_packets`] should have. It is for the caller to keep.
pub const MAX_COMPRESSED: usize = 512 * 1024;

/// Packets, compressed: `deflated` is a zlib stream of whole packets, tags and lengths included. Should stay below
/// [`MAX_COMPRESSED`].
pub fn compressed_packets(out: &mut Vec<u8>, deflated: &[u8]) {
    put_message(out, trace::PACKET, |p| put_bytes(p, trace_packet::COMPRESSED_PACKETS, deflated));
}

/// The machine: `SystemInfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemInfo<'a> {
    /// The kernel's name, "Linux".
    pub sysname: &'a str,
    /// The kernel's release.
    pub release: &'a str,
    /// The kernel's build.
    pub version: &'a str,
    /// The processor's architecture.
    pub machine: &'a str,
    /// Who wrote the trace.
    pub tracer: &'a str,
    /// Bytes of a page of memory.
    pub page_size: u32,
    /// Processors.
    pub num_cpus: u32,
    /// Minutes that local time is ahead of UTC.
    pub timezone_off_mins: i32,
    /// Bytes of memory.
    pub ram_bytes: u64,
}

/// `SystemInfo`: what the trace was recorded on. What is "" or 0 is not known and is left out.
pub fn system_info(out: &mut Vec<u8>, sequence: u32, of: &SystemInfo<'_>) {
    let text = |m: &mut Vec<u8>, field, value: &str| {
        if !value.is_empty() {
            put_str(m, field, value);
        }
    };
    let number = |m: &mut Vec<u8>, field, value: u64| {
        if value != 0 {
            put_uint(m, field, value);
        }
    };
    packet(out, sequence, |p| {
        put_message(p, trace_packet::SYSTEM_INFO, |s| {
            put_message(s, system::UTSNAME, |u| {
                text(u, utsname::SYSNAME, of.sysname);
                text(u, utsname::VERSION, of.version);
                text(u, utsname::RELEASE, of.release);
                text(u, utsname::MACHINE, of.machine);
            });
            text(s, system::TRACING_SERVICE_VERSION, of.tracer);
            number(s, system::PAGE_SIZE, u64::from(of.page_size));
            put_sint64(s, system::TIMEZONE_OFF_MINS, i64::from(of.timezone_off_mins));
            number(s, system::NUM_CPUS, u64::from(of.num_cpus));
            number(s, system::SYSTEM_RAM_BYTES, of.ram_bytes);
        });
    });
}

/// A process and how it was started: `ProcessTree.Process`.
///
/// Importers take a process's command line from here, not from its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'a> {
    /// Its id.
    pub pid: i32,
    /// Its parent's id; an importer makes a process of it.
    pub parent: Option<i32>,
    /// The command line, an entry for each argument. Importers name the process after the first.
    pub command_line: &'a [&'a str],
}

/// `ProcessTree` with one process, as it was at `timestamp_ns` of `CLOCK_BOOTTIME`.
pub fn process_tree(out: &mut Vec<u8>, sequence: u32, timestamp_ns: u64, of: &Process<'_>) {
    packet(out, sequence, |p| {
        put_uint(p, trace_packet::TIMESTAMP, timestamp_ns);
        put_uint(p, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        put_message(p, trace_packet::PROCESS_TREE, |t| {
            put_message(t, tree::PROCESSES, |m| {
                put_sint64(m, process::PID, i64::from(of.pid));
                if let Some(parent) = of.parent {
                    put_sint64(m, process::PPID, i64::from(parent));
                }
                for argument in of.command_line {
                    put_str(m, process::CMDLINE, argument);
                }
            });
        });
    });
}

/// What went through the ring, and what did not: `TraceStats.BufferStats`, and the counts of `TraceStats` itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceStats {
    /// Bytes of the ring.
    pub size: u64,
    /// Bytes that went into the trace.
    pub bytes_written: u64,
    /// Chunks that were filled, or begun.
    pub chunks_written: u64,
    /// Chunks that could not be read.
    pub chunks_discarded: u64,
    /// Events that did not go into the trace: `trace_writer_packet_loss`.
    pub events_lost: u64,
    /// Flushes that were asked for.
    pub flushes_requested: u64,
    /// Flushes that went well.
    pub flushes_succeeded: u64,
}

/// `TraceStats` of one producer and one buffer.
pub fn trace_stats(out: &mut Vec<u8>, sequence: u32, of: &TraceStats) {
    trace_stats_of_all(out, sequence, std::slice::from_ref(of));
}

/// `TraceStats` of several producers, each with one buffer: those of a trace that was put together from theirs.
pub fn trace_stats_of_all(out: &mut Vec<u8>, sequence: u32, all: &[TraceStats]) {
    let sum = |of: fn(&TraceStats) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    packet(out, sequence, |p| {
        put_message(p, trace_packet::TRACE_STATS, |s| {
            for of in all {
                put_message(s, stats::BUFFER_STATS, |b| {
                    put_uint(b, buffer_stats::BYTES_WRITTEN, of.bytes_written);
                    put_uint(b, buffer_stats::CHUNKS_WRITTEN, of.chunks_written);
                    put_uint(b, buffer_stats::BUFFER_SIZE, of.size);
                    put_uint(b, buffer_stats::BYTES_READ, of.bytes_written);
                    put_uint(b, buffer_stats::CHUNKS_READ, of.chunks_written);
                    put_uint(b, buffer_stats::CHUNKS_DISCARDED, of.chunks_discarded);
                    put_uint(b, buffer_stats::TRACE_WRITER_PACKET_LOSS, of.events_lost);
                });
            }
            put_uint(s, stats::PRODUCERS_CONNECTED, all.len() as u64);
            put_uint(s, stats::TOTAL_BUFFERS, all.len() as u64);
            put_uint(s, stats::INVALID_PACKETS, 0);
            put_uint(s, stats::FLUSHES_REQUESTED, sum(|of| of.flushes_requested));
            put_uint(s, stats::FLUSHES_SUCCEEDED, sum(|of| of.flushes_succeeded));
        });
    });
}
