//! Traces to a trace: the common part of `convert` and `merge`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use hairline_convert::{
    BriefUse, Context, FileFormat, Item, MOST_BRIEF, Report, TraceFormat, TraceWriter, TrackKind, create,
};

use crate::format::FormatArgument;
use crate::input::{Input, is_standard, stream_identity};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{complain, described};

/// The arguments of a conversion.
pub(crate) struct Transfer<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) output: &'a Path,
    pub(crate) from: Option<FormatArgument>,
    pub(crate) to: Option<FormatArgument>,
    pub(crate) strict: bool,
}

/// Why a conversion failed.
enum Failure {
    /// A failure to report.
    Said(Outcome, String),
    /// The reader of the output closed the pipe.
    NotWanted,
}

impl Failure {
    fn of(who: impl Display, what: impl Display) -> Self {
        Self::Said(Outcome::Failed, format!("{who}: {what}"))
    }

    fn output(path: &Path, e: &io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Self::NotWanted,
            _ if is_standard(path) => Self::of("stdout", e),
            _ => Self::of(path.display(), e),
        }
    }
}

/// Converts, and reports the result.
pub(crate) fn run(transfer: &Transfer<'_>) -> Outcome {
    match transfer.run() {
        Ok(outcome) => outcome,
        Err(Failure::NotWanted) => Outcome::Failed,
        Err(Failure::Said(outcome, what)) => {
            complain(what);
            outcome
        }
    }
}

/// Fails if two inputs are one stream, which can be read only once: the second would wait for ever.
pub(crate) fn check_streams(inputs: &[PathBuf]) -> Result<(), String> {
    let mut seen = Vec::new();
    for input in inputs {
        let Some(stream) = stream_identity(input) else { continue };
        if seen.contains(&stream) {
            let what = "it is more than one input, but can be read only once";
            let name = if is_standard(input) { "stdin".into() } else { input.display().to_string() };
            return Err(format!("{name}: {what}"));
        }
        seen.push(stream);
    }
    Ok(())
}

