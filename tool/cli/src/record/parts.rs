//! The traces of the command's processes, and their merge.
//!
//! ```text
//! out.pftrace.parts-x1Y2z3/          beside the output: on the same disk, and easy to find after a kill
//!     4711-make-0a1b2c3d.pftrace     one for each session, by pid, program and a random number: a pid may come
//!     4712-cc-4e5f6a7b.pftrace       again, and a process may have several copies of Hairline
//! ```

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hairline::Format;
use hairline::recovery::{self, FoundRegion, ProcessState, RecoverOptions};
use hairline_convert::splice::{Splice, Totals};
use hairline_convert::{Error, TraceFormat};
use hairline_formats::track_event::SessionEnd;
use hairline_formats::{fxt, track_event};

use crate::links::{Followed, follow};
use crate::platform::facts::Identity;
use crate::platform::{self, Folder};
use crate::record::neighbours::Neighbours;
use crate::record::quiet;
use crate::record::samples::{self, Known, Opened, Sampling, missing_samples};
use crate::record::switches::{self, Recorded, States};
use crate::record::told::Told;
use crate::session_file;
use crate::text::duration;

/// The interval of checks for processes that outlive the command.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The interval of checks for processes that have recorded nothing: it reads a file of each process.
const SEARCH_EVERY: Duration = Duration::from_millis(200);

/// What follows the name of the output in the name of the folder.
pub(crate) const PARTS: &str = ".parts-";

/// The name of the part with what the kernel's rings had no room for.
const TOLD: &str = "told";

/// The name of the trace of all parts, until it gets its path.
const WHOLE: &str = "whole";

/// The CPU time that the states of threads lack is said from one part in so many on, and from so many
/// nanoseconds on: what the kernel counts of a process has ticks of 10 ms.
const UNKNOWN: u64 = 4;
const LEAST_UNKNOWN: u64 = 50_000_000;

/// The file extension of a format.
pub(super) fn extension(format: Format) -> &'static str {
    match format {
        Format::Fxt => "fxt",
        _ => "pftrace",
    }
}

/// The folder of the parts.
#[derive(Debug)]
pub(super) struct Parts {
    folder: Folder,
    output: PathBuf,
    /// The same path as the user gave it, for messages.
    shown: PathBuf,
    /// The file at that path when the recording began, which the trace replaces.
    before: Before,
    /// When the recording began, in ns of the clock of the traces.
    began: u64,
    format: Format,
    sampling: Option<Sampling>,
    /// Why there are no samples.
    no_samples: Option<String>,
    /// What other processes had taken when the command started.
    neighbours: Option<Neighbours>,
    /// Whether the folder is kept: the user asked for it, or a part is still needed.
    is_kept: bool,
}

/// The file at the output's path when the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Replaced(Identity),
    /// A trace that somebody may want.
    Kept,
}

/// The result of recording.
#[derive(Debug, Default)]
pub(crate) struct RecordResult {
    pub(crate) totals: Totals,
    /// The path of the trace.
    pub(super) path: PathBuf,
    /// The number of parts.
    pub(crate) parts: u64,
    /// The number of processes that ended without completing their traces: by a kill, or by `_exit`.
    pub(crate) recovered: u64,
    /// Running processes: pid, name, part.
    pub(crate) alive: Vec<(u32, String, PathBuf)>,
    /// Running processes that have recorded nothing: pid, name.
    pub(crate) quiet: Vec<(u32, String)>,
    pub(super) notes: Vec<String>,
    /// The number of states that the kernel reported of threads.
    pub(super) states: u64,
    /// The numbers of samples, if they were asked for.
    pub(super) samples: Option<hairline_stacks::Totals>,
    /// What the trace tells of the command's own recording.
    pub(super) told: Told,
}

impl RecordResult {
    fn refuse(&mut self, what: &'static str, why: String) {
        self.notes.push(why.clone());
        self.told.refused.push((what, why));
    }

    /// Notes the samples that are missing, which [`report`](crate::record::report) says at its place.
    fn tell_of_samples(&mut self, totals: &hairline_stacks::Totals) {
        self.told.refused.extend(missing_samples(totals));
    }

