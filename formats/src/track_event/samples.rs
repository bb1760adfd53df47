//! Writes samples of call stacks, and the functions of their addresses.
//!
//! A sample refers to its call stack by an id, a call stack to its frames, a frame to its mapping. All are
//! interned on the sequence of the samples, which therefore keeps its order. Functions and lines follow at
//! the end of the trace, in packets that name a file and its addresses ([`module_symbols`]): a profiler looks
//! them up only once for each address, when the program has ended.

use crate::proto::{put_bytes, put_message, put_nonempty, put_nonzero, put_str, put_uint};
use crate::track_event::fields::{
    CpuMode, UnwindError, address_symbols, callstack, clock, frame, interned_data, interned_string,
    line as line_fields, mapping, module_symbols as module_fields, perf_sample as sample_fields,
    sequence_flags, trace_packet,
};
use crate::track_event::ids::SequenceId;
use crate::track_event::sequence::packet;

/// An interned part of a call stack, with its id on the sequence. Each kind has ids of its own, from 1. `I`
/// is the type of lists of ids: a slice to write, [`Numbers`](crate::track_event::Numbers) when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternedStack<'a, I> {
    /// The build id of a file, as raw bytes.
    BuildId {
        /// The id.
        iid: u64,
        /// The build id.
        bytes: &'a [u8],
    },
    /// A part of the path of a file.
    Path {
        /// The id.
        iid: u64,
        /// The part.
        path: &'a str,
    },
    /// The name of a function.
    Function {
        /// The id.
        iid: u64,
        /// The name.
        name: &'a str,
    },
    /// A part of a file in a process's memory.
    Mapping {
        /// The id.
        iid: u64,
        /// The mapping.
        mapping: Mapping<I>,
    },
    /// A place in a program.
    Frame {
        /// The id.
        iid: u64,
        /// The frame.
        frame: Frame,
    },
    /// A call stack.
    Callstack {
        /// The id.
        iid: u64,
        /// The ids of the frames, the root first.
        frames: I,
    },
}

/// A part of a file in a process's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping<I> {
    /// The id of the build id; 0 if there is none.
    pub build_id: u64,
    /// The ids of the parts of the path.
    pub path: I,
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The offset of `start` in the file.
    pub offset: u64,
    /// The difference of addresses in the file and offsets in it.
    pub load_bias: u64,
}

/// A place in a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The id of the function's name; 0 if there is none, for instance because
    /// [`ModuleSymbols`](crate::track_event::ModuleSymbols) has it.
    pub function: u64,
    /// The id of the mapping. Importers drop a call stack with a frame without one.
    pub mapping: u64,
    /// The address as in the file of the mapping. In a caller, an address inside of the call.
    pub rel_pc: u64,
}

/// Writes interned parts of call stacks, for the samples of the sequence that follow. The first packet of the
/// sequence `starts` it: it voids what the ids meant before.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Frame, InternedStack, Mapping, PacketReader, SequenceId, interned_stacks,
/// };
///
/// let mapping = Mapping { path: &[1][..], start: 0x7000, end: 0x8000, ..Mapping::default() };
/// let mut trace = Vec::new();
/// interned_stacks(&mut trace, SequenceId(1), true, &[
///     InternedStack::Path { iid: 1, path: "/bin/server" },
///     InternedStack::Mapping { iid: 1, mapping },
///     InternedStack::Frame { iid: 1, frame: Frame { function: 0, mapping: 1, rel_pc: 0x10 } },
///     InternedStack::Callstack { iid: 1, frames: &[1] },
/// ]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(InternedStack::Callstack { iid: 1, frames }) = packet.interned_stacks().last().transpose()?
/// else {
///     panic!()
/// };
/// assert_eq!(frames.collect::<Result<Vec<_>, _>>()?, [1]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn interned_stacks(
    out: &mut Vec<u8>,
    sequence: SequenceId,
    starts: bool,
    entries: &[InternedStack<'_, &[u64]>],
) {
    let flags = if starts { sequence_flags::CLEARED | sequence_flags::NEEDS } else { sequence_flags::NEEDS };
    packet(out, sequence, |p| {
        put_uint(p, trace_packet::SEQUENCE_FLAGS, u64::from(flags));
        put_nonzero(p, trace_packet::FIRST_PACKET_ON_SEQUENCE, u64::from(starts));
        put_message(p, trace_packet::INTERNED_DATA, |data| {
            for entry in entries {
                put_entry(data, entry);
            }
        });
    });
}

/// `PerfEvents.Counter`
const SW_CPU_CLOCK: u64 = 1;
const SW_CONTEXT_SWITCHES: u64 = 4;

