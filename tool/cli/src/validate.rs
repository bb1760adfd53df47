//! `hairline validate`

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{Event, EventKind, FlowStep, Item, Report, TrackId};
use hairline_formats::{OUT_OF_ORDER, Value};

use crate::outcome::Outcome;
use crate::remark::not_recorded;
use crate::session_file;
use crate::table::plain;
use crate::text::{count, described, duration, failed, grouped, grouped_count, one_line, put, written};
use crate::trace::{ItemVisitor, ReadSummary, TraceArguments};
use crate::track_names::TrackNames;

/// Checks a trace for defects.
///
/// Reads the trace to its end, or to the first byte that is invalid. Finds malformed bytes, records that
/// refer to undefined entries, begins without an end, ends without a begin, overlapping slices, slices that
/// ended while a later one of their thread was open, threads whose events are out of order, flows with one
/// end, lost events, and a session of Hairline that has not ended. Shows the first three of each kind with
/// the offset of the record. Counts the records of each kind that it does not read, like statistics of the
/// system and heap dumps. A trace of which it understands no event is not valid. Sound traces have slices
/// without an end and flows with one end too, because a recording ends at some moment, and because a future
/// may be polled once: both are marked `usual:`. With --strict, a slice without an end is a defect.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline validate trace.pftrace
  hairline validate trace.pftrace --strict     every slice has an end
  hairline validate trace.fxt --ignore loss    lost events are no failure

Exit codes:
  0  nothing is wrong
  1  something is wrong with the trace, or no event of it can be read
  2  the arguments are invalid")]
pub(crate) struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,
    /// Kinds of defects that do not affect the exit code. They are still shown.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    ignore: Vec<DefectKind>,
    /// Also fail at slices without an end.
    #[arg(long)]
    strict: bool,
}

/// A kind of defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum DefectKind {
    /// Ends without a begin
    NoBegin,
    /// Slices without an end (affects the exit code only with --strict)
    NoEnd,
    /// Slices that overlap, or end before they begin
    Nesting,
    /// Threads whose events are out of order
    Order,
    /// Flows with one end (never affects the exit code)
    Flow,
    /// Missing events: lost by the tracer, or not understood
    Loss,
}

impl DefectKind {
    /// Whether sound traces have it too.
    fn is_usual(self, is_strict: bool) -> bool {
        self == Self::Flow || self == Self::NoEnd && !is_strict
    }