    /// Notes that the states of threads have much less CPU time than the command had.
    fn compare_cpu_time(&mut self, recorded: &Recorded, had: u64) {
        let ran = recorded.ran();
        // Lost switches may be why, and are said.
        let has_lost = recorded.lost() > 0 || self.samples.is_some_and(|samples| samples.lost > 0);
        if has_lost || had.saturating_sub(ran) < (had / UNKNOWN).max(LEAST_UNKNOWN) {
            return;
        }
        let time = |time: u64| duration(i64::try_from(time).unwrap_or(i64::MAX));
        self.refuse(
            "all thread states",
            format!(
                "the command had {} of CPU time, and the states of its threads have {}: the kernel ends the \
                 events of a program that its user may not read, or that changes its user",
                time(had),
                time(ran)
            ),
        );
    }
}

impl Parts {
    /// Creates the folder. If that is possible, the output can be created too.
    pub(super) fn begin(output: &Path, format: Format, keep: bool) -> Result<Self, String> {
        let shown = output.to_owned();
        let at = |e: io::Error| format!("{}: {e}", output.display());
        let no_file = || format!("{}: it exists and is not a regular file", output.display());
        // A link stays, as with every output.
        let Followed::Name(place) = follow(output).map_err(at)? else { return Err(no_file()) };
        if std::fs::symlink_metadata(&place).is_ok_and(|about| !about.is_file()) {
            return Err(no_file());
        }
        let name = place.file_name().ok_or_else(|| at(io::ErrorKind::InvalidInput.into()))?;
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The processes may have other working directories.
        let parent = parent.canonicalize().map_err(at)?;
        let mut prefix = name.to_owned();
        prefix.push(PARTS);
        let folder = Folder::create(&parent, &prefix).map_err(at)?;
        if folder.path().to_str().is_none() {
            return Err(format!("{}: its path must be UTF-8", output.display()));
        }
        let output = parent.join(name);
        let before = match platform::identity_of_name(&output) {
            Ok(_) if session_file::is_kept(&output) => Before::Kept,
            Ok(before) => Before::Replaced(before),
            Err(_) => Before::Nothing,
        };
        Ok(Self {
            folder,
            output,
            shown,
            before,
            began: platform::boottime(),
            format,
            sampling: None,
            no_samples: None,
            neighbours: None,
            is_kept: keep,
        })
    }

    /// Begins to look at what other processes take.
    pub(super) fn look_at_neighbours(&mut self) {
        self.neighbours = Some(Neighbours::begin());
    }

    /// Begins to read the samples of the command, and the switches that their rings have. Without them the
    /// recording goes on.
    pub(super) fn sample(&mut self, opened: io::Result<Opened>, states: Option<States>) {
        let part = samples::part(extension(self.format));
        let begin = |opened| samples::begin(opened, self.format, self.folder.create_file(&part)?, states);
        match opened.and_then(begin) {
            Ok(sampling) => self.sampling = Some(sampling),
            Err(e) => self.no_samples = Some(samples::explain(&e)),
        }
    }

    /// Ends the samples: they are a part then. `has_names`: another part has the names of all threads.
    /// Returns the switches that were in their rings.
    fn end_samples(&mut self, whole: &mut RecordResult, has_names: bool) -> Option<Result<Recorded, String>> {
        if let Some(why) = self.no_samples.take() {
            whole.refuse("stack samples by the command", why);
        }
        let names = self.folder.names().unwrap_or_default();
        let pids = names.iter().filter_map(|name| pid_of(name));
        let known = if has_names { Known::All } else { Known::Of(pids.collect()) };
        let ended = self.sampling.take()?.end(known);
        match ended.totals {
            Ok(totals) => {
                whole.tell_of_samples(&totals);
                whole.samples = Some(totals);
            }
            Err(e) => whole.notes.push(format!("the samples are incomplete: {e}")),
        }
        ended.switches.map(|switches| switches.map_err(|e| switches::failed(&e)))
    }

