//! Writes heap profiles: by call stack, the bytes that were allocated and freed up to a moment.
//!
//! A dump has sums from the profile's begin on, so the difference of two numbers of a dump is what was live
//! then, and the difference of two dumps is what happened in between. A call stack without a change since the
//! dump before may be missing. Importers want sums that never shrink.

use crate::proto::{put_message, put_nonempty, put_nonzero, put_uint};
use crate::track_event::fields::{
    clock, heap_sample, process_heap_samples, profile_packet, sequence_flags, trace_packet,
};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::packet;

/// The name of the innermost frame of each call stack in a heap profile of Hairline's. It stands for the call
/// of the allocator.
pub const ALLOCATION: &str = "[allocation]";

/// What was allocated and freed by one call stack, from the profile's begin on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapSample {
    /// The id of the call stack on the sequence.
    pub callstack: u64,
    /// Bytes that were allocated.
    pub allocated: u64,
    /// Bytes of these that were freed.
    pub freed: u64,
    /// Number of allocations.
    pub allocations: u64,
    /// Number of these that were freed.
    pub frees: u64,
}

/// A dump of a heap profile, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapDump<'a> {
    /// The process.
    pub pid: u32,
    /// The heap's name.
    pub heap: &'a str,
    /// The time in ns on `CLOCK_MONOTONIC_COARSE`, the one clock that importers know here. The trace must
    /// have a [`clock_snapshot`](crate::track_event::clock_snapshot) with it.
    pub coarse_ns: u64,
    /// The mean of the bytes between two samples; 1: each allocation is a sample.
    pub interval: u64,
    /// Whether samples were lost since the profile's begin: the sums are too small.
    pub has_losses: bool,
    /// The packet's number, from 0, counted over all dumps of the sequence.
    pub index: u64,
    /// Whether the next packet continues this dump.
    pub is_continued: bool,
}

/// Writes a dump. `timestamp_ns` is on `CLOCK_BOOTTIME`. The call stacks are
/// [interned](crate::track_event::interned_stacks) on the sequence.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     HeapDump, HeapSample, PacketData, PacketReader, SequenceId, heap_dump,
/// };
///
/// let dump = HeapDump { pid: 70, heap: "heap", coarse_ns: 900, interval: 512 << 10, ..HeapDump::default() };
/// let sample = HeapSample { callstack: 3, allocated: 4096, freed: 1024, allocations: 4, frees: 1 };
/// let mut trace = Vec::new();
/// heap_dump(&mut trace, SequenceId(1), 1_000, &dump, &[sample]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::HeapDumps(dumps)) = packet.data else { panic!() };
/// let (read, samples) = dumps.last().unwrap()?;
/// assert_eq!(read, dump);
/// assert_eq!(samples.collect::<Result<Vec<_>, _>>()?, [sample]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn heap_dump(
    out: &mut Vec<u8>,
    sequence: SequenceId,
    timestamp_ns: u64,
    dump: &HeapDump<'_>,
    samples: &[HeapSample],
) {
    packet(out, sequence, |p| {
        put_uint(p, trace_packet::TIMESTAMP, timestamp_ns);
        put_uint(p, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        put_uint(p, trace_packet::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
        put_message(p, trace_packet::PROFILE_PACKET, |profile| {
            put_message(profile, profile_packet::PROCESS_DUMPS, |of| {
                put_uint(of, process_heap_samples::PID, u64::from(dump.pid));
                put_nonempty(of, process_heap_samples::HEAP_NAME, dump.heap);
                put_uint(of, process_heap_samples::TIMESTAMP, dump.coarse_ns);
                put_uint(of, process_heap_samples::SAMPLING_INTERVAL_BYTES, dump.interval);
                put_nonzero(of, process_heap_samples::BUFFER_OVERRAN, u64::from(dump.has_losses));
                for sample in samples {
                    put_message(of, process_heap_samples::SAMPLES, |s| {
                        put_uint(s, heap_sample::CALLSTACK_ID, sample.callstack);
                        put_nonzero(s, heap_sample::SELF_ALLOCATED, sample.allocated);
                        put_nonzero(s, heap_sample::SELF_FREED, sample.freed);
                        put_nonzero(s, heap_sample::ALLOC_COUNT, sample.allocations);
                        put_nonzero(s, heap_sample::FREE_COUNT, sample.frees);
                    });
                }
            });
            put_nonzero(profile, profile_packet::CONTINUED, u64::from(dump.is_continued));
            put_uint(profile, profile_packet::INDEX, dump.index);
        });
    });
}
