//! The tables and their columns. This is a contract: [`VERSION`] counts its changes, and columns are only
//! added.
//!
//! `docs/guide/schema.md` shows the same to users; a test compares both.

/// The version of the schema. A new table or column increments it. No version removes a column, or gives it
/// another meaning.
pub const VERSION: u32 = 1;

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit floating point number.
    Float,
    /// True or false.
    Bool,
    /// UTF-8 text. Values repeat, so a batch stores each text once.
    Text,
}

impl Kind {
    /// The name of the kind in the documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Text => "text",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether a row may have no value.
    pub is_optional: bool,
    /// One or two sentences for users.
    pub doc: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// One or two sentences for users.
    pub doc: &'static str,
    /// The columns, in order.
    pub columns: &'static [Column],
    /// The column by which the rows of a batch are sorted, if there is one.
    pub sorted_by: Option<usize>,
}

impl Table {
    /// The index of the column with a name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// All tables, in the order of [`TableId`].
pub const TABLES: [Table; 10] = [
    slice::TABLE,
    instant::TABLE,
    counter::TABLE,
    flow::TABLE,
    arg::TABLE,
    thread::TABLE,
    process::TABLE,
    sched::TABLE,
    sample::TABLE,
    trace::TABLE,
];

/// The number of a table: its index in [`TABLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // `Table::doc` says it
pub enum TableId {
    Slice,
    Instant,
    Counter,
    Flow,
    Arg,
    Thread,
    Process,
    Sched,
    Sample,
    Trace,
}

impl TableId {
    /// All tables.
    pub const ALL: [Self; TABLES.len()] = [
        Self::Slice,
        Self::Instant,
        Self::Counter,
        Self::Flow,
        Self::Arg,
        Self::Thread,
        Self::Process,
        Self::Sched,
        Self::Sample,
        Self::Trace,
    ];

    /// The table.
    #[must_use]
    pub fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }

    /// The table with a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|id| id.table().name == name)
    }
}

macro_rules! optional {
    () => {
        false
    };
    (optional) => {
        true
    };
}

macro_rules! sorted {
    () => {
        None
    };
    ($column:ident) => {
        Some($column)
    };
}

/// Defines tables. Each has a module with the indices of its columns.
macro_rules! tables {
    ($(
        $table:ident $(by $sorted:ident)?: $doc:literal {
            $($column:ident: $($optional:ident)? [$kind:ident] $about:literal;)*
        }
    )*) => {
        $(
            #[allow(non_camel_case_types, non_upper_case_globals, dead_code, missing_docs)]
            pub(crate) mod $table {
                use crate::schema::{Column, Kind, Table};

                enum Index {
                    $($column),*
                }

                $(pub(crate) const $column: usize = Index::$column as usize;)*

                pub(crate) const TABLE: Table = Table {
                    name: stringify!($table),
                    doc: $doc,
                    columns: &[$(Column {
                        name: stringify!($column),
                        kind: Kind::$kind,
                        is_optional: optional!($($optional)?),
                        doc: $about,
                    }),*],
                    sorted_by: sorted!($($sorted)?),
                };
            }
        )*
    };
}

