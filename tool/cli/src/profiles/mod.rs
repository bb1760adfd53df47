//! `hairline convert TRACE OUT.pb.gz`: a trace as a profile that other tools read.
//!
//! ```text
//! items ── pprof: samples ──────────────> .pb.gz, .pprof
//!      └── firefox: samples and slices ─> .firefox.json, .firefox.json.gz
//! ```
//!
//! Both need the functions of all samples, which come last in a trace, so they are in memory.

mod firefox;
mod made;
mod pprof;
mod texts;

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::input::input_identity;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::profiles::made::{Made, Profile};
use crate::text::complain;
use crate::trace::TraceArguments;
use crate::transfer::say;

/// A form of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// pprof's `profile.proto`, which is always compressed with gzip.
    Pprof,
    /// The processed format of the Firefox Profiler.
    Firefox {
        /// Whether the output is compressed with gzip.
        gzip: bool,
    },
}

impl Form {
    /// By the name's extension.
    pub(crate) fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |end: &str| name.ends_with(end);
        if ends(".pb.gz") || ends(".pprof") {
            Some(Self::Pprof)
        } else if ends(".firefox.json") || ends(".firefox.json.gz") {
            Some(Self::Firefox { gzip: ends(".gz") })
        } else {
            None
        }
    }

    fn is_compressed(self) -> bool {
        self != Self::Firefox { gzip: false }
    }
}

/// Converts a trace. Writes nothing if that fails, or with `strict` if something has no place in the profile.
pub(crate) fn run(
    trace: &TraceArguments,
    output: &Path,
    form: Form,
    strict: bool,
) -> Result<Outcome, String> {
    let Made { summary, profile, mut report } = match form {
        Form::Pprof => pprof::make(trace)?,
        Form::Firefox { .. } => firefox::make(trace)?,
    };
    report.add_all(&summary.report);
    report.add_all(&summary.unread);
    say(&report);
    if strict && !report.is_empty() {
        let why = "not written, because the format cannot express all data (--strict)";
        complain(format_args!("{}: {why}", output.display()));
        return Ok(Outcome::NotStrict);
    }
    write(profile.as_ref(), trace, output, form).map_err(|e| format!("{}: {e}", output.display()))?;
    let Some(e) = &summary.stopped else { return Ok(Outcome::Done) };
    complain(format_args!("{}: {e}; everything before that is in the output", summary.name));
    Ok(Outcome::Failed)
}

fn write(profile: &dyn Profile, trace: &TraceArguments, output: &Path, form: Form) -> io::Result<()> {
    let mut output = Output::create(output, &[input_identity(trace.path())])?.or_nothing()?;
    if form.is_compressed() {
        let mut compressed = GzEncoder::new(&mut output, Compression::default());
        profile.write(&mut compressed)?;
        compressed.finish()?;
    } else {
        let mut buffered = io::BufWriter::new(&mut output);
        profile.write(&mut buffered)?;
        buffered.flush()?;
    }
    output.keep()
}