/// The tracepoint that samples at events name.
pub const EVENT_TRACEPOINT: &str = "hairline:event";

/// The tracepoint that samples by the clock name.
pub const WALL_TRACEPOINT: &str = "hairline:clock";

/// What the samples of a sequence are taken at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledBy {
    /// Each time that a thread has used so much CPU time.
    CpuTime {
        /// In nanoseconds; 0 if unknown.
        period: u64,
    },
    /// Each time that so much time has passed, whether the thread runs or sleeps.
    WallTime {
        /// In nanoseconds; 0 if unknown.
        period: u64,
    },
    /// When a thread leaves its processor: it sleeps or waits.
    Switches,
    /// When a thread records an event. The sample has the time of the event.
    Events,
}

/// Writes the start of a sequence with samples. Without it, the samples of a sequence are those of running
/// threads, of an unknown period. Ids that the sequence had before are void.
///
/// ```
/// use hairline_formats::track_event::{PacketReader, SampledBy, SequenceId, start_of_samples};
///
/// let mut trace = Vec::new();
/// start_of_samples(&mut trace, SequenceId(1), SampledBy::CpuTime { period: 1_003_009 });
/// assert!(PacketReader::new(&trace[..]).next()?.is_some());
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn start_of_samples(out: &mut Vec<u8>, sequence: SequenceId, by: SampledBy) {
    packet(out, sequence, |p| {
        let flags = sequence_flags::CLEARED | sequence_flags::NEEDS;
        put_uint(p, trace_packet::SEQUENCE_FLAGS, u64::from(flags));
        put_uint(p, trace_packet::FIRST_PACKET_ON_SEQUENCE, 1);
        put_message(p, trace_packet::TRACE_PACKET_DEFAULTS, |defaults| {
            // perf_sample_defaults.timebase: 1 is the period, 3 a tracepoint, 4 the counter
            put_message(defaults, 12, |samples| {
                put_message(samples, 1, |timebase| match by {
                    SampledBy::CpuTime { period } => {
                        put_nonzero(timebase, 1, period);
                        put_uint(timebase, 4, SW_CPU_CLOCK);
                    }
                    SampledBy::WallTime { period } => {
                        put_nonzero(timebase, 1, period);
                        put_tracepoint(timebase, WALL_TRACEPOINT);
                    }
                    SampledBy::Switches => put_uint(timebase, 4, SW_CONTEXT_SWITCHES),
                    SampledBy::Events => put_tracepoint(timebase, EVENT_TRACEPOINT),
                });
            });
        });
    });
}

fn put_tracepoint(timebase: &mut Vec<u8>, name: &str) {
    put_message(timebase, 3, |tracepoint| put_bytes(tracepoint, 1, name.as_bytes()));
}

fn put_entry(data: &mut Vec<u8>, entry: &InternedStack<'_, &[u64]>) {
    let put_string = |data: &mut Vec<u8>, field: u32, iid: u64, bytes: &[u8]| {
        put_message(data, field, |e| {
            put_uint(e, interned_string::IID, iid);
            put_bytes(e, interned_string::NAME, bytes);
        });
    };
    match *entry {
        InternedStack::BuildId { iid, bytes } => put_string(data, interned_data::BUILD_IDS, iid, bytes),
        InternedStack::Path { iid, path } => {
            put_string(data, interned_data::MAPPING_PATHS, iid, path.as_bytes());
        }
        InternedStack::Function { iid, name } => {
            put_string(data, interned_data::FUNCTION_NAMES, iid, name.as_bytes());
        }
        InternedStack::Mapping { iid, mapping: of } => put_message(data, interned_data::MAPPINGS, |e| {
            put_uint(e, mapping::IID, iid);
            put_nonzero(e, mapping::BUILD_ID, of.build_id);
            put_uint(e, mapping::START, of.start);
            put_uint(e, mapping::END, of.end);
            put_nonzero(e, mapping::LOAD_BIAS, of.load_bias);
            put_nonzero(e, mapping::EXACT_OFFSET, of.offset);
            of.path.iter().for_each(|part| put_uint(e, mapping::PATH_STRING_IDS, *part));
        }),
        InternedStack::Frame { iid, frame: of } => put_message(data, interned_data::FRAMES, |e| {
            put_uint(e, frame::IID, iid);
            put_nonzero(e, frame::FUNCTION_NAME_ID, of.function);
            put_nonzero(e, frame::MAPPING_ID, of.mapping);
            put_uint(e, frame::REL_PC, of.rel_pc);
        }),
        InternedStack::Callstack { iid, frames } => put_message(data, interned_data::CALLSTACKS, |e| {
            put_uint(e, callstack::IID, iid);
            frames.iter().for_each(|frame| put_uint(e, callstack::FRAME_IDS, *frame));
        }),
    }
}

