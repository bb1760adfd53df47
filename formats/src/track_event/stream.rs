//! Writes packets about the trace as a whole: the machine, the processes, and the losses.

use crate::proto::{
    WireType, put_bytes, put_message, put_nonempty, put_nonzero, put_sint64, put_str, put_uint, tag,
};
use crate::track_event::fields::{
    buffer_stats, clock, process_tree as tree, process_tree_process as process,
    process_tree_thread as thread, system_info as system, trace, trace_attribute, trace_attributes,
    trace_packet, trace_stats as stats, trace_uuid as uuid_fields, tracing_service_event as service, utsname,
};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::packet;

/// Writes the trace's uuid, which is the same in all its files.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, trace_uuid};
///
/// let mut trace = Vec::new();
/// trace_uuid(&mut trace, SequenceId(1), 0x1234);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// assert!(matches!(packet.data, Some(PacketData::TraceUuid(0x1234))));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn trace_uuid(out: &mut Vec<u8>, sequence: SequenceId, uuid: u128) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::TRACE_UUID, |u| {
            put_uint(u, uuid_fields::MSB, (uuid >> 64) as u64);
            put_uint(u, uuid_fields::LSB, uuid as u64);
        });
    });
}

/// The value of an attribute of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// A number.
    Int(i64),
    /// A text.
    Text(&'a str),
}

/// Writes attributes of the trace: names and values that tell where it comes from, for example a version.
/// Importers take the latest value of a name.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     AttributeValue, PacketData, PacketReader, SequenceId, trace_attributes,
/// };
///
/// let written = [("build", AttributeValue::Text("release")), ("shard", AttributeValue::Int(3))];
/// let mut trace = Vec::new();
/// trace_attributes(&mut trace, SequenceId(1), &written);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Attributes(attributes)) = packet.data else { panic!() };
/// assert_eq!(attributes.collect::<Result<Vec<_>, _>>()?, written.map(|(name, value)| (name, Some(value))));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn trace_attributes(out: &mut Vec<u8>, sequence: SequenceId, all: &[(&str, AttributeValue<'_>)]) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::TRACE_ATTRIBUTES, |attributes| {
            for (key, value) in all {
                put_message(attributes, trace_attributes::ATTRIBUTE, |a| {
                    put_str(a, trace_attribute::KEY, key);
                    match value {
                        AttributeValue::Int(v) => put_sint64(a, trace_attribute::LONG_VALUE, *v),
                        AttributeValue::Text(text) => put_str(a, trace_attribute::STRING_VALUE, text),
                    }
                });
            }
        });
    });
}

/// The content of a synchronization marker: the UUID 82477a76-b28d-42ba-81dc-33326d57a079.
pub const SYNCHRONIZATION_MARKER: [u8; 16] =
    [0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79];

/// Writes a marker at which a reader in the middle of a long trace can begin.
///
/// Write one about every 10 s, and never compress it.
///
/// ```
/// use hairline_formats::track_event::{SequenceId, SYNCHRONIZATION_MARKER, synchronization_marker};
///
/// let mut trace = Vec::new();
/// synchronization_marker(&mut trace, SequenceId(1));
/// let marker = &SYNCHRONIZATION_MARKER[..];
/// assert!(trace.windows(marker.len()).any(|bytes| bytes == marker));
/// ```
pub fn synchronization_marker(out: &mut Vec<u8>, sequence: SequenceId) {
    packet(out, sequence, |p| put_bytes(p, trace_packet::SYNCHRONIZATION_MARKER, &SYNCHRONIZATION_MARKER));
}

/// The most bytes that a packet of [`compressed_packets`] should have. The caller ensures it.
pub const MAX_COMPRESSED: usize = 512 * 1024;

/// Writes compressed packets. `deflated` is a zlib stream of whole packets, tags and lengths included, of at
/// most [`MAX_COMPRESSED`] bytes.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, compressed_packets};
///
/// let deflated = [0x78, 0x9c, 0x03, 0, 0, 0, 0, 1]; // a zlib stream of nothing
/// let mut trace = Vec::new();
/// compressed_packets(&mut trace, &deflated);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Compressed { bytes, .. }) = packet.data else { panic!() };
/// assert_eq!(bytes, deflated); // the caller inflates it
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn compressed_packets(out: &mut Vec<u8>, deflated: &[u8]) {
    put_message(out, trace::PACKET, |p| put_bytes(p, trace_packet::COMPRESSED_PACKETS, deflated));
}

/// Writes packets that Perfetto does not read: samples that its UI would add to those of running threads.
/// They are in one packet, as those of [`compressed_packets`] are, in a field that Perfetto's schema does not
/// have.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Compression, PacketData, PacketReader, PerfSample, SequenceId, hidden_packets, perf_sample,
/// };
///
/// let mut packets = Vec::new();
/// perf_sample(&mut packets, SequenceId(1), 1_000, &PerfSample::default());
/// let mut trace = Vec::new();
/// hidden_packets(&mut trace, &packets);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Compressed { by: Compression::None, bytes, .. }) = packet.data else { panic!() };
/// assert_eq!(bytes, packets);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn hidden_packets(out: &mut Vec<u8>, packets: &[u8]) {
    put_message(out, trace::PACKET, |p| put_bytes(p, trace_packet::HIDDEN_PACKETS, packets));
}

