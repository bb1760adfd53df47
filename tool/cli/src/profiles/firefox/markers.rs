//! Slices and instants as markers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Event, EventKind, Item, Report, StringId, Strings, TrackId};
use hairline_formats::Value as Argument;
use serde_json::{Map, Value, json};

/// The limit for markers, some 48 bytes each.
const MOST_MARKERS: usize = 1 << 22;
/// The limit for the bytes of arguments, and what one takes beside its text.
const MOST_BYTES: usize = 512 << 20;
const ARGUMENT: usize = 64;

/// A slice, or an instant without a duration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    pub(super) track: TrackId,
    pub(super) start: i64,
    pub(super) duration: Option<i64>,
    pub(super) name: Key,
    category: Key,
    /// The number of its arguments.
    tag: u32,
}

/// Names and values.
type Arguments = Vec<(StringId, String)>;

#[derive(Debug, Default)]
pub(super) struct Markers {
    pub(super) all: Vec<Marker>,
    arguments: HashMap<u32, Arguments>,
    names: Strings,
    bytes: usize,
    last_tag: u32,
    left_out: u64,
    arguments_left_out: u64,
    /// Whether an event came too late to be put in order.
    pub(super) is_late: bool,
}

impl Markers {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Counts what there was no room for.
    pub(super) fn report(&self, report: &mut Report) {
        report.add_many("slices and instants beyond the first 4,194,304 left out", self.left_out);
        report.add_many("arguments left out, because they are too many", self.arguments_left_out);
    }

    pub(super) fn event(&mut self, event: &Event<'_>, slices: &mut Slices, report: &mut Report) {
        report.add_many("counter values left out", event.extra_counters.len() as u64);
        let details = event.details();
        let flows = details.flows.len() + details.ending_flows.len() + usize::from(details.bound.is_some());
        report.add_many(FLOWS, flows as u64);
        report.add_many("call stacks of events left out", details.stack.is_some().into());
        if matches!(event.kind, EventKind::Begin | EventKind::Complete { .. } | EventKind::End) {
            let tag = self.keep(event);
            return slices.tagged(event, tag, self);
        }
        slices.item(&Item::Event(*event), self); // slices without an end last up to it
        match event.kind {
            EventKind::Instant => {
                let keys = slices.keys_mut();
                let log = details.log.filter(|_| event.name.text.is_empty());
                let name = keys.key(log.map_or(event.name, |log| log.body.into()));
                let category = keys.categories(&event.categories);
                let (track, start, tag) = (event.track, event.time, self.keep(event));
                self.add(Marker { track, start, duration: None, name, category, tag });
            }
            EventKind::Flow { .. } => report.add(FLOWS),
            _ => report.add("counter values left out"),
        }
    }

    /// Stores the arguments of an event. Returns its number.
    fn keep(&mut self, event: &Event<'_>) -> u32 {
        // Numbers of more events than there are would belong to others. No such event is kept.
        self.last_tag = self.last_tag.saturating_add(1);
        let mut arguments = Arguments::new();
        event.args.each(&mut |name, value| {
            value.flatten(&mut name.text.to_owned(), &mut |path, value| {
                let text = text(&value);
                let bytes = self.bytes.saturating_add(ARGUMENT + text.len());
                let name = if bytes > MOST_BYTES { None } else { self.names.number(path) };
                let Some(name) = name else {
                    self.arguments_left_out += 1;
                    return;
                };
                self.bytes = bytes;
                arguments.push((name, text));
            });
        });
        if !arguments.is_empty() && self.last_tag < u32::MAX {
            self.arguments.insert(self.last_tag, arguments);
        }
        self.last_tag
    }

    fn add(&mut self, marker: Marker) {
        if self.all.len() < MOST_MARKERS {
            self.all.push(marker);
        } else {
            self.left_out += 1;
        }
    }

