//! Writes plain events: those with a name, a thread and perhaps arguments. Nearly all events of a trace are
//! plain.
//!
//! Their text consists of pieces that recur. Each piece is formatted once.

use crate::trace_event_json::encode::put_args;
use crate::trace_event_json::event::{Args, Id};
use crate::trace_event_json::phase::Phase;
use crate::trace_event_json::put::{Times, put_display, put_front, put_microseconds, put_string};

/// An event whose text is prepared, except for its time and arguments.
///
/// ```
/// use hairline_formats::trace_event_json::{Args, JsonWriter, Label, PlainEvent, PlainPhase, TrackIds};
///
/// let label = Label::new("read", "net").unwrap(); // prepared once
/// let ids = TrackIds::thread(7, 8);
/// let mut writer = JsonWriter::array(Vec::new());
/// for ts in [1_000, 2_000] {
///     let phase = PlainPhase::Instant;
///     writer.plain(&PlainEvent { label: &label, phase, ts, ids: &ids, args: Args::None })?;
/// }
/// let trace = String::from_utf8(writer.finish()?).unwrap();
/// let event = r#"{"name":"read","cat":"net","ph":"i","ts":1,"pid":7,"tid":8}"#;
/// assert_eq!(trace.lines().nth(1), Some(&*format!("{event},")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlainEvent<'a> {
    /// The name and the categories.
    pub label: &'a Label,
    /// The phase.
    pub phase: PlainPhase,
    /// The time, as [`Event::ts`](crate::trace_event_json::Event::ts).
    pub ts: i64,
    /// The process and the thread.
    pub ids: &'a TrackIds,
    /// The arguments.
    pub args: Args<'a>,
}

/// The phase of a plain event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainPhase {
    /// [`Phase::Begin`].
    Begin,
    /// [`Phase::End`].
    End,
    /// [`Phase::Complete`].
    Complete {
        /// The duration, as [`Event::dur`](crate::trace_event_json::Event::dur).
        dur: i64,
    },
    /// [`Phase::Instant`].
    Instant,
    /// [`Phase::Counter`].
    Counter,
}

impl PlainPhase {
    /// Returns the phase.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::Begin => Phase::Begin,
            Self::End => Phase::End,
            Self::Complete { .. } => Phase::Complete,
            Self::Instant => Phase::Instant,
            Self::Counter => Phase::Counter,
        }
    }

    /// The text after the label: the rest of the phase's member, and the name of the time's member.
    #[inline]
    fn after_label(self) -> [u8; 8] {
        [self.phase().letter() as u8, b'"', b',', b'"', b't', b's', b'"', b':']
    }
}

/// The beginning of an event's text: name and categories, up to the letter of the phase.
#[derive(Clone, Debug)]
pub struct Label(Piece<112>);

impl Label {
    /// Creates the label of a name and of categories that are separated by commas. "" is not written.
    ///
    /// Returns `None` if the two are longer than about 80 bytes together.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::Label;
    ///
    /// assert!(Label::new("read", "net,io").is_some());
    /// assert!(Label::new(&"long ".repeat(20), "net").is_none()); // write it as an `Event`
    /// ```
    #[must_use]
    pub fn new(name: &str, cat: &str) -> Option<Self> {
        let mut text = b"{".to_vec();
        for (key, value) in [(&b"\"name\":"[..], name), (b"\"cat\":", cat)] {
            if !value.is_empty() {
                text.extend_from_slice(key);
                put_string(&mut text, value);
                text.push(b',');
            }
        }
        text.extend_from_slice(b"\"ph\":\"");
        Piece::new(&text).map(Self)
    }
}

impl Default for Label {
    /// Creates the label of an event without a name.
    fn default() -> Self {
        Self::new("", "").unwrap_or_else(|| Self(Piece::default()))
    }
}

/// The ids of a thread or of a counter: the members after the time.
#[derive(Clone, Debug)]
pub struct TrackIds(Piece<48>);

impl TrackIds {
    /// Creates the ids of a thread's events.
    #[must_use]
    pub fn thread(pid: u32, tid: u32) -> Self {
        Self::new(&format_args!(",\"pid\":{pid},\"tid\":{tid}"))
    }

