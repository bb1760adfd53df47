//! The field numbers of Perfetto's messages and the numbers of their enums.
//!
//! Each module bears the name of a message and has the fields that this crate writes or reads.

use crate::numbered::numbered;

/// Declares modules of field numbers, each named after a message: `FIELD = number, "its type and meaning";`
macro_rules! messages {
    ($($(#[$doc:meta])* $module:ident { $($field:ident = $number:literal, $field_doc:literal;)* })*) => {$(
        $(#[$doc])*
        pub mod $module { $(#[doc = $field_doc] pub const $field: u32 = $number;)* }
    )*};
}

messages! {
    /// `Trace`, the whole file.
    trace {
        PACKET = 1, "`TracePacket`, repeated.";
    }

    /// `TracePacket`.
    trace_packet {
        FTRACE_EVENTS = 1, "`FtraceEventBundle`.";
        PROCESS_TREE = 2, "`ProcessTree`.";
        CLOCK_SNAPSHOT = 6, "`ClockSnapshot`.";
        TIMESTAMP = 8, "`uint64`, on the clock of `TIMESTAMP_CLOCK_ID`.";
        TRUSTED_PACKET_SEQUENCE_ID = 10, "`uint32`: the packet's sequence; 0 is none.";
        TRACK_EVENT = 11, "`TrackEvent`.";
        INTERNED_DATA = 12, "`InternedData`.";
        SEQUENCE_FLAGS = 13, "`uint32`: bits of [`sequence_flags`](super::sequence_flags).";
        TRACE_STATS = 35, "`TraceStats`.";
        SYNCHRONIZATION_MARKER = 36, "`bytes`.";
        PROFILE_PACKET = 37, "`ProfilePacket`.";
        INCREMENTAL_STATE_CLEARED = 41,
            "`bool`: the older form of the flag [`CLEARED`](super::sequence_flags::CLEARED).";
        PREVIOUS_PACKET_DROPPED = 42, "`uint32`: if it is not 0, packets before this one were lost.";
        SYSTEM_INFO = 45, "`SystemInfo`.";
        COMPRESSED_PACKETS = 50, "`bytes`: packets, compressed with zlib.";
        TIMESTAMP_CLOCK_ID = 58, "`uint32`: a number of [`clock`](super::clock).";
        PROCESS_DESCRIPTOR = 43, "`ProcessDescriptor`: the older form of a process's track.";
        THREAD_DESCRIPTOR = 44, "`ThreadDescriptor`: the thread of the sequence, of older writers.";
        MODULE_SYMBOLS = 61, "`ModuleSymbols`.";
        PERF_SAMPLE = 66, "`PerfSample`.";
        SERVICE_EVENT = 69, "`TracingServiceEvent`.";
        TRACE_PACKET_DEFAULTS = 59, "`TracePacketDefaults`.";
        TRACK_DESCRIPTOR = 60, "`TrackDescriptor`.";
        TRUSTED_PID = 79, "`int32`: the process that wrote the packet.";
        FIRST_PACKET_ON_SEQUENCE = 87, "`bool`.";
        TRACE_UUID = 89, "`TraceUuid`.";
        TRACE_ATTRIBUTES = 126, "`TraceAttributes`.";
        ZSTD_COMPRESSED_PACKETS = 133, "`bytes`: packets, compressed with zstd.";
        GENERIC_KERNEL_TASK_STATE_EVENT = 117, "`GenericKernelTaskStateEvent`.";
        HIDDEN_PACKETS = 60_000, "`bytes`: packets that Perfetto is not to read. A field of Hairline.";
    }

    /// `TracingServiceEvent`.
    tracing_service_event {
        TRACING_DISABLED = 5, "`bool`: the session has ended, and all of its packets precede this one.";
    }

    /// `TracePacketDefaults`: defaults for the following packets of the sequence.
    trace_packet_defaults {
        TRACK_EVENT_DEFAULTS = 11, "`TrackEventDefaults`.";
        TIMESTAMP_CLOCK_ID = 58, "`uint32`.";
    }

    /// `TrackEventDefaults`.
    track_event_defaults {
        TRACK_UUID = 11, "`uint64`.";
        EXTRA_COUNTER_TRACK_UUIDS = 31, "`uint64`, repeated: the tracks of an event's extra counter values.";
        EXTRA_DOUBLE_COUNTER_TRACK_UUIDS = 45, "`uint64`, repeated: the same for values that are doubles.";
    }

    /// `TrackEvent`.
    track_event {
        TIMESTAMP_DELTA_US = 1, "`int64`, of older tracers.";
        TIMESTAMP_ABSOLUTE_US = 16, "`int64`, of older tracers.";
        CATEGORY_IIDS = 3, "`uint64`, repeated: interned categories.";
        DEBUG_ANNOTATIONS = 4, "`DebugAnnotation`, repeated.";
        LEGACY_EVENT = 6, "`LegacyEvent`.";
        TYPE = 9, "[`EventType`](super::EventType).";
        NAME_IID = 10, "`uint64`: an interned name.";
        TRACK_UUID = 11, "`uint64`.";
        EXTRA_COUNTER_VALUES = 12, "`int64`, repeated: the extra counters, in the order of their tracks.";
        LOG_MESSAGE = 21, "`LogMessage`.";
        CATEGORIES = 22, "`string`, repeated: categories that are not interned.";
        NAME = 23, "`string`: a name that is not interned.";
        COUNTER_VALUE = 30, "`int64`.";
        EXTRA_COUNTER_TRACK_UUIDS = 31, "`uint64`, repeated: as in `TrackEventDefaults`.";
        SOURCE_LOCATION = 33, "`SourceLocation` that is not interned.";
        SOURCE_LOCATION_IID = 34, "`uint64`: an interned source location.";
        DOUBLE_COUNTER_VALUE = 44, "`double`.";
        EXTRA_DOUBLE_COUNTER_TRACK_UUIDS = 45, "`uint64`, repeated: the tracks of the next field.";
        EXTRA_DOUBLE_COUNTER_VALUES = 46, "`double`, repeated.";
        FLOW_IDS_OLD = 36, "`uint64`, repeated: the older form of the flows.";
        TERMINATING_FLOW_IDS_OLD = 42, "`uint64`, repeated: the older form of the flows that end here.";
        FLOW_IDS = 47, "`fixed64`, repeated.";
        TERMINATING_FLOW_IDS = 48, "`fixed64`, repeated.";
        CORRELATION_ID = 52, "`uint64`: the same for events that belong together.";
        CORRELATION_ID_STR = 53, "`string`.";
        CORRELATION_ID_STR_IID = 54, "`uint64`: an interned correlation id.";
        CALLSTACK = 55, "`InlineCallstack`.";
        CALLSTACK_IID = 56, "`uint64`: an interned call stack.";
        CALLSTACK_WEIGHT = 57, "`double`.";
    }

    /// `TrackEvent.InlineCallstack`.
    inline_callstack {
        FRAMES = 1, "`TrackEvent.InlineCallstack.Frame`, repeated: the root first.";
    }

    /// `TrackEvent.InlineCallstack.Frame`.
    inline_frame {
        FUNCTION_NAME = 1, "`string`.";
        SOURCE_FILE = 2, "`string`.";
        LINE_NUMBER = 3, "`uint32`.";
    }

    /// `TrackEvent.LegacyEvent`.
    legacy_event {
        NAME_IID = 1, "`uint64`: an interned name.";
        PHASE = 2, "`int32`: a letter.";
        DURATION_US = 3, "`int64`.";
        UNSCOPED_ID = 6, "`uint64`.";
        ID_SCOPE = 7, "`string`.";
        BIND_ID = 8, "`uint64`: a flow.";
        LOCAL_ID = 10, "`uint64`.";
        GLOBAL_ID = 11, "`uint64`.";
        BIND_TO_ENCLOSING = 12, "`bool`.";
        INSTANT_EVENT_SCOPE = 14, "`InstantEventScope`: 1 for the trace, 2 for the process, 3 for the thread.";
        PID_OVERRIDE = 18, "`int32`: the process, if the event has no track.";
        TID_OVERRIDE = 19, "`int32`: the thread, if the event has no track.";
        FLOW_DIRECTION = 13, "`FlowDirection`: 1 for a flow into the slice, 2 out of it, 3 for both.";
    }

    /// `DebugAnnotation`: a name in one of two forms, and a value in one of many.
    debug_annotation {
        NAME_IID = 1, "`uint64`: an interned name.";
        BOOL_VALUE = 2, "`bool`.";
        UINT_VALUE = 3, "`uint64`.";
        INT_VALUE = 4, "`int64`.";
        DOUBLE_VALUE = 5, "`double`.";
        STRING_VALUE = 6, "`string`.";
        POINTER_VALUE = 7, "`uint64`.";
        NESTED_VALUE = 8, "`DebugAnnotation.NestedValue`, of older tracers.";
        LEGACY_JSON_VALUE = 9, "`string`: JSON.";
        NAME = 10, "`string`: a name that is not interned.";
        DICT_ENTRIES = 11, "`DebugAnnotation`, repeated: names and values.";
        ARRAY_VALUES = 12, "`DebugAnnotation`, repeated: values without names.";
        STRING_VALUE_IID = 17, "`uint64`: an interned string.";
    }

    /// `DebugAnnotation.NestedValue`.
    nested_value {
        NESTED_TYPE = 1, "`NestedType`: 0 for a value, 1 for a dict, 2 for an array.";
        DICT_KEYS = 2, "`string`, repeated.";
        DICT_VALUES = 3, "`NestedValue`, repeated.";
        ARRAY_VALUES = 4, "`NestedValue`, repeated.";
        INT_VALUE = 5, "`int64`.";
        DOUBLE_VALUE = 6, "`double`.";
        BOOL_VALUE = 7, "`bool`.";
        STRING_VALUE = 8, "`string`.";
    }

    /// `LogMessage`.
    log_message {
        SOURCE_LOCATION_IID = 1, "`uint64`: an interned source location.";
        BODY_IID = 2, "`uint64`: an interned body.";
        PRIO = 3, "[`Priority`](super::Priority).";
    }

    /// `SourceLocation`.
    source_location {
        IID = 1, "`uint64`.";
        FILE_NAME = 2, "`string`.";
        FUNCTION_NAME = 3, "`string`.";
        LINE_NUMBER = 4, "`uint32`.";
    }

    /// `InternedData`. Its other fields are those of [`InternedKind`].
    interned_data {
        SOURCE_LOCATIONS = 4, "`SourceLocation`, repeated.";
        FUNCTION_NAMES = 5, "`InternedString`, repeated.";
        FRAMES = 6, "`Frame`, repeated.";
        CALLSTACKS = 7, "`Callstack`, repeated.";
        BUILD_IDS = 16, "`InternedString`, repeated: raw bytes.";
        MAPPING_PATHS = 17, "`InternedString`, repeated.";
        MAPPINGS = 19, "`Mapping`, repeated.";
    }

    /// `Mapping`: a part of a file in a process's memory.
    mapping {
        IID = 1, "`uint64`, from 1.";
        BUILD_ID = 2, "`uint64`: an interned build id.";
        START = 4, "`uint64`: the first address.";
        END = 5, "`uint64`: the address after the last one.";
        LOAD_BIAS = 6, "`uint64`: the difference of addresses and offsets in the file.";
        PATH_STRING_IDS = 7, "`uint64`, repeated: interned parts of the path.";
        EXACT_OFFSET = 8, "`uint64`: the offset of `START` in the file.";
    }

    /// `Frame`: a place in a program.
    frame {
        IID = 1, "`uint64`, from 1.";
        FUNCTION_NAME_ID = 2, "`uint64`: an interned function name.";
        MAPPING_ID = 3, "`uint64`: an interned mapping.";
        REL_PC = 4, "`uint64`: the address as in the file of the mapping.";
    }

    /// `Callstack`.
    callstack {
        IID = 1, "`uint64`, from 1.";
        FRAME_IDS = 2, "`uint64`, repeated: interned frames, the root first.";
    }

    /// `PerfSample`.
    perf_sample {
        CPU = 1, "`uint32`.";
        PID = 2, "`uint32`.";
        TID = 3, "`uint32`.";
        CALLSTACK_IID = 4, "`uint64`: an interned call stack.";
        CPU_MODE = 5, "[`CpuMode`](super::CpuMode).";
        TIMEBASE_COUNT = 6, "`uint64`.";
        UNWIND_ERROR = 16, "[`UnwindError`](super::UnwindError).";
        KERNEL_RECORDS_LOST = 17, "`uint64`: samples that the kernel dropped before this one.";
    }

    /// `ModuleSymbols`: the functions of a file's addresses.
    module_symbols {
        PATH = 1, "`string`: the path of the mapping.";
        BUILD_ID = 2, "`string`: raw bytes, those of the mapping.";
        ADDRESS_SYMBOLS = 3, "`AddressSymbols`, repeated.";
    }

    /// `AddressSymbols`.
    address_symbols {
        ADDRESS = 1, "`uint64`: a frame's `REL_PC`.";
        LINES = 2, "`Line`, repeated: the innermost inlined function first.";
    }

    /// `Line`.
    line {
        FUNCTION_NAME = 1, "`string`.";
        SOURCE_FILE_NAME = 2, "`string`.";
        LINE_NUMBER = 3, "`uint32`.";
    }

    /// The common fields of `EventCategory`, `EventName`, `DebugAnnotationName`, `LogMessageBody` and
    /// `InternedString`.
    interned_string {
        IID = 1, "`uint64`, from 1.";
        NAME = 2, "`string` or `bytes`.";
    }

    /// `TrackDescriptor`.
    track_descriptor {
        UUID = 1, "`uint64`.";
        NAME = 2, "`string`.";
        PROCESS = 3, "`ProcessDescriptor`.";
        THREAD = 4, "`ThreadDescriptor`.";
        PARENT_UUID = 5, "`uint64`.";
        CHROME_PROCESS = 6, "`ChromeProcessDescriptor`: the type of a process of Chrome.";
        CHROME_THREAD = 7, "`ChromeThreadDescriptor`: the type of a thread of Chrome.";
        COUNTER = 8, "`CounterDescriptor`.";
        STATIC_NAME = 10, "`string`: a name known at compile time.";
        ATRACE_NAME = 13, "`string`: a name as atrace has it.";
        CHILD_ORDERING = 11, "[`ChildOrdering`](super::ChildOrdering) of the child tracks.";
        SIBLING_ORDER_RANK = 12, "`int32`.";
        DESCRIPTION = 14, "`string`.";
        SIBLING_MERGE_BEHAVIOR = 15, "[`SiblingMerge`](super::SiblingMerge).";
        SIBLING_MERGE_KEY = 16, "`string`.";
        STATE = 18, "`StateDescriptor`, which has no fields: the events of the track are states.";
    }

    /// `ProcessDescriptor`.
    process_descriptor {
        PID = 1, "`int32`.";
        CMDLINE = 2, "`string`, repeated.";
        PROCESS_NAME = 6, "`string`.";
    }

    /// `ThreadDescriptor`.
    thread_descriptor {
        PID = 1, "`int32`.";
        TID = 2, "`int64`.";
        THREAD_NAME = 5, "`string`.";
        REFERENCE_TIMESTAMP_US = 6, "`int64`, of older tracers.";
    }

    /// `CounterDescriptor`.
    counter_descriptor {
        TYPE = 1, "[`CounterType`](super::CounterType).";
        CATEGORIES = 2, "`string`, repeated.";
        UNIT = 3, "[`Unit`](super::Unit).";
        UNIT_MULTIPLIER = 4, "`int64`.";
        IS_INCREMENTAL = 5, "`bool`: values are differences.";
        UNIT_NAME = 6, "`string`: a unit that the enum does not have.";
        Y_AXIS_SHARE_KEY = 7, "`string`: counters with the same key share one scale.";
    }

    /// `ClockSnapshot`: readings of several clocks at one moment.
    clock_snapshot {
        CLOCKS = 1, "`ClockSnapshot.Clock`, repeated.";
        PRIMARY_TRACE_CLOCK = 2, "The clock of the trace's own time.";
    }

    /// `ClockSnapshot.Clock`.
    clock_reading {
        CLOCK_ID = 1, "`uint32`: a number of [`clock`](super::clock).";
        TIMESTAMP = 2, "`uint64`.";
        IS_INCREMENTAL = 3, "`bool`: each timestamp is relative to the previous one of its sequence.";
        UNIT_MULTIPLIER_NS = 4, "`uint64`: nanoseconds of a tick; 1 if it is missing.";
    }

    /// `TraceUuid`.
    trace_uuid {
        MSB = 1, "`int64`: the upper half.";
        LSB = 2, "`int64`: the lower half.";
    }

    /// `TraceAttributes`: facts about the trace.
    trace_attributes {
        ATTRIBUTE = 1, "`TraceAttributes.Attribute`, repeated.";
    }

    /// `TraceAttributes.Attribute`: a name with a value in one of two forms.
    trace_attribute {
        KEY = 1, "`string`.";
        LONG_VALUE = 2, "`int64`.";
        STRING_VALUE = 3, "`string`.";
    }

    /// `ProcessTree`.
    process_tree {
        PROCESSES = 1, "`ProcessTree.Process`, repeated.";
        THREADS = 2, "`ProcessTree.Thread`, repeated.";
    }

    /// `ProcessTree.Process`.
    process_tree_process {
        PID = 1, "`int32`.";
        PPID = 2, "`int32`: the parent's pid.";
        CMDLINE = 3, "`string`, repeated: the command line, one entry for each argument.";
    }

    /// `ProcessTree.Thread`.
    process_tree_thread {
        TID = 1, "`int32`.";
        NAME = 2, "`string`.";
        TGID = 3, "`int32`: the process id.";
    }

    /// `TraceStats`.
    trace_stats {
        BUFFER_STATS = 1, "`TraceStats.BufferStats`, repeated.";
        PRODUCERS_CONNECTED = 2, "`uint32`.";
        TOTAL_BUFFERS = 7, "`uint32`.";
        INVALID_PACKETS = 10, "`uint64`: malformed packets.";
        FLUSHES_REQUESTED = 12, "`uint64`.";
        FLUSHES_SUCCEEDED = 13, "`uint64`.";
    }

    /// `TraceStats.BufferStats`.
    buffer_stats {
        BYTES_WRITTEN = 1, "`uint64`.";
        CHUNKS_WRITTEN = 2, "`uint64`.";
        CHUNKS_OVERWRITTEN = 3, "`uint64`.";
        BUFFER_SIZE = 12, "`uint64`.";
        BYTES_OVERWRITTEN = 13, "`uint64`.";
        BYTES_READ = 14, "`uint64`.";
        CHUNKS_READ = 17, "`uint64`.";
        CHUNKS_DISCARDED = 18, "`uint64`.";
        TRACE_WRITER_PACKET_LOSS = 19, "`uint64`.";
    }

    /// `ProfilePacket`: a heap profile.
    profile_packet {
        PROCESS_DUMPS = 5, "`ProfilePacket.ProcessHeapSamples`, repeated.";
        CONTINUED = 6, "`bool`: the next packet belongs to the same dump.";
        INDEX = 7, "`uint64`: the packet's number on its sequence.";
    }

    /// `ProfilePacket.ProcessHeapSamples`: a dump of one process's heap.
    process_heap_samples {
        PID = 1, "`uint64`.";
        SAMPLES = 2, "`ProfilePacket.HeapSample`, repeated.";
        BUFFER_OVERRAN = 7, "`bool`: samples were lost.";
        TIMESTAMP = 9, "`uint64`, in ns of `CLOCK_MONOTONIC_COARSE`.";
        HEAP_NAME = 11, "`string`.";
        SAMPLING_INTERVAL_BYTES = 12, "`uint64`.";
    }

    /// `ProfilePacket.HeapSample`: sums of one call stack.
    heap_sample {
        CALLSTACK_ID = 1, "`uint64`: an interned call stack.";
        SELF_ALLOCATED = 2, "`uint64`: bytes.";
        SELF_FREED = 3, "`uint64`: bytes.";
        ALLOC_COUNT = 5, "`uint64`: allocations.";
        FREE_COUNT = 6, "`uint64`: frees.";
        SELF_MAX = 8, "`uint64`: bytes at the maximum, in place of both sums.";
        SELF_MAX_COUNT = 9, "`uint64`: allocations at the maximum.";
    }

    /// `GenericKernelTaskStateEvent`.
    task_state {
        CPU = 1, "`int32`: the processor.";
        COMM = 2, "`string`: the kernel's name of the thread.";
        TID = 3, "`int64`.";
        STATE = 4, "[`TaskState`](super::TaskState).";
        PRIO = 5, "`int32`: the priority.";
    }

    /// `FtraceEventBundle`.
    ftrace_event_bundle {
        CPU = 1, "`uint32`: the processor.";
        EVENT = 2, "`FtraceEvent`, repeated.";
    }

    /// `FtraceEvent`.
    ftrace_event {
        TIMESTAMP = 1, "`uint64`, in ns of `CLOCK_BOOTTIME`.";
        PID = 2, "`uint32`: the thread that ran.";
        COMMON_FLAGS = 5, "`uint32`: bits of [`ftrace_flags`](super::ftrace_flags).";
        SCHED_WAKING = 20, "`SchedWakingFtraceEvent`.";
    }

    /// `SchedWakingFtraceEvent`.
    sched_waking {
        COMM = 1, "`string`: the kernel's name of the woken thread.";
        PID = 2, "`int32`: the woken thread.";
        PRIO = 3, "`int32`: its priority.";
        TARGET_CPU = 5, "`int32`: the processor it will run on.";
    }

    /// `SystemInfo`.
    system_info {
        UTSNAME = 1, "`Utsname`.";
        TRACING_SERVICE_VERSION = 4, "`string`.";
        PAGE_SIZE = 6, "`uint32`.";
        TIMEZONE_OFF_MINS = 7, "`int32`.";
        NUM_CPUS = 8, "`uint32`.";
        SYSTEM_RAM_BYTES = 16, "`uint64`.";
    }

    /// `Utsname`.
    utsname {
        SYSNAME = 1, "`string`.";
        VERSION = 2, "`string`.";
        RELEASE = 3, "`string`.";
        MACHINE = 4, "`string`.";
    }
}

/// Bits of [`trace_packet::SEQUENCE_FLAGS`].
pub mod sequence_flags {
    /// The sequence's state before this packet is void.
    pub const CLEARED: u32 = 1;
    /// The packet relies on the sequence's state since the last [`CLEARED`].
    pub const NEEDS: u32 = 2;
}

/// Bits of [`ftrace_event::COMMON_FLAGS`].
pub mod ftrace_flags {
    /// In a hard interrupt.
    pub const HARD_INTERRUPT: u32 = 8;
    /// In a soft interrupt.
    pub const SOFT_INTERRUPT: u32 = 16;
}

/// Numbers of clocks. Those up to 63 have a fixed meaning; 64 to 127 belong to each sequence.
pub mod clock {
    /// `CLOCK_REALTIME`.
    pub const REALTIME: u32 = 1;
    /// `CLOCK_REALTIME_COARSE`.
    pub const REALTIME_COARSE: u32 = 2;
    /// `CLOCK_MONOTONIC`.
    pub const MONOTONIC: u32 = 3;
    /// `CLOCK_MONOTONIC_COARSE`.
    pub const MONOTONIC_COARSE: u32 = 4;
    /// `CLOCK_MONOTONIC_RAW`.
    pub const MONOTONIC_RAW: u32 = 5;
    /// `CLOCK_BOOTTIME`, in ns. Importers convert all clocks to it.
    pub const BOOTTIME: u32 = 6;
    /// The largest clock number with the same meaning on all sequences.
    pub const BUILTIN_MAX: u32 = 63;
}

/// The clock of the events that this crate writes, one for each sequence: ns since the sequence's last event.
pub const SEQUENCE_CLOCK: u32 = 64;

numbered! {
    /// `TrackEvent.Type`.
    #[derive(Default)]
    #[non_exhaustive]
    EventType {
        #[default] Unspecified = 0, "Not given.";
        SliceBegin = 1, "The begin of a slice on its track.";
        SliceEnd = 2, "The end of the innermost open slice on its track.";
        Instant = 3, "A moment.";
        Counter = 4, "A sample of a counter.";
        State = 5, "The name is the state of its track from now on; without a name, the track has none.";
    }

    /// The fields of `InternedData` that are repeated messages with the fields of [`interned_string`].
    #[non_exhaustive]
    InternedKind {
        Category = 1, "`EventCategory`: an event's category.";
        EventName = 2, "`EventName`: an event's name.";
        AnnotationName = 3, "`DebugAnnotationName`: an annotation's name.";
        LogBody = 20, "`LogMessageBody`: the text of a log message.";
        AnnotationText = 29, "`InternedString`: an annotation's value.";
        CorrelationId = 43, "`InternedString`: a correlation id.";
    }

    /// `CounterDescriptor.Unit`.
    #[derive(Default)]
    Unit {
        #[default] Unspecified = 0, "A bare number, or the unit's name.";
        TimeNs = 1, "Nanoseconds.";
        Count = 2, "A number of things.";
        SizeBytes = 3, "Bytes.";
    }

    /// `CounterDescriptor.BuiltinCounterType`.
    #[derive(Default)]
    #[non_exhaustive]
    CounterType {
        #[default] Unspecified = 0, "The counter that its name says.";
        ThreadTimeNs = 1, "The CPU time of the thread to which it belongs.";
        ThreadInstructionCount = 2, "The instructions of the thread to which it belongs.";
    }

    /// `TrackDescriptor.ChildTracksOrdering`: the order in which a track's children are shown.
    #[derive(Default)]
    #[non_exhaustive]
    ChildOrdering {
        #[default] Unspecified = 0, "The importer's choice.";
        Lexicographic = 1, "By name.";
        Chronological = 2, "By the time of their first event.";
        Explicit = 3, "By rank.";
    }

    /// `TrackDescriptor.SiblingMergeBehavior`: the sibling tracks that are shown as one.
    #[derive(Default)]
    #[non_exhaustive]
    SiblingMerge {
        #[default] Unspecified = 0, "Mostly, those with the same name.";
        ByTrackName = 1, "Those with the same name.";
        None = 2, "None.";
        ByKey = 3, "Those with the same key.";
    }

    /// `Profiling.CpuMode`: what the processor was doing.
    #[derive(Default)]
    #[non_exhaustive]
    CpuMode {
        #[default] Unknown = 0, "Not given.";
        Kernel = 1, "The kernel.";
        User = 2, "A program.";
        Hypervisor = 3, "The hypervisor.";
        GuestKernel = 4, "The kernel of a virtual machine.";
        GuestUser = 5, "A program in a virtual machine.";
    }

    /// `Profiling.StackUnwindError`: why a call stack ends before its root.
    #[derive(Default)]
    #[non_exhaustive]
    UnwindError {
        #[default] Unknown = 0, "Not given.";
        None = 1, "The stack is complete.";
        MemoryInvalid = 2, "Memory of the stack was not recorded.";
        UnwindInfo = 3, "There is no information for an address.";
        Unsupported = 4, "The information is of an unknown kind.";
        InvalidMap = 5, "An address is in no mapping.";
        MaxFramesExceeded = 6, "There are more frames than are kept.";
        RepeatedFrame = 7, "A frame is its own caller.";
        InvalidElf = 8, "A program's file is malformed.";
    }

    /// `GenericKernelTaskStateEvent.TaskStateEnum`: the state of a thread.
    #[derive(Default)]
    #[non_exhaustive]
    TaskState {
        #[default] Unknown = 0, "Not given.";
        Created = 1, "Started, and has not run.";
        Runnable = 2, "Waits for a processor.";
        Running = 3, "Runs on a processor.";
        InterruptibleSleep = 4, "Sleeps; a signal wakes it.";
        UninterruptibleSleep = 5, "Sleeps; a signal does not wake it.";
        Stopped = 6, "Stopped by a signal or a debugger.";
        Dead = 7, "Has ended.";
        Destroyed = 8, "The kernel has forgotten it.";
    }

    /// `LogMessage.Priority`.
    #[derive(Default)]
    #[non_exhaustive]
    Priority {
        #[default] Unspecified = 0, "Not given.";
        Unused = 1, "Not used.";
        Verbose = 2, "The finest detail.";
        Debug = 3, "For debugging.";
        Info = 4, "For operators.";
        Warn = 5, "Something unexpected.";
        Error = 6, "A failure.";
        Fatal = 7, "The program cannot continue.";
    }
}
