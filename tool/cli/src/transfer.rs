//! Traces to a trace: the common part of `convert` and `merge`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use hairline_convert::{
    BriefUse, Context, FileFormat, Item, MOST_BRIEF, Report, TraceFormat, TraceWriter, TrackKind, create,
};
use hairline_tables::Choice;

use crate::aligned;
use crate::format::FormatArgument;
use crate::input::{Input, is_standard, stream_identity};
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::selection::{Chosen, Part, Selection};
use crate::text::{complain, described, ids};
use crate::trace::TraceArguments;

/// The arguments of a conversion.
pub(crate) struct Transfer<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) output: &'a Path,
    pub(crate) opening: Opening,
    pub(crate) to: Option<FormatArgument>,
    pub(crate) strict: bool,
    /// Whether the times of all inputs are kept, whatever their clocks.
    pub(crate) as_is: bool,
    /// The part that is written, of one input.
    pub(crate) selection: &'a Selection,
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
        let moves = if self.as_is || self.inputs.len() < 2 {
            vec![0; self.inputs.len()]
        } else {
            aligned::moves(self.inputs, self.opening).map_err(|what| Failure::Said(Outcome::Failed, what))?
        };
        let chosen = self.chosen().map_err(|what| Failure::Said(Outcome::Failed, what))?;
        let whole = What { moves: &moves, part: chosen.as_deref() };
        let (output, outcome, report) = match self.attempt(whole, kind, Repeat::IfEarly)? {
            Attempt::Done(done) => done,
            // The whole trace moves: its shape would be gone if only the events before 0 did.
            Attempt::Early(by) => {
                let moves: Vec<_> = moves.iter().map(|own| own.saturating_add(by)).collect();
                let moved = What { moves: &moves, ..whole };
                let Attempt::Done((output, outcome, mut report)) =
                    self.attempt(moved, kind, Repeat::Never)?
                else {
                    return Err(Failure::of(self.output.display(), "it was not written"));
                };
                report.add_many(EARLY, u64::from(by != 0));
                (output, outcome, report)
            }
        };
        say(&report);
        if self.strict && !report.is_empty() {
            let what = "not written, because the format cannot express all data (--strict)";
            return Err(Failure::Said(Outcome::NotStrict, format!("{}: {what}", self.output.display())));
        }
        output.keep().map_err(|e| Failure::output(self.output, &e))?;
        Ok(outcome)
    }

    /// Converts with the times of each input moved. Events before time 0 end the attempt, if there can be
    /// another one.
    fn attempt(&self, what: What<'_>, kind: FileFormat, repeat: Repeat) -> Result<Attempt, Failure> {
        let open = |path| Input::open(path, self.opening).map_err(|e| Failure::of(path.display(), e));
        let inputs = self.inputs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let identities: Vec<_> = inputs.iter().map(Input::identity).collect();
        let fail = |e: io::Error| Failure::output(self.output, &e);
        let mut output =
            Output::create(self.output, &identities).and_then(Output::or_nothing).map_err(fail)?;
        // What a stream has taken cannot be taken back.
        let is_file = matches!(output, Output::File { .. });
        let can_repeat = repeat == Repeat::IfEarly && is_file && inputs.iter().all(Input::is_file);
        let mut times = Times { can_repeat, ..Times::default() };
        let write = |output: &mut dyn Write| self.write(inputs, what, kind.format, output, &mut times);
        let (outcome, report) = if kind.gzip {
            let mut compressed = GzEncoder::new(&mut output, Compression::default());
            let done = self.opening.threads.written(&mut compressed, write).map_err(fail)??;
            compressed.finish().map_err(fail)?;
            done
        } else {
            self.opening.threads.written(&mut output, write).map_err(fail)??
        };
        if times.is_to_repeat() {
            return Ok(Attempt::Early(times.needed_move()));
        }
        times.said.iter().for_each(complain);
        Ok(Attempt::Done((output, outcome, report)))
    }

    /// The part that is written; `None` for all.
    fn chosen(&self) -> Result<Option<Rc<Chosen>>, String> {
        let Some(input) = self.inputs.first() else { return Ok(None) };
        TraceArguments::new(input.clone(), self.opening).part(self.selection).chosen()
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
        what: What<'_>,
        format: TraceFormat,
        output: &mut dyn Write,
        times: &mut Times,
    ) -> Result<(Outcome, Report), Failure> {
        let fail = |e: io::Error| Failure::output(self.output, &e);
        let mut writer = create(format, output);
        let (mut context, mut report, mut outcome) = (Context::new(), Report::default(), Outcome::Done);
        let mut owners = Owners::default();
        for (input, by) in inputs.into_iter().zip(what.moves) {
            let name = input.name().to_owned();
            let to: (&mut dyn TraceWriter, &mut Report) = (&mut *writer, &mut report);
            let part = what.part.map(|chosen| Part::new(Rc::new(chosen.moved(*by))));
            outcome = outcome.max(self.copy(input, (*by, part), &mut context, to, (&mut owners, times))?);
            owners.next_input(&name, &mut times.said);
            context.next_input();
            writer.next_input().map_err(fail)?;
        }
        writer.finish().map_err(fail)?;
        report.add_all(writer.report());
        owners.say(&mut times.said);
        Ok((outcome, report))
    }

    /// Copies an input, or the valid part of it. Moves its times.
    fn copy(
        &self,
        input: Input,
        (by, mut part): (i64, Option<Part>),
        context: &mut Context,
        (writer, report): (&mut dyn TraceWriter, &mut Report),
        (owners, times): (&mut Owners, &mut Times),
    ) -> Result<Outcome, Failure> {
        let name = input.name().to_owned();
        let mut reader = input.trace().map_err(|e| Failure::of(&name, e))?;
        let (mut outcome, mut is_empty) = (Outcome::Done, true);
        let mut briefs = Vec::with_capacity(MOST_BRIEF);
        loop {
            if part.is_none() {
                reader.briefs(BriefUse::Writing, context, &mut briefs);
            }
            if !briefs.is_empty() {
                is_empty = false;
                for brief in &mut briefs {
                    brief.time = brief.time.saturating_add(by);
                    times.event(brief.time);
                }
                if !times.is_to_repeat() {
                    let written = writer.write_briefs(&briefs, &context.strings);
                    written.map_err(|e| Failure::output(self.output, &e))?;
                }
            }
            match reader.next(context) {
                // By reference, because an item is large.
                Ok(Some(ref item)) => {
                    is_empty = false;
                    owners.item(item);
                    times.item(item, by);
                    if times.is_to_repeat() {
                        continue; // only the earliest time is still of interest
                    }
                    let mut written = Ok(());
                    let mut write = |item: &Item<'_>| {
                        if written.is_ok() {
                            written = writer.write(item);
                        }
                    };
                    let mut choose = |item: &Item<'_>| match &mut part {
                        None => write(item),
                        Some(part) => part.item(item, &mut write),
                    };
                    if by == 0 {
                        choose(item);
                    } else {
                        aligned::moved(item, by, report, choose);
                    }
                    written.map_err(|e| Failure::output(self.output, &e))?;
                }
                Ok(None) => break,
                // If there is no item, an early end usually means that the input is no trace.
                Err(e) if e.is_truncated() && !is_empty => {
                    times.said.push(format!("{name}: {e}; all before that is in the output"));
                    outcome = Outcome::Failed;
                    break;
                }
                Err(e) => return Err(Failure::of(&name, format_args!("{e}; nothing was written"))),
            }
        }
        if let Some(part) = &mut part {
            let mut written = Ok(());
            part.finish(&mut |item| {
                if written.is_ok() {
                    written = writer.write(item);
                }
            });
            written.map_err(|e| Failure::output(self.output, &e))?;
            report.add_all(&part.left_out());
        }
        report.add_all(reader.report());
        Ok(outcome)
    }
}