/// A sample: the call stack of a thread at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfSample {
    /// The CPU, if it is known.
    pub cpu: Option<u32>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The id of the call stack; 0 if there is none.
    pub callstack: u64,
    /// What the CPU was doing.
    pub mode: CpuMode,
    /// Why the call stack ends before its root; [`UnwindError::Unknown`] if it does not.
    pub unwind_error: UnwindError,
    /// The number of samples that the kernel dropped on this CPU since the one before.
    pub lost: u64,
}

/// Writes a sample. `timestamp_ns` is on `CLOCK_BOOTTIME`.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketData, PacketReader, PerfSample, SequenceId, perf_sample};
///
/// let sample = PerfSample { cpu: Some(1), pid: 70, tid: 71, callstack: 3, ..PerfSample::default() };
/// let mut trace = Vec::new();
/// perf_sample(&mut trace, SequenceId(1), 1_000, &sample);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// assert_eq!(packet.timestamp, Some(1_000));
/// assert!(matches!(packet.data, Some(PacketData::Sample(read)) if read == sample));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn perf_sample(out: &mut Vec<u8>, sequence: SequenceId, timestamp_ns: u64, sample: &PerfSample) {
    packet(out, sequence, |p| {
        put_uint(p, trace_packet::TIMESTAMP, timestamp_ns);
        put_uint(p, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        put_uint(p, trace_packet::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
        put_message(p, trace_packet::PERF_SAMPLE, |s| {
            if let Some(cpu) = sample.cpu {
                put_uint(s, sample_fields::CPU, u64::from(cpu));
            }
            put_uint(s, sample_fields::PID, u64::from(sample.pid));
            put_uint(s, sample_fields::TID, u64::from(sample.tid));
            put_nonzero(s, sample_fields::CALLSTACK_IID, sample.callstack);
            put_nonzero(s, sample_fields::CPU_MODE, sample.mode as u64);
            put_nonzero(s, sample_fields::UNWIND_ERROR, sample.unwind_error as u64);
            put_nonzero(s, sample_fields::KERNEL_RECORDS_LOST, sample.lost);
        });
    });
}

/// The functions of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressSymbols<'a> {
    /// The address: the `rel_pc` of a [`Frame`].
    pub address: u64,
    /// The function at the address and, if it is inlined, its callers up to one that is not.
    pub lines: Vec<Line<'a>>,
}

/// A function and a line of its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// The function's name.
    pub function: &'a str,
    /// The source file's path; "" if it is unknown.
    pub file: &'a str,
    /// The line, from 1; 0 if it is unknown.
    pub line: u32,
}

/// Writes the functions of addresses of the file with this path and build id, those of its [`Mapping`]s.
/// Importers apply them to the samples before this packet, so it is written at the end.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     AddressSymbols, Line, PacketData, PacketReader, SequenceId, module_symbols,
/// };
///
/// let line = Line { function: "main", file: "src/main.rs", line: 3 };
/// let symbols = AddressSymbols { address: 0x10, lines: vec![line] };
/// let mut trace = Vec::new();
/// module_symbols(&mut trace, SequenceId(1), "/bin/server", &[0xab, 0xcd], &[symbols.clone()]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Symbols(read)) = packet.data else { panic!() };
/// assert_eq!((read.path, read.build_id), ("/bin/server", &[0xab, 0xcd][..]));
/// assert_eq!(read.collect::<Result<Vec<_>, _>>()?, [symbols]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn module_symbols(
    out: &mut Vec<u8>,
    sequence: SequenceId,
    path: &str,
    build_id: &[u8],
    symbols: &[AddressSymbols<'_>],
) {
    packet(out, sequence, |p| {
        put_message(p, trace_packet::MODULE_SYMBOLS, |m| {
            put_str(m, module_fields::PATH, path);
            put_bytes(m, module_fields::BUILD_ID, build_id);
            for of in symbols {
                put_message(m, module_fields::ADDRESS_SYMBOLS, |a| {
                    put_uint(a, address_symbols::ADDRESS, of.address);
                    for line in &of.lines {
                        put_message(a, address_symbols::LINES, |l| {
                            put_str(l, line_fields::FUNCTION_NAME, line.function);
                            put_nonempty(l, line_fields::SOURCE_FILE_NAME, line.file);
                            put_nonzero(l, line_fields::LINE_NUMBER, u64::from(line.line));
                        });
                    }
                });
            }
        });
    });
}
