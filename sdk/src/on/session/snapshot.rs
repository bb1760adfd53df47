//! Snapshots: the content of a flight recorder's ring, as a whole trace.

use std::collections::BTreeMap;
use std::io;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairline_formats::fxt;
use hairline_perf::Taken;
use hairline_shm::Window;

use crate::on::base::files::claim::Replaceable;
use crate::on::base::files::unfinished::Unfinished;
use crate::on::base::files::{claim, output_file};
use crate::on::base::memory::Bytes;
use crate::on::base::platform;
use crate::on::base::platform::facts::Identity;
use crate::on::base::platform::process;
use crate::on::encode::stream;
use crate::on::encode::tail::BeforeTail;
use crate::on::event::flow::Flow;
use crate::on::session::end::End;
use crate::on::session::flight_recorder::FlightRecorder;
use crate::on::session::open_slices::CopiedBegins;
use crate::on::session::output::absolute;
use crate::on::session::reading::Reading;
use crate::on::session::shared::Shared;
use crate::on::session::{heap_profile, sampling};
use crate::options::Format;

/// The most names that are tried.
const MOST_NAMES: u64 = 1 << 16;

/// The most bytes of one write to a file or to the program's output.
pub(crate) const PIECE: usize = 1 << 16;

/// Why a snapshot is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A trigger, or a call of the program. A later run does not replace the file.
    Trigger,
    /// The end of the session. The file ends as the trace of a session does.
    End,
}

