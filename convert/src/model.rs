//! What a trace says, whatever its format.

use hairline_formats::Value;
use hairline_formats::track_event::{
    ChildOrdering, CounterType, CounterValue, Priority, SiblingMerge, SourceLocation, Unit,
};

use crate::format::TraceFormat;
use crate::strings::Text;

/// What one record, packet or object says.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// Of the trace as a whole. May come more than once, each time with what is new.
    Trace(Trace<'a>),
    /// What is known of a track. Comes before the first event on it, and again when more is known: it then replaces what was said.
    Track(Track<'a>),
    /// Something that happened.
    Event(Event<'a>),
    /// Something is not in the trace.
    Loss(Loss),
    /// Something that no other format has a word for, as it stands in its own: a writer of that format may copy it. Others count it.
    Foreign {
        /// What it is, as [`Report`](crate::Report) has it: "context switches".
        what: &'static str,
        /// Where it is from.
        format: TraceFormat,
        /// Its bytes, whole: a record of FXT, a TracePacket without its length, an object of JSON. They may refer to strings and threads
        /// of their source: only one that does not is worth copying.
        bytes: &'a [u8],
    },
}

/// Of a trace as a whole; what is not known is None or 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace<'a> {
    /// Its own number.
    pub uuid: Option<u128>,
    /// The program that wrote it, or the provider.
    pub writer: Option<&'a str>,
    /// The machine: `uname`'s sysname, release, version, machine.
    pub system: Option<[&'a str; 4]>,
    /// What clocks showed at one moment: the first is that of the events' times.
    pub clocks: &'a [Clock],
}

/// What a clock showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Which: a [builtin clock](hairline_formats::track_event::fields::clock).
    pub id: u32,
    /// Nanoseconds.
    pub time: u64,
}

/// The number of a track, from 0, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// Where events lie. What is not known is None, "" or a default.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a> {
    /// Its number.
    pub id: TrackId,
    /// What it is.
    pub kind: TrackKind<'a>,
    /// The track above it: a thread's is its process. One that was told of before.
    pub parent: Option<TrackId>,
    /// Its name: of a process, a thread, a counter.
    pub name: &'a str,
    /// What it is about, in a sentence or two.
    pub description: &'a str,
    /// How the tracks below it are shown.
    pub child_ordering: ChildOrdering,
    /// Its place among its siblings, the smallest first, where the parent's order is explicit.
    pub rank: Option<i32>,
    /// Which of its siblings are shown in one row with it.
    pub merge: SiblingMerge,
    /// What those have in common with it, with [`SiblingMerge::ByKey`].
    pub merge_key: &'a str,
    /// The number that its source has for it (a track's uuid), to tell it from others of the same name; 0 is none.
    pub source_id: u64,
}

impl<'a> Track<'a> {
    /// A track of which nothing more is known.
    #[must_use]
    pub fn new(id: TrackId, kind: TrackKind<'a>) -> Self {
        Self {
            id,
            kind,
            parent: None,
            name: "",
            description: "",
            child_ordering: ChildOrdering::Unspecified,
            rank: None,
            merge: SiblingMerge::Unspecified,
            merge_key: "",
            source_id: 0,
        }
    }
}

/// What a track is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TrackKind<'a> {
    /// A process; events on it are of no thread in particular.
    Process {
        /// Its number.
        pid: u64,
        /// Program and arguments.
        command_line: &'a [String],
    },
    /// A thread: slices on it nest.
    Thread {
        /// The process's number.
        pid: u64,
        /// Its number.
        tid: u64,
    },
    /// A place for slices that nest. Without a parent: a tree of its own.
    Slices,
    /// An interval that lives on no thread, by the number that it has in FXT and JSON ("async events"). What begins and ends
    /// with one number lies on one such track.
    Async {
        /// The number: unique in its process if there is a parent, in the trace if not.
        id: u64,
        /// What tells equal numbers apart: its category, or a scope.
        scope: &'a str,
    },
    /// A place for samples of a number.
    Counter(CounterTrack<'a>),
}

