//! The current record, and the tables for its indices. Items borrow from both.

use std::io::Read;

use hairline_formats::Value;
use hairline_formats::fxt::layout::{event, record};
use hairline_formats::fxt::{self, ArgumentValue, EventKind, EventRecord, RecordType, StringRef};

use crate::fxt::read::tables::Tables;
use crate::{Arguments, Text};

#[derive(Debug)]
pub(super) struct Current<R> {
    pub(super) records: fxt::RecordReader<R>,
    pub(super) tables: Tables,
}

impl<R: Read> Current<R> {
    pub(super) fn new(input: R) -> Self {
        Self { records: fxt::RecordReader::new(input), tables: Tables::default() }
    }

    #[inline]
    fn header(&self) -> u64 {
        self.records.bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    pub(super) fn is_event(&self) -> bool {
        record::TYPE.get(self.header()) == RecordType::Event as u64
    }

    /// Whether the record is an event of this kind.
    #[inline]
    pub(super) fn is(&self, kind: EventKind) -> bool {
        self.is_event() && event::KIND.get(self.header()) == kind as u64
    }

    fn event(&self) -> Option<EventRecord<'_>> {
        self.records.event().ok().flatten()
    }

    /// A string of the event; "" for an undefined index.
    #[inline]
    pub(super) fn text<'a>(
        &'a self,
        form: StringForm,
        inline: impl Fn(&EventRecord<'a>) -> StringRef<'a>,
    ) -> Text<'a> {
        let string = match form {
            StringForm::Empty => return Text::default(),
            StringForm::Index(index) => StringRef::Index(index),
            StringForm::Inline => self.event().map_or(StringRef::Empty, |event| inline(&event)),
        };
        self.tables.string(string).unwrap_or_default()
    }
}

/// The form of a string in the current record.
#[derive(Clone, Copy, Debug)]
pub(super) enum StringForm {
    Empty,
    Index(u16),
    /// The text is in the record.
    Inline,
}

impl From<StringRef<'_>> for StringForm {
    fn from(string: StringRef<'_>) -> Self {
        match string {
            StringRef::Empty => Self::Empty,
            StringRef::Index(index) => Self::Index(index),
            StringRef::Inline(_) => Self::Inline,
        }
    }
}

/// The value of an argument, with a string index replaced by its text.
pub(super) fn resolved<'a>(value: ArgumentValue<'a>, tables: &'a Tables) -> Value<'a> {
    match value {
        ArgumentValue::Value(value) => value,
        ArgumentValue::StringIndex(index) => match tables.string(StringRef::Index(index)) {
            Some(Text { text, id: Some(id) }) => Value::Interned { iid: id.iid(), text },
            Some(Text { text, id: None }) => Value::Str(text),
            None => Value::Str(""),
        },
    }
}

impl<R: Read> Arguments for Current<R> {
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
        let Some(event) = self.event() else { return };
        for (name, value) in event.args().flatten() {
            show(self.tables.string(name).unwrap_or_default(), resolved(value, &self.tables));
        }
    }

    fn is_empty(&self) -> bool {
        event::ARGS.get(self.header()) == 0
    }
}
