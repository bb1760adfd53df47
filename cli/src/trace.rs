//! Reads a whole trace for a command.

use std::path::{Path, PathBuf};

use hairline_convert::{BriefEvent, BriefUse, Context, Error, Item, MOST_BRIEF, Report, Scheduling, Strings};

use crate::input::{Input, is_standard, stream_identity};
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::text::{complain, described, grouped, ids, one_line};

/// The arguments of a command that reads a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArguments {
    /// The trace: .pftrace, .fxt or .json, compressed with gzip, zstd, xz or zip or not; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    opening: Opening,
}

/// As [`TraceArguments`], of a command that reads the trace several times.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArguments {
    /// The trace: .pftrace, .fxt or .json, compressed with gzip, zstd, xz or zip or not. A file, because it
    /// is read several times.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    opening: Opening,
}

impl From<&FileArguments> for TraceArguments {
    fn from(file: &FileArguments) -> Self {
        Self { trace: file.trace.clone(), opening: file.opening }
    }
}

/// How reading ended.
pub(crate) struct ReadSummary {
    /// The name of the trace in messages.
    pub(crate) name: String,
    /// The report of the reader.
    pub(crate) report: Report,
    /// The records that only a conversion to the same format keeps: no command shows their content.
    pub(crate) unread: Report,
    /// The error, if not all was read.
    pub(crate) stopped: Option<Error>,
    /// The number of bytes that were read, before they were unpacked.
    pub(crate) bytes: u64,
}

/// Receives the items of a trace.
pub(crate) trait ItemVisitor {
    /// Whether `was_at` is called.
    const NEEDS_OFFSET: bool = false;

    /// Whether `briefs` is called. Otherwise all events are items.
    const TAKES_BRIEFS: bool = false;

    fn item(&mut self, item: &Item<'_>);

    /// Receives events in brief.
    fn briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) {
        let _ = (briefs, strings);
    }

    /// Receives the offset of the record of the previous item.
    fn was_at(&mut self, offset: u64) {
        let _ = offset;
    }
}

impl ReadSummary {
    /// Reports an early end of the trace, and all content that was passed over.
    pub(crate) fn outcome(&self) -> Outcome {
        let name = one_line(&self.name);
        // What became of a defect, each description says itself.
        for (what, n) in self.report.iter().filter(|(what, _)| self.report.is_defect(what)) {
            let (n, what, ids) = (grouped(n), described(n, what), ids(&self.report, what));
            complain(format_args!("{name}: {n} {what}{ids}"));
        }
        for (what, n) in self.unread.iter() {
            complain(format_args!("{name}: not shown: {} {}", grouped(n), described(n, what)));
        }
        self.end()
    }

    /// Reports an early end of the trace.
    pub(crate) fn end(&self) -> Outcome {
        let Some(e) = &self.stopped else { return Outcome::Done };
        complain(format_args!("{}: {e}; everything before that is shown", self.name));
        Outcome::Failed
    }
}

impl TraceArguments {
    /// The path of the trace.
    pub(crate) fn path(&self) -> &Path {
        &self.trace
    }

    /// The length of the trace if it is a regular file. A FIFO has none before it was read.
    pub(crate) fn file_len(&self) -> Option<u64> {
        let about = std::fs::metadata(&self.trace).ok().filter(|_| !is_standard(&self.trace))?;
        about.is_file().then_some(about.len())
    }

    /// Passes all items to `visitor`. With `to_error`, reading ends without failure at any decode error;
    /// otherwise only if the input ends early.
    pub(crate) fn show<L: ItemVisitor>(
        &self,
        to_error: bool,
        visitor: &mut L,
    ) -> Result<ReadSummary, String> {
        show(&self.trace, self.opening, to_error, visitor)
    }
}

impl TraceArguments {
    /// Whether the trace can be read only once.
    pub(crate) fn is_stream(&self) -> bool {
        is_standard(&self.trace) || stream_identity(&self.trace).is_some()
    }

    /// Reads the trace once more, for a visitor that sorts its events.
    ///
    /// # Errors
    /// Fails also if the trace is no regular file, because a stream can be read only once.
    pub(crate) fn show_again<L: ItemVisitor>(&self, visitor: &mut L) -> Result<ReadSummary, String> {
        if self.is_stream() {
            let what = "its events are not in order of time: save it to a file, which can be read twice";
            return Err(format!("{}: {what}", self.trace.display()));
        }
        self.show(false, visitor)
    }
}

/// The message if events cannot be sorted.
pub(crate) fn unsorted(e: std::io::Error) -> String {
    format!("a temporary file for events that are not in order of time: {e}")
}

/// As [`TraceArguments::show`], for any file.
pub(crate) fn show<L: ItemVisitor>(
    path: &PathBuf,
    opening: Opening,
    to_error: bool,
    visitor: &mut L,
) -> Result<ReadSummary, String> {
    let input = Input::open(path, opening).map_err(|e| format!("{}: {e}", path.display()))?;
    let (name, bytes) = (input.name().to_owned(), input.bytes());
    let mut reader = input.trace().map_err(|e| format!("{name}: {e}"))?;
    let (mut context, mut unread) = (Context::new(), Report::default());
    let mut briefs = Vec::with_capacity(if L::TAKES_BRIEFS { MOST_BRIEF } else { 0 });
    let stopped = loop {
        if L::TAKES_BRIEFS {
            reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            visitor.briefs(&briefs, &context.strings);
            if briefs.len() == MOST_BRIEF {
                continue;
            }
        }
        match reader.next(&mut context) {
            // By reference, because an item is large.
            Ok(Some(ref item)) => {
                match item {
                    Item::Foreign { what, .. } => unread.add(what),
                    Item::Scheduling(scheduling) => unread.add_many(Scheduling::OTHERS, scheduling.others),
                    _ => {}
                }
                visitor.item(item);
            }
            Ok(None) => break None,
            Err(e) if to_error || e.is_truncated() => break Some(e),
            Err(e) => return Err(format!("{name}: {e}")),
        }
        if L::NEEDS_OFFSET {
            visitor.was_at(reader.position());
        }
    };
    Ok(ReadSummary { name, report: reader.report().clone(), unread, stopped, bytes: bytes() })
}
