//! The cost of a span of `tracing`, beside listeners that do nothing. The cost of a layer without a session,
//! in a program that writes its events with `fmt`.
//!
//! A process has one global listener, and each way to have several would add a cost to each span. So each
//! listener has a child process, which runs this same binary. The parent requests batches in turn: of the
//! listener, then of its floor.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hairline::{Format, Session, trace_scope};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber, subscriber::Interest};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::Outcome;
use crate::row::{Budget, Row};
use crate::timing::{Effort, Samples, batch, started};

/// The argument that makes a process measure batches. The name of a listener follows it.
pub const CHILD: &str = "--spans";

/// A subscriber that enables each span and does nothing.
#[derive(Debug)]
pub struct Nothing;

impl Subscriber for Nothing {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::always()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A layer that does nothing, on a registry that keeps the spans.
#[derive(Debug)]
pub struct NothingLayer;

impl<S: Subscriber> tracing_subscriber::Layer<S> for NothingLayer {}

/// Reads an operation and a batch size from each line of stdin. Answers with the ns of one operation.
///
/// # Errors
/// If the listener or its session cannot be started, or the parent is gone.
pub fn serve(listener: &str) -> Outcome<()> {
    let format = if listener.ends_with("FXT") { Format::Fxt } else { Format::TrackEvent };
    let start = || started(Session::builder().output_writer(io::sink()).format(format).buffer_size(64 << 20));
    let _session = match listener.split(' ').next().unwrap_or_default() {
        "nothing" => {
            tracing::subscriber::set_global_default(Nothing)?;
            None
        }
        "registry" => {
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(NothingLayer))?;
            None
        }
        "fmt" => {
            let fmt = tracing_subscriber::fmt().with_writer(io::sink).finish();
            if listener.ends_with("layer") {
                fmt.with(hairline::layer()).try_init()?; // no session
            } else {
                fmt.try_init()?;
            }
            None
        }
        "Subscriber" => {
            let session = start()?;
            tracing::subscriber::set_global_default(hairline::Subscriber::new())?;
            Some(session)
        }
        _ => {
            let session = start()?;
            let registry = tracing_subscriber::registry().with(hairline::layer());
            tracing::subscriber::set_global_default(registry)?;
            Some(session)
        }
    };
    crate::machine::pin_to_last_core(); // not the drain thread, which is there already
    let living = tracing::info_span!("living");
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (operation, count) = line.rsplit_once(' ').ok_or("an operation and a count")?;
        let count = count.parse()?;
        let measure = |count| match operation {
            "span" => batch(count, |_| drop(tracing::info_span!("span").entered())),
            "fields" => batch(count, |i| {
                drop(tracing::info_span!("span", number = i64::from(i), text = "sixteen bytes ..").entered());
            }),
            "again" => batch(count, |_| drop(living.enter())),
            "quiet span" => batch(count, |_| drop(tracing::debug_span!("span").entered())),
            "event" => batch(count, |_| tracing::info!("event")),
            "quiet event" => batch(count, |_| tracing::debug!("event")),
            "message" => batch(count, |_| log::info!("message")),
            "quiet message" => batch(count, |_| log::trace!("message")),
            _ => batch(count, |_| {
                trace_scope!("bench", "scope");
            }),
        };
        measure(count / 10); // the other process was on this core
        writeln!(io::stdout(), "{}", measure(count))?;
    }
    Ok(())
}

/// The child process of a listener.
struct Listener {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Listener {
    fn start(name: &str) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([CHILD, name])
            .env_remove("HAIRLINE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
        Ok(Self { child, ask: pipes.0, answers: BufReader::new(pipes.1) })
    }

    fn batch(&mut self, operation: &str, count: u32) -> Outcome<f64> {
        writeln!(self.ask, "{operation} {count}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer.trim().parse()?)
    }

    fn finish(mut self) -> Outcome<()> {
        drop(self.ask); // the end of its input
        self.child.wait()?;
        Ok(())
    }
}

/// An operation of a listener, and its floor.
struct Comparison {
    what: &'static str,
    operation: &'static str,
    floor: Floor,
    budget: f64,
}

enum Floor {
    /// The same operation of the listener that does nothing.
    Nothing,
    /// A scope of Hairline in the listener's process.
    Scope,
}

/// The number of processes for each listener: the addresses that the loader chooses change the time of a span
/// by a tenth.
const PROCESSES: usize = 5;

fn compare(effort: Effort, name: &str, floor: &str, comparisons: &[Comparison]) -> Outcome<Vec<Row>> {
    let mut samples = vec![(Samples::default(), Samples::default()); comparisons.len()];
    for _ in 0..PROCESSES {
        let (mut subject, mut base) = (Listener::start(name)?, Listener::start(floor)?);
        for (comparison, (floors, subjects)) in comparisons.iter().zip(&mut samples) {
            for _ in 0..effort.batches / PROCESSES {
                floors.push(match comparison.floor {
                    Floor::Nothing => base.batch(comparison.operation, effort.operations)?,
                    Floor::Scope => subject.batch("scope", effort.operations)?,
                });
                subjects.push(subject.batch(comparison.operation, effort.operations)?);
            }
        }
        subject.finish()?;
        base.finish()?;
    }
    let rows = comparisons.iter().zip(samples).map(|(comparison, (floors, subjects))| {
        let name = format!("tracing, {name}: {}", comparison.what);
        Row::sampled(&name, "ns", &subjects, Budget::Ratio, comparison.budget).beside(&floors)
    });
    Ok(rows.collect())
}

/// Measures spans of `tracing`: created, entered, exited and closed, for each listener beside one that does
/// nothing. Also measures a second entry of a span, as at a poll of an async one, beside a scope.
///
/// # Errors
/// If a child process or its session fails.
pub fn rows(effort: Effort) -> Outcome<Vec<Row>> {
    let effort = Effort { batches: effort.batches / 2, ..effort };
    let mut rows = Vec::new();
    for (listener, floor, budget, with_fields) in
        [("Subscriber", "nothing", 2.2, 4.0), ("layer", "registry", 1.35, 3.0)]
    {
        for format in ["FXT", "TrackEvent"] {
            let comparisons = [
                Comparison { what: "span", operation: "span", floor: Floor::Nothing, budget },
                Comparison {
                    what: "span + i64 + &str",
                    operation: "fields",
                    floor: Floor::Nothing,
                    budget: with_fields,
                },
                Comparison { what: "entered again", operation: "again", floor: Floor::Scope, budget: 3.0 },
            ];
            rows.extend(compare(effort, &format!("{listener} {format}"), floor, &comparisons)?);
        }
    }
    let idle = ["span", "quiet span", "event", "quiet event", "message", "quiet message"];
    let idle = idle.map(|what| Comparison { what, operation: what, floor: Floor::Nothing, budget: 1.1 });
    rows.extend(compare(effort, "fmt + idle layer", "fmt", &idle)?);
    Ok(rows)
}