/// The name that the file of a snapshot gets.
pub(crate) enum Name<'n> {
    /// This one, which the program has given. A file there is replaced.
    Given(&'n Path),
    /// The first of these that no file has, by number from 1.
    FirstFree(&'n dyn Fn(u64) -> PathBuf),
    /// The first of these that no file has, or this file, or the trace of a session that has ended.
    FirstReplaceable(&'n dyn Fn(u64) -> PathBuf, Option<Identity>),
}

/// A snapshot in a file.
pub(crate) struct Written {
    pub(crate) end: End,
    /// The number of the name that the file got.
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Option<Identity>,
}

impl FlightRecorder {
    /// Writes the ring's present content as a whole trace. Other snapshots wait meanwhile, so `out` must not
    /// run code of the program.
    pub(crate) fn write(&self, shared: &Arc<Shared>, on: Occasion, out: &mut dyn Write) -> io::Result<End> {
        let mut taken = self.take_window().ok_or_else(forked)?;
        let Some(window) = &mut taken.window else { return Ok(End::default()) };
        let mut open = CopiedBegins::default();
        // A thread that ends a slice on a track waits while the chunks in use are copied, some 10 us each.
        let hold = || {
            let mut copy = CopiedBegins::default();
            (self.open.hold(&mut copy), copy)
        };
        window.take_and(hold, |(held, mut copy)| {
            held.copy_to(&mut copy);
            drop(held);
            open = copy;
        })?;
        let written = write_trace(shared, window, &open, on, |records| {
            self.add_written(records.len());
            out.write_all(records)
        });
        window.clear();
        written
    }

    /// Like [`write`](Self::write), to a file. The name leads to the file once it is complete.
    pub(crate) fn write_file(
        &self,
        shared: &Arc<Shared>,
        on: Occasion,
        name: Name<'_>,
    ) -> io::Result<Written> {
        let first = name.of(1);
        let unfinished = Unfinished::beside(&first)?;
        let mut out = BufWriter::with_capacity(PIECE, InProcess::new(&unfinished));
        let end = self.write(shared, on, &mut out)?;
        out.flush()?;
        drop(out);
        let file = unfinished.file().and_then(platform::identity).ok();
        let (number, path) = name.give(unfinished)?;
        if on == Occasion::End {
            output_file::note_ended(file);
        }
        let path = absolute(path);
        Ok(Written { end: End { path: Some(path.clone()), ..end }, number, path, file })
    }
}

impl Name<'_> {
    fn of(&self, number: u64) -> PathBuf {
        match self {
            Self::Given(path) => (*path).to_owned(),
            Self::FirstFree(name) | Self::FirstReplaceable(name, _) => name(number),
        }
    }

    /// Returns whether a file at the path may be replaced, and that file, which no session claims until then.
    fn replaces(&self, path: &Path) -> Option<Option<Replaceable>> {
        match self {
            Self::Given(_) => Some(None),
            Self::FirstFree(_) => None,
            Self::FirstReplaceable(_, own) => claim::replaceable(path, *own).map(Some),
        }
    }

    /// Gives a complete file its name. Returns the name and its number.
    fn give(&self, mut unfinished: Unfinished) -> io::Result<(u64, PathBuf)> {
        for number in 1.. {
            let path = self.of(number);
            if let Some(_locked) = self.replaces(&path) {
                return unfinished.replace(&path).map(|()| (number, path));
            }
            match unfinished.name_if_free(&path) {
                Ok(()) => return Ok((number, path)),
                Err((same, e)) if e.kind() == io::ErrorKind::AlreadyExists && number < MOST_NAMES => {
                    unfinished = same;
                }
                Err((_, e)) => return Err(e),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// A file for this process alone. A signal handler may fork while its thread writes a snapshot: the child
/// goes on with that, and writes nothing.
struct InProcess<'f> {
    file: &'f Unfinished,
    process: u32,
}

impl<'f> InProcess<'f> {
    fn new(file: &'f Unfinished) -> Self {
        Self { file, process: process::id() }
    }
}

impl Write for InProcess<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if process::id() == self.process { self.file.file()?.write(bytes) } else { Err(forked()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of a snapshot in a child that a signal handler has forked meanwhile.
fn forked() -> io::Error {
    io::Error::other("the process was forked meanwhile")
}

/// Checks that a snapshot can be written to `path`.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    Unfinished::beside(path).map(drop)
}

/// Writes head, begins of open slices, records and tail of a trace.
fn write_trace(
    shared: &Arc<Shared>,
    window: &Window,
    CopiedBegins { bytes: open, count }: &CopiedBegins,
    on: Occasion,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<End> {
    let head = stream::head(shared.format(), u128::from_le_bytes(process::random()));
    write(&head)?;
    let mut bytes = (head.len() + open.len()) as u64;
    // The window was taken before: the threads of its tracks have died later, or are in the history.
    let _reading = Reading::begin(shared);
    let samples = shared.sampling.window(shared.traced());
    let heap = shared.heap_profile.window();
    let Taken { names, changes } = shared.scheduling.history(shared.traced());
    bytes += stream::put_state_names(shared.format(), &names, &changes, &mut write)?;
    let mut records_by_sequence = BTreeMap::new();
    let mut chunks = 0;
    let mut flows = (shared.format() == Format::Fxt).then(fxt::FlowStarts::default);
    if let Some(flows) = &mut flows {
        flows.look(open);
        window.pieces().for_each(|piece| flows.look(piece.bytes));
    }
    let mut write_records = |records: &[u8]| match &mut flows {
        Some(flows) => flows.mend(records, Flow::is_of_this_process, &mut write),
        None => write(records),
    };
    write_records(open)?;
    for piece in window.pieces() {
        write_records(piece.bytes)?;
        bytes += piece.bytes.len() as u64;
        *records_by_sequence.entry(piece.info.sequence).or_insert(0) += u64::from(piece.records);
        chunks += 1;
    }
    bytes += stream::put_states(shared.format(), &changes, &mut write)?;
    if let Some(samples) = samples {
        bytes += sampling::put_window(shared.traced(), samples, &mut write)?;
    }
    if let Some(heap) = heap {
        bytes += heap_profile::put_window(heap, &mut write)?;
    }
    let mut last_names = Bytes::new();
    stream::put_names(shared.format(), &mut last_names, &shared.threads.all_new_names());
    write(&last_names)?;
    bytes += last_names.len() as u64;
    let mut tail = shared.tail(BeforeTail { bytes, chunks, flushes: 0 });
    tail.extend(if on == Occasion::End { shared.session_end() } else { shared.kept_end() });
    write(&tail)?;
    Ok(End {
        records: records_by_sequence.values().sum::<u64>() + count,
        bytes: bytes + tail.len() as u64,
        duration: shared.elapsed(),
        records_by_sequence,
        path: None,
        notes: Vec::new(),
    })
}
