//! The content of a trace, independent of its format.

mod track;

use std::collections::HashSet;

use hairline_formats::Value;
use hairline_formats::track_event::{CounterValue, Priority, SourceLocation};

pub use crate::model::track::{CounterTrack, Track, TrackId, TrackKind};
use crate::samples::{HeapSums, Sample, Stack, Symbols};
use crate::scheduling::{Copied, Scheduling};
use crate::{Text, TraceFormat};

/// The content of one record, packet or JSON object.
///
/// ```
/// use hairline_convert::{Context, Item, TrackKind, open};
///
/// let json = br#"[{"name":"read","ph":"X","ts":1,"dur":2,"pid":7,"tid":8}]"#;
/// let (mut reader, mut context) = (open(&json[..], None)?, Context::new());
/// let (mut tracks, mut events) = (Vec::new(), Vec::new());
/// while let Some(item) = reader.next(&mut context)? {
///     match item {
///         Item::Track(track) => tracks.push(track),
///         Item::Event(event) => events.push((event.track, event.time)),
///         _ => {}
///     }
/// }
/// let thread = tracks.iter().find(|track| matches!(track.kind, TrackKind::Thread { .. })).unwrap();
/// assert_eq!(tracks[0].id, thread.parent.unwrap()); // the process, which is described first
/// assert_eq!(events, [(thread.id, 1_000)]);
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// Facts about the whole trace. May occur several times, each time with the new facts only.
    Trace(Trace<'a>),
    /// The description of a track. Precedes the first event on the track. A later description of the same
    /// track replaces it.
    Track(Track),
    /// An event.
    Event(Event<'a>),
    /// Events are missing from the trace.
    Loss(Loss),
    /// Changes of thread states.
    Scheduling(Scheduling<'a>),
    /// A stack sample.
    Sample(Sample<'a>),
    /// What a call stack has allocated, in a dump of a heap profile.
    Heap(HeapSums<'a>),
    /// Names for an address of stack samples or heap profiles. May follow them.
    Symbols(Symbols<'a>),
    /// Data that the reader has understood, and that is part of later items. A writer of its format copies
    /// it, other writers ignore it.
    Copied(Copied<'a>),
    /// Data that only its own format can express. A writer of the same format may copy it; other writers
    /// count it.
    Foreign {
        /// The plural name for the [`Report`](crate::Report), for example "kernel objects".
        what: &'static str,
        /// The format of the bytes.
        format: TraceFormat,
        /// The whole record (FXT), TracePacket without its length, or JSON object. Empty if it depends on
        /// tables of its input, so that no writer can copy it.
        bytes: &'a [u8],
    },
}

/// Facts about the whole trace. An unknown fact is `None` or empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace<'a> {
    /// The trace's UUID.
    pub uuid: Option<u128>,
    /// The program or provider that wrote the trace.
    pub writer: Option<&'a str>,
    /// The machine, as in `uname`: sysname, release, version, machine.
    pub system: Option<[&'a str; 4]>,
    /// Readings of several clocks at one moment. The first is the clock of the event times.
    pub clocks: &'a [Clock],
}

/// The reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The clock's id: a [builtin clock](hairline_formats::track_event::fields::clock).
    pub id: u32,
    /// In nanoseconds.
    pub time: u64,
}

/// The categories of an event. Nearly all events have exactly one. It is stored by value because a reader has
/// no place for a slice of borrowed texts.
#[derive(Clone, Copy, Debug, Default)]
pub enum Categories<'a> {
    /// No category.
    #[default]
    None,
    /// One category.
    One(Text<'a>),
    /// Several categories, decoded on demand.
    Many(&'a dyn Texts),
}

impl Categories<'_> {
    /// Calls `show` for each category, in order.
    pub fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        match self {
            Self::None => {}
            Self::One(text) => show(*text),
            Self::Many(texts) => texts.each(show),
        }
    }

    /// Sets `joined` to the categories, separated by commas, as importers do.
    pub(crate) fn join(&self, joined: &mut String) {
        joined.clear();
        self.each(&mut |category| {
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(category.text);
        });
    }
}

/// A list of texts, decoded on demand.
///
/// ```
/// use hairline_convert::{Categories, Text};
///
/// let texts: &[Text<'_>] = &["net".into(), "io".into()];
/// let mut all = Vec::new();
/// Categories::Many(&texts).each(&mut |text| all.push(text.text.to_owned()));
/// assert_eq!(all, ["net", "io"]);
/// ```
pub trait Texts {
    /// Calls `show` for each text, in order.
    fn each(&self, show: &mut dyn FnMut(Text<'_>));
}

impl std::fmt::Debug for dyn Texts + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        self.each(&mut |text| {
            list.entry(&text.text);
        });
        list.finish()
    }
}

impl Texts for &[Text<'_>] {
    fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        self.iter().for_each(|text| show(*text));
    }
}

/// So many counters of an event are compared with each other.
const FEW_COUNTERS: usize = 16;

/// An event.
///
/// ```
/// use hairline_convert::{Categories, Event, EventKind, TrackId};
///
/// let event = Event {
///     name: "read".into(),
///     categories: Categories::One("net".into()),
///     ..Event::new(1_000, TrackId(1), EventKind::Complete { duration: 500 })
/// };
/// assert!(event.args.is_empty() && event.ending_flows().is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The time in nanoseconds, on the trace's clock.
    pub time: i64,
    /// The track of the event.
    pub track: TrackId,
    /// The kind of event.
    pub kind: EventKind,
    /// The name, or "".
    pub name: Text<'a>,
    /// The categories.
    pub categories: Categories<'a>,
    /// The arguments.
    pub args: &'a dyn Arguments,
    /// Values of other counters at the same moment, as absolute values. For a complete slice, the second
    /// value of a counter is the value at the end of the slice.
    pub extra_counters: &'a [(TrackId, CounterValue)],
    /// What few events have, read on demand.
    pub details: Option<&'a dyn Detailed>,
}

impl<'a> Event<'a> {
    /// Creates an event with a time, a track and a kind only.
    #[inline]
    #[must_use]
    pub fn new(time: i64, track: TrackId, kind: EventKind) -> Self {
        Self {
            time,
            track,
            kind,
            name: Text::default(),
            categories: Categories::None,
            args: &NoArguments,
            extra_counters: &[],
            details: None,
        }
    }

    /// The values of the extra counters, with the time that has passed since the begin of the event: the
    /// duration of a complete slice for a counter's second value, otherwise 0.
    #[inline]
    pub fn counter_values(&self) -> impl Iterator<Item = (TrackId, CounterValue, i64)> {
        let duration = match self.kind {
            EventKind::Complete { duration } if !self.extra_counters.is_empty() => duration.max(0),
            _ => 0,
        };
        let (all, mut many) = (self.extra_counters, HashSet::new());
        all.iter().enumerate().map(move |(at, (track, value))| {
            let mut is_second = || match all.len() {
                ..=FEW_COUNTERS => all[..at].iter().any(|(before, _)| before == track),
                _ => !many.insert(*track),
            };
            let passed = if duration > 0 && is_second() { duration } else { 0 };
            (*track, *value, passed)
        })
    }

    /// Returns the details of the event; the default if it has none.
    #[inline]
    #[must_use]
    pub fn details(&self) -> EventDetails<'a> {
        self.details.map_or(EventDetails::NONE, Detailed::details)
    }

    /// Ids of the flows that go through the event.
    #[inline]
    #[must_use]
    pub fn flows(&self) -> &'a [u64] {
        self.details().flows
    }

    /// Ids of the flows that end at the event.
    #[inline]
    #[must_use]
    pub fn ending_flows(&self) -> &'a [u64] {
        self.details().ending_flows
    }

    /// The flow that the event is bound to.
    #[inline]
    #[must_use]
    pub fn bound(&self) -> Option<(u64, FlowStep)> {
        self.details().bound
    }

    /// An id that correlated events share.
    #[inline]
    #[must_use]
    pub fn correlation(&self) -> Option<&'a str> {
        self.details().correlation
    }

    /// The source location.
    #[inline]
    #[must_use]
    pub fn location(&self) -> Option<SourceLocation<'a>> {
        self.details().location
    }

    /// The log message.
    #[inline]
    #[must_use]
    pub fn log(&self) -> Option<Log<'a>> {
        self.details().log
    }

    /// The call stack.
    #[inline]
    #[must_use]
    pub fn stack(&self) -> Option<&'a dyn Stack> {
        self.details().stack
    }
}