    /// The value of `HAIRLINE` for the processes.
    pub(super) fn template(&self) -> OsString {
        // The path is UTF-8, as checked.
        let directory = self.folder.path().to_string_lossy().replace('%', "%%");
        Path::new(&directory).join(format!("%p-%e-%u.{}", extension(self.format))).into()
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn are_kept(&self) -> bool {
        self.is_kept
    }

    /// Recovers the parts of killed processes, and writes the output, unless `interrupted`. Waits for running
    /// processes up to `wait`.
    pub(super) fn make_whole(
        mut self,
        switches: Option<Result<Recorded, String>>,
        (command, cpu_time): (u32, Option<u64>),
        wait: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(RecordResult, Self), String> {
        let mut whole = RecordResult::default();
        let has_states = self.sampling.as_ref().is_some_and(|sampling| sampling.has_states);
        let until = Instant::now() + wait;
        let mut searched = None;
        loop {
            whole.alive = self.settle(&mut whole);
            let is_last = Instant::now() >= until || interrupted();
            let is_due = searched.is_none_or(|at: Instant| at.elapsed() >= SEARCH_EVERY);
            if is_last || is_due && whole.alive.is_empty() {
                searched = Some(Instant::now());
                whole.quiet = quiet::processes(self.folder.path());
                if whole.quiet.is_empty() {
                    // One of them may have recorded something and ended meanwhile.
                    whole.alive = self.settle(&mut whole);
                }
            }
            if is_last || whole.alive.is_empty() && whole.quiet.is_empty() {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let has_names = matches!(switches, Some(Ok(_))) || has_states;
        let switches = self.end_samples(&mut whole, has_names).or(switches);
        if !self.folder.is_in_place() {
            whole.notes.push(format!(
                "{}: it was moved or replaced while the command ran; what processes recorded after that is not \
                 in the trace",
                self.folder.path().display()
            ));
        }
        let is_quiet = |(pid, _): &(u32, String)| whole.alive.iter().all(|(alive, ..)| alive != pid);
        whole.quiet.retain(is_quiet);
        self.is_kept |= !whole.alive.is_empty();
        let made = self.list(command, &whole).and_then(|mut parts| {
            match switches {
                Some(Ok(recorded)) => {
                    (whole.states, whole.told.lost) = (recorded.states(), recorded.lost());
                    whole.told.at = recorded.ended;
                    let neighbours = self.neighbours.as_ref();
                    whole.told.others = neighbours.map(|of| of.end(|pid| recorded.has_process(pid)));
                    if let Some(had) = cpu_time {
                        whole.compare_cpu_time(&recorded, had);
                    }
                    recorded.add_to(&self.folder, &mut parts, &mut whole.notes);
                }
                Some(Err(why)) => whole.refuse("thread states by the command", why),
                None => {}
            }
            if !parts.is_empty() {
                self.add_told(&mut parts, command, &mut whole);
            }
            self.write(&parts, &mut whole, interrupted)
        });
        match made {
            Ok(()) => Ok((whole, self)),
            Err(why) => {
                let place = self.folder.path().display().to_string();
                self.folder.keep();
                Err(format!("{why}; the processes' own traces are in {place}"))
            }
        }
    }

    /// Adds a part that tells of the command's own recording.
    fn add_told(&self, parts: &mut Vec<String>, command: u32, whole: &mut RecordResult) {
        let Some(bytes) = whole.told.part(self.format, command) else { return };
        match self.folder.create_file(TOLD).and_then(|mut file| file.write_all(&bytes)) {
            Ok(()) => parts.push(TOLD.to_owned()),
            Err(e) => whole.notes.push(format!("the trace does not tell of that: {e}")),
        }
    }

    /// Recovers the parts of dead processes. Returns the running ones.
    fn settle(&mut self, whole: &mut RecordResult) -> Vec<(u32, String, PathBuf)> {
        let mut alive = Vec::new();
        for region in recovery::find().unwrap_or_default() {
            let Some(output) = region.output.clone().filter(|o| o.starts_with(self.folder.path())) else {
                continue;
            };
            if region.process != ProcessState::Dead {
                alive.push((region.pid, region.process_name, output));
                continue;
            }
            self.recover(&region, whole);
        }
        alive
    }

    fn recover(&mut self, region: &FoundRegion, whole: &mut RecordResult) {
        match recovery::recover(&region.path, &RecoverOptions::new()) {
            Ok(recovered) => whole.recovered += u64::from(recovered.path.is_some()),
            Err(e) => {
                let note =
                    format!("process {} was killed, and its trace cannot be completed: {e}", region.pid);
                if !whole.notes.contains(&note) {
                    whole.notes.push(note);
                }
            }
        }
    }

    /// The parts of ended processes, the command's part first.
    fn list(&self, command: u32, whole: &RecordResult) -> Result<Vec<String>, String> {
        let folder = self.folder.path();
        let at = |e: io::Error| format!("{}: {e}", folder.display());
        let suffix = format!(".{}", extension(self.format));
        let mut parts = Vec::new();
        for name in self.folder.names().map_err(at)? {
            // A recovered file exists if a program replaced itself by exec and was then killed.
            let is_part = name.ends_with(&suffix) || name.contains(&format!("{suffix}.recovered-"));
            let goes_on = whole.alive.iter().any(|(_, _, path)| *path == folder.join(&name));
            if is_part && !goes_on && self.folder.len_of(&name).is_some_and(|len| len > 0) {
                let pid = pid_of(&name);
                parts.push((pid != Some(command), pid, name));
            }
        }
        parts.sort();
        Ok(parts.into_iter().map(|(.., name)| name).collect())
    }

    fn write(
        &mut self,
        parts: &[String],
        whole: &mut RecordResult,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        whole.parts = parts.len() as u64;
        self.note_other_clocks(parts, whole);
        match parts {
            [] => Ok(()),
            // A single valid part is the whole trace.
            [only] if self.is_whole(only, whole, interrupted) => self.place(only, whole),
            _ => {
                self.splice(parts, whole, interrupted)?;
                self.place(WHOLE, whole)
            }
        }
    }

    /// Notes the processes whose clock is another one than this command's, which the kernel's events have
    /// too.
    fn note_other_clocks(&self, parts: &[String], whole: &mut RecordResult) {
        const NEAR: u64 = 1_000_000_000;
        let now = platform::boottime();
        for part in parts {
            let end = session_file::end_of(&self.folder.path().join(part)).flatten();
            let Some(end) = end.filter(|end| end.pid != 0).map(|end| end.timestamp_ns) else { continue };
            let (before, after) = (self.began.saturating_sub(end), end.saturating_sub(now));
            let (seconds, direction) = match (before > NEAR, after > NEAR) {
                (true, _) => (before / 1_000_000_000, "earlier"),
                (_, true) => (after / 1_000_000_000, "later"),
                _ => continue,
            };
            whole.notes.push(format!(
                "{part}: the process has a clock of its own (a time namespace): its slices are some {seconds} s \
                 {direction} than those of other processes, and than what the kernel recorded"
            ));
        }
    }

    /// Gives the finished trace its path. A file that somebody may want stays at the output's path, and the
    /// trace gets the next free name beside it.
    fn place(&self, name: &str, whole: &mut RecordResult) -> Result<(), String> {
        let at = |e: io::Error| format!("{}: {e}", self.output.display());
        self.end_trace(name).map_err(at)?;
        if self.replace(name).map_err(at)? {
            whole.path.clone_from(&self.shown);
            return Ok(());
        }
        for n in 2.. {
            let path = nth_name(&self.output, n);
            match self.folder.move_file_if_free(name, &path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                moved => {
                    moved.map_err(at)?;
                    whole.path = nth_name(&self.shown, n);
                    whole.notes.push(self.why_elsewhere(&whole.path));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Moves the trace to the output's path, if that has no file, or the one that it had at the begin.
    /// Returns whether it did.
    fn replace(&self, name: &str) -> io::Result<bool> {
        match self.before {
            Before::Kept => Ok(false),
            Before::Nothing => match self.folder.move_file_if_free(name, &self.output) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                moved => moved.map(|()| true),
            },
            Before::Replaced(before) => {
                // Another recorder that replaces the same file at this moment waits for the lock, and then
                // finds another file at the path.
                let locked = platform::open_at_once(&self.output);
                if let Ok(file) = &locked {
                    platform::lock(file)?;
                }
                match platform::identity_of_name(&self.output) {
                    Ok(there) if there == before => self.folder.move_file(name, &self.output).map(|()| true),
                    Ok(_) => Ok(false),
                    Err(_) => Ok(self.folder.move_file_if_free(name, &self.output).is_ok()),
                }
            }
        }
    }

    fn why_elsewhere(&self, path: &Path) -> String {
        let why = match self.before {
            Before::Kept => "has a trace without its end, or one that was recovered",
            _ => "was written by another process meanwhile",
        };
        format!("{} {why}: it stays as it is, and this trace is in {}", self.shown.display(), path.display())
    }

    /// Writes the end of a session, so that a later recording may replace the trace.
    fn end_trace(&self, name: &str) -> io::Result<()> {
        let (mut bytes, pid) = (Vec::new(), std::process::id().cast_signed());
        let end = SessionEnd { pid, timestamp_ns: platform::boottime() };
        match self.format {
            Format::Fxt => fxt::session_end(&mut bytes, end),
            _ => track_event::session_end(&mut bytes, 1, end),
        }
        self.folder.append_to_file(name)?.write_all(&bytes)
    }

    fn is_whole(&self, part: &str, whole: &mut RecordResult, interrupted: &dyn Fn() -> bool) -> bool {
        let Some(mut nowhere) =
            Splice::new(trace_format(self.format), Interruptible { out: io::sink(), interrupted })
        else {
            return false;
        };
        let Ok(file) = self.folder.open_file(part) else { return false };
        let (Ok(()), Ok((_, totals))) = (nowhere.add(file), nowhere.finish()) else { return false };
        whole.totals = totals;
        whole.totals.bytes = self.folder.len_of(part).unwrap_or(0);
        whole.totals.damaged == 0
    }

    fn splice(
        &mut self,
        parts: &[String],
        whole: &mut RecordResult,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let output = self.output.clone();
        let at = |e: io::Error| format!("{}: {e}", output.display());
        let file = self.folder.create_file(WHOLE).map_err(at)?;
        let out = Interruptible { out: BufWriter::with_capacity(1 << 16, file), interrupted };
        let mut splice = Splice::new(trace_format(self.format), out).ok_or("no such format")?;
        for part in parts {
            let file = self.folder.open_file(part).map_err(|e| format!("{part}: {e}"))?;
            match splice.add(file) {
                Ok(()) => {}
                Err(Error::Output(e)) => return Err(at(e)),
                Err(e) => {
                    self.is_kept |= !e.is_truncated();
                    whole.notes.push(format!("{part}: {e}; everything before that is in the trace"));
                }
            }
        }
        let (out, totals) = splice.finish().map_err(at)?;
        out.out.into_inner().map_err(|e| at(e.into_error()))?;
        whole.totals = totals;
        Ok(())
    }

    /// Removes the folder if it is not kept.
    pub(super) fn end(self) {
        if self.is_kept {
            self.folder.keep();
        } // otherwise dropping it removes it
    }
}

/// The name number `n` of a trace: `t-2.fxt` beside `t.fxt`.
fn nth_name(path: &Path, n: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{n}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The pid in the name of a part.
fn pid_of(name: &str) -> Option<u32> {
    name.split('-').next().and_then(|pid| pid.parse().ok())
}

fn trace_format(format: Format) -> TraceFormat {
    match format {
        Format::Fxt => TraceFormat::Fxt,
        _ => TraceFormat::TrackEvent,
    }
}

/// An output that fails when the command is interrupted.
struct Interruptible<'i, W> {
    out: W,
    interrupted: &'i dyn Fn() -> bool,
}

impl<W: Write> Write for Interruptible<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.interrupted)() {
            // `Interrupted` would cause a retry.
            return Err(io::Error::other("interrupted"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
