//! What the packets of a sequence rely on, as it is written.

use std::collections::HashMap;

use hairline_formats::track_event::{
    self as te, Interned, Name, SequenceStart, SourceLocation, fields::clock,
};

use crate::{StringId, Text};

/// Numbers that were given out, a bit each.
#[derive(Debug, Default)]
struct Known(Vec<u64>);

impl Known {
    /// Whether it is new.
    fn add(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// A sequence: a thread's events, and what else happens meanwhile.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) number: u32,
    /// The track of events that name none.
    pub(super) track_uuid: u64,
    /// What extra counter values are samples of.
    pub(super) extra_counters: Vec<u64>,
    /// Whether it has begun at all, and whether its state is good.
    has_begun: bool,
    is_good: bool,
    dropped: bool,
    last: u64,
    log_bodies: u64,
    categories: Known,
    names: Known,
    annotation_names: Known,
    annotation_texts: Known,
    places: Known,
    /// Names of arguments that importers do not show as they are.
    pub(super) names_shown_otherwise: u64,
}

/// The number that stands for a string on each sequence: from 1.
fn iid(id: StringId) -> u64 {
    u64::from(id.0) + 1
}

/// What kind of string.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Category,
    EventName,
    AnnotationName,
    AnnotationText,
}

impl Sequence {
    pub(super) fn new(number: u32, track_uuid: u64) -> Self {
        Self { number, track_uuid, ..Self::default() }
    }

    /// Something is missing before what comes next.
    pub(super) fn drop_state(&mut self) {
        (self.is_good, self.dropped) = (false, true);
    }

    /// The samples that come now are of other counters.
    pub(super) fn set_extra_counters(&mut self, uuids: Vec<u64>) {
        (self.is_good, self.extra_counters) = (false, uuids);
    }

    /// Says that something is missing, if nothing came that says it.
    pub(super) fn tell_loss(&mut self, out: &mut Vec<u8>, time: u64) {
        if self.dropped {
            self.begin(out, time);
        }
    }

    /// Has the state begin, if it has not.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut Vec<u8>, time: u64) {
        if !self.is_good {
            self.begin_anew(out, time);
        }
    }

    #[cold]
    fn begin_anew(&mut self, out: &mut Vec<u8>, time: u64) {
        let start = SequenceStart {
            sequence: self.number,
            // What is missing before the first packet of all, nobody asks for.
            first: !self.has_begun && !self.dropped,
            dropped: self.dropped,
            track_uuid: self.track_uuid,
            extra_counters: &self.extra_counters,
            timestamp_ns: time,
        };
        te::sequence_start(out, &start);
        (self.has_begun, self.is_good, self.dropped, self.last) = (true, true, false, time);
        for known in [
            &mut self.categories,
            &mut self.names,
            &mut self.annotation_names,
            &mut self.annotation_texts,
            &mut self.places,
        ] {
            known.0.clear();
        }
    }

    /// The timestamp of what happens at this time, and its clock if it lies before what was written last: the sequence's goes forward only.
    pub(super) fn timestamp(&mut self, time: u64) -> (u64, Option<u32>) {
        match time.checked_sub(self.last) {
            Some(since) => {
                self.last = time;
                (since, None)
            }
            None => (time, Some(clock::BOOTTIME)),
        }
    }

    /// A string, by its number if it has one.
    #[inline]
    pub(super) fn name<'a>(&mut self, out: &mut Vec<u8>, kind: Kind, text: Text<'a>) -> Name<'a> {
        let Some(id) = text.id else {
            if matches!(kind, Kind::AnnotationName) {
                self.count_name(text.text);
            }
            return Name::Text(text.text);
        };
        let known = match kind {
            Kind::Category => &mut self.categories,
            Kind::EventName => &mut self.names,
            Kind::AnnotationName => &mut self.annotation_names,
            Kind::AnnotationText => &mut self.annotation_texts,
        };
        let (iid, name) = (iid(id), text.text);
        if known.add(id.0) {
            if matches!(kind, Kind::AnnotationName) {
                self.count_name(name);
            }
            self.tell(out, kind, iid, name);
        }
        Name::Iid(iid)
    }

    /// Writes which string a number stands for.
    #[cold]
    fn tell(&self, out: &mut Vec<u8>, kind: Kind, iid: u64, name: &str) {
        let string = match kind {
            Kind::Category => Interned::Category { iid, name },
            Kind::EventName => Interned::EventName { iid, name },
            Kind::AnnotationName => Interned::AnnotationName { iid, name },
            Kind::AnnotationText => Interned::AnnotationText { iid, name },
        };
        te::interned(out, self.number, &[string]);
    }

    fn count_name(&mut self, of_argument: &str) {
        self.names_shown_otherwise += u64::from(of_argument.contains(['.', '[', ']']));
    }

    /// The number of a log message's text, which it has for this time.
    pub(super) fn log_body(&mut self, out: &mut Vec<u8>, name: &str) -> u64 {
        self.log_bodies += 1;
        te::interned(out, self.number, &[Interned::LogBody { iid: self.log_bodies, name }]);
        self.log_bodies
    }

    /// The number of a place in the source.
    pub(super) fn place(&mut self, out: &mut Vec<u8>, places: &mut Places, at: SourceLocation<'_>) -> u64 {
        let number = places.number(at);
        if self.places.add(number) {
            te::interned(out, self.number, &[Interned::Location { iid: u64::from(number), at }]);
        }
        u64::from(number)
    }
}

/// A function, a line, and the number of the place.
type Numbered = (Box<str>, u32, u32);

/// Places in the source, by file.
#[derive(Debug, Default)]
pub(super) struct Places {
    files: HashMap<Box<str>, Vec<Numbered>>,
    count: u32,
}

impl Places {
    /// The number of a place, from 1.
    fn number(&mut self, at: SourceLocation<'_>) -> u32 {
        if !self.files.contains_key(at.file) {
            self.files.insert(at.file.into(), Vec::new());
        }
        let Some(places) = self.files.get_mut(at.file) else { return 0 };
        let same = |(function, line, _): &&Numbered| *line == at.line && **function == *at.function;
        if let Some((.., number)) = places.iter().find(same) {
            return *number;
        }
        self.count += 1;
        places.push((at.function.into(), at.line, self.count));
        self.count
    }
}
