//! The field numbers of the messages that are written or read here, under the messages' names, and the
//! numbers of their enums. All are Perfetto's.

use crate::numbered::numbered;

/// A module of field numbers named after a message.
macro_rules! message {
    ($(#[$doc:meta])* $module:ident { $($(#[$field_doc:meta])* $field:ident = $number:literal,)* }) => {
        $(#[$doc])*
        pub mod $module { $($(#[$field_doc])* pub const $field: u32 = $number;)* }
    };
}

message! {
    /// `Trace`, the whole file.
    trace {
        /// `TracePacket`, repeated.
        PACKET = 1,
    }
}

message! {
    /// `TracePacket`.
    trace_packet {
        /// `ProcessTree`.
        PROCESS_TREE = 2,
        /// `ClockSnapshot`.
        CLOCK_SNAPSHOT = 6,
        /// `uint64`, on the clock of `TIMESTAMP_CLOCK_ID`.
        TIMESTAMP = 8,
        /// `uint32`: whose packet it is. 0 is none.
        TRUSTED_PACKET_SEQUENCE_ID = 10,
        /// `TrackEvent`.
        TRACK_EVENT = 11,
        /// `InternedData`.
        INTERNED_DATA = 12,
        /// `uint32`: see [`sequence_flags`](super::sequence_flags).
        SEQUENCE_FLAGS = 13,
        /// `TraceStats`.
        TRACE_STATS = 35,
        /// `bytes`.
        SYNCHRONIZATION_MARKER = 36,
        /// `bool`, the older form of the flag [`CLEARED`](super::sequence_flags::CLEARED).
        INCREMENTAL_STATE_CLEARED = 41,
        /// `uint32`; not 0: packets are missing before this one.
        PREVIOUS_PACKET_DROPPED = 42,
        /// `SystemInfo`.
        SYSTEM_INFO = 45,
        /// `bytes`: packets, compressed with zlib.
        COMPRESSED_PACKETS = 50,
        /// `uint32`: see [`clock`](super::clock).
        TIMESTAMP_CLOCK_ID = 58,
        /// `TracePacketDefaults`.
        TRACE_PACKET_DEFAULTS = 59,
        /// `TrackDescriptor`.
        TRACK_DESCRIPTOR = 60,
        /// `bool`.
        FIRST_PACKET_ON_SEQUENCE = 87,
        /// `TraceUuid`.
        TRACE_UUID = 89,
    }
}

message! {
    /// `TracePacketDefaults`: what holds for the packets of the sequence that follow.
    trace_packet_defaults {
        /// `TrackEventDefaults`.
        TRACK_EVENT_DEFAULTS = 11,
        /// `uint32`.
        TIMESTAMP_CLOCK_ID = 58,
    }
}

message! {
    /// `TrackEventDefaults`.
    track_event_defaults {
        /// `uint64`.
        TRACK_UUID = 11,
        /// `uint64`, repeated: what each of an event's extra counter values is a sample of.
        EXTRA_COUNTER_TRACK_UUIDS = 31,
        /// `uint64`, repeated: the same for values that are doubles.
        EXTRA_DOUBLE_COUNTER_TRACK_UUIDS = 45,
    }
}

message! {
    /// `TrackEvent`.
    track_event {
        /// `uint64`, repeated: interned categories.
        CATEGORY_IIDS = 3,
        /// `DebugAnnotation`, repeated.
        DEBUG_ANNOTATIONS = 4,
        /// `LegacyEvent`.
        LEGACY_EVENT = 6,
        /// [`EventType`](super::EventType).
        TYPE = 9,
        /// `uint64`: an interned name.
        NAME_IID = 10,
        /// `uint64`.
        TRACK_UUID = 11,
        /// `int64`, repeated: samples of the extra counters, in the order of their tracks.
        EXTRA_COUNTER_VALUES = 12,
        /// `LogMessage`.
        LOG_MESSAGE = 21,
        /// `string`, repeated: categories in full.
        CATEGORIES = 22,
        /// `string`: a name in full.
        NAME = 23,
        /// `int64`.
        COUNTER_VALUE = 30,
        /// `uint64`, repeated: as [`track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS`](super::track_event_defaults).
        EXTRA_COUNTER_TRACK_UUIDS = 31,
        /// `SourceLocation`, in full.
        SOURCE_LOCATION = 33,
        /// `uint64`: an interned source location.
        SOURCE_LOCATION_IID = 34,
        /// `double`.
        DOUBLE_COUNTER_VALUE = 44,
        /// `uint64`, repeated: what the values of the next field are samples of.
        EXTRA_DOUBLE_COUNTER_TRACK_UUIDS = 45,
        /// `double`, repeated.
        EXTRA_DOUBLE_COUNTER_VALUES = 46,
        /// `fixed64`, repeated.
        FLOW_IDS = 47,
        /// `fixed64`, repeated.
        TERMINATING_FLOW_IDS = 48,
        /// `uint64`: the same for events that belong together.
        CORRELATION_ID = 52,
        /// `string`.
        CORRELATION_ID_STR = 53,
        /// `uint64`: an interned one.
        CORRELATION_ID_STR_IID = 54,
    }
}

message! {
    /// `TrackEvent.LegacyEvent`.
    legacy_event {
        /// `uint64`: an interned name.
        NAME_IID = 1,
        /// `int32`: a letter.
        PHASE = 2,
        /// `int64`.
        DURATION_US = 3,
        /// `uint64`.
        UNSCOPED_ID = 6,
        /// `string`.
        ID_SCOPE = 7,
        /// `uint64`: a flow.
        BIND_ID = 8,
        /// `uint64`.
        LOCAL_ID = 10,
        /// `uint64`.
        GLOBAL_ID = 11,
        /// `bool`.
        BIND_TO_ENCLOSING = 12,
        /// `FlowDirection`: 1 comes in, 2 goes out, 3 does both.
        FLOW_DIRECTION = 13,
    }
}

message! {
    /// `DebugAnnotation`: a name, in one of two ways, and a value, in one of many.
    debug_annotation {
        /// `uint64`: an interned name.
        NAME_IID = 1,
        /// `bool`.
        BOOL_VALUE = 2,
        /// `uint64`.
        UINT_VALUE = 3,
        /// `int64`.
        INT_VALUE = 4,
        /// `double`.
        DOUBLE_VALUE = 5,
        /// `string`.
        STRING_VALUE = 6,
        /// `uint64`.
        POINTER_VALUE = 7,
        /// `string`: JSON.
        LEGACY_JSON_VALUE = 9,
        /// `string`: a name in full.
        NAME = 10,
        /// `DebugAnnotation`, repeated: names and values.
        DICT_ENTRIES = 11,
        /// `DebugAnnotation`, repeated: values without names.
        ARRAY_VALUES = 12,
        /// `uint64`: an interned string.
        STRING_VALUE_IID = 17,
    }
}

message! {
    /// `LogMessage`.
    log_message {
        /// `uint64`: an interned source location.
        SOURCE_LOCATION_IID = 1,
        /// `uint64`: an interned body.
        BODY_IID = 2,
        /// [`Priority`](super::Priority).
        PRIO = 3,
    }
}

message! {
    /// `SourceLocation`.
    source_location {
        /// `uint64`.
        IID = 1,
        /// `string`.
        FILE_NAME = 2,
        /// `string`.
        FUNCTION_NAME = 3,
        /// `uint32`.
        LINE_NUMBER = 4,
    }
}

message! {
    /// `InternedData`: each field a repeated message of [`interned_string`]'s fields, but for the source locations.
    interned_data {
        /// `EventCategory`.
        EVENT_CATEGORIES = 1,
        /// `EventName`.
        EVENT_NAMES = 2,
        /// `DebugAnnotationName`.
        DEBUG_ANNOTATION_NAMES = 3,
        /// `SourceLocation`.
        SOURCE_LOCATIONS = 4,
        /// `LogMessageBody`.
        LOG_MESSAGE_BODY = 20,
        /// `InternedString`.
        DEBUG_ANNOTATION_STRING_VALUES = 29,
        /// `InternedString`.
        CORRELATION_ID_STR = 43,
    }
}

message! {
    /// `EventCategory`, `EventName`, `DebugAnnotationName`, `LogMessageBody` and `InternedString`, which agree.
    interned_string {
        /// `uint64`: from 1.
        IID = 1,
        /// `string` or `bytes`.
        NAME = 2,
    }
}

message! {
    /// `TrackDescriptor`.
    track_descriptor {
        /// `uint64`.
        UUID = 1,
        /// `string`.
        NAME = 2,
        /// `ProcessDescriptor`.
        PROCESS = 3,
        /// `ThreadDescriptor`.
        THREAD = 4,
        /// `uint64`.
        PARENT_UUID = 5,
        /// `CounterDescriptor`.
        COUNTER = 8,
        /// `string`: a name known when the program was built.
        STATIC_NAME = 10,
        /// [`ChildOrdering`](super::ChildOrdering) of the tracks below.
        CHILD_ORDERING = 11,
        /// `int32`.
        SIBLING_ORDER_RANK = 12,
        /// `string`.
        DESCRIPTION = 14,
        /// [`SiblingMerge`](super::SiblingMerge).
        SIBLING_MERGE_BEHAVIOR = 15,
        /// `string`.
        SIBLING_MERGE_KEY = 16,
    }
}

message! {
    /// `ProcessDescriptor`.
    process_descriptor {
        /// `int32`.
        PID = 1,
        /// `string`, repeated.
        CMDLINE = 2,
        /// `string`.
        PROCESS_NAME = 6,
    }
}

message! {
    /// `ThreadDescriptor`.
    thread_descriptor {
        /// `int32`.
        PID = 1,
        /// `int64`.
        TID = 2,
        /// `string`.
        THREAD_NAME = 5,
    }
}

message! {
    /// `CounterDescriptor`.
    counter_descriptor {
        /// [`CounterType`](super::CounterType).
        TYPE = 1,
        /// `string`, repeated.
        CATEGORIES = 2,
        /// [`Unit`](super::Unit).
        UNIT = 3,
        /// `int64`.
        UNIT_MULTIPLIER = 4,
        /// `bool`: values are differences.
        IS_INCREMENTAL = 5,
        /// `string`: a unit the enum does not have.
        UNIT_NAME = 6,
        /// `string`: counters with the same key share one scale.
        Y_AXIS_SHARE_KEY = 7,
    }
}

message! {
    /// `ClockSnapshot`: what several clocks showed at one moment.
    clock_snapshot {
        /// `ClockSnapshot.Clock`, repeated.
        CLOCKS = 1,
        /// A clock id: that of the trace's own time.
        PRIMARY_TRACE_CLOCK = 2,
    }
}

message! {
    /// `ClockSnapshot.Clock`.
    clock_reading {
        /// `uint32`: see [`clock`](super::clock).
        CLOCK_ID = 1,
        /// `uint64`.
        TIMESTAMP = 2,
        /// `bool`: each timestamp counts from the one before on its sequence.
        IS_INCREMENTAL = 3,
        /// `uint64`: ns of a tick; 1 if missing.
        UNIT_MULTIPLIER_NS = 4,
    }
}

message! {
    /// `TraceUuid`.
    trace_uuid {
        /// `int64`: the upper half.
        MSB = 1,
        /// `int64`: the lower half.
        LSB = 2,
    }
}

message! {
    /// `ProcessTree`.
    process_tree {
        /// `ProcessTree.Process`, repeated.
        PROCESSES = 1,
    }
}

message! {
    /// `ProcessTree.Process`.
    process_tree_process {
        /// `int32`.
        PID = 1,
        /// `int32`: the parent's pid.
        PPID = 2,
        /// `string`, repeated: the command line, an entry for each argument.
        CMDLINE = 3,
    }
}

message! {
    /// `TraceStats`.
    trace_stats {
        /// `TraceStats.BufferStats`, repeated.
        BUFFER_STATS = 1,
        /// `uint32`.
        PRODUCERS_CONNECTED = 2,
        /// `uint32`.
        TOTAL_BUFFERS = 7,
        /// `uint64`: packets that were not valid.
        INVALID_PACKETS = 10,
        /// `uint64`.
        FLUSHES_REQUESTED = 12,
        /// `uint64`.
        FLUSHES_SUCCEEDED = 13,
    }
}

message! {
    /// `TraceStats.BufferStats`.
    buffer_stats {
        /// `uint64`.
        BYTES_WRITTEN = 1,
        /// `uint64`.
        CHUNKS_WRITTEN = 2,
        /// `uint64`.
        CHUNKS_OVERWRITTEN = 3,
        /// `uint64`.
        BUFFER_SIZE = 12,
        /// `uint64`.
        BYTES_OVERWRITTEN = 13,
        /// `uint64`.
        BYTES_READ = 14,
        /// `uint64`.
        CHUNKS_READ = 17,
        /// `uint64`.
        CHUNKS_DISCARDED = 18,
        /// `uint64`.
        TRACE_WRITER_PACKET_LOSS = 19,
    }
}

message! {
    /// `SystemInfo`.
    system_info {
        /// `Utsname`.
        UTSNAME = 1,
        /// `string`.
        TRACING_SERVICE_VERSION = 4,
        /// `uint32`.
        PAGE_SIZE = 6,
        /// `int32`.
        TIMEZONE_OFF_MINS = 7,
        /// `uint32`.
        NUM_CPUS = 8,
        /// `uint64`.
        SYSTEM_RAM_BYTES = 16,
    }
}

message! {
    /// `Utsname`.
    utsname {
        /// `string`.
        SYSNAME = 1,
        /// `string`.
        VERSION = 2,
        /// `string`.
        RELEASE = 3,
        /// `string`.
        MACHINE = 4,
    }
}

/// Bits of [`trace_packet::SEQUENCE_FLAGS`].
pub mod sequence_flags {
    /// Forget what the sequence said so far.
    pub const CLEARED: u32 = 1;
    /// The packet relies on what the sequence said since the last [`CLEARED`].
    pub const NEEDS: u32 = 2;
}

/// Numbers of clocks. Those up to 63 are given, 64 to 127 belong to each sequence.
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
    /// `CLOCK_BOOTTIME`, in ns: what all clocks are converted to.
    pub const BOOTTIME: u32 = 6;
    /// The largest number of a clock that means the same in all sequences.
    pub const BUILTIN_MAX: u32 = 63;
}

/// The clock of the events that are written here, one on each sequence: ns since the sequence's last event.
pub const SEQUENCE_CLOCK: u32 = 64;

numbered! {
    /// `TrackEvent.Type`.
    #[derive(Default)]
    EventType {
        /// None was given.
        #[default]
        Unspecified = 0,
        /// The start of a slice on its track.
        SliceBegin = 1,
        /// The end of the slice opened last on its track.
        SliceEnd = 2,
        /// A moment.
        Instant = 3,
        /// A sample of a counter.
        Counter = 4,
    }
}

numbered! {
    /// `CounterDescriptor.Unit`.
    #[derive(Default)]
    Unit {
        /// A bare number, or what the unit's name says.
        #[default]
        Unspecified = 0,
        /// Nanoseconds.
        TimeNs = 1,
        /// A number of things.
        Count = 2,
        /// Bytes.
        SizeBytes = 3,
    }
}

numbered! {
    /// `CounterDescriptor.BuiltinCounterType`.
    #[derive(Default)]
    CounterType {
        /// Whatever its name says.
        #[default]
        Unspecified = 0,
        /// The CPU time of the thread that it belongs to.
        ThreadTimeNs = 1,
        /// The instructions of the thread that it belongs to.
        ThreadInstructionCount = 2,
    }
}

numbered! {
    /// `TrackDescriptor.ChildTracksOrdering`: how a track's children are shown.
    #[derive(Default)]
    ChildOrdering {
        /// As the importer likes.
        #[default]
        Unspecified = 0,
        /// By name.
        Lexicographic = 1,
        /// By the time of their first event.
        Chronological = 2,
        /// By their ranks.
        Explicit = 3,
    }
}

numbered! {
    /// `TrackDescriptor.SiblingMergeBehavior`: which tracks under one parent are shown as one.
    #[derive(Default)]
    SiblingMerge {
        /// Those of one name, in most cases.
        #[default]
        Unspecified = 0,
        /// Those of one name.
        ByTrackName = 1,
        /// None.
        None = 2,
        /// Those of one key.
        ByKey = 3,
    }
}

numbered! {
    /// `LogMessage.Priority`.
    #[derive(Default)]
    Priority {
        /// None was given.
        #[default]
        Unspecified = 0,
        /// Not used.
        Unused = 1,
        /// The finest.
        Verbose = 2,
        /// For those who debug.
        Debug = 3,
        /// For those who operate.
        Info = 4,
        /// Something is odd.
        Warn = 5,
        /// Something failed.
        Error = 6,
        /// All is over.
        Fatal = 7,
    }
}