tables! {
    slice by start: "Slices: what a thread or a track did from a begin to an end." {
        id: [Int] "The number of the slice: unique among the slices and instants of a trace.";
        start: [Int] "The begin, in ns on the trace's clock.";
        duration: optional [Int] "The time from begin to end, in ns. A slice without an end of its own ends with the slice around it; null if that has none either.";
        self_time: optional [Int] "The duration without the slices inside it, in ns. Null as `duration`.";
        depth: [Int] "The number of slices around it on its track.";
        parent: optional [Int] "The `id` of the slice directly around it.";
        category: optional [Text] "Its category; several are joined with commas.";
        name: optional [Text] "Its name.";
        track: [Int] "The number of its track in the trace.";
        track_name: optional [Text] "The name of its track, if that is not a thread or process.";
        thread: optional [Int] "The `id` of its thread in the table `thread`, if its track is one.";
        tid: optional [Int] "The thread id that the system gave.";
        thread_name: optional [Text] "The name of the thread.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
        running: optional [Int] "The time in which its thread was on a processor, in ns. Null if the trace has no scheduling, or not all of it, or came through a pipe.";
        waiting: optional [Int] "The time in which its thread was ready to run, but had no processor, in ns. Null as `running`.";
    }
    instant by time: "Moments: events without a duration." {
        id: [Int] "The number of the instant: unique among the slices and instants of a trace.";
        time: [Int] "The time, in ns on the trace's clock.";
        depth: [Int] "The number of slices around it on its track.";
        parent: optional [Int] "The `id` of the slice directly around it.";
        category: optional [Text] "Its category; several are joined with commas.";
        name: optional [Text] "Its name.";
        track: [Int] "The number of its track in the trace.";
        track_name: optional [Text] "The name of its track, if that is not a thread or process.";
        thread: optional [Int] "The `id` of its thread in the table `thread`, if its track is one.";
        tid: optional [Int] "The thread id that the system gave.";
        thread_name: optional [Text] "The name of the thread.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
    }
    counter by time: "Values of counters." {
        time: [Int] "The time, in ns on the trace's clock.";
        value: [Float] "The value from this time on, multiplied to be in `unit`.";
        name: optional [Text] "The name of the counter.";
        series: optional [Text] "The series, if the counter has several.";
        unit: optional [Text] "The unit of the value: `ns`, `count`, `bytes`, or as the trace names it.";
        track: [Int] "The number of the counter's track in the trace.";
        thread: optional [Int] "The `id` of its thread in the table `thread`, if it belongs to one.";
        tid: optional [Int] "The thread id that the system gave.";
        thread_name: optional [Text] "The name of the thread.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
    }
    flow by time: "Arrows from a slice or instant to a later one." {
        time: [Int] "The time at which the flow comes to `slice_in`, in ns on the trace's clock.";
        time_out: [Int] "The time at which it leaves `slice_out`.";
        slice_out: [Int] "The `id` of the slice or instant where the arrow begins.";
        slice_in: [Int] "The `id` of the slice or instant where it ends.";
        flow: [Int] "The flow's id in the trace. Arrows of one flow have the same. Ids from 2^63 on are negative.";
    }
    arg by time: "Arguments of slices and instants. A nested value has a row for each leaf. A name that the trace gives twice, as at the begin and at the end of a slice, has two rows." {
        time: [Int] "The time of the instant, or of the begin of the slice, in ns on the trace's clock; also for an argument of the slice's end.";
        of: [Text] "The table of the owner: `slice` or `instant`.";
        owner: [Int] "The `id` of the owner.";
        flat_key: [Text] "The name. A nested one has the names around it: `request.ports`.";
        key: [Text] "As `flat_key`, with the index in each array: `request.ports[0]`.";
        value_type: [Text] "The type in the trace: `int`, `uint`, `float`, `bool`, `text`, `pointer`, `koid`, `bytes` or `null`.";
        int_value: optional [Int] "The value, if the type is `int`, `uint`, `pointer` or `koid`. Values from 2^63 on are negative.";
        float_value: optional [Float] "The value, if the type is `float`.";
        bool_value: optional [Bool] "The value, if the type is `bool`.";
        text_value: optional [Text] "The value, if the type is `text`; in hexadecimal if it is `bytes`.";
    }
    thread: "Threads." {
        id: [Int] "The number of the thread in the trace.";
        tid: [Int] "The thread id that the system gave.";
        name: optional [Text] "The name, the latest if it changed.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
        is_main: optional [Bool] "Whether it is the process's first thread.";
    }
    process: "Processes." {
        id: [Int] "The number of the process in the trace.";
        pid: [Int] "The process id that the system gave.";
        name: optional [Text] "The name: that of the executable, as a rule.";
        command_line: optional [Text] "The program and its arguments, separated by spaces.";
    }
    sched by start: "What threads did: stretches of time in one state." {
        start: [Int] "The begin, in ns on the trace's clock.";
        duration: optional [Int] "The time in this state, in ns. Null if the trace ends before.";
        state: [Text] "`running`, `runnable` (ready, without a processor), `sleeping`, `uninterruptible` or `stopped`.";
        cpu: optional [Int] "The processor on which the thread runs; null in other states.";
        tid: [Int] "The thread id that the system gave.";
        thread: optional [Int] "The `id` in the table `thread`, if only one thread has this `tid`.";
        thread_name: optional [Text] "The name of the thread.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
        waker: optional [Int] "The thread id of the thread that ended this sleep, if the trace has it.";
    }
    sample by time: "Stack samples: which functions a thread was in at a moment." {
        time: [Int] "The time, in ns on the trace's clock.";
        kind: [Text] "`on_cpu` for a thread that ran, `off_cpu` for one that left its processor, `event` for one that recorded an event or was in a slow slice, `wall` for one that was sampled by the clock, running or asleep.";
        function: optional [Text] "The innermost function; module and address if the trace does not name it.";
        stack: optional [Text] "All functions, the outermost first, separated by `;`.";
        tid: [Int] "The thread id that the system gave.";
        thread: optional [Int] "The `id` in the table `thread`, if only one thread has this `tid`.";
        thread_name: optional [Text] "The name of the thread.";
        process: optional [Int] "The `id` of its process in the table `process`.";
        pid: optional [Int] "The process id that the system gave.";
        process_name: optional [Text] "The name of the process.";
    }
    trace: "The trace itself, one row: where it comes from, and how much of it is missing." {
        schema: [Int] "The version of this schema.";
        uuid: optional [Text] "The trace's UUID.";
        host: optional [Text] "The machine, as `uname -srvm` shows it.";
        executable: optional [Text] "The name of the process; that of the first one if there are several.";
        build_id: optional [Text] "The build id of the executable, in hexadecimal, if the trace has stack samples in it.";
        writer: optional [Text] "The program that wrote the trace.";
        clock: optional [Int] "The clock of all times, as Perfetto's builtin clocks are numbered: 3 is the time since boot without sleep, 6 with it.";
        since_1970: optional [Int] "What to add to a time of the trace for ns since 1970-01-01 UTC.";
        start: optional [Int] "The time of the first event, in ns on the trace's clock.";
        end: optional [Int] "The time of the last event.";
        events: [Int] "The number of events that were read.";
        is_whole: [Bool] "Whether the file ends with a whole record. False for one that was cut, as that of a killed process may be. Of a damaged one, nothing is exported.";
        losses: [Int] "The number of places at which events are missing.";
        lost_events: [Int] "The number of events that are missing in these places, as far as known.";
        lost_buffer_full: optional [Int] "Events lost because the ring was full.";
        lost_reentrant: optional [Int] "Events lost because their thread was writing another one.";
        lost_too_large: optional [Int] "Events lost because they were larger than a chunk.";
        lost_thread_exit: optional [Int] "Events lost at the exit of their thread.";
        lost_output: optional [Int] "Events lost because the output refused them.";
        lost_arguments: optional [Int] "Arguments (not events) for which their events had no room.";
        lost_damaged: optional [Int] "Chunks (not events) that were damaged.";
        lost_kernel_ring: optional [Int] "Thread states, samples and stacks (not events) that found no room in their ring.";
        defects: [Int] "Parts of the file that contradict its format, and were passed over.";
        left_out: [Int] "Parts of the trace for which these tables have no place or no memory; also ends without a begin, and slices that overlap others.";
    }
}