    /// `None`: nothing is wrong with the trace.
    fn of(wrong: Defect) -> Option<(Self, &'static str)> {
        Some(match wrong {
            Defect::AfterInner => return None,
            Defect::EndWithoutBegin => (Self::NoBegin, "end without a begin"),
            Defect::NoEnd => (Self::NoEnd, "slice without an end"),
            Defect::EndsWithAnother => (Self::Nesting, "slice that is open when its enclosing slice ends"),
            Defect::EndsBeforeBegin => (Self::Nesting, "slice that ends before it begins"),
            Defect::Overlaps => (Self::Nesting, "slice that overlaps another"),
            Defect::TooDeep => (
                Self::Nesting,
                "slice with more than 512 levels around it, in an order in which deeper places are slow to find",
            ),
            Defect::TooManyOpen => (Self::Nesting, "slice that begins while 524288 are open"),
            Defect::OutOfOrder => (Self::Order, "thread whose events are out of order"),
            Defect::Late => (Self::Order, "event that comes too late to be put in order"),
            _ => (Self::Nesting, "other defect"),
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut check = Check::default();
    let summary = match arguments.trace.show(true, &mut check) {
        Ok(summary) => summary,
        Err(e) => return failed(e),
    };
    if let Err(e) = check.slices.finish(&mut check.found) {
        return failed(e);
    }
    check.settle(None);
    check.found.flows();
    check.found.lost_in_all(check.lost_in_all);
    check.found.unread(&summary.report);
    if session_file::end_of(arguments.trace.path()) == Some(None) {
        check.found.finding(DefectKind::Loss, NO_SESSION_END).count += 1;
    }
    let is_empty = check.has_no_event(&summary.report);
    let said = written(put(check.report(&summary, arguments)), "stdout");
    if let Some(e) = &summary.stopped {
        return failed(format_args!("{}: {e}", summary.name));
    }
    if is_empty || check.found.findings.iter().any(|finding| arguments.counts(finding.kind)) {
        Outcome::Failed
    } else {
        said
    }
}

impl Arguments {
    /// Whether defects of a kind affect the exit code.
    fn counts(&self, kind: DefectKind) -> bool {
        !self.ignore.contains(&kind) && !kind.is_usual(self.strict)
    }
}

/// Collects the defects of a trace.
#[derive(Default)]
struct Check {
    slices: Slices,
    track_names: TrackNames,
    found: Found,
    events: u64,
    /// The number of tracks, losses and facts about the trace.
    others: u64,
    /// The number of lost events that a session of Hairline has recorded as an event, as FXT has it.
    lost_in_all: u64,
    /// The records that it does not read, by kind.
    passed_over: BTreeMap<&'static str, u64>,
    /// Why something is not recorded, as the trace tells of it.
    not_recorded: Vec<String>,
}

/// The defects found.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    /// Defects of the current item, whose offset is not known yet.
    pending: Vec<Example>,
    flows: HashMap<u64, Flow>,
    /// Whether there were more flows than can be followed.
    more_flows: bool,
}

struct Finding {
    kind: DefectKind,
    what: &'static str,
    count: u64,
    /// The number of lost events.
    events: u64,
    examples: Vec<Example>,
    /// Undefined ids.
    ids: Vec<u64>,
}

struct Example {
    kind: DefectKind,
    what: &'static str,
    track: Option<TrackId>,
    time: Option<i64>,
    name: Key,
    offset: Option<u64>,
}

/// The ends of a flow that were found.
#[derive(Clone, Copy, Default)]
struct Flow {
    begins: bool,
    ends: bool,
    /// The number of points, up to 2, whose role is not known.
    points: u8,
}

/// The name of the event with a session's losses, and that of the one that does not count events.
const LOST_IN_ALL: &str = "lost in all";
const LOST_ARGUMENTS: &str = "arguments";

/// The defect of a trace whose session has not ended.
const NO_SESSION_END: &str = "session without its end: it was killed, still records, or its output failed \
                              (`hairline recover` may have the rest)";

const EXAMPLES: usize = 3;
/// The limit for reasons why something is not recorded.
const MOST_REASONS: usize = 16;
/// The limit for flows.
const MOST_FLOWS: usize = 1 << 20;

impl ItemVisitor for Check {
    const NEEDS_OFFSET: bool = true;

    fn item(&mut self, item: &Item<'_>) {
        self.slices.item(item, &mut self.found);
        match item {
            Item::Event(event) => {
                self.events += 1;
                self.found.flow(event);
                self.order(event);
                not_recorded(event, |_, why| {
                    if self.not_recorded.len() < MOST_REASONS && !self.not_recorded.contains(&why) {
                        self.not_recorded.push(why);
                    }
                });
                self.lost_in_all = self.lost_in_all.saturating_add(lost_in_all(event));
                // The reader finds undefined references when it decodes the arguments.
                event.args.each(&mut |_, value| walk(value));
            }
            Item::Track(track) => {
                self.others += 1;
                self.track_names.set(track);
            }
            Item::Foreign { what, .. } => *self.passed_over.entry(what).or_default() += 1,
            Item::Loss(loss) => {
                self.others += 1;
                self.found.one(
                    DefectKind::Loss,
                    "place where events are missing",
                    loss.track,
                    loss.time,
                    Key::NONE,
                );
                self.found.lost(loss.events);
            }
            _ => self.others += 1,
        }
    }

    fn was_at(&mut self, offset: u64) {
        if !self.found.pending.is_empty() {
            self.settle(Some(offset));
        }
    }
}

/// Returns the number of lost events that an event tells of: the last one of a session that has lost some.
fn lost_in_all(event: &Event<'_>) -> u64 {
    let mut lost = 0_u64;
    if event.name.text == LOST_IN_ALL && event.kind == EventKind::Instant {
        event.args.each(&mut |reason, value| {
            if let (false, Value::U64(n)) = (reason.text == LOST_ARGUMENTS, value) {
                lost = lost.saturating_add(n);
            }
        });
    }
    lost
}

/// Decodes a value with all values inside it.
fn walk(value: Value<'_>) {
    if let Value::Dict(entries) | Value::Array(entries) = value {
        entries.each(&mut |_, value| walk(value));
    }
}

impl SliceSink for Found {
    fn slice(&mut self, _: &Slice, _: &mut [Frame]) {}

    fn defect(&mut self, what: Defect, track: TrackId, time: i64, name: Key) {
        if let Some((kind, what)) = DefectKind::of(what) {
            self.one(kind, what, Some(track), Some(time), name);
        }
    }
}

impl Found {
    fn finding(&mut self, kind: DefectKind, what: &'static str) -> &mut Finding {
        let known = self.findings.iter().position(|finding| finding.what == what);
        let index = known.unwrap_or_else(|| {
            self.findings.push(Finding {
                kind,
                what,
                count: 0,
                events: 0,
                examples: Vec::new(),
                ids: Vec::new(),
            });
            self.findings.len() - 1
        });
        &mut self.findings[index]
    }

    fn one(
        &mut self,
        kind: DefectKind,
        what: &'static str,
        track: Option<TrackId>,
        time: Option<i64>,
        name: Key,
    ) {
        let finding = self.finding(kind, what);
        finding.count += 1;
        if finding.count <= EXAMPLES as u64 {
            self.pending.push(Example { kind, what, track, time, name, offset: None });
        }
    }

    fn lost(&mut self, events: u64) {
        if let Some(finding) = self.findings.iter_mut().find(|finding| finding.kind == DefectKind::Loss) {
            finding.events = finding.events.saturating_add(events);
        }
    }

    /// Adds the losses of a trace that has them in an event alone.
    fn lost_in_all(&mut self, events: u64) {
        let is_known = self.findings.iter().any(|finding| finding.kind == DefectKind::Loss);
        if events > 0 && !is_known {
            self.finding(DefectKind::Loss, "place where events are missing").count += 1;
            self.lost(events);
        }
    }

    fn flow(&mut self, event: &Event<'_>) {
        let points = event.flows().iter().map(|id| (*id, Flow { points: 1, ..Flow::default() }));
        let ends = event.ending_flows().iter().map(|id| (*id, Flow { points: 1, ..Flow::default() }));
        for (id, point) in points.chain(ends) {
            self.point(id, point);
        }
        if let Some((id, step)) = event.bound() {
            self.step(id, step);
        }
        if let EventKind::Flow { id, step, .. } = event.kind {
            self.step(id, step);
        }
    }

    fn step(&mut self, id: u64, step: FlowStep) {
        let (begins, ends) = (step == FlowStep::Begin, step == FlowStep::End);
        self.point(id, Flow { begins, ends, points: 0 });
    }

    fn point(&mut self, id: u64, point: Flow) {
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&id) {
            self.more_flows = true;
            return;
        }
        let flow = self.flows.entry(id).or_default();
        flow.begins |= point.begins;
        flow.ends |= point.ends;
        flow.points = flow.points.saturating_add(point.points).min(2);
    }

    /// Adds the defects that the reader found.
    fn unread(&mut self, report: &Report) {
        for (what, n) in report.iter().filter(|(what, _)| report.is_defect(what)) {
            let finding = self.finding(DefectKind::Loss, what);
            finding.count += n;
            finding.ids = report.ids(what).to_vec();
        }
    }

    /// Counts the flows that have only one end.
    fn flows(&mut self) {
        let has_two_ends = |flow: &Flow| {
            flow.points > 1 || flow.begins && flow.ends || flow.points > 0 && (flow.begins || flow.ends)
        };
        let single = self.flows.values().filter(|flow| !has_two_ends(flow)).count() as u64;
        if single > 0 {
            self.finding(DefectKind::Flow, "flow with one end").count += single;
        }
    }
}

impl Check {
    /// Finds an end that its tracer marked as out of order.
    fn order(&mut self, event: &Event<'_>) {
        if event.kind != EventKind::End {
            return;
        }
        let mut scope = None;
        event.args.each(&mut |name, value| {
            if name.text == OUT_OF_ORDER
                && let Value::Str(text) | Value::Interned { text, .. } = value
            {
                scope = Some(self.slices.keys_mut().key(text.into()));
            }
        });
        if let Some(scope) = scope {
            let what = "slice that ended while a later one of its thread was open";
            self.found.one(DefectKind::Nesting, what, Some(event.track), Some(event.time), scope);
        }
    }

