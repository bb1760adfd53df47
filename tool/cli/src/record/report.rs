//! What `hairline record` says at its end.

use crate::record::parts::{Parts, RecordResult};
use crate::record::samples::{NO_SAMPLE_TOLD, missing_samples};
use crate::text::{complain, count, grouped, grouped_count, size, who};

/// The exit code for a failure of the tracer, as in `env` and `timeout`.
pub(crate) const FAILED: u8 = 125;

/// Why there is no trace.
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) code: u8,
}

/// What a recording has made.
pub(super) struct Made {
    pub(super) whole: RecordResult,
    pub(super) parts: Parts,
    /// The exit code of the command, or of this one.
    pub(super) code: u8,
}

/// Prints the result. `waits`: the processes waited for room, so that only a larger ring helps.
pub(super) fn report(whole: &RecordResult, parts: &Parts, waits: bool) {
    let RecordResult { path: output, totals, recovered, alive, quiet, notes, samples, .. } = whole;
    notes.iter().for_each(complain);
    for (pid, name, path) in alive {
        let who = who(*pid, name);
        complain(format_args!(
            "process {who} is still running, and is not in the trace: it writes its own to {}; \
             add that with `hairline merge`",
            path.display()
        ));
    }
    if !quiet.is_empty() {
        let names: Vec<String> = quiet.iter().map(|(pid, name)| who(*pid, name)).collect();
        complain(format_args!(
            "still running without a recorded event: process {}; use a larger --wait if it records later",
            names.join(", ")
        ));
    }
    if whole.parts == 0 {
        match samples {
            _ if !alive.is_empty() => {}
            Some(samples) if samples.samples == 0 && samples.lost == 0 => complain(NO_SAMPLE),
            _ => complain(NOTHING),
        }
        return;
    }
    if *recovered > 0 {
        let (their, they) = if *recovered == 1 { ("its trace", "it") } else { ("their traces", "they") };
        let processes = count(*recovered, "process");
        complain(format_args!(
            "{processes} ended without completing {their}, by a kill or `_exit`: what {they} had recorded is in \
             the trace"
        ));
    }
    let lost = totals.lost.saturating_sub(whole.told.lost);
    if lost > 0 {
        let lost = count(lost, "event");
        let or = if waits { "" } else { ", or --overflow block" };
        complain(format_args!("{lost} lost because the buffer was full: use a larger --buffer{or}"));
    }
    complain(about(whole));
    if let Some(samples) = samples {
        report_samples(samples);
    }
    let output = output.display();
    complain(format_args!("open it at https://ui.perfetto.dev, or by: hairline view {output}"));
    if parts.are_kept() {
        complain(format_args!("the processes' own traces are in {}", parts.folder().path().display()));
    }
}

fn report_samples(samples: &hairline_stacks::Totals) {
    let cut = match samples.cut {
        0 => String::new(),
        cut => format!(", {} without their root", grouped(cut)),
    };
    let switches = match samples.switches {
        0 => String::new(),
        switches => format!(", and {} of threads that began to wait", grouped(switches)),
    };
    complain(format_args!("{}{switches}{cut}", grouped_count(samples.samples, "sample")));
    missing_samples(samples).for_each(|(what, why)| {
        // The line before says that there are 0.
        if what != NO_SAMPLE_TOLD {
            complain(why);
        }
    });
}

/// The sizes of the trace. A program without macros has states and samples instead of events.
fn about(whole: &RecordResult) -> String {
    let RecordResult { path, totals, states, .. } = whole;
    let has_samples = whole.samples.is_some_and(|samples| samples.samples > 0);
    let parts = [
        Some(grouped_count(totals.processes() as u64, "process")),
        Some(grouped_count(totals.threads() as u64, "thread")),
        (totals.events > 0 || *states == 0 && !has_samples).then(|| grouped_count(totals.events, "event")),
        (*states > 0).then(|| grouped_count(*states, "thread state")),
        Some(size(totals.bytes)),
    ];
    format!("{}: {}", path.display(), parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// The message if no process recorded anything, and the kernel took no sample either.
const NO_SAMPLE: &str = "no trace: there was no stack sample, because the command used less CPU time than from \
     one sample to the next (a larger --sample takes more), and no process of it recorded anything";

/// The message if no process recorded anything.
const NOTHING: &str = "no trace: no process of the command recorded anything. Do its programs contain \
     Hairline's macros, with the crate feature `enable`? Do they start a session of their own \
     (Session::builder)? Does --categories exclude everything?";