    /// Creates the ids of a counter's samples: its process, and its id among counters of one name, which
    /// trace_processor tells apart only by ids that are text. `None` for an id of more than 20 bytes, or with
    /// other characters than letters and digits.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::{Args, JsonWriter, Label, PlainEvent, PlainPhase, TrackIds};
    /// use hairline_formats::Value;
    ///
    /// let label = Label::new("in flight", "").unwrap();
    /// let ids = TrackIds::counter(Some(7), None).unwrap();
    /// let args = Args::List(&[("value", Value::I64(3))]);
    /// let mut writer = JsonWriter::array(Vec::new());
    /// writer.plain(&PlainEvent { label: &label, phase: PlainPhase::Counter, ts: 1_000, ids: &ids, args })?;
    /// let trace = String::from_utf8(writer.finish()?).unwrap();
    /// assert!(trace.contains(r#""ph":"C","ts":1,"pid":7"#), "{trace}");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn counter(pid: Option<u32>, id: Option<&Id<'_>>) -> Option<Self> {
        let is_plain = |text: &str| text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let id = match id {
            None => String::new(),
            Some(Id::Number(number)) => format!(",\"id\":{number}"),
            Some(Id::Negative(number)) => format!(",\"id\":{number}"),
            Some(Id::Text(text)) if is_plain(text) => format!(",\"id\":\"{text}\""),
            Some(Id::Text(_)) => return None,
        };
        let pid = pid.map(|pid| format!(",\"pid\":{pid}")).unwrap_or_default();
        Some(Self::new(&format_args!("{pid}{id}")))
    }

    fn new(members: &std::fmt::Arguments<'_>) -> Self {
        let mut text = Vec::new();
        put_display(&mut text, members);
        Self(Piece::new(&text).unwrap_or_default()) // the longest has 45 bytes
    }
}

/// Appends an event, with the same bytes as [`put_event`](crate::trace_event_json::put_event).
#[inline]
pub(super) fn put_plain(out: &mut Vec<u8>, times: &mut Times, event: &PlainEvent<'_>) {
    event.label.0.put(out);
    out.extend_from_slice(&event.phase.after_label());
    times.put(out, event.ts);
    if let PlainPhase::Complete { dur } = event.phase {
        out.extend_from_slice(b",\"dur\":");
        put_microseconds(out, dur);
    }
    event.ids.0.put(out);
    if !matches!(event.args, Args::None) {
        out.extend_from_slice(b",\"args\":");
        put_args(out, &event.args);
    }
    out.push(b'}');
}

/// A text of at most `N` bytes.
#[derive(Clone, Debug)]
struct Piece<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> Default for Piece<N> {
    fn default() -> Self {
        Self { bytes: [0; N], len: 0 }
    }
}

impl<const N: usize> Piece<N> {
    /// Returns `None` if the text is too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { bytes, len: u8::try_from(text.len()).ok()? })
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_front(out, &self.bytes, self.len.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::trace_event_json::{Event, Id, JsonWriter, put_event};

    #[test]
    fn a_plain_event_has_the_bytes_of_any_event() {
        let args = [("n", Value::I64(1)), ("\"", Value::Str("x"))];
        let phases =
            [PlainPhase::Begin, PlainPhase::End, PlainPhase::Complete { dur: 1_500 }, PlainPhase::Instant];
        let names = [("", ""), ("a \"name\"", "x,y"), ("a\\", ""), ("", "c")];
        for (phase, (name, cat)) in phases.into_iter().flat_map(|phase| names.map(|texts| (phase, texts))) {
            for args in [Args::None, Args::List(&args)] {
                let (label, ids) = (Label::new(name, cat).unwrap(), TrackIds::thread(7, u32::MAX));
                let mut plain = Vec::new();
                let event = PlainEvent { label: &label, phase, ts: 1_234_560, ids: &ids, args };
                put_plain(&mut plain, &mut Times::default(), &event);
                let mut expected = Vec::new();
                let dur = if let PlainPhase::Complete { dur } = phase { Some(dur) } else { None };
                put_event(
                    &mut expected,
                    &Event {
                        name: name.into(),
                        cat: cat.into(),
                        ph: Some(phase.phase()),
                        ts: Some(1_234_560),
                        dur,
                        pid: Some(Id::Number(7)),
                        tid: Some(Id::Number(u32::MAX.into())),
                        args,
                        ..Event::default()
                    },
                );
                assert_eq!(String::from_utf8(plain).unwrap(), String::from_utf8(expected).unwrap());
            }
        }
    }

    #[test]
    fn the_ids_of_a_counter_can_be_the_largest_numbers() {
        let id = Id::Text(u64::MAX.to_string().into());
        let (label, ids) = (Label::default(), TrackIds::counter(Some(u32::MAX), Some(&id)).unwrap());
        let mut writer = JsonWriter::array(Vec::new());
        let (phase, args) = (PlainPhase::Counter, Args::List(&[("value", Value::I64(-1))]));
        writer.plain(&PlainEvent { label: &label, phase, ts: 1_000, ids: &ids, args }).unwrap();
        let ids = r#""pid":4294967295,"id":"18446744073709551615""#;
        let expected = format!("[\n{{\"ph\":\"C\",\"ts\":1,{ids},\"args\":{{\"value\":-1}}}}\n]\n");
        assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), expected);
        assert!(TrackIds::counter(None, Some(&Id::Text("a b".into()))).is_none());
    }

    #[test]
    fn a_label_has_a_largest_size() {
        assert!(Label::new(&"n".repeat(40), &"c".repeat(40)).is_some());
        assert!(Label::new(&"n".repeat(100), "").is_none() && Label::new(&"n".repeat(1000), "").is_none());
    }
}
