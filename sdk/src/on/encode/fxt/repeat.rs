//! The begins of open slices as FXT records, repeated at the start of a chunk. The records stay as they are,
//! since their time is absolute. The records of their strings precede them.

use hairline_formats::fxt;
use hairline_formats::fxt::{ArgumentValue, EventKind, StringRef};

use crate::on::base::memory::Bytes;
use crate::on::base::sets::Bits;
use crate::on::callsite::{Callsite, StringId, registry};
use crate::on::encode::begin::{Begin, Note, Repeated};
use crate::on::encode::cut;

/// The fields of an event's header that refer to its category and its name: by index, or with the highest bit
/// set if the string follows inline.
const FIELDS: [fxt::layout::Field; 2] = [fxt::layout::event::CATEGORY, fxt::layout::event::NAME];

/// The strings that the end of a slice refers to, as in the header of an event. The note of a begin.
///
/// The hot path leaves this note unwritten: there the end has the strings of the begin.
#[derive(Clone, Copy)]
pub(crate) struct EndStrings(u64);

impl EndStrings {
    /// An end has the name of its callsite, also if the begin has another name.
    pub(crate) fn of(callsite: &'static Callsite) -> Self {
        let ids = [callsite.category_id(), callsite.name_id()];
        let index = |id: StringId| id.index().map_or(0, u64::from);
        Self(FIELDS.iter().zip(ids).map(|(field, id)| field.set(index(id))).sum())
    }

    /// Returns the strings of a begin, which its end has too if both are indexed.
    fn of_begin(record: &[u8]) -> Option<Self> {
        let header = record.first_chunk().map(|header| u64::from_le_bytes(*header))?;
        FIELDS.iter().all(|field| field.get(header) >> 15 == 0).then_some(Self(header))
    }
}

impl EndStrings {
    /// Returns the note of a begin that happens `now`.
    pub(crate) fn note(self, now: u64) -> Note {
        Note { id: now as u32, more: self.0 }
    }
}

/// Begins that are repeated.
#[derive(Debug, Default)]
pub(crate) struct RepeatedRecords {
    repeated: Repeated,
    strings: Strings,
}

impl RepeatedRecords {
    /// See [`Sequence::repeat_begins`](crate::on::encode::sequence::Sequence::repeat_begins). The strings of
    /// dropped begins are written too, since an end refers to them.
    pub(crate) fn repeat(&mut self, out: &mut Bytes, chunk: &[u8], begins: &mut [Begin], room: usize) {
        let Self { repeated, strings } = self;
        repeated.clear();
        strings.0.clear();
        for begin in &mut *begins {
            let record = begin.at.map(|at| chunk.get(at as usize..).unwrap_or(&[]));
            let of_end = record.and_then(EndStrings::of_begin).unwrap_or(EndStrings(begin.note.more));
            strings.put_of_end(&mut repeated.preceding, of_end);
            let at = record.and_then(|record| put_record(&mut repeated.begins, record));
            *begin = Begin { at, note: Note { more: of_end.0, ..begin.note } };
        }
        repeated.keep_innermost(begins, room, |out, begin| strings.put_of_arguments(out, begin));
        repeated.copy_to(out);
    }
}

/// Copies the begin with the records of the flows through it, which follow it. Returns its offset.
fn put_record(out: &mut Bytes, written: &[u8]) -> Option<u32> {
    let (begin, mut len) = fxt::event_record(written)?;
    while let Some((flow, more)) = fxt::event_record(&written[len..])
        && matches!(flow.kind, EventKind::FlowBegin | EventKind::FlowStep | EventKind::FlowEnd)
        && flow.timestamp == begin.timestamp
    {
        len += more;
    }
    let at = u32::try_from(out.len()).ok()?;
    out.extend_from_slice(&written[..len]);
    Some(at)
}

/// The strings that are written, by their index.
#[derive(Debug, Default)]
struct Strings(Bits);

impl Strings {
    fn put_of_end(&mut self, out: &mut Bytes, end: EndStrings) {
        for field in FIELDS {
            let index = field.get(end.0) as u16;
            if (1..=fxt::MAX_STRING_INDEX).contains(&index) {
                self.put(out, StringRef::Index(index));
            }
        }
    }

    /// Writes the strings of a begin's arguments. Those of its category and its name are written already.
    fn put_of_arguments(&mut self, out: &mut Bytes, begin: &[u8]) {
        let event = fxt::event_record(begin);
        for (name, value) in event.iter().flat_map(|(event, _)| event.args()).map_while(Result::ok) {
            self.put(out, name);
            if let ArgumentValue::StringIndex(index) = value {
                self.put(out, StringRef::Index(index));
            }
        }
    }

    /// Writes the record of an indexed string.
    fn put(&mut self, out: &mut Bytes, string: StringRef<'_>) {
        if let StringRef::Index(index) = string
            && self.0.insert(u32::from(index))
            && let Some(text) = registry::string_with(StringId(u32::from(index)))
        {
            fxt::string_record(out, index, cut(text));
        }
    }
}