    /// Sets the offset of the pending defects.
    fn settle(&mut self, offset: Option<u64>) {
        for example in std::mem::take(&mut self.found.pending) {
            let finding = self.found.finding(example.kind, example.what);
            finding.examples.push(Example { offset, ..example });
        }
    }

    /// Whether the trace has no event that can be checked: all its records are of kinds that are not read, or
    /// were not understood, or there are none.
    fn has_no_event(&self, report: &Report) -> bool {
        let is_all_understood = self.passed_over.is_empty() && report.is_empty();
        self.events == 0 && (!is_all_understood || self.others == 0)
    }

    fn report(&self, summary: &ReadSummary, arguments: &Arguments) -> String {
        let mut out = String::new();
        for finding in &self.found.findings {
            let mut more = String::new();
            if finding.events > 0 {
                let _ = write!(more, " ({})", count(finding.events, "event"));
            }
            for (n, id) in finding.ids.iter().enumerate() {
                let _ = write!(more, "{}{id}", if n == 0 { ": " } else { ", " });
            }
            let usual = if finding.kind.is_usual(arguments.strict) { "usual: " } else { "" };
            let _ = writeln!(out, "{usual}{} x {}{more}", grouped(finding.count), finding.what);
            finding.examples.iter().for_each(|example| self.example(&mut out, example));
        }
        let report = &summary.report;
        for (what, n) in report.iter().filter(|(what, _)| !report.is_defect(what)) {
            let _ = writeln!(out, "{} x {}", grouped(n), described(n, what));
        }
        for (what, n) in &self.passed_over {
            let _ = writeln!(out, "not read: {} x {}", grouped(*n), described(*n, what));
        }
        self.not_recorded.iter().for_each(|why| {
            let _ = writeln!(out, "not recorded: {why}");
        });
        if self.found.more_flows {
            let _ = writeln!(out, "flows beyond the first {} were not followed", grouped(MOST_FLOWS as u64));
        }
        let _ = writeln!(out, "{}: {}", one_line(&summary.name), self.verdict(summary, arguments));
        out
    }