/// `SystemInfo`: a description of the machine. "" and 0 are unknown and not written.
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
    /// The tracer that wrote the trace.
    pub tracer: &'a str,
    /// The size of a memory page in bytes.
    pub page_size: u32,
    /// The number of processors.
    pub num_cpus: u32,
    /// The offset of local time from UTC, in minutes.
    pub timezone_off_mins: i32,
    /// The size of the memory in bytes.
    pub ram_bytes: u64,
}

/// Writes `SystemInfo`: the machine on which the trace was recorded.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, SystemInfo, system_info};
///
/// let machine = SystemInfo { sysname: "Linux", page_size: 4096, num_cpus: 2, ..SystemInfo::default() };
/// let mut trace = Vec::new();
/// system_info(&mut trace, SequenceId(1), &machine);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::System(read)) = packet.data else { panic!() };
/// assert_eq!(read, machine);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn system_info(out: &mut Vec<u8>, sequence: SequenceId, of: &SystemInfo<'_>) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::SYSTEM_INFO, |s| {
            put_message(s, system::UTSNAME, |u| {
                put_nonempty(u, utsname::SYSNAME, of.sysname);
                put_nonempty(u, utsname::VERSION, of.version);
                put_nonempty(u, utsname::RELEASE, of.release);
                put_nonempty(u, utsname::MACHINE, of.machine);
            });
            put_nonempty(s, system::TRACING_SERVICE_VERSION, of.tracer);
            put_nonzero(s, system::PAGE_SIZE, u64::from(of.page_size));
            put_sint64(s, system::TIMEZONE_OFF_MINS, i64::from(of.timezone_off_mins));
            put_nonzero(s, system::NUM_CPUS, u64::from(of.num_cpus));
            put_nonzero(s, system::SYSTEM_RAM_BYTES, of.ram_bytes);
        });
    });
}

/// `ProcessTree.Process`: a process and its command line.
///
/// Importers read a process's command line here, not from its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'a> {
    /// The process id.
    pub pid: i32,
    /// The parent's process id. Importers create a process for it.
    pub parent: Option<i32>,
    /// The command line, one entry for each argument. Importers name the process after the first.
    pub command_line: &'a [&'a str],
}

/// Writes `ProcessTree` with one process, at the time `timestamp_ns` of `CLOCK_BOOTTIME`.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, Process, SequenceId, process_tree};
///
/// let process = Process { pid: 70, parent: None, command_line: &["server", "--port=80"] };
/// let mut trace = Vec::new();
/// process_tree(&mut trace, SequenceId(1), 1_000, &process);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Processes(mut processes)) = packet.data else { panic!() };
/// let read = processes.next().unwrap()?;
/// assert_eq!((read.pid, read.parent), (Some(70), None));
/// assert_eq!(read.command_line().collect::<Result<Vec<_>, _>>()?, ["server", "--port=80"]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn process_tree(out: &mut Vec<u8>, sequence: SequenceId, timestamp_ns: u64, of: &Process<'_>) {
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

/// `ProcessTree.Thread`: a thread of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread<'a> {
    /// The thread id.
    pub tid: i32,
    /// The process id.
    pub pid: i32,
    /// The name. That of a thread's track is shown before it.
    pub name: &'a str,
}

/// Writes `ProcessTree` with threads, at the time `timestamp_ns` of `CLOCK_BOOTTIME`. A thread needs this or
/// a track of its own, so that importers know its process.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, Thread, process_threads};
///
/// let worker = Thread { tid: 71, pid: 70, name: "worker" };
/// let mut trace = Vec::new();
/// process_threads(&mut trace, SequenceId(1), 1_000, &[worker]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Processes(tree)) = packet.data else { panic!() };
/// assert_eq!(tree.threads().collect::<Result<Vec<_>, _>>()?, [worker]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn process_threads(out: &mut Vec<u8>, sequence: SequenceId, timestamp_ns: u64, threads: &[Thread<'_>]) {
    packet(out, sequence, |p| {
        put_uint(p, trace_packet::TIMESTAMP, timestamp_ns);
        put_uint(p, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        put_message(p, trace_packet::PROCESS_TREE, |t| {
            for of in threads {
                put_message(t, tree::THREADS, |m| {
                    put_sint64(m, thread::TID, i64::from(of.tid));
                    put_nonempty(m, thread::NAME, of.name);
                    put_sint64(m, thread::TGID, i64::from(of.pid));
                });
            }
        });
    });
}

/// The statistics of one producer's buffer: `TraceStats.BufferStats`, and the counts of `TraceStats` itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceStats {
    /// The size of the buffer in bytes.
    pub size: u64,
    /// The number of bytes written to the trace.
    pub bytes_written: u64,
    /// The number of chunks that have content.
    pub chunks_written: u64,
    /// The number of chunks that could not be read.
    pub chunks_discarded: u64,
    /// The number of lost events: `trace_writer_packet_loss`.
    pub events_lost: u64,
    /// The number of flushes requested.
    pub flushes_requested: u64,
    /// The number of flushes that succeeded.
    pub flushes_succeeded: u64,
}