/// What few events have. Most events have none of it, so an [`Event`] refers to it.
///
/// ```
/// use hairline_convert::{Event, EventDetails, EventKind, TrackId};
///
/// let details = EventDetails { ending_flows: &[7], ..EventDetails::default() };
/// let event = Event { details: Some(&details), ..Event::new(1_000, TrackId(1), EventKind::Instant) };
/// assert_eq!((event.flows(), event.ending_flows()), (&[][..], &[7][..]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EventDetails<'a> {
    /// Ids of the flows that go through the event.
    pub flows: &'a [u64],
    /// Ids of the flows that end at the event.
    pub ending_flows: &'a [u64],
    /// The flow that the event is bound to: JSON's `bind_id`. Such a flow [lasts](EventKind::Flow::lasts).
    pub bound: Option<(u64, FlowStep)>,
    /// An id that correlated events share.
    pub correlation: Option<&'a str>,
    /// The source location.
    pub location: Option<SourceLocation<'a>>,
    /// The log message.
    pub log: Option<Log<'a>>,
    /// The call stack at the event.
    pub stack: Option<&'a dyn Stack>,
    /// What the call stack counts for in sums, for example bytes; `None` if each counts the same.
    pub stack_weight: Option<f64>,
}

impl EventDetails<'_> {
    const NONE: Self = Self {
        flows: &[],
        ending_flows: &[],
        bound: None,
        correlation: None,
        location: None,
        log: None,
        stack: None,
        stack_weight: None,
    };

    /// Whether there are any.
    pub(crate) fn has_any(&self) -> bool {
        !self.flows.is_empty()
            || !self.ending_flows.is_empty()
            || self.bound.is_some()
            || self.correlation.is_some()
            || self.location.is_some()
            || self.log.is_some()
            || self.stack.is_some()
            || self.stack_weight.is_some()
    }
}

