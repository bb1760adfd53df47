//! What was read.

use hairline_convert::Report;

use crate::schema::TABLES;

/// What was read.
#[derive(Debug, Default)]
pub struct Summary {
    /// Facts about the trace.
    pub facts: Facts,
    /// The number of rows of each table, by [`TableId`](crate::TableId).
    pub rows: [u64; TABLES.len()],
    /// What the reader did not understand.
    pub report: Report,
    /// What the tables have no place or no memory for.
    pub left_out: Report,
    /// The number of events that came too late to be put in order: slices around them may be untrue. 0 if the
    /// trace can be opened twice, since all its events are sorted then.
    pub late: u64,
    /// The error, if the trace ends early. The tables have all before it.
    pub stopped: Option<hairline_convert::Error>,
    /// The number of bytes of the trace.
    pub bytes: u64,
}

/// Facts about the trace. An unknown one is `None`, 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The trace's UUID.
    pub uuid: Option<u128>,
    /// The machine, as in `uname`: sysname, release, version, machine.
    pub system: Option<[String; 4]>,
    /// The program or provider that wrote the trace.
    pub writer: Option<String>,
    /// The name of the process; that of the first one with a name, if there are several.
    pub executable: Option<String>,
    /// The clock of all times.
    pub clock: Option<u32>,
    /// What to add to a time of the trace for the time since 1970 in ns, UTC.
    pub since_1970: Option<i64>,
    /// The time of the first event and the last one, in ns on the trace's clock.
    pub span: Option<(i64, i64)>,
    /// The number of events.
    pub events: u64,
    /// The number of places at which events are missing, and the number of events that are missing there.
    pub losses: u64,
    /// See `losses`.
    pub lost_events: u64,
    /// Losses by reason, if the trace has them.
    pub lost: Vec<(String, u64)>,
    /// A hash of all that the trace says: distinguishes traces without a UUID. 0 if the trace has one.
    pub content: u64,
}

impl Facts {
    /// The trace's UUID, as text.
    #[must_use]
    pub fn uuid_text(&self) -> Option<String> {
        let hex = format!("{:032x}", self.uuid?);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
        Some(parts.join("-"))
    }
}