/// Writes `TraceStats` of one producer with one buffer.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, TraceStats, trace_stats};
///
/// let stats = TraceStats { size: 4096, bytes_written: 1000, events_lost: 3, ..TraceStats::default() };
/// let mut trace = Vec::new();
/// trace_stats(&mut trace, SequenceId(1), &stats);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Stats(read)) = packet.data else { panic!() };
/// assert_eq!(read, stats);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn trace_stats(out: &mut Vec<u8>, sequence: SequenceId, of: &TraceStats) {
    trace_stats_of_all(out, sequence, std::slice::from_ref(of));
}

/// Writes `TraceStats` of several producers with one buffer each, for a trace that is merged from theirs.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, TraceStats, trace_stats_of_all};
///
/// let one = TraceStats { size: 4096, events_lost: 3, ..TraceStats::default() };
/// let mut trace = Vec::new();
/// trace_stats_of_all(&mut trace, SequenceId(1), &[one, one]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Stats(sums)) = packet.data else { panic!() };
/// assert_eq!((sums.size, sums.events_lost), (8192, 6)); // read as sums
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn trace_stats_of_all(out: &mut Vec<u8>, sequence: SequenceId, all: &[TraceStats]) {
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

/// The end of a session: `TracingServiceEvent` with `tracing_disabled`.
///
/// The packet has the same size for all values, so the last bytes of a file show whether its session has
/// ended: [`SessionEnd::at_end_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// The process that recorded the trace.
    pub pid: i32,
    /// The time of the end on `CLOCK_BOOTTIME`, in ns.
    pub timestamp_ns: u64,
}

impl SessionEnd {
    /// The size of the packet, with its tag and length.
    pub const LEN: usize = 30;

    /// The fields before the timestamp, with the packet's tag and length.
    const BEFORE_TIMESTAMP: [u8; 3] = [
        tag(trace::PACKET, WireType::Bytes) as u8,
        Self::LEN as u8 - 2,
        tag(trace_packet::TIMESTAMP, WireType::Varint) as u8,
    ];
    const TIMESTAMP: usize = 10;
    const PID: usize = 5;

    fn packet(self, sequence: u8) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend(Self::BEFORE_TIMESTAMP);
        put_padded(&mut out, self.timestamp_ns, Self::TIMESTAMP);
        put_uint(&mut out, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        put_uint(&mut out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(sequence));
        out.extend(PID_TAG);
        put_padded(&mut out, u64::from(self.pid.cast_unsigned() & i32::MAX as u32), Self::PID);
        put_message(&mut out, trace_packet::SERVICE_EVENT, |e| put_uint(e, service::TRACING_DISABLED, 1));
        out
    }

    /// Returns the end of the session whose trace ends in `bytes`: the last bytes of the file, at least
    /// [`LEN`](Self::LEN) + 7. `None` if the trace does not end with such a packet. Up to seven zeros may follow
    /// the packet: in FXT it is in a record of whole words.
    ///
    /// ```
    /// use hairline_formats::track_event::{SequenceId, SessionEnd, session_end};
    ///
    /// let (mut trace, end) = (vec![0x0a, 0], SessionEnd { pid: 4711, timestamp_ns: 1_000 });
    /// session_end(&mut trace, 1, end);
    /// assert_eq!(SessionEnd::at_end_of(&trace), Some(end));
    /// trace.pop();
    /// assert_eq!(SessionEnd::at_end_of(&trace), None);
    /// ```
    #[must_use]
    pub fn at_end_of(bytes: &[u8]) -> Option<Self> {
        let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let packet = bytes[..bytes.len() - padding].last_chunk::<{ Self::LEN }>().filter(|_| padding < 8)?;
        let (timestamp, rest) = packet[Self::BEFORE_TIMESTAMP.len()..].split_at(Self::TIMESTAMP);
        let (timestamp_ns, sequence) = (padded(timestamp), rest[4]);
        let pid = padded(&rest[5 + PID_TAG.len()..][..Self::PID]) as i32;
        let end = Self { pid, timestamp_ns };
        (end.packet(sequence) == packet).then_some(end)
    }
}

const PID_TAG: [u8; 2] = {
    let tag = tag(trace_packet::TRUSTED_PID, WireType::Varint);
    [tag as u8 & 0x7f | 0x80, (tag >> 7) as u8]
};

/// Writes a varint of `size` bytes.
fn put_padded(out: &mut Vec<u8>, value: u64, size: usize) {
    out.extend((0..size).map(|n| (value >> (7 * n)) as u8 & 0x7f | if n + 1 < size { 0x80 } else { 0 }));
}

/// Reads the varint that takes all of `bytes`.
fn padded(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// Writes the packet that ends a session's trace. `sequence`: at most 127.
pub fn session_end(out: &mut Vec<u8>, sequence: u8, end: SessionEnd) {
    debug_assert!(sequence < 0x80);
    out.extend(end.packet(sequence));
}
