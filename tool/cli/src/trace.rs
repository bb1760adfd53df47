//! Reads a whole trace for a command.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hairline_convert::{
    BriefEvent, BriefUse, Context, Error, Item, MOST_BRIEF, Report, Scheduling, Strings, TraceReader,
};
use hairline_tables::{Choice, Source};

use crate::input::{Input, is_standard, stream_identity};
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::selection::{Chosen, Part, Selecting, Selection, Survey};
use crate::text::{complain, described, grouped, ids, one_line};

/// The arguments of a command that reads a trace.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArguments {
    /// The trace: .pftrace, .fxt or .json, compressed with gzip, zstd, xz or zip or not; - for stdin.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    opening: Opening,
    #[arg(skip)]
    selection: Selection,
    /// What `selection` means in this trace.
    #[arg(skip)]
    chosen: OnceCell<Rc<Chosen>>,
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
        Self::new(file.trace.clone(), file.opening)
    }
}

/// A trace whose tables are read, twice if possible.
pub(crate) struct RowSource<'p> {
    path: &'p PathBuf,
    pub(crate) opening: Opening,
    chosen: Option<Rc<Chosen>>,
}

impl<'p> RowSource<'p> {
    pub(crate) fn new(path: &'p PathBuf, opening: Opening) -> Self {
        Self { path, opening, chosen: None }
    }

    /// The same source for a part of the trace.
    pub(crate) fn part(self, selection: &Selection) -> Result<Self, String> {
        let trace = TraceArguments::new(self.path.clone(), self.opening).part(selection);
        Ok(Self { chosen: trace.chosen()?, ..self })
    }
}

impl Source for RowSource<'_> {
    fn open(&mut self) -> Result<Box<dyn TraceReader + '_>, Error> {
        let reader = Input::open(self.path, self.opening).map_err(Error::Input)?.trace()?;
        Ok(reader)
    }

    fn is_repeatable(&self) -> bool {
        !is_standard(self.path) && stream_identity(self.path).is_none()
    }

    fn choice(&self) -> Option<Box<dyn Choice>> {
        self.chosen.clone().map(|chosen| Box::new(Part::new(chosen)) as Box<dyn Choice>)
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

    /// Receives the times between which a part of a trace is read, after its last item.
    fn spans(&mut self, first: i64, last: i64) {
        let _ = (first, last);
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

    /// The arguments for a trace that a command names in another way.
    pub(crate) fn new(trace: PathBuf, opening: Opening) -> Self {
        Self { trace, opening, selection: Selection::default(), chosen: OnceCell::new() }
    }

    /// The same arguments for another trace.
    pub(crate) fn with_path(&self, trace: &Path) -> Self {
        Self::new(trace.to_owned(), self.opening).part(&self.selection)
    }

    /// The same arguments for a part of the trace.
    pub(crate) fn part(&self, selection: &Selection) -> Self {
        Self { selection: selection.clone(), ..Self::new(self.trace.clone(), self.opening) }
    }

    /// The part of the trace that is read; `None` for all. The first call reads the whole trace.
    pub(crate) fn chosen(&self) -> Result<Option<Rc<Chosen>>, String> {
        if self.selection.is_all() {
            return Ok(None);
        }
        if let Some(chosen) = self.chosen.get() {
            return Ok(Some(Rc::clone(chosen)));
        }
        if self.is_stream() {
            let what = "--time-range and --thread need a file, which is read twice";
            return Err(format!("{}: {what}", self.trace.display()));
        }
        let (survey, name) = survey(&self.trace, self.opening)?;
        let chosen = self.selection.choose(survey).map_err(|e| format!("{name}: {e}"))?;
        Ok(Some(Rc::clone(self.chosen.get_or_init(|| Rc::new(chosen)))))
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
        read(&self.trace, self.opening, to_error, visitor, self.chosen()?.as_deref())
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

impl ItemVisitor for Survey {
    const TAKES_BRIEFS: bool = true;

    fn briefs(&mut self, briefs: &[BriefEvent], _: &Strings) {
        Self::briefs(self, briefs);
    }

    fn item(&mut self, item: &Item<'_>) {
        Self::item(self, item);
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
    read(path, opening, to_error, visitor, None)
}

/// Reads a trace for what a part of it needs, up to its first error. Returns also its name.
fn survey(path: &PathBuf, opening: Opening) -> Result<(Survey, String), String> {
    let mut survey = Survey::default();
    let name = read(path, opening, true, &mut survey, None)?.name;
    Ok((survey, name))
}

/// Reads a trace, or a part of it. All commands that can read a part do so here.
fn read<L: ItemVisitor>(
    path: &PathBuf,
    opening: Opening,
    to_error: bool,
    visitor: &mut L,
    chosen: Option<&Chosen>,
) -> Result<ReadSummary, String> {
    let mut selecting = chosen.map(Selecting::new);
    let takes_briefs = L::TAKES_BRIEFS && selecting.is_none();
    let input = Input::open(path, opening).map_err(|e| format!("{}: {e}", path.display()))?;
    let (name, bytes) = (input.name().to_owned(), input.bytes());
    let mut reader = input.trace().map_err(|e| format!("{name}: {e}"))?;
    let (mut context, mut unread) = (Context::new(), Report::default());
    let mut briefs = Vec::with_capacity(if L::TAKES_BRIEFS { MOST_BRIEF } else { 0 });
    let stopped = loop {
        if takes_briefs {
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
                match &mut selecting {
                    None => visitor.item(item),
                    Some(selecting) => selecting.item(item, &mut |item| visitor.item(item)),
                }
            }
            Ok(None) => break None,
            Err(e) if to_error || e.is_truncated() => break Some(e),
            Err(e) => return Err(format!("{name}: {e}")),
        }
        if L::NEEDS_OFFSET {
            visitor.was_at(reader.position());
        }
    };
    if let (Some(chosen), Some(mut selecting)) = (chosen, selecting) {
        selecting.finish(&mut |item| visitor.item(item));
        let (first, last) = chosen.span();
        visitor.spans(first, last);
        unread.add_many("slices beyond the first 524,288 open ones", selecting.left_out);
    }
    Ok(ReadSummary { name, report: reader.report().clone(), unread, stopped, bytes: bytes() })
}
