//! The kinds of things that a field of the layout tells apart by number.

use crate::numbered::numbered;

numbered! {
    /// "Record types": [`record::TYPE`](crate::fxt::layout::record::TYPE).
    RecordType {
        /// About the trace itself.
        Metadata = 0,
        /// The clock's rate.
        Initialization = 1,
        /// Names a string by an index.
        String = 2,
        /// Names a thread by an index.
        Thread = 3,
        /// Something that happened.
        Event = 4,
        /// Bulk data.
        Blob = 5,
        /// Names an object in the traced process.
        UserspaceObject = 6,
        /// Names a process or a thread.
        KernelObject = 7,
        /// A context switch or wakeup.
        Scheduling = 8,
        /// A log message.
        Log = 9,
        /// Modules and backtraces.
        Profiler = 10,
        /// A record with a 32-bit size.
        Large = 15,
    }
}

numbered! {
    /// "Event record": [`event::KIND`](crate::fxt::layout::event::KIND).
    EventKind {
        /// A moment.
        Instant = 0,
        /// Sampled values. Payload: the counter's id.
        Counter = 1,
        /// The start of a slice on its thread.
        DurationBegin = 2,
        /// The end of the slice opened last on its thread.
        DurationEnd = 3,
        /// A whole slice. Payload: the end's timestamp.
        DurationComplete = 4,
        /// The start of an interval that may change threads. Payload: its id.
        AsyncBegin = 5,
        /// A moment in such an interval. Payload: its id.
        AsyncInstant = 6,
        /// The end of such an interval. Payload: its id.
        AsyncEnd = 7,
        /// The start of an arrow, at the enclosing slice. Payload: its id.
        FlowBegin = 8,
        /// A point the arrow passes. Payload: its id.
        FlowStep = 9,
        /// The end of the arrow. Payload: its id.
        FlowEnd = 10,
    }
}

impl EventKind {
    /// Whether a word of event-type specific data ends the record.
    #[inline]
    #[must_use]
    pub const fn has_payload(self) -> bool {
        !matches!(self, Self::Instant | Self::DurationBegin | Self::DurationEnd)
    }
}

numbered! {
    /// "Argument types": [`argument::TYPE`](crate::fxt::layout::argument::TYPE).
    ArgumentType {
        /// A name only.
        Null = 0,
        /// Signed, in the header.
        I32 = 1,
        /// Unsigned, in the header.
        U32 = 2,
        /// Signed, a word.
        I64 = 3,
        /// Unsigned, a word.
        U64 = 4,
        /// IEEE 754 double, a word.
        F64 = 5,
        /// A string reference in the header.
        String = 6,
        /// An address, a word.
        Pointer = 7,
        /// A kernel object id, a word.
        Koid = 8,
        /// One bit in the header.
        Bool = 9,
        /// A length in the header, and a stream.
        Blob = 10,
    }
}

numbered! {
    /// "Metadata record": [`metadata::KIND`](crate::fxt::layout::metadata::KIND).
    MetadataKind {
        /// Names a provider; what follows is its own.
        ProviderInfo = 1,
        /// What follows is that provider's.
        ProviderSection = 2,
        /// A provider reports something.
        ProviderEvent = 3,
        /// About the whole trace.
        TraceInfo = 4,
    }
}

numbered! {
    /// "Scheduling Record": [`scheduling::KIND`](crate::fxt::layout::scheduling::KIND).
    SchedulingKind {
        /// A context switch with references to threads and with priorities.
        LegacyContextSwitch = 0,
        /// A processor goes from one thread to another.
        ContextSwitch = 1,
        /// A thread may run again.
        ThreadWakeup = 2,
    }
}

numbered! {
    /// "Thread States".
    ThreadState {
        /// Did not run yet.
        New = 0,
        /// Runs, or could.
        Running = 1,
        /// Was stopped by another.
        Suspended = 2,
        /// Waits for something.
        Blocked = 3,
        /// Is about to end.
        Dying = 4,
        /// Has ended.
        Dead = 5,
    }
}

numbered! {
    /// "Profiler record": [`profiler::KIND`](crate::fxt::layout::profiler::KIND).
    ProfilerKind {
        /// A loaded module.
        Module = 0,
        /// A mapping of a module.
        Mmap = 1,
        /// A call stack.
        Backtrace = 2,
    }
}

numbered! {
    /// "Large record header": [`large::KIND`](crate::fxt::layout::large::KIND).
    LargeKind {
        /// Bulk data.
        Blob = 0,
    }
}

numbered! {
    /// "Large BLOB record": [`large_blob::FORMAT`](crate::fxt::layout::large_blob::FORMAT).
    LargeBlobFormat {
        /// With a timestamp, a thread and arguments.
        WithMetadata = 0,
        /// With a category and a name only.
        NoMetadata = 1,
    }
}
