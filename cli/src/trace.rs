//! A trace that a command looks at, from its first item to its last.

use std::path::{Path, PathBuf};

use hairline_convert::{Context, Error, Item, Report, TraceFormat, open};

use crate::format::FormatArgument;
use crate::input::Input;
use crate::outcome::Outcome;
use crate::text::complain;

/// What a command that looks at a trace is given.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArguments {
    /// The trace: .pftrace, .fxt or .json, compressed by gzip or not; `-` is stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Its format; else it is known by its first bytes.
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<FormatArgument>,
}

/// How reading it ended.
pub(crate) struct ReadSummary {
    /// What it is called.
    pub(crate) name: String,
    /// What its reader passed over.
    pub(crate) report: Report,
    /// Why not all of it was read.
    pub(crate) stopped: Option<Error>,
    /// Where its last record begins.
    pub(crate) bytes: u64,
}

/// Who looks at a trace.
pub(crate) trait ItemVisitor {
    /// Whether it wants to know where each item is from.
    const NEEDS_PLACE: bool = false;

    fn item(&mut self, item: &Item<'_>);

    /// The place in the input of the record that the item was from.
    fn was_at(&mut self, place: u64) {
        let _ = place;
    }
}

impl ReadSummary {
    /// Says that it ends early, if it does.
    pub(crate) fn outcome(&self) -> Outcome {
        let Some(e) = &self.stopped else { return Outcome::Done };
        complain(format_args!("{}: {e}; what comes before that is shown", self.name));
        Outcome::Failed
    }
}

impl TraceArguments {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.trace
    }

    /// Shows it to `look`, item by item. `to_error`: an input that is no trace somewhere in the middle is read up to there, as one that
    /// merely ends early is.
    pub(crate) fn show<L: ItemVisitor>(&self, to_error: bool, look: &mut L) -> Result<ReadSummary, String> {
        show(&self.trace, self.from, to_error, look)
    }
}

/// As [`TraceArguments::show`], of any file.
pub(crate) fn show<L: ItemVisitor>(
    path: &PathBuf,
    from: Option<FormatArgument>,
    to_error: bool,
    look: &mut L,
) -> Result<ReadSummary, String> {
    let input = Input::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let name = input.name().to_owned();
    let mut reader = open(input, from.map(TraceFormat::from)).map_err(|e| format!("{name}: {e}"))?;
    let mut context = Context::new();
    let stopped = loop {
        match reader.next(&mut context) {
            Ok(Some(item)) => look.item(&item),
            Ok(None) => break None,
            Err(e) if to_error || e.is_truncated() => break Some(e),
            Err(e) => return Err(format!("{name}: {e}")),
        }
        if L::NEEDS_PLACE {
            look.was_at(reader.position());
        }
    };
    Ok(ReadSummary { name, report: reader.report().clone(), stopped, bytes: reader.position() })
}
