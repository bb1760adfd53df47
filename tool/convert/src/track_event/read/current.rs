//! The current event, copied from its packet.

use std::ops::Range;

use hairline_formats::DecodeError;
use hairline_formats::track_event::{self, CounterValue, Priority, TrackEvent};

use crate::track_event::read::sequence::OwnedLocation;
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::{InternedText, SharedTexts};
use crate::{Context, EventKind, FlowStep, Text, TrackId};

/// A string of the current event.
#[derive(Clone, Debug, Default)]
pub(super) enum TextRef {
    /// No string.
    #[default]
    None,
    /// An interning id of the packet sequence.
    Iid(u64),
    /// Inline text, a part of [`Current::own`].
    Own(Range<usize>),
}

/// The current event.
#[derive(Debug)]
pub(super) struct Current {
    /// The index of its packet sequence.
    pub(super) sequence: usize,
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    pub(super) name: TextRef,
    pub(super) categories: Vec<TextRef>,
    /// The counter whose categories apply if the event has none.
    pub(super) counter: Option<u32>,
    pub(super) flows: Vec<u64>,
    pub(super) ending_flows: Vec<u64>,
    pub(super) bound: Option<(u64, FlowStep)>,
    pub(super) extra_counters: Vec<(TrackId, CounterValue)>,
    pub(super) correlation: TextRef,
    pub(super) location: Option<OwnedLocation>,
    pub(super) log: Option<(u64, Priority)>,
    /// The tag of the log message.
    pub(super) tag: Option<OwnedLocation>,
    /// Whether the event has the call stack in the state.
    pub(super) has_stack: bool,
    pub(super) stack_weight: Option<f64>,
    /// The inline texts of the event.
    own: String,
    /// The event as in the packet, if it has arguments.
    pub(super) bytes: Vec<u8>,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            sequence: 0,
            time: 0,
            track: TrackId(0),
            kind: EventKind::Instant,
            name: TextRef::None,
            categories: Vec::new(),
            counter: None,
            flows: Vec::new(),
            ending_flows: Vec::new(),
            bound: None,
            extra_counters: Vec::new(),
            correlation: TextRef::None,
            location: None,
            log: None,
            tag: None,
            has_stack: false,
            stack_weight: None,
            own: String::new(),
            bytes: Vec::new(),
        }
    }
}

impl Current {
    /// Clears the event, and keeps its memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.name = TextRef::None;
        self.categories.clear();
        self.counter = None;
        self.flows.clear();
        self.ending_flows.clear();
        self.bound = None;
        self.extra_counters.clear();
        self.correlation = TextRef::None;
        self.location = None;
        self.log = None;
        self.tag = None;
        (self.has_stack, self.stack_weight) = (false, None);
        self.own.clear();
        self.bytes.clear();
    }

    /// Whether the event has details.
    #[inline]
    pub(super) fn has_details(&self) -> bool {
        !self.flows.is_empty()
            || !self.ending_flows.is_empty()
            || self.bound.is_some()
            || !matches!(self.correlation, TextRef::None)
            || self.location.is_some()
            || self.log.is_some()
            || self.has_stack
            || self.stack_weight.is_some()
    }

    /// Stores an inline text.
    pub(super) fn keep(&mut self, text: &str) -> TextRef {
        let start = self.own.len();
        self.own.push_str(text);
        TextRef::Own(start..self.own.len())
    }

    /// Stores a name or a category.
    #[inline]
    pub(super) fn text_ref(&mut self, name: track_event::Name<'_>) -> TextRef {
        match name {
            track_event::Name::Iid(iid) => TextRef::Iid(iid),
            track_event::Name::Text(text) => self.keep(text),
        }
    }

    /// Stores the bytes of an event, for its arguments.
    pub(super) fn keep_bytes(&mut self, event: &[u8]) {
        self.bytes.extend_from_slice(event);
    }

    /// Stores the lists of an event.
    pub(super) fn take_lists(
        &mut self,
        event: &TrackEvent<'_>,
        context: &Context,
    ) -> Result<(), DecodeError> {
        for iid in event.category_iids() {
            self.categories.push(TextRef::Iid(iid?));
        }
        for category in event.categories() {
            let text_ref = self.keep(category?);
            self.categories.push(text_ref);
        }
        for id in event.flow_ids() {
            self.flows.push(context.flow(id?));
        }
        for id in event.terminating_flow_ids() {
            self.ending_flows.push(context.flow(id?));
        }
        let [old, old_ending] = event.old_flow_ids();
        for id in old {
            self.flows.push(context.flow(id?));
        }
        for id in old_ending {
            self.ending_flows.push(context.flow(id?));
        }
        if event.has_annotations() {
            self.keep_bytes(event.bytes());
        }
        Ok(())
    }

    #[inline]
    pub(super) fn text<'s>(
        &'s self,
        text_ref: &TextRef,
        table: &Table<InternedText>,
        texts: &'s SharedTexts,
    ) -> Text<'s> {
        match text_ref {
            TextRef::None => Text::default(),
            TextRef::Iid(iid) => table.get(*iid).map(|text| texts.text(*text)).unwrap_or_default(),
            TextRef::Own(range) => Text::from(&self.own[range.clone()]),
        }
    }
}