    /// The last line of the report.
    fn verdict(&self, summary: &ReadSummary, arguments: &Arguments) -> String {
        let events = grouped_count(self.events, "event");
        // Kinds that the user ignores are wrong all the same.
        let is_wrong = |finding: &&Finding| !finding.kind.is_usual(arguments.strict);
        let wrong = self.found.findings.iter().filter(is_wrong).count();
        let passed_over = match self.passed_over.values().sum::<u64>() {
            0 => String::new(),
            n => format!("; {} of kinds that this command does not read", grouped_count(n, "record")),
        };
        let things = match wrong {
            _ if summary.stopped.is_some() => " before the first invalid byte".to_owned(),
            0 if self.has_no_event(&summary.report) => ", so there is nothing to check".to_owned(),
            0 => ", nothing is wrong".to_owned(),
            1 => ", 1 kind of defect".to_owned(),
            _ => format!(", {wrong} kinds of defects"),
        };
        events + &things + &passed_over
    }

    fn example(&self, out: &mut String, example: &Example) {
        let name = self.slices.keys().text(example.name);
        let mut parts = Vec::new();
        if !name.is_empty() {
            parts.push(format!("\"{}\"", plain(name)));
        }
        if let Some(track) = example.track {
            parts.push(format!("on {}", plain(&self.track_names.name(track))));
        }
        if let Some(time) = example.time {
            parts.push(format!("at {time} ns ({})", duration(time)));
        }
        if let Some(offset) = example.offset {
            parts.push(format!("byte {offset}"));
        }
        let _ = writeln!(
            out,
            "  {}",
            if parts.is_empty() { "at an unknown place".to_owned() } else { parts.join(", ") }
        );
    }
}
