//! `hairline convert TRACE OUT.otlp`: slices become spans of OpenTelemetry.
//!
//! ```text
//! items ── collect ──> events of each track ── nest ──> spans with parents
//!                                                         │ contexts: trace ids, remote parents, links
//!                                                         │ sampling: whole traces
//!                                     .otlp (protobuf) <──┴──> .otlp.json
//! ```
//!
//! The whole trace is in memory, because a context may come with the last slice of a thread.

mod attribute;
mod collect;
mod contexts;
mod entry;
mod json;
mod messages;
mod nest;
mod protobuf;
mod span;

use std::io::Write;
use std::path::Path;

use hairline::Filter;

use crate::input::input_identity;
use crate::opening::Opening;
use crate::otlp::collect::Collector;
use crate::otlp::contexts::Sampling;
use crate::otlp::messages::{Encoding, Messages, numbered};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{complain, count, nanoseconds, size};
use crate::trace::show;
use crate::transfer::say;

/// Which slices become spans.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct OtlpArguments {
    /// For .otlp: only slices of these categories become spans: "net,db.*,-db.verbose".
    #[arg(long, visible_alias = "categories", value_name = "FILTER", allow_hyphen_values = true)]
    #[arg(value_parser = Filter::parse)]
    category: Option<Filter>,
    /// For .otlp: keep traces in which a root span takes at least so long: 5ms, 2s.
    #[arg(long, value_name = "DURATION", value_parser = nanoseconds)]
    slower_than: Option<i64>,
    /// For .otlp: keep traces with a failed span: its argument `error`, or an error message in it.
    #[arg(long)]
    errors: bool,
    /// For .otlp: keep one in N traces by their trace id, the same ones in each process.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    one_in: Option<u64>,
    /// For .otlp: the largest message, in bytes. More spans become several files: OUT.1.otlp, OUT.2.otlp. The
    /// default is what receivers take.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    max_bytes: Option<u64>,
}

/// The default limit of gRPC, and so of most receivers.
const MOST_BYTES: u64 = 4 << 20;

impl OtlpArguments {
    /// Whether any of them is given.
    pub(crate) fn is_used(&self) -> bool {
        self.category.is_some()
            || self.slower_than.is_some()
            || self.errors
            || self.one_in.is_some()
            || self.max_bytes.is_some()
    }
}

/// The form of OTLP that a file name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Protobuf,
    Json,
}

impl Form {
    /// By the name's extension.
    pub(crate) fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        if name.ends_with(".otlp.json") {
            Some(Self::Json)
        } else {
            name.ends_with(".otlp").then_some(Self::Protobuf)
        }
    }

    fn encoding(self) -> Encoding {
        match self {
            Self::Protobuf => protobuf::ENCODING,
            Self::Json => json::ENCODING,
        }
    }
}

/// Converts a trace. Writes nothing if that fails, or with `strict` if something has no place in OTLP.
pub(crate) fn run(
    input: &Path,
    opening: Opening,
    output: &Path,
    form: Form,
    arguments: &OtlpArguments,
    strict: bool,
) -> Result<Outcome, String> {
    let path = input.to_owned();
    let mut collector = Collector::new(arguments.category.clone());
    let summary = show(&path, opening, false, &mut collector)?;
    if let Some(e) = summary.stopped.as_ref().filter(|_| collector.is_empty()) {
        return Err(format!("{}: {e}", summary.name));
    }
    let (mut spans, mut report) = collector.finish()?;
    report.add_all(&summary.report);
    let sampling =
        Sampling { slower_than: arguments.slower_than, errors: arguments.errors, one_in: arguments.one_in };
    contexts::assign(&mut spans);
    let left_out = sampling.apply(&mut spans);
    say(&report);
    let n = spans.all.iter().filter(|span| span.is_kept).count();
    let (kept, traces) = (count(n as u64, "span"), count(left_out as u64, "trace"));
    complain(format_args!("{kept}; {traces} left out by the rules"));
    if strict && !report.is_empty() {
        complain(format_args!(
            "{}: not written, because OTLP cannot express all data (--strict)",
            output.display()
        ));
        return Ok(Outcome::NotStrict);
    }
    let identity = input_identity(input);
    let most = usize::try_from(arguments.max_bytes.unwrap_or(MOST_BYTES)).unwrap_or(usize::MAX);
    let mut messages = Messages::new(&spans, form.encoding(), most).zip(1..).peekable();
    let (mut files, mut larger) = (Vec::new(), 0);
    while let Some((message, number)) = messages.next() {
        let is_only = number == 1 && messages.peek().is_none();
        let path = if is_only { output.to_owned() } else { numbered(output, number) };
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        let bytes = (form.encoding().message)(&message);
        larger += u64::from(bytes.len() > most);
        let mut file = Output::create(&path, &[identity]).and_then(Output::or_nothing).map_err(fail)?;
        file.write_all(&bytes).map_err(fail)?;
        // There may be more of them than files that a process can have open.
        files.push((file.close().map_err(fail)?, path));
    }
    if let [(_, first), .., (_, last)] = &files[..] {
        let (first, last) = (first.display(), last.display());
        let most = size(most as u64);
        complain(format_args!("more than {most}, the largest message (--max-bytes): {first} to {last}"));
    }
    if larger > 0 {
        let larger = count(larger, "span");
        complain(format_args!("{larger} larger than a message (--max-bytes), each in one of its own"));
    }
    for (file, path) in files {
        file.keep().map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let Some(e) = &summary.stopped else { return Ok(Outcome::Done) };
    complain(format_args!("{}: {e}; everything before that is in the output", summary.name));
    Ok(Outcome::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::span::{Process, Span, Spans};

    #[test]
    fn messages_have_at_most_so_many_bytes_and_all_spans_in_order() {
        let name = |n: usize| format!("span {n:03}");
        let span = |n: usize, process| Span { process, name: name(n), is_kept: true, ..Span::default() };
        let all: Vec<_> = (0..60).map(|n| span(n, n % 3)).collect();
        let process = |name: &str| Process { name: name.into(), pid: Some(7) };
        let processes = vec![process("a"), process(&"\"".repeat(200)), Process::default()];
        let spans = Spans { processes, all, ..Spans::default() };
        let order = [0, 1, 2].iter().flat_map(|process| (0..20).map(move |n| name(3 * n + process)));
        let order: Vec<_> = order.collect();
        for form in [Form::Protobuf, Form::Json] {
            for most in [1000, 1500, 3000, 100_000] {
                let messages: Vec<_> = Messages::new(&spans, form.encoding(), most)
                    .map(|message| (form.encoding().message)(&message))
                    .collect();
                let texts: Vec<_> = messages.iter().map(|message| String::from_utf8_lossy(message)).collect();
                assert!(messages.iter().all(|message| message.len() <= most), "{form:?} {most}");
                let all = texts.concat();
                let places: Vec<_> = order.iter().map(|name| all.find(name).expect("a span")).collect();
                assert!(places.is_sorted() && all.matches("span ").count() == 60, "{form:?} {most}");
                assert!(messages.len() <= all.len() / (most / 2) + 1, "{form:?} {most}: {}", messages.len());
            }
            assert_eq!(Messages::new(&spans, form.encoding(), 10).count(), 60, "each larger than the limit");
            assert_eq!(Messages::new(&Spans::default(), form.encoding(), 10).count(), 1);
        }
    }
}
