//! Which category an event has, where the instances of the data source want different ones. Ends have none of
//! their own: theirs is that of the slice that they end.

use hairline_formats::proto::FieldValue;
use hairline_formats::track_event::SequenceId;
use hairline_formats::track_event::fields::{
    EventType, InternedKind, counter_descriptor, interned_string, trace_packet_defaults, track_descriptor,
    track_event, track_event_defaults,
};

use crate::on::base::lock::Map;
use crate::on::encode::OWN_SEQUENCE;
use crate::on::traced::packet::About;
use crate::on::traced::wanted::fields;

/// What tells the instances of an event.
#[derive(Debug, Default)]
pub(super) struct Sorting {
    names: Vec<String>,
    by_name: Map<String, usize>,
    /// The category of each interned number.
    interned: Map<(SequenceId, u64), usize>,
    /// The category of each counter's track: its values do not name it.
    counters: Map<u64, usize>,
    /// The track of each sequence's thread.
    tracks: Map<SequenceId, u64>,
    /// The open slices of each track.
    open: Map<u64, Open>,
}

/// The open slices of a track.
#[derive(Debug, Default)]
struct Open {
    categories: Vec<Option<usize>>,
    /// Ends whose begins have not come: another thread has them.
    early: u64,
}

impl Sorting {
    /// Notes the names of categories, and which sequence begins anew.
    pub(super) fn learn(&mut self, about: &About<'_>) {
        let sequence = about.sequence;
        if about.is_cleared {
            self.interned.retain(|(of, _), _| *of != sequence);
        }
        if let Some(track) = about.defaults.and_then(default_track) {
            self.tracks.insert(sequence, track);
        }
        if let Some((track, category)) = about.track.and_then(counter_of) {
            let category = self.numbered(&category);
            self.counters.insert(track, category);
        }
        let categories = fields(about.interned.unwrap_or_default())
            .filter(|(number, _)| *number == InternedKind::Category as u32);
        for (_, value) in categories {
            let FieldValue::Bytes { bytes, .. } = value else { continue };
            let (mut iid, mut name) = (0, &b""[..]);
            for field in fields(bytes) {
                match field {
                    (interned_string::IID, FieldValue::Varint(v)) => iid = v,
                    (interned_string::NAME, FieldValue::Bytes { bytes, .. }) => name = bytes,
                    _ => {}
                }
            }
            let category = self.numbered(name);
            self.interned.insert((sequence, iid), category);
        }
    }

    /// Forgets a sequence that has ended.
    pub(super) fn ended(&mut self, sequence: SequenceId) {
        self.interned.retain(|(of, _), _| *of != sequence);
        if let Some(track) = self.tracks.remove(&sequence) {
            self.open.remove(&track);
        }
    }

    /// Returns the name of a category, or the names of several with commas between them.
    pub(super) fn name(&self, category: usize) -> &str {
        self.names.get(category).map_or("", String::as_str)
    }

    fn numbered(&mut self, name: &[u8]) -> usize {
        let name = String::from_utf8_lossy(name);
        if let Some(number) = self.by_name.get(&*name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.clone().into_owned());
        self.by_name.insert(name.into_owned(), number);
        number
    }

    /// Returns the category of the packet's event; of an end, that of the slice that it ends.
    pub(super) fn category_of(&mut self, about: &About<'_>) -> Option<usize> {
        let event = Event::of(about.event?);
        let Some(track) = event.track.or_else(|| self.tracks.get(&about.sequence).copied()) else {
            return self.own_category(about, &event);
        };
        if event.kind == Some(EventType::SliceEnd) {
            let open = self.open.entry(track).or_default();
            let category = open.categories.pop();
            open.early += u64::from(category.is_none());
            if open.categories.is_empty() && open.early == 0 {
                self.open.remove(&track);
            }
            return category.flatten();
        }
        let category = self.own_category(about, &event);
        if event.kind == Some(EventType::SliceBegin) {
            let open = self.open.entry(track).or_default();
            if open.early > 0 {
                open.early -= 1;
            } else {
                open.categories.push(category);
            }
        }
        category
    }

    /// The same for a packet that is carried: its slice is among the open ones.
    pub(super) fn category_of_carried(&mut self, about: &About<'_>) -> Option<usize> {
        let event = Event::of(about.event?);
        self.own_category(about, &event)
    }

    /// Returns the number of the event's category, or of its categories with commas between them.
    fn own_category(&mut self, about: &About<'_>, event: &Event<'_>) -> Option<usize> {
        if event.kind == Some(EventType::Counter) {
            return self.counters.get(&event.track?).copied();
        }
        let interned = |iid: &u64| self.interned.get(&(about.sequence, *iid)).copied();
        match (&*event.iids, &*event.names) {
            ([], []) => Some(self.numbered(b"")),
            // What the recorder says of itself is for all.
            ([], [b"hairline"]) if about.sequence == OWN_SEQUENCE => None,
            ([iid], []) => interned(iid),
            ([], [name]) => Some(self.numbered(name)),
            (iids, names) => {
                let interned = iids.iter().filter_map(interned).filter_map(|number| self.names.get(number));
                let mut all: Vec<Vec<u8>> = interned.map(|name| name.clone().into_bytes()).collect();
                all.extend(names.iter().map(|name| name.to_vec()));
                Some(self.numbered(&all.join(&b',')))
            }
        }
    }
}

/// The fields of an event that say who wants it.
#[derive(Debug, Default)]
struct Event<'p> {
    kind: Option<EventType>,
    track: Option<u64>,
    names: Vec<&'p [u8]>,
    iids: Vec<u64>,
}

impl<'p> Event<'p> {
    fn of(event: &'p [u8]) -> Self {
        let mut of = Self::default();
        for field in fields(event) {
            match field {
                (track_event::TYPE, FieldValue::Varint(v)) => of.kind = EventType::from_number(v),
                (track_event::TRACK_UUID, FieldValue::Varint(v)) => of.track = Some(v),
                (track_event::CATEGORY_IIDS, FieldValue::Varint(v)) => of.iids.push(v),
                (track_event::CATEGORIES, FieldValue::Bytes { bytes, .. }) => of.names.push(bytes),
                _ => {}
            }
        }
        of
    }
}

/// Returns the track of events that name none, from the defaults of a sequence.
fn default_track(defaults: &[u8]) -> Option<u64> {
    let of_events = fields(defaults).find_map(|field| match field {
        (trace_packet_defaults::TRACK_EVENT_DEFAULTS, FieldValue::Bytes { bytes, .. }) => Some(bytes),
        _ => None,
    });
    fields(of_events?).find_map(|field| match field {
        (track_event_defaults::TRACK_UUID, FieldValue::Varint(track)) => Some(track),
        _ => None,
    })
}

/// Returns the track and the categories of a counter, from the description of its track.
fn counter_of(track: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (mut uuid, mut categories) = (None, Vec::new());
    for field in fields(track) {
        match field {
            (track_descriptor::UUID, FieldValue::Varint(v)) => uuid = Some(v),
            (track_descriptor::COUNTER, FieldValue::Bytes { bytes, .. }) => {
                categories.extend(fields(bytes).filter_map(|field| match field {
                    (counter_descriptor::CATEGORIES, FieldValue::Bytes { bytes, .. }) => Some(bytes),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    uuid.zip((!categories.is_empty()).then(|| categories.join(&b',')))
}