    fn slice_as_marker(&mut self, slice: &Slice) {
        let Slice { track, start, duration, name, category, tag, .. } = *slice;
        self.add(Marker { track, start, duration: Some(duration), name, category, tag });
    }
}

const FLOWS: &str = "steps of flows left out";

/// A value that is not nested.
fn text(value: &Argument<'_>) -> String {
    match *value {
        Argument::Bool(v) => v.to_string(),
        Argument::I64(v) => v.to_string(),
        Argument::U64(v) | Argument::Koid(v) => v.to_string(),
        Argument::F64(v) => v.to_string(),
        Argument::Pointer(v) => format!("{v:#x}"),
        Argument::Str(text) | Argument::Interned { text, .. } => text.to_owned(),
        Argument::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Argument::Null | Argument::Array(_) | Argument::Dict(_) => String::new(), // flattening shows none
    }
}

impl SliceSink for Markers {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.slice_as_marker(slice);
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.slice_as_marker(slice);
    }

    fn ends(&mut self, slice: &Frame, tag: u32) {
        if let Some(arguments) = self.arguments.remove(&tag) {
            self.arguments.entry(slice.tag).or_default().extend(arguments);
        }
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= matches!(what, Defect::Late | Defect::AfterInner);
    }
}

/// The types of the markers that are written: each category and name, with the arguments that they have.
#[derive(Debug, Default)]
pub(super) struct Types {
    fields: BTreeMap<String, BTreeSet<StringId>>,
    categories: HashMap<Key, usize>,
    in_order: Vec<Key>,
}

/// The colors of categories, which the format lists.
const COLORS: [&str; 8] = ["blue", "green", "orange", "purple", "yellow", "magenta", "lightblue", "brown"];

impl Types {
    /// Returns the number of a category. The first is that of functions.
    pub(super) fn category(&mut self, marker: &Marker) -> usize {
        let next = self.in_order.len() + 1;
        let number = *self.categories.entry(marker.category).or_insert(next);
        if number == next {
            self.in_order.push(marker.category);
        }
        number
    }

    /// Returns the type and the arguments of a marker.
    pub(super) fn data(&mut self, marker: &Marker, slices: &Slices, markers: &Markers) -> Value {
        let text = |key: Key| slices.keys().text(key);
        // The slash keeps it apart from the types of Firefox.
        let kind = format!("{}/{}", text(marker.category), text(marker.name));
        let mut data = Map::new();
        data.insert("type".to_owned(), kind.as_str().into());
        let fields = self.fields.entry(kind).or_default();
        for (name, text) in markers.arguments.get(&marker.tag).into_iter().flatten() {
            fields.insert(*name);
            data.insert(key(markers.names.get(*name)), text.as_str().into());
        }
        data.into()
    }

    pub(super) fn categories(&self, slices: &Slices) -> Vec<Value> {
        let category =
            |name: &str, color: &str| json!({"name": name, "color": color, "subcategories": ["Other"]});
        let own = self.in_order.iter().zip(COLORS.iter().cycle()).map(|(key, color)| {
            let name = slices.keys().text(*key);
            category(if name.is_empty() { "(no category)" } else { name }, color)
        });
        std::iter::once(category("Other", "grey")).chain(own).collect()
    }

    pub(super) fn schemas(&self, markers: &Markers) -> Vec<Value> {
        let field = |name: &StringId| {
            let name = markers.names.get(*name);
            json!({"key": key(name), "label": name, "format": "string"})
        };
        let schema = |(kind, fields): (&String, &BTreeSet<StringId>)| {
            json!({
                "name": kind,
                "tooltipLabel": "{marker.name}",
                "chartLabel": "{marker.name}",
                "display": ["marker-chart", "marker-table", "timeline-overview"],
                "fields": fields.iter().map(field).collect::<Vec<_>>(),
            })
        };
        self.fields.iter().map(schema).collect()
    }
}

/// The member of an argument. The prefix keeps it apart from members that the format defines.
fn key(name: &str) -> String {
    format!("arg.{name}")
}
