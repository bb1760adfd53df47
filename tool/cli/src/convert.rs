//! `hairline convert`

use std::path::PathBuf;

use crate::format::FormatArgument;
use crate::opening::Opening;
use crate::otlp::{self, Form, OtlpArguments};
use crate::outcome::Outcome;
use crate::profiles;
use crate::selection::Selection;
use crate::text::{complain, failed};
use crate::trace::TraceArguments;
use crate::transfer::{self, Transfer};

/// Converts a trace to another format: Perfetto, FXT, Trace Event JSON, spans of OpenTelemetry, or a profile
/// for pprof or the Firefox Profiler.
///
/// The first bytes decide the input's format, compressed with gzip, zstd, xz or zip or not. The name decides
/// the output's format. JSON holds times of less than 26 days exactly: if the first event is later (times
/// since 1970 are), the output's times begin at about one day, and `otherData.timeOffsetNs` has the rest,
/// which this command adds again when it reads the file. Such a move, and data that the format cannot express
/// and that is written in the nearest form, are counted on stderr. The output appears when it is complete;
/// the input does not change. If the input ends early, its valid part is converted, and the exit code is 1.
///
/// OUT.otlp and OUT.otlp.json are OTLP, which OpenTelemetry's collector and its backends take. Each slice
/// becomes a span, with its arguments as attributes, its instants and messages as events, and its flows as
/// parents in other processes or as links. A trace id is that of the `traceparent` that a flow came with.
/// Everything else, such as counters, is left out and counted. Without a rule all spans are kept, otherwise
/// the traces that any rule asks for.
///
/// OUT.pb.gz and OUT.pprof are profiles for pprof: the stack samples of running threads and the heap
/// profile, with functions, inlined functions, lines, programs and build ids, and the labels `thread`
/// and `process`. The values are the number of samples, their CPU time in nanoseconds if the trace has
/// the period of its samples, and the bytes that were allocated and are live.
///
/// OUT.firefox.json and OUT.firefox.json.gz are for the Firefox Profiler (profiler.firefox.com), in version
/// 60 of its processed format: threads with their samples, and slices and instants as markers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline convert run.fxt run.pftrace
  hairline convert chrome.json.gz chrome.pftrace
  hairline convert run.pftrace - --to json | jq .
  hairline convert run.pftrace part.pftrace --time-range 10s..12s --thread 'worker-*'
  hairline convert run.pftrace run.otlp --category 'net,db' --slower-than 50ms --errors
  hairline convert run.pftrace run.pb.gz && go tool pprof -top run.pb.gz
  hairline convert run.pftrace run.firefox.json.gz       to be dropped on https://profiler.firefox.com
  hairline convert --strict run.pftrace run.fxt     fails if FXT has no word for something")]
pub(crate) struct Arguments {
    /// The trace; - for stdin.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The output: .pftrace, .fxt or .json, with .gz appended for compression; .otlp or .otlp.json; .pb.gz or
    /// .pprof; .firefox.json or .firefox.json.gz; - for stdout.
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    opening: Opening,
    /// The output's format, if its name has no known extension.
    #[arg(long, value_name = "FORMAT")]
    to: Option<FormatArgument>,
    /// Fail and write nothing if the format cannot express all data.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    otlp: OtlpArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { input, output, opening, to, strict, selection, otlp } = arguments;
    if let (Some(form), None) = (Form::by_name(output), to) {
        if !selection.is_all() {
            complain(
                "--time-range and --thread are for traces and profiles: choose the spans of an .otlp by the \
                 other options",
            );
            return Outcome::Usage;
        }
        return otlp::run(input, *opening, output, form, otlp, *strict).unwrap_or_else(failed);
    }
    if otlp.is_used() {
        complain("only an output .otlp or .otlp.json has spans to choose from");
        return Outcome::Usage;
    }
    if let (Some(form), None) = (profiles::Form::by_name(output), to) {
        let trace = TraceArguments::new(input.clone(), *opening).part(selection);
        return profiles::run(&trace, output, form, *strict).unwrap_or_else(failed);
    }
    let inputs = std::slice::from_ref(input);
    transfer::run(&Transfer {
        inputs,
        output,
        opening: *opening,
        to: *to,
        strict: *strict,
        as_is: true,
        selection,
    })
}
