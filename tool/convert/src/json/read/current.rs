//! The event that is being read. Items borrow from it.

use hairline_formats::Value;
use hairline_formats::trace_event_json::{Args, Event, Json};
use hairline_formats::track_event::CounterValue;

use crate::{
    Arguments, Categories, Context, Detailed, EventDetails, FlowStep, StringId, Strings, Text, Texts, TrackId,
};

#[derive(Debug, Default)]
pub(super) struct Current {
    pub(super) name: OwnedText,
    pub(super) categories: CategoryList,
    pub(super) args: ArgumentObject,
    pub(super) bound: Option<(u64, FlowStep)>,
    pub(super) samples: Vec<(TrackId, CounterValue)>,
    /// The whole event as JSON.
    pub(super) own: Vec<u8>,
}

/// The flow of `bind_id`.
impl Detailed for Current {
    fn details(&self) -> EventDetails<'_> {
        EventDetails { bound: self.bound, ..EventDetails::default() }
    }
}

impl Current {
    /// The number of bytes of the texts.
    pub(super) fn size(&self) -> usize {
        let categories = if self.categories.is_some { self.categories.text.len() } else { 0 };
        self.args.0.len() + self.name.own.len() + categories
    }

    /// Copies the name, the categories and the arguments of an event. Returns whether the arguments are an
    /// object, or missing.
    pub(super) fn take(&mut self, event: &Event<'_>, context: &mut Context) -> bool {
        self.name.set(&event.name, &mut context.strings);
        self.categories.set(&event.cat, &mut context.strings);
        self.bound = None;
        self.samples.clear();
        self.args.set(&event.args)
    }
}

/// A text. Only one without a number is stored here.
#[derive(Debug, Default)]
pub(super) struct OwnedText {
    id: Option<StringId>,
    own: String,
}

impl OwnedText {
    fn set(&mut self, text: &str, strings: &mut Strings) {
        self.id = if text.is_empty() { None } else { strings.number(text) };
        self.own.clear();
        if self.id.is_none() {
            self.own.push_str(text);
        }
    }

    pub(super) fn text<'s>(&'s self, strings: &'s Strings) -> Text<'s> {
        self.id.map_or_else(|| Text::from(self.own.as_str()), |id| strings.text(id))
    }
}

/// A list of categories, separated by commas. Usually equal to the list of an event shortly before, which is
/// then reused: between two begins there is an end without categories.
#[derive(Debug, Default)]
pub(super) struct CategoryList {
    /// Whether the event has categories. Otherwise the others are those of an earlier one.
    is_some: bool,
    text: String,
    /// The numbers of the categories, empty ones excluded.
    ids: Vec<Option<StringId>>,
}

impl CategoryList {
    fn set(&mut self, text: &str, strings: &mut Strings) {
        self.is_some = !text.is_empty();
        if self.is_some && self.text != text {
            text.clone_into(&mut self.text);
            self.ids.clear();
            self.ids.extend(split(text).map(|category| strings.number(category)));
        }
    }

    pub(super) fn all<'s>(&'s self, strings: &'s Strings) -> Categories<'s> {
        match self.ids[..] {
            [] => Categories::None,
            _ if !self.is_some => Categories::None,
            [Some(id)] => Categories::One(strings.text(id)),
            _ => Categories::Many(self),
        }
    }
}

impl Texts for CategoryList {
    fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        split(&self.text).zip(&self.ids).for_each(|(text, id)| show(Text { text, id: *id }));
    }
}

fn split(categories: &str) -> impl Iterator<Item = &str> {
    categories.split(',').filter(|category| !category.is_empty())
}

/// The number of levels that are read.
const MOST_LEVELS: usize = 32;

/// The JSON text of an object; "" for an empty object.
#[derive(Debug, Default)]
pub(super) struct ArgumentObject(String);

impl ArgumentObject {
    /// Returns whether `args` is an object, or missing.
    fn set(&mut self, args: &Args<'_>) -> bool {
        self.0.clear();
        match args {
            Args::Json(json) if json.text().starts_with('{') => {
                let members = json.text()[1..].trim_start();
                if members != "}" {
                    self.0.push_str(json.text());
                }
                true
            }
            Args::None => true,
            _ => false,
        }
    }

    /// Whether values are nested deeper than 32 levels. They are read as "...".
    pub(super) fn is_too_deep(&self) -> bool {
        if self.0.len() <= 2 * MOST_LEVELS {
            return false;
        }
        let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
        for byte in self.0.bytes() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = in_text,
                b'"' => in_text = !in_text,
                b'{' | b'[' if !in_text => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest > MOST_LEVELS
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Arguments for ArgumentObject {
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
        Json::valid(&self.0).each_member(|name, value| value.with(|value| show((&*name).into(), value)));
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }
}
