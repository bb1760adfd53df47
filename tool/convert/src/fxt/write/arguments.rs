//! The arguments of a record, encoded before it, because the record's header has their count.

use hairline_formats::fxt::{self, MAX_ARGS, MAX_STRING, StringRef, layout::argument, put_argument};
use hairline_formats::{Value, truncate_utf8};

use crate::fxt::write::strings::Strings;
use crate::report::TOO_DEEP;
use crate::{Arguments, Report, StringId, Text};

#[derive(Debug, Default)]
pub(super) struct EncodedArguments {
    pub(super) bytes: Vec<u8>,
    /// The end of each argument.
    ends: [usize; MAX_ARGS],
    count: usize,
    /// The number of arguments that had no room.
    more: u64,
    path: String,
}

impl EncodedArguments {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.more) = (0, 0);
    }

    /// Adds all arguments of an event. Writes records for new string indices to `out`.
    pub(super) fn add_all(
        &mut self,
        args: &dyn Arguments,
        strings: &mut Strings,
        out: &mut Vec<u8>,
        report: &mut Report,
    ) {
        args.each(&mut |name, value| self.add(name, value, strings, out, report));
    }

    pub(super) fn add(
        &mut self,
        name: Text<'_>,
        value: Value<'_>,
        strings: &mut Strings,
        out: &mut Vec<u8>,
        report: &mut Report,
    ) {
        if let Value::Dict(_) | Value::Array(_) = value {
            report.add_many(TOO_DEEP, value.is_too_deep().into());
            let mut path = std::mem::take(&mut self.path);
            name.text.clone_into(&mut path);
            value.flatten(&mut path, &mut |path, value| self.add(path.into(), value, strings, out, report));
            self.path = path;
            return;
        }
        if self.count == MAX_ARGS {
            self.more += 1;
            return;
        }
        let name = match strings.reference(name, out, report) {
            // Leaves room for the value.
            StringRef::Inline(name) => StringRef::Inline(truncate_utf8(name, MAX_NAME)),
            name => name,
        };
        let value = match value {
            Value::Interned { iid, text } => {
                match strings.reference(Text { text, id: StringId::of_iid(iid) }, out, report) {
                    StringRef::Index(index) => Value::Interned { iid: u64::from(index), text },
                    _ => Value::Str(text),
                }
            }
            Value::Str(text) if text.len() > MAX_STRING => {
                report.add("texts cut at 32000 bytes");
                Value::Str(text)
            }
            Value::Blob(bytes) if bytes.len() > MAX_STRING => {
                report.add("blobs cut at 32000 bytes");
                value
            }
            value => value,
        };
        debug_assert!(fxt::argument_words(name, &value) as u64 <= argument::SIZE.max());
        put_argument(&mut self.bytes, name, &value);
        self.ends[self.count] = self.bytes.len();
        self.count += 1;
    }

    /// Drops the last arguments until the others fit into `room` words. Returns their count.
    pub(super) fn fitted(&mut self, room: usize, report: &mut Report) -> u64 {
        while self.bytes.len() > room * 8 {
            self.count = self.count.saturating_sub(1);
            self.more += 1;
            self.bytes.truncate(self.count.checked_sub(1).map_or(0, |last| self.ends[last]));
        }
        report.add_many("arguments beyond the 15 of a record, or its 32 KiB, left out", self.more);
        self.count as u64
    }
}

/// The limit for the bytes of a name: the rest beside a text of 32,000 bytes.
const MAX_NAME: usize = 512;
