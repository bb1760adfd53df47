//! Events, frames and samples, for reading and for writing. The fields have the names of the format.

use std::borrow::Cow;

use crate::trace_event_json::json::Json;
use crate::trace_event_json::phase::{InstantScope, Phase};
use crate::{Entries, Value};

/// An event ("Event Descriptions" in the document).
///
/// Absent fields are `None`, "" or false, and are not written. If a text field has a value of another type in
/// the trace, it is the JSON of that value.
///
/// ```
/// use hairline_formats::trace_event_json::{Args, Item, JsonReader};
///
/// let trace = br#"[{"name": "read", "cat": "net,io", "ph": "i", "ts": 1.5, "args": {"n": 3}, "x": 1}]"#;
/// let mut reader = JsonReader::new(&trace[..]);
/// let Some((_, Item::Event(event))) = reader.next()? else { panic!() };
/// assert_eq!((&*event.cat, event.ts, event.dur), ("net,io", Some(1_500), None));
/// assert_eq!(event.skipped, 1); // the member x
/// let Args::Json(args) = event.args else { panic!() };
/// assert_eq!(args.text(), r#"{"n": 3}"#);
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// The categories, separated by commas.
    pub cat: Cow<'a, str>,
    /// The phase. `None` if it is not a single character.
    pub ph: Option<Phase>,
    /// The time in nanoseconds. The trace has microseconds; more than three decimals are rounded.
    pub ts: Option<i64>,
    /// The duration of a complete event, in nanoseconds like [`ts`](Self::ts).
    pub dur: Option<i64>,
    /// The time on the thread's CPU clock, in nanoseconds.
    pub tts: Option<i64>,
    /// The duration on the thread's CPU clock, in nanoseconds.
    pub tdur: Option<i64>,
    /// The process.
    pub pid: Option<Id<'a>>,
    /// The thread.
    pub tid: Option<Id<'a>>,
    /// The id of the interval, flow, object or counter.
    pub id: Option<Id<'a>>,
    /// The same id, with its scope: the process or the trace ("Async Events").
    pub id2: Id2<'a>,
    /// The scope of the id: equal ids of different scopes are different.
    pub scope: Cow<'a, str>,
    /// The arguments.
    pub args: Args<'a>,
    /// The slice at which a flow ends: "e" for the enclosing one, otherwise the next one ("Flow Events").
    pub bp: Cow<'a, str>,
    /// The scope of an instant.
    pub s: Option<InstantScope>,
    /// The stack at the begin, as an id in `stackFrames` ("Stack Traces on Duration Events").
    pub sf: Option<Id<'a>>,
    /// The stack at the begin, as an array of frames.
    pub stack: Option<Json<'a>>,
    /// The stack at the end, as an id in `stackFrames`.
    pub esf: Option<Id<'a>>,
    /// The stack at the end, as an array of frames.
    pub estack: Option<Json<'a>>,
    /// The name of the colour.
    pub cname: Cow<'a, str>,
    /// The flow of which the slice is a part.
    pub bind_id: Option<Id<'a>>,
    /// Whether the flow enters the slice.
    pub flow_in: bool,
    /// Whether the flow leaves the slice.
    pub flow_out: bool,
    /// The number of unknown fields. It is not written.
    pub skipped: u32,
}

/// An id: a number or text.
///
/// ```
/// use hairline_formats::trace_event_json::Id;
///
/// assert_eq!(Id::Text("0x1f".into()).number(), Some(31));
/// assert_eq!(Id::Negative(-1).number(), Some(-1));
/// assert_eq!(Id::Text("request 7".into()).number(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// An integer.
    Number(u64),
    /// A negative integer.
    Negative(i64),
    /// Text, or a number that is no 64-bit integer.
    Text(Cow<'a, str>),
}

impl Id<'_> {
    /// Returns the number, also of text that is decimal, or hexadecimal after `0x`.
    #[must_use]
    pub fn number(&self) -> Option<i128> {
        match self {
            Self::Number(number) => Some(i128::from(*number)),
            Self::Negative(number) => Some(i128::from(*number)),
            Self::Text(text) => match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
                None => {
                    text.parse::<i64>().map(i128::from).or_else(|_| text.parse::<u64>().map(i128::from)).ok()
                }
            },
        }
    }
}

/// `id2`: an id with its scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Id2<'a> {
    /// The id within the process.
    pub local: Option<Id<'a>>,
    /// The id in the whole trace.
    pub global: Option<Id<'a>>,
}

