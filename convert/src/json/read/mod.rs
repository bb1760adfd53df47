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
mod state;
mod tracks;

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
}

impl<R: Read> JsonReader<R> {
    /// Reads from `input`, which needs no buffer.
    pub fn new(input: R) -> Self {
        Self { input: json::JsonReader::new(input), state: State::default(), ended: false }
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
                    state.order.release_all();
                    state.report.add_defects("values that are no events", self.input.skipped());
                    state.report.add_many("events that were not UTF-8", self.input.repairs());
                    let made_ids = state.tracks.made_ids();
                    state
                        .report
                        .add_many("processes and threads with a text as id, which got a number", made_ids);
                }
                Err(e) => match passed_over(&e.kind) {
                    Some(what) => state.report.add_defects(what, 1),
                    None => {
                        self.ended = true;
                        return Err(e.into());
                    }
                },
            }
        }
        if state.pending.is_empty() {
            state.next_held(); // released at the end
        }
        Ok(state.pending.pop_front().map(|pending| state.give(pending, context)))
    }

    fn report(&self) -> &Report {
        &self.state.report
    }

    fn position(&self) -> u64 {
        self.state.position
    }
}

/// Describes an error after which the next events can still be read. Returns `None` if the error ends the
/// trace.
fn passed_over(kind: &DecodeErrorKind) -> Option<&'static str> {
    match kind {
        DecodeErrorKind::Json(_) => Some("events that are not JSON"),
        DecodeErrorKind::Time { .. } => Some("events whose time is no number of microseconds"),
        DecodeErrorKind::TooLarge { .. } => Some("events that are too large"),
        _ => None,
    }
}

impl State {
    fn look(&mut self, offset: u64, found: &Found<'_>, context: &mut Context) {
        self.position = offset;
        match found {
            Found::Event(event) => {
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
