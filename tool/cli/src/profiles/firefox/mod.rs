//! A trace as a profile of the Firefox Profiler, in version 60 of its processed format.
//!
//! The format is tables of columns. Stacks, frames, functions and texts are shared by all threads. A slice or
//! an instant is a marker of its thread; tracks that are no threads become threads with markers only. Each
//! category and name is a type of markers, whose fields are the arguments.

mod collected;
mod columns;
mod markers;
mod shared;
mod threads;

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::folded::NO_SAMPLES;
use crate::paired::show_paired;
use crate::profiles::firefox::collected::Collected;
use crate::profiles::firefox::columns::milliseconds;
use crate::profiles::firefox::markers::Types;
use crate::profiles::firefox::threads::Threads;
use crate::profiles::made::{Made, Profile, settle};
use crate::profiles::texts::Texts;
use crate::trace::TraceArguments;

/// The version of the processed format, and of Gecko's own format, which no longer matters in it.
const VERSION: u32 = 60;
const GECKO_VERSION: u32 = 31;

const INLINED: &str = "calls of inlined functions left out, because the stacks are too many";

/// Makes a profile of a trace.
pub(super) fn make(trace: &TraceArguments) -> Result<Made, String> {
    let (summary, mut collected) = show_paired(trace, Collected::new)?;
    let mut report = std::mem::take(&mut collected.report);
    settle(&mut collected.samples, &mut report);
    collected.markers.report(&mut report);
    report.add_many(INLINED, shared::Stacks::of(&collected.samples).left_out);
    if collected.samples.is_empty() && collected.markers.is_empty() {
        let end = summary.stopped.as_ref().map(|e| format!("; {e}")).unwrap_or_default();
        return Err(format!("{}: it has no slices, and {NO_SAMPLES}{end}", summary.name));
    }
    Ok(Made { summary, profile: Box::new(collected), report })
}

impl Profile for Collected {
    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let threads = Threads::of(self);
        let mut texts = Texts::default();
        output.write_all(br#"{"threads":["#)?;
        let (stacks, mut types) = (shared::Stacks::of(&self.samples), Types::default());
        threads.write(self, &stacks, &mut types, &mut texts, output)?;
        output.write_all(br#"],"shared":{"#)?;
        stacks.write(&self.samples, &mut texts, output)?;
        write!(output, r#"}},"libs":{},"pages":[],"counters":[],"#, shared::libs(&self.samples))?;
        writeln!(output, r#""meta":{}}}"#, self.meta(&threads, &types))
    }
}

impl Collected {
    fn meta(&self, threads: &Threads<'_>, types: &Types) -> Value {
        let start = self.since_1970.and_then(|zero| zero.checked_add(threads.first)).unwrap_or(0);
        json!({
            "interval": self.samples.period().map_or(1.0, |period| milliseconds(period.cast_signed())),
            "startTime": milliseconds(start),
            "processType": 0,
            "product": threads.product(),
            "stackwalk": 1,
            "debug": false,
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": true,
            "importedFrom": "Hairline",
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
            "categories": types.categories(&self.slices),
            "markerSchema": types.schemas(&self.markers),
        })
    }
}