/// The source of an event's details: themselves, or a reader that makes them on demand.
pub trait Detailed {
    /// Returns the details.
    fn details(&self) -> EventDetails<'_>;
}

impl Detailed for EventDetails<'_> {
    fn details(&self) -> EventDetails<'_> {
        *self
    }
}

impl std::fmt::Debug for dyn Detailed + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.details().fmt(f)
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A slice begins.
    Begin,
    /// The innermost open slice of the track ends. If the event has a name, it equals the name of the begin.
    End,
    /// A slice with begin and duration. It may precede its enclosing slices, even those with the same begin,
    /// because tracers write it when it ends.
    Complete {
        /// In nanoseconds.
        duration: i64,
    },
    /// An instant.
    Instant,
    /// A counter value. Always absolute: readers add up increments.
    Counter(CounterValue),
    /// A flow begins at, passes through or ends at the slice of this thread that is open at this time.
    /// Formats that list the flows of a slice use [`EventDetails::flows`].
    Flow {
        /// The flow's id.
        id: u64,
        /// Whether the flow begins, passes through or ends.
        step: FlowStep,
        /// The flow belongs to the next slice that begins on this thread, not to the open one: JSON's flow
        /// ends without `bp`.
        to_next: bool,
        /// Whether the flow stays after an end, as in JSON and in Perfetto's legacy events: an arrow leads to
        /// each further end from the latest begin or step. In FXT, an end closes the flow, and a later event
        /// with the same id begins a new one.
        lasts: bool,
    },
}

/// The role of an event in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowStep {
    /// The first event.
    Begin,
    /// An event between the first and the last.
    Step,
    /// The last event, unless the flow [lasts](EventKind::Flow::lasts).
    End,
}

/// A log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log<'a> {
    /// The text.
    pub body: &'a str,
    /// The priority.
    pub priority: Priority,
    /// What readers show as the tag, `file:line`.
    pub tag: Option<SourceLocation<'a>>,
}

impl Log<'_> {
    /// What reports say of formats without tags.
    pub(crate) const NO_TAG: &'static str = "tags of log messages left out";
}

/// Events are missing from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The track with missing events, if known.
    pub track: Option<TrackId>,
    /// The time of the loss, if known.
    pub time: Option<i64>,
    /// The number of missing events; 0 if unknown.
    pub events: u64,
}

/// The arguments of an event, decoded on demand.
///
/// ```
/// use hairline_convert::{Arguments, NoArguments, Text};
/// use hairline_formats::Value;
///
/// struct Request {
///     bytes: u64,
/// }
/// impl Arguments for Request {
///     fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
///         show("bytes".into(), Value::U64(self.bytes));
///     }
/// }
///
/// assert!(NoArguments.is_empty() && !Request { bytes: 512 }.is_empty());
/// Request { bytes: 512 }.each(&mut |name, value| {
///     assert_eq!((name.text, value), ("bytes", Value::U64(512)));
/// });
/// ```
pub trait Arguments {
    /// Calls `show` with the name and value of each argument, in order. The id of a [`Value::Interned`] is
    /// its [`StringId`](crate::StringId) plus 1.
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>));

    /// Whether there are no arguments.
    fn is_empty(&self) -> bool {
        let mut is_empty = true;
        self.each(&mut |_, _| is_empty = false);
        is_empty
    }
}

impl std::fmt::Debug for dyn Arguments + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        self.each(&mut |name, value| {
            map.entry(&name.text, &value);
        });
        map.finish()
    }
}

/// An empty list of arguments.
#[derive(Clone, Copy, Debug)]
pub struct NoArguments;

impl Arguments for NoArguments {
    fn each(&self, _: &mut dyn FnMut(Text<'_>, Value<'_>)) {}

    fn is_empty(&self) -> bool {
        true
    }
}

impl Arguments for &[(Text<'_>, Value<'_>)] {
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
        self.iter().for_each(|(name, value)| show(*name, *value));
    }

    fn is_empty(&self) -> bool {
        <[_]>::is_empty(self)
    }
}
