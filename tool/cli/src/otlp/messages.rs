//! Messages of limited size. Receivers refuse larger ones: those of gRPC above 4 MiB, if nobody has set
//! another limit.

use std::path::{Path, PathBuf};

use crate::otlp::span::{Process, Span, Spans};

/// The spans of a message, as its form has them, by process.
pub(super) type Message<'s> = Vec<(&'s Process, Vec<u8>)>;

/// How a form of OTLP has spans and messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// A span, with what is added to its times for those since 1970.
    pub(super) span: fn(&Span, i64) -> Vec<u8>,
    /// What is between two spans.
    pub(super) separator: &'static [u8],
    pub(super) message: fn(&Message<'_>) -> Vec<u8>,
}

/// Lengths of protobuf that have more bytes with spans than without.
const LENGTHS: usize = 8;

/// Messages of at most `most` bytes. A larger span has a message of its own. There is always a message.
pub(super) struct Messages<'s> {
    spans: &'s Spans,
    encoding: Encoding,
    most: usize,
    rest: std::vec::IntoIter<&'s Span>,
    /// The next span, which had no room in the message before.
    next: Option<(&'s Span, Vec<u8>)>,
    is_first: bool,
}

impl<'s> Messages<'s> {
    pub(super) fn new(spans: &'s Spans, encoding: Encoding, most: usize) -> Self {
        let mut all: Vec<_> = spans.all.iter().filter(|span| span.is_kept).collect();
        all.sort_by_key(|span| span.process);
        Self { spans, encoding, most, rest: all.into_iter(), next: None, is_first: true }
    }
}

impl<'s> Iterator for Messages<'s> {
    type Item = Message<'s>;

    fn next(&mut self) -> Option<Message<'s>> {
        let (encoding, since_1970) = (self.encoding, self.spans.since_1970);
        let (mut message, mut used, mut process) = (Message::new(), 0, None);
        let with_bytes = |span: &'s Span| (span, (encoding.span)(span, since_1970));
        while let Some((span, bytes)) = self.next.take().or_else(|| self.rest.next().map(with_bytes)) {
            let of_span = &self.spans.processes[span.process];
            let is_same = process == Some(span.process);
            let head =
                if is_same { 0 } else { (encoding.message)(&vec![(of_span, Vec::new())]).len() + LENGTHS };
            let size = head + encoding.separator.len() + bytes.len();
            if used + size > self.most && used > 0 {
                self.next = Some((span, bytes));
                break;
            }
            (used, process) = (used + size, Some(span.process));
            match message.last_mut().filter(|_| is_same) {
                Some((_, spans)) => {
                    spans.extend_from_slice(encoding.separator);
                    spans.extend(bytes);
                }
                None => message.push((of_span, bytes)),
            }
        }
        (!message.is_empty() || std::mem::take(&mut self.is_first)).then(|| {
            self.is_first = false;
            message
        })
    }
}

/// The name of the file of one of several messages: `run.2.otlp` for `run.otlp`.
pub(super) fn numbered(path: &Path, number: usize) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = [".otlp.json", ".otlp"].iter().find_map(|end| {
        let at = name.len().checked_sub(end.len())?;
        name.get(at..)?.eq_ignore_ascii_case(end).then(|| name.split_at(at))
    });
    let (stem, end) = stem.unwrap_or((&name, ""));
    path.with_file_name(format!("{stem}.{number}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_messages_are_numbered_before_their_extension() {
        let names = ["a/run.otlp", "run.otlp.json", "RUN.OTLP"].map(|name| numbered(Path::new(name), 2));
        assert_eq!(names, ["a/run.2.otlp", "run.2.otlp.json", "RUN.2.OTLP"].map(PathBuf::from));
    }
}
