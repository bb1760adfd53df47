//! The types and kinds that records and arguments store as numbers.

use crate::numbered::numbered;

numbered! {
    /// "Record types": [`record::TYPE`](crate::fxt::layout::record::TYPE).
    #[non_exhaustive]
    RecordType {
        Metadata = 0, "About the trace itself.";
        Initialization = 1, "The clock's rate.";
        String = 2, "Gives a string an index.";
        Thread = 3, "Gives a thread an index.";
        Event = 4, "An event.";
        Blob = 5, "Bulk data.";
        UserspaceObject = 6, "The name of an object in the traced process.";
        KernelObject = 7, "The name of a process or a thread.";
        Scheduling = 8, "A context switch or a wakeup.";
        Log = 9, "A log message.";
        Profiler = 10, "A module, a mapping or a backtrace.";
        Large = 15, "A record whose size has 32 bits.";
    }

    /// "Event record": [`event::KIND`](crate::fxt::layout::event::KIND).
    ///
    /// ```
    /// use hairline_formats::fxt::EventKind;
    ///
    /// assert_eq!(EventKind::from_number(4), Some(EventKind::DurationComplete));
    /// assert!(EventKind::DurationComplete.has_payload()); // its end
    /// assert_eq!(EventKind::from_number(11), None);
    /// ```
    EventKind {
        Instant = 0, "A moment.";
        Counter = 1, "Samples of a counter. Payload: the counter's id.";
        DurationBegin = 2, "The begin of a slice on its thread.";
        DurationEnd = 3, "The end of the innermost open slice on its thread.";
        DurationComplete = 4, "A whole slice. Payload: the end's timestamp.";
        AsyncBegin = 5, "The begin of an interval, which can end on another thread. Payload: its id.";
        AsyncInstant = 6, "A moment in an interval. Payload: the interval's id.";
        AsyncEnd = 7, "The end of an interval. Payload: the interval's id.";
        FlowBegin = 8, "The begin of a flow at the enclosing slice. Payload: the flow's id.";
        FlowStep = 9, "A step of a flow at the enclosing slice. Payload: the flow's id.";
        FlowEnd = 10, "The end of a flow at the enclosing slice. Payload: the flow's id.";
    }

    /// "Argument types": [`argument::TYPE`](crate::fxt::layout::argument::TYPE).
    #[non_exhaustive]
    ArgumentType {
        Null = 0, "A name without a value.";
        I32 = 1, "A signed integer in the header.";
        U32 = 2, "An unsigned integer in the header.";
        I64 = 3, "A signed integer in a word.";
        U64 = 4, "An unsigned integer in a word.";
        F64 = 5, "An IEEE 754 double in a word.";
        String = 6, "A string reference in the header.";
        Pointer = 7, "An address in a word.";
        Koid = 8, "A kernel object id in a word.";
        Bool = 9, "One bit in the header.";
        Blob = 10, "A length in the header, and a stream.";
    }

    /// "Metadata record": [`metadata::KIND`](crate::fxt::layout::metadata::KIND).
    #[non_exhaustive]
    MetadataKind {
        ProviderInfo = 1, "Names a provider and begins a section of it.";
        ProviderSection = 2, "Begins a section of a provider: the records that follow belong to it.";
        ProviderEvent = 3, "Something that happened to a provider.";
        TraceInfo = 4, "About the whole trace.";
    }

    /// "Scheduling Record": [`scheduling::KIND`](crate::fxt::layout::scheduling::KIND).
    #[non_exhaustive]
    SchedulingKind {
        LegacyContextSwitch = 0, "A context switch with thread references and priorities.";
        ContextSwitch = 1, "A processor switches from one thread to another.";
        ThreadWakeup = 2, "A thread may run again.";
    }

    /// "Thread States".
    #[non_exhaustive]
    ThreadState {
        New = 0, "The thread has not run yet.";
        Running = 1, "The thread runs or is ready to run.";
        Suspended = 2, "Another thread has suspended it.";
        Blocked = 3, "The thread waits.";
        Dying = 4, "The thread is about to end.";
        Dead = 5, "The thread has ended.";
    }

    /// "Profiler record": [`profiler::KIND`](crate::fxt::layout::profiler::KIND).
    #[non_exhaustive]
    ProfilerKind {
        Module = 0, "A loaded module.";
        Mmap = 1, "A mapping of a module.";
        Backtrace = 2, "A call stack.";
    }

    /// "Large record header": [`large::KIND`](crate::fxt::layout::large::KIND).
    #[non_exhaustive]
    LargeKind {
        Blob = 0, "Bulk data.";
    }

    /// "Large BLOB record": [`large_blob::FORMAT`](crate::fxt::layout::large_blob::FORMAT).
    #[non_exhaustive]
    LargeBlobFormat {
        WithMetadata = 0, "With a timestamp, a thread and arguments.";
        NoMetadata = 1, "With a category and a name only.";
    }
}

impl EventKind {
    /// Whether the record ends with a word of event-type specific data.
    #[inline]
    #[must_use]
    pub const fn has_payload(self) -> bool {
        !matches!(self, Self::Instant | Self::DurationBegin | Self::DurationEnd)
    }
}