/// Of a counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterTrack<'a> {
    /// What its numbers count.
    pub unit: Unit,
    /// The same in a word, where [`Unit`] has none for it.
    pub unit_name: &'a str,
    /// What a number is to be multiplied with to be in that unit.
    pub multiplier: i64,
    /// What it is, if it is one that importers know.
    pub builtin: CounterType,
    /// Counters with the same key share one scale.
    pub y_axis_share_key: &'a str,
    /// The number that tells counters of one name apart (FXT's counter id, JSON's id); 0 is none.
    pub number: u64,
    /// The series: FXT's argument name, JSON's key. "" or "value" is the only one.
    pub series: &'a str,
}

impl Default for CounterTrack<'_> {
    /// A counter of bare numbers.
    fn default() -> Self {
        Self {
            unit: Unit::Unspecified,
            unit_name: "",
            multiplier: 1,
            builtin: CounterType::Unspecified,
            y_axis_share_key: "",
            number: 0,
            series: "",
        }
    }
}

/// An event's categories: nearly always one, which is here by value, since a reader has nowhere to keep a slice of what it borrows.
#[derive(Clone, Copy, Debug, Default)]
pub enum Categories<'a> {
    /// There is none.
    #[default]
    None,
    /// There is one.
    One(Text<'a>),
    /// There are more, read where they stand.
    Many(&'a dyn Texts),
}

impl Categories<'_> {
    /// Shows each, in their order.
    pub fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        match self {
            Self::None => {}
            Self::One(text) => show(*text),
            Self::Many(texts) => texts.each(show),
        }
    }
}

/// Texts, read where they stand.
pub trait Texts {
    /// Shows each, in their order.
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

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When, in nanoseconds on the trace's clock.
    pub time: i64,
    /// Where.
    pub track: TrackId,
    /// What.
    pub kind: EventKind,
    /// Its name; "" is none.
    pub name: Text<'a>,
    /// Its categories.
    pub categories: Categories<'a>,
    /// Names and values.
    pub args: &'a dyn Arguments,
    /// Flows that go through it.
    pub flows: &'a [u64],
    /// Flows that end at it.
    pub ending_flows: &'a [u64],
    /// What else was sampled at that moment: counter tracks, and the values (never differences). Of a complete slice, the second value on
    /// a track is that at its end.
    pub extra_counters: &'a [(TrackId, CounterValue)],
    /// What it shares with others.
    pub correlation: Option<&'a str>,
    /// Where in the source it is.
    pub location: Option<SourceLocation<'a>>,
    /// What it says to people.
    pub log: Option<Log<'a>>,
}

impl<'a> Event<'a> {
    /// An event that says nothing but what happened when.
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
            flows: &[],
            ending_flows: &[],
            extra_counters: &[],
            correlation: None,
            location: None,
            log: None,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A slice begins.
    Begin,
    /// The innermost open slice of the track ends. A name, if it has one, must be that of the begin.
    End,
    /// A slice that is over: begin and duration, in nanoseconds. It may come before the slices around it, even before one that begins at
    /// the same time: tracers write it when it ends.
    Complete {
        /// Nanoseconds.
        duration: i64,
    },
    /// A moment.
    Instant,
    /// A counter showed this. Never a difference: readers add those up.
    Counter(CounterValue),
    /// A flow begins at, goes through or ends at the slice of this thread that is open at this time. Formats that say this with the
    /// slice itself use [`Event::flows`].
    Flow {
        /// The flow's number.
        id: u64,
        /// Which of its ends.
        step: FlowStep,
        /// At the slice that begins next on this thread, not the one that is open: JSON's flow ends without `bp`.
        to_next: bool,
    },
}

/// A point of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowStep {
    /// Its first.
    Begin,
    /// One between.
    Step,
    /// Its last.
    End,
}

/// A message to be read by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log<'a> {
    /// The text.
    pub body: &'a str,
    /// How much it matters.
    pub priority: Priority,
}

/// Something is not in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Where events are missing, if that is known.
    pub track: Option<TrackId>,
    /// When, if that is known.
    pub time: Option<i64>,
    /// How many; 0: some.
    pub events: u64,
}

/// An event's arguments, read where they stand.
pub trait Arguments {
    /// Shows each, in their order: name and value. The number of a [`Value::Interned`] is its [`StringId`] and 1.
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>));

    /// Whether there is none.
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

/// No arguments.
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