/// The arguments of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Args<'a> {
    /// No arguments.
    #[default]
    None,
    /// The JSON of a trace, normally an object.
    Json(Json<'a>),
    /// Names and values, to be written.
    List(&'a [(&'a str, Value<'a>)]),
    /// Names and values of the caller's own type, to be written.
    Shown(&'a dyn Entries),
}

impl Args<'_> {
    /// Calls `show` for each argument, in their order.
    ///
    /// ```
    /// use hairline_formats::Value;
    /// use hairline_formats::trace_event_json::Args;
    ///
    /// let mut names = Vec::new();
    /// let args = Args::List(&[("bytes", Value::U64(512)), ("peer", Value::Str("a"))]);
    /// args.each(|name, _| names.push(name.to_owned()));
    /// assert_eq!(names, ["bytes", "peer"]);
    /// ```
    pub fn each(&self, mut show: impl FnMut(&str, Value<'_>)) {
        match self {
            Self::None => {}
            Self::Shown(entries) => entries.each(&mut show),
            Self::Json(json) => json.each_member(|name, value| value.with(|value| show(&name, value))),
            Self::List(all) => all.iter().for_each(|(name, value)| show(name, *value)),
        }
    }
}

/// The content of a metadata event ("Metadata Events").
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Metadata<'a> {
    /// `process_name`.
    ProcessName(Cow<'a, str>),
    /// `process_labels`.
    ProcessLabels(Cow<'a, str>),
    /// `process_sort_index`.
    ProcessSortIndex(i64),
    /// `thread_name`.
    ThreadName(Cow<'a, str>),
    /// `thread_sort_index`.
    ThreadSortIndex(i64),
}

impl<'a> Event<'a> {
    /// Returns the content of a metadata event that was read.
    ///
    /// Returns `None` if the event is no metadata event, has an unknown name, or lacks the argument.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::{Item, JsonReader, Metadata};
    ///
    /// let trace = br#"[{"name":"thread_name","ph":"M","pid":7,"tid":8,"args":{"name":"main"}}]"#;
    /// let mut reader = JsonReader::new(&trace[..]);
    /// let Some((_, Item::Event(event))) = reader.next()? else { panic!() };
    /// assert_eq!(event.metadata(), Some(Metadata::ThreadName("main".into())));
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let (Some(Phase::Metadata), Args::Json(args)) = (self.ph, self.args) else {
            return None;
        };
        let text = |name| args.get(name)?.as_str();
        let index = || args.get("sort_index")?.text().parse().ok();
        match &*self.name {
            "process_name" => text("name").map(Metadata::ProcessName),
            "process_labels" => text("labels").map(Metadata::ProcessLabels),
            "process_sort_index" => index().map(Metadata::ProcessSortIndex),
            "thread_name" => text("name").map(Metadata::ThreadName),
            "thread_sort_index" => index().map(Metadata::ThreadSortIndex),
            _ => None,
        }
    }
}

/// A frame of a stack ("StackFrames Dictionary").
///
/// ```
/// use hairline_formats::trace_event_json::{Item, JsonReader};
///
/// let trace = br#"{"stackFrames": {"5": {"name": "main"}, "6": {"name": "run", "parent": 5}},
///     "samples": [{"cpu": 0, "tid": 8, "ts": 1, "name": "cycles", "sf": 6, "weight": 1}]}"#;
/// let (mut reader, mut found) = (JsonReader::new(&trace[..]), Vec::new());
/// while let Some((_, item)) = reader.next()? {
///     match item {
///         Item::StackFrame(frame) => found.push(frame.name.into_owned()),
///         Item::Sample(sample) => found.push(format!("{} at {:?} ns", sample.name, sample.ts.unwrap())),
///         other => panic!("{other:?}"),
///     }
/// }
/// assert_eq!(found, ["main", "run", "cycles at 1000 ns"]);
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFrame<'a> {
    /// The frame's id in the dictionary.
    pub id: Cow<'a, str>,
    /// The category, for example a library.
    pub category: Cow<'a, str>,
    /// The name.
    pub name: Cow<'a, str>,
    /// The id of the calling frame.
    pub parent: Option<Id<'a>>,
}

/// A sample of a profiler ("Global Samples").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The processor.
    pub cpu: Option<Id<'a>>,
    /// The thread.
    pub tid: Option<Id<'a>>,
    /// The time, in nanoseconds.
    pub ts: Option<i64>,
    /// The name of what is sampled.
    pub name: Cow<'a, str>,
    /// The stack, as the id of its innermost frame.
    pub sf: Option<Id<'a>>,
    /// The weight.
    pub weight: Option<Id<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbers_in_text_too() {
        let text = |text: &'static str| Id::Text(text.into()).number();
        assert_eq!(text("0xff"), Some(255));
        assert_eq!(text("-7"), Some(-7));
        assert_eq!(text("18446744073709551615"), Some(i128::from(u64::MAX)));
        assert_eq!(
            (text("main"), text(""), text("0x"), text("0x10000000000000000")),
            (None, None, None, None)
        );
        assert_eq!((Id::Number(7).number(), Id::Negative(-7).number()), (Some(7), Some(-7)));
    }
}
