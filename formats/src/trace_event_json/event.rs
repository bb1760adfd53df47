//! An event, the same for reading and for writing. Its fields have the names that they have in the format.

use std::borrow::Cow;

use crate::trace_event_json::json::Json;
use crate::trace_event_json::phase::{InstantScope, Phase};
use crate::{Entries, Value};

/// An event ("Event Descriptions" in the document).
///
/// What is not there is None, "" or false, and is not written. Text that stands in a trace as another kind of value is that value's
/// JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its categories, with commas between them.
    pub cat: Cow<'a, str>,
    /// What it is. None if that is not a single character.
    pub ph: Option<Phase>,
    /// When, in nanoseconds; the trace has microseconds with up to three decimals, of which more are rounded.
    pub ts: Option<i64>,
    /// How long a complete event took, in nanoseconds as [`ts`](Self::ts).
    pub dur: Option<i64>,
    /// When by the thread's own clock, in nanoseconds.
    pub tts: Option<i64>,
    /// How long by the thread's own clock, in nanoseconds.
    pub tdur: Option<i64>,
    /// The process.
    pub pid: Option<Id<'a>>,
    /// The thread.
    pub tid: Option<Id<'a>>,
    /// What holds the events of an interval, flow, object or counter together.
    pub id: Option<Id<'a>>,
    /// The same, where the number counts within a process or everywhere ("Async Events").
    pub id2: Id2<'a>,
    /// What tells equal ids apart.
    pub scope: Cow<'a, str>,
    /// The arguments.
    pub args: Args<'a>,
    /// Where a flow ends: "e" for the slice around it, else the next one ("Flow Events").
    pub bp: Cow<'a, str>,
    /// How far an instant reaches.
    pub s: Option<InstantScope>,
    /// The stack at its begin, by the number it has in `stackFrames` ("Stack Traces on Duration Events").
    pub sf: Option<Id<'a>>,
    /// The stack at its begin: an array of frames.
    pub stack: Option<Json<'a>>,
    /// The stack at its end, by its number.
    pub esf: Option<Id<'a>>,
    /// The stack at its end.
    pub estack: Option<Json<'a>>,
    /// The name of its colour.
    pub cname: Cow<'a, str>,
    /// What flow a slice is part of.
    pub bind_id: Option<Id<'a>>,
    /// The flow comes in here.
    pub flow_in: bool,
    /// The flow goes out here.
    pub flow_out: bool,
    /// Fields that are none of these. Not written.
    pub skipped: u32,
}

/// A number of something. Traces have it as a number or as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id<'a> {
    /// A number.
    Number(u64),
    /// A number below 0.
    Negative(i64),
    /// Text, or a number that is no integer of 64 bits.
    Text(Cow<'a, str>),
}

impl Id<'_> {
    /// The number, of text also: decimal, or hexadecimal after `0x`.
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

/// `id2`: an id that says where it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Id2<'a> {
    /// Within the process.
    pub local: Option<Id<'a>>,
    /// In the whole trace.
    pub global: Option<Id<'a>>,
}

/// The arguments of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Args<'a> {
    /// Not there.
    #[default]
    None,
    /// As they stand in a trace: an object, as a rule.
    Json(Json<'a>),
    /// Names and values, for writing.
    List(&'a [(&'a str, Value<'a>)]),
    /// The same, shown one after the other.
    Shown(&'a dyn Entries),
}

impl Args<'_> {
    /// Shows each argument, in their order.
    pub fn each(&self, mut show: impl FnMut(&str, Value<'_>)) {
        match self {
            Self::None => {}
            Self::Shown(entries) => entries.each(&mut show),
            Self::Json(json) => json.each_member(|name, value| value.with(|value| show(&name, value))),
            Self::List(all) => all.iter().for_each(|(name, value)| show(name, *value)),
        }
    }
}

/// What a metadata event says ("Metadata Events").
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
    /// What a metadata event that was read says; None if it is no such event, one of another name, or does not have its argument.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFrame<'a> {
    /// Its number in the dictionary.
    pub id: Cow<'a, str>,
    /// What it is part of: a library.
    pub category: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// The number of the frame that called it.
    pub parent: Option<Id<'a>>,
}

/// A sample of a profiler ("Global Samples").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The processor.
    pub cpu: Option<Id<'a>>,
    /// The thread.
    pub tid: Option<Id<'a>>,
    /// When, in nanoseconds.
    pub ts: Option<i64>,
    /// What was counted.
    pub name: Cow<'a, str>,
    /// The stack, by the number of its innermost frame.
    pub sf: Option<Id<'a>>,
    /// How much it counts.
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
