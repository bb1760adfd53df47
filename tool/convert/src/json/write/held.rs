//! Events of intervals that wait to be written in order of time.

use std::num::NonZeroU32;

use hairline_formats::Value;
use hairline_formats::trace_event_json::{Args, Json, put_value};

use crate::json::write::arguments::EventArguments;
use crate::json::write::flows::Role;
use crate::report::TOO_DEEP;
use crate::window::{Timed, Window};
use crate::{Event, EventKind, Report, TrackId};

/// The events of intervals that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) window: Window<Held>,
    /// The bytes of texts in the window.
    pub(super) text: usize,
    /// The number of ends that wait for the first begin of their track.
    pub(super) early: usize,
}

/// An event that waits.
#[derive(Debug)]
pub(super) struct Held {
    /// The time in the output.
    pub(super) ts: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    /// The name, the categories, and the JSON of the arguments, if there are any.
    texts: Box<str>,
    name: usize,
    categories: usize,
    pub(super) flow: Option<(u64, Role)>,
    /// The number of further flows.
    pub(super) further: usize,
    /// The innermost frame of the call stack.
    pub(super) frame: Option<NonZeroU32>,
}

impl Timed for Held {
    fn time(&self) -> i64 {
        self.ts
    }
}

impl Held {
    /// Copies an event. `categories` are its categories, separated by commas, `frame` is the innermost one of
    /// its call stack.
    pub(super) fn new(
        event: &Event<'_>,
        ts: i64,
        categories: &str,
        frame: Option<NonZeroU32>,
        report: &mut Report,
    ) -> Self {
        let shown = EventArguments::new(event);
        let mut texts = [event.name.text, categories].concat();
        if !matches!(shown.args(), Args::None) {
            let mut args = Vec::new();
            put_value(&mut args, &Value::Dict(&shown));
            texts.push_str(&String::from_utf8_lossy(&args));
        }
        report.add_many(TOO_DEEP, shown.cut());
        let points = event.flows().iter().map(|flow| (*flow, Role::Through));
        let points = points.chain(event.ending_flows().iter().map(|flow| (*flow, Role::Ends)));
        let mut points = points.chain(event.bound().map(|(flow, step)| (flow, Role::bound(step))));
        Self {
            ts,
            track: event.track,
            kind: event.kind,
            texts: texts.into(),
            name: event.name.text.len(),
            categories: categories.len(),
            flow: points.next(),
            further: points.count(),
            frame,
        }
    }

    /// The bytes of its texts.
    pub(super) fn text_len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn name(&self) -> &str {
        self.texts.get(..self.name).unwrap_or_default()
    }

    pub(super) fn categories(&self) -> &str {
        self.texts.get(self.name..self.name + self.categories).unwrap_or_default()
    }

    pub(super) fn args(&self) -> Args<'_> {
        match self.texts.get(self.name + self.categories..) {
            None | Some("") => Args::None,
            Some(args) => Args::Json(Json::valid(args)),
        }
    }
}
