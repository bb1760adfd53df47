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
mod nest;
mod protobuf;
mod span;

use std::io::Write;
use std::path::Path;

use hairline::Filter;
use hairline_convert::Report;

use crate::format::FormatArgument;
use crate::input::input_identity;
use crate::otlp::collect::Collector;
use crate::otlp::contexts::Sampling;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{complain, count, described};
use crate::trace::show;

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
}

fn nanoseconds(text: &str) -> Result<i64, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let parse = |(unit, size): (&str, f64)| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * size);
    match units.into_iter().find_map(parse) {
        #[allow(clippy::cast_possible_truncation)] // within the range
        Some(ns) if (0.0..9e18).contains(&ns) => Ok(ns as i64),
        _ => Err("give a number with ns, us, ms or s, like 5ms".to_owned()),
    }
}

impl OtlpArguments {
    /// Whether any of them is given.
    pub(crate) fn is_used(&self) -> bool {
        self.category.is_some() || self.slower_than.is_some() || self.errors || self.one_in.is_some()
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
}

/// Converts a trace. Writes nothing if that fails, or with `strict` if something has no place in OTLP.
pub(crate) fn run(
    input: &Path,
    from: Option<FormatArgument>,
    output: &Path,
    form: Form,
    arguments: &OtlpArguments,
    strict: bool,
) -> Result<Outcome, String> {
    let path = input.to_owned();
    let mut collector = Collector::new(arguments.category.clone());
    let summary = show(&path, from, false, &mut collector)?;
    if let Some(e) = summary.stopped.as_ref().filter(|_| collector.is_empty()) {
        return Err(format!("{}: {e}", summary.name));
    }
    let (mut spans, mut report) = collector.finish()?;
    report.add_all(&summary.report);
    let sampling =
        Sampling { slower_than: arguments.slower_than, errors: arguments.errors, one_in: arguments.one_in };
    contexts::assign(&mut spans);
    let left_out = sampling.apply(&mut spans);
    let bytes = match form {
        Form::Protobuf => protobuf::encode(&spans),
        Form::Json => json::encode(&spans),
    };
    say(&report);
    let n = spans.all.iter().filter(|span| span.is_kept).count();
    let (spans, traces) = (count(n as u64, "span"), count(left_out as u64, "trace"));
    complain(format_args!("{spans}; {traces} left out by the rules"));
    if strict && !report.is_empty() {
        complain(format_args!(
            "{}: not written, because OTLP cannot express all data (--strict)",
            output.display()
        ));
        return Ok(Outcome::NotStrict);
    }
    let identity = input_identity(input);
    let fail = |e: std::io::Error| format!("{}: {e}", output.display());
    let mut file = Output::create(output, &[identity]).and_then(Output::or_nothing).map_err(fail)?;
    file.write_all(&bytes).map_err(fail)?;
    file.keep().map_err(fail)?;
    let Some(e) = &summary.stopped else { return Ok(Outcome::Done) };
    complain(format_args!("{}: {e}; everything before that is in the output", summary.name));
    Ok(Outcome::Failed)
}

fn say(report: &Report) {
    if !report.is_empty() {
        complain("the output differs from the input:");
    }
    report.iter().for_each(|(what, n)| complain(format_args!("{n:>9} {}", described(n, what))));
}