/// What an attempt writes: how far the times of each input move, and the part of the only input.
#[derive(Clone, Copy)]
struct What<'a> {
    moves: &'a [i64],
    part: Option<&'a Chosen>,
}

/// Whether the inputs are read a second time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// If events are before time 0.
    IfEarly,
    Never,
}

/// What became of a conversion.
enum Attempt {
    Done((Output, Outcome, Report)),
    /// Nothing was written, because events are before time 0: all times are to be moved by so much.
    Early(i64),
}

/// What the report says of a trace that was moved.
const EARLY: &str = "move of all times to 0 or later, because some were before 0";

/// The times of the events that are written.
#[derive(Default)]
struct Times {
    /// Whether all inputs can be read a second time.
    can_repeat: bool,
    /// The earliest time, if it is before 0, and the latest one.
    earliest: i64,
    latest: i64,
    /// The lines for stderr.
    said: Vec<String>,
}

impl Times {
    fn item(&mut self, item: &Item<'_>, by: i64) {
        if let Item::Event(event) = item {
            self.event(event.time.saturating_add(by));
        }
    }

    fn event(&mut self, time: i64) {
        self.earliest = self.earliest.min(time);
        self.latest = self.latest.max(time);
    }

    fn is_to_repeat(&self) -> bool {
        self.can_repeat && self.earliest < 0
    }

    /// How far all times are to be moved. 0 if the latest would exceed the range of times.
    fn needed_move(&self) -> i64 {
        let by = self.earliest.checked_neg().filter(|by| self.latest.checked_add(*by).is_some());
        by.unwrap_or(0)
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
    /// Whether an input has thread states or stack samples.
    has_states: bool,
}

impl Owners {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Trace(trace) => self.uuid = trace.uuid.or(self.uuid),
            Item::Scheduling(_) | Item::Sample(_) => self.has_states = true,
            Item::Track(track) => {
                if let TrackKind::Process { pid, .. } = track.kind {
                    self.now.insert(pid);
                }
            }
            _ => {}
        }
    }

    fn next_input(&mut self, name: &str, said: &mut Vec<String>) {
        let (now, uuid) = (std::mem::take(&mut self.now), self.uuid.take());
        if let Some(uuid) = uuid {
            match self.first.get(&uuid) {
                Some(first) => said.push(format!(
                    "{name}: it has the UUID of {first}: what is in both is in the output twice"
                )),
                None => drop(self.first.insert(uuid, name.to_owned())),
            }
        }
        for (pid, uuid) in now.into_iter().zip(uuid.into_iter().cycle()) {
            self.inputs.entry(pid).or_default().insert(uuid);
        }
    }

    /// Says which process became several, because those of each input are kept apart.
    fn say(&self, said: &mut Vec<String>) {
        let Some((pid, uuids)) = self.inputs.iter().max_by_key(|(_, uuids)| uuids.len()) else { return };
        let count = uuids.len();
        if count > 1 {
            said.push(format!(
                "process {pid} is in {count} of the traces, and is {count} processes in the output; if they \
                 are the files of one rotated output, join them with `cat`, the oldest first"
            ));
            if self.has_states {
                said.push(format!(
                    "states and samples say the id of their thread alone: those of process {pid} may be with the \
                     threads of the wrong one of the {count}"
                ));
            }
        }
    }
}

/// Prints what a conversion changes or leaves out.
pub(crate) fn say(report: &Report) {
    if !report.is_empty() {
        complain("the output differs from the input:");
    }
    for (what, n) in report.iter() {
        complain(format_args!("{n:>9} {}{}", described(n, what), ids(report, what)));
    }
}