impl Transfer<'_> {
    fn run(&self) -> Result<Outcome, Failure> {
        let kind = self.kind()?;
        check_streams(self.inputs).map_err(|what| Failure::Said(Outcome::Usage, what))?;
        let inputs =
            self.inputs.iter().map(|path| Input::open(path).map_err(|e| Failure::of(path.display(), e)));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let identities: Vec<_> = inputs.iter().map(Input::identity).collect();
        let fail = |e: io::Error| Failure::output(self.output, &e);
        let mut output =
            Output::create(self.output, &identities).and_then(Output::or_nothing).map_err(fail)?;
        let (outcome, report) = if kind.gzip {
            let mut compressed = GzEncoder::new(&mut output, Compression::default());
            let done = self.write(inputs, kind.format, &mut compressed)?;
            compressed.finish().map_err(fail)?;
            done
        } else {
            self.write(inputs, kind.format, &mut output)?
        };
        say(&report);
        if self.strict && !report.is_empty() {
            let what = "not written, because the format cannot express all data (--strict)";
            return Err(Failure::Said(Outcome::NotStrict, format!("{}: {what}", self.output.display())));
        }
        output.keep().map_err(fail)?;
        Ok(outcome)
    }

    /// The format of the output.
    fn kind(&self) -> Result<FileFormat, Failure> {
        let by_name = FileFormat::by_name(self.output);
        let gzip = by_name.is_some_and(|kind| kind.gzip);
        match (self.to, by_name) {
            (Some(format), _) => Ok(FileFormat { format: format.into(), gzip }),
            (None, Some(kind)) => Ok(kind),
            (None, None) => {
                let what = "its name says no format: end it in .pftrace, .fxt or .json, or give --to";
                Err(Failure::Said(Outcome::Usage, format!("{}: {what}", self.output.display())))
            }
        }
    }

    fn write(
        &self,
        inputs: Vec<Input>,
        format: TraceFormat,
        output: &mut dyn io::Write,
    ) -> Result<(Outcome, Report), Failure> {
        let fail = |e: io::Error| Failure::output(self.output, &e);
        let mut writer = create(format, output);
        let (mut context, mut report, mut outcome) = (Context::new(), Report::default(), Outcome::Done);
        let mut owners = Owners::default();
        for input in inputs {
            let name = input.name().to_owned();
            outcome = outcome.max(self.copy(input, &mut context, &mut *writer, &mut report, &mut owners)?);
            owners.next_input(&name);
            context.next_input();
            writer.next_input().map_err(fail)?;
        }
        writer.finish().map_err(fail)?;
        report.add_all(writer.report());
        if format == TraceFormat::TrackEvent {
            owners.say();
        }
        Ok((outcome, report))
    }

    /// Copies an input, or the valid part of it.
    fn copy(
        &self,
        input: Input,
        context: &mut Context,
        writer: &mut dyn TraceWriter,
        report: &mut Report,
        owners: &mut Owners,
    ) -> Result<Outcome, Failure> {
        let name = input.name().to_owned();
        let mut reader = input.trace(self.from).map_err(|e| Failure::of(&name, e))?;
        let (mut outcome, mut is_empty) = (Outcome::Done, true);
        let mut briefs = Vec::with_capacity(MOST_BRIEF);
        loop {
            reader.briefs(BriefUse::Writing, context, &mut briefs);
            if !briefs.is_empty() {
                is_empty = false;
                let written = writer.write_briefs(&briefs, &context.strings);
                written.map_err(|e| Failure::output(self.output, &e))?;
            }
            match reader.next(context) {
                // By reference, because an item is large.
                Ok(Some(ref item)) => {
                    is_empty = false;
                    owners.item(item);
                    writer.write(item).map_err(|e| Failure::output(self.output, &e))?;
                }
                Ok(None) => break,
                // If there is no item, an early end usually means that the input is no trace.
                Err(e) if e.is_truncated() && !is_empty => {
                    complain(format_args!("{name}: {e}; all before that is in the output"));
                    outcome = Outcome::Failed;
                    break;
                }
                Err(e) => return Err(Failure::of(&name, format_args!("{e}; nothing was written"))),
            }
        }
        report.add_all(reader.report());
        Ok(outcome)
    }
}

/// The processes of the inputs.
#[derive(Default)]
struct Owners {
    /// The processes of the current input, and its UUID.
    now: BTreeSet<u64>,
    uuid: Option<u128>,
    /// The UUIDs of the inputs that have each process. A conversion of a trace has the same one.
    inputs: BTreeMap<u64, BTreeSet<u128>>,
    /// The first input with each UUID.
    first: BTreeMap<u128, String>,
}

impl Owners {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Trace(trace) => self.uuid = trace.uuid.or(self.uuid),
            Item::Track(track) => {
                if let TrackKind::Process { pid, .. } = track.kind {
                    self.now.insert(pid);
                }
            }
            _ => {}
        }
    }

    fn next_input(&mut self, name: &str) {
        let (now, uuid) = (std::mem::take(&mut self.now), self.uuid.take());
        if let Some(uuid) = uuid {
            match self.first.get(&uuid) {
                Some(first) => complain(format_args!(
                    "{name}: it has the UUID of {first}: what is in both is in the output twice"
                )),
                None => drop(self.first.insert(uuid, name.to_owned())),
            }
        }
        for (pid, uuid) in now.into_iter().zip(uuid.into_iter().cycle()) {
            self.inputs.entry(pid).or_default().insert(uuid);
        }
    }

    /// Says which process became several, because a Perfetto trace keeps those of each input apart.
    fn say(&self) {
        let Some((pid, uuids)) = self.inputs.iter().max_by_key(|(_, uuids)| uuids.len()) else { return };
        let count = uuids.len();
        if count > 1 {
            complain(format_args!(
                "process {pid} is in {count} of the traces, and is {count} processes in the output; if they \
                 are the files of one rotated output, join them with `cat`, the oldest first"
            ));
        }
    }
}

/// Prints the report.
fn say(report: &Report) {
    if !report.is_empty() {
        complain("the output differs from the input:");
    }
    report.iter().for_each(|(what, n)| complain(format_args!("{n:>9} {}", described(n, what))));
}
