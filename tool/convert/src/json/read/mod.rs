//! JSON to items.
//!
//! [`State::look`] reads each object once. It copies the content to a place that items can borrow from, and
//! queues the descriptions of new tracks before the event.
//!
//! | phase | item |
//! |---|---|
//! | B E X i I R | the same, on a thread; i and I on the process or on a global track, as `s` says |
//! | b n e, S T p F | begin, instant, end on a track of its own, by category, scope and id; with `id2.local`, in the process |
//! | C | one counter value for each argument |
//! | s t f; `bind_id` | a flow |
//! | M | names, labels and ranks of tracks |
//! | P N O D V v c ( ) = and other M | foreign items |

mod current;
mod event;
mod members;
mod numbers;
mod order;
mod pending;
mod rounded;
mod state;
mod threads;
mod tracks;
mod waiting;

use std::io::Read;

use hairline_formats::DecodeErrorKind;
use hairline_formats::trace_event_json::{self as json, Item as Found};

use crate::json::read::state::State;
use crate::{Context, Error, Item, Report};

/// Reads Trace Event JSON, in both of its forms.
///
/// ```
/// use hairline_convert::{Context, EventKind, Item, JsonReader, TraceReader};
///
/// let json = br#"[{"name":"read","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]"#;
/// let (mut reader, mut context, mut kinds) = (JsonReader::new(&json[..]), Context::new(), Vec::new());
/// while let Some(item) = reader.next(&mut context)? {
///     if let Item::Event(event) = item {
///         kinds.push(event.kind);
///     }
/// }
/// assert!(matches!(kinds[..], [EventKind::Complete { duration: 2_000, .. }]));
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonReader<R> {
    input: json::JsonReader<R>,
    state: State,
    ended: bool,
    /// The error that ended the trace. The events that waited come before it.
    failed: Option<Error>,
    /// What the input is if it has no event. Without it, an empty trace is a trace.
    otherwise: Option<Error>,
}

impl<R: Read> JsonReader<R> {
    /// Reads from `input`, which needs no buffer.
    pub fn new(input: R) -> Self {
        let (input, state) = (json::JsonReader::new(input), State::default());
        Self { input, state, ended: false, failed: None, otherwise: None }
    }

    /// Makes a file without an event an error. `what` says what it is, if its first bytes show that.
    pub(crate) fn expecting_events(self, what: Option<&'static str>) -> Self {
        Self { otherwise: Some(what.map_or(Error::NoEvents, Error::Other)), ..self }
    }
}

impl<R: Read> crate::stream::TraceReader for JsonReader<R> {
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, Error> {
        let state = &mut self.state;
        while state.pending.is_empty() && !state.next_held() && !self.ended {
            let found = self.input.next();
            // By reference, because an event is large.
            if let Ok(Some((offset, found))) = &found {
                state.look(*offset, found, context);
                continue;
            }
            match found.map(|_| ()) {
                Ok(()) => {
                    self.ended = true;
                    state.end(&self.input);
                    if !state.is_trace {
                        self.failed = self.otherwise.take();
                    }
                }
                Err(e) => match passed_over(&e.kind) {
                    Some(what) => state.report.add_defects(what, 1),
                    None => {
                        self.ended = true;
                        self.failed = Some(e.into());
                        state.end(&self.input);
                    }
                },
            }
        }
        if state.pending.is_empty() {
            state.next_held(); // released at the end
        }
        match state.pending.pop_front() {
            Some(pending) => Ok(Some(state.give(pending, context))),
            None => self.failed.take().map_or(Ok(None), Err),
        }
    }

    fn report(&self) -> &Report {
        &self.state.report
    }

    fn position(&self) -> u64 {
        self.state.position
    }
}

/// What reports say of events that are not JSON, but can be read.
const NOT_QUITE_JSON: &str = "events that are not quite JSON, repaired";

/// Describes an error after which the next events can still be read. Returns `None` if the error ends the
/// trace.
fn passed_over(kind: &DecodeErrorKind) -> Option<&'static str> {
    match kind {
        DecodeErrorKind::Json(_) => Some("members beside the events that cannot be read"),
        DecodeErrorKind::Time { .. } => Some("events whose time is no number of microseconds"),
        DecodeErrorKind::TooLarge { .. } => Some("events that are too large"),
        _ => None,
    }
}

impl State {
    /// Releases the events that wait, and counts at the end of the input, wherever that is.
    fn end<R: Read>(&mut self, input: &json::JsonReader<R>) {
        self.order.release_all(&mut self.threads);
        self.report.add_defects("values that are no events", input.skipped());
        self.report.add_many("events that were not UTF-8", input.repairs());
        self.report.add_defects(NOT_QUITE_JSON, input.mends());
        self.report.add_defects("traces after the end of the first one, read with it", input.restarts());
        let made_ids = self.tracks.made_ids();
        self.report.add_many("processes and threads with a text as id, which got a number", made_ids);
    }

    fn look(&mut self, offset: u64, found: &Found<'_>, context: &mut Context) {
        self.position = offset;
        match found {
            Found::Event(event) => {
                self.is_trace |= event.ph.is_some();
                if let Err(reason) = self.event(event, context) {
                    self.report.add_defects(reason, 1);
                }
            }
            Found::StackFrame(_) => self.report.add("stack frames"),
            Found::Sample(_) => self.report.add("samples of a profiler"),
            Found::Member { key, value } => self.member(key, *value),
            _ => self.report.add("unknown members"),
        }
    }
}
