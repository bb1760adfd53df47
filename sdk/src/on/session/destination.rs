//! The destination of snapshots for which no caller gives a path: those of triggers, of panics and of the
//! session's end.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::builder::OutputConfig;
use crate::on::base::files::claim;
use crate::on::base::platform::facts::Identity;
use crate::on::base::stderr;
use crate::on::callsite::listed::Listed;
use crate::on::session::end::End;
use crate::on::session::flight_recorder::FlightRecorder;
use crate::on::session::output::absolute;
use crate::on::session::placeholders::{Placeholders, has_serial};
use crate::on::session::shared::Shared;
use crate::on::session::snapshot::{Name, Occasion, PIECE, Written};
use crate::on::session::{trigger, without_effect};

/// The destination of snapshots for which no caller gives a path.
pub(crate) struct Destination {
    output: OutputConfig,
    names: Placeholders,
    /// The program's directory at the session's start. A relative output path starts there.
    directory: PathBuf,
    /// Number of the last snapshot that was written, its path and its file.
    serial: u64,
    path: Option<PathBuf>,
    file: Option<Identity>,
    /// The shortest time between two snapshots of triggers, and between two of panics.
    interval: Duration,
    last_trigger: Option<Instant>,
    last_panic: Option<Instant>,
    last_slow: Option<Instant>,
    /// Number of snapshots of slow slices so far, and the paths of those that are kept, the oldest first.
    slow: u64,
    kept: VecDeque<PathBuf>,
    /// Number of them to keep; 0: all.
    keep: usize,
}

impl Destination {
    /// Creates the destination at a session's start. `interval` is the shortest time between two snapshots of
    /// triggers, `keep` the number of snapshots of slow slices that stay.
    pub(crate) fn new(output: OutputConfig, names: Placeholders, interval: Duration, keep: u32) -> Self {
        trigger::reset();
        let directory = absolute(PathBuf::from("."));
        Self {
            output,
            names,
            directory,
            serial: 0,
            path: None,
            file: None,
            interval,
            last_trigger: None,
            last_panic: None,
            last_slow: None,
            slow: 0,
            kept: VecDeque::new(),
            keep: keep as usize,
        }
    }

    /// Writes the snapshot of a trigger, unless the last one is less than the interval ago.
    pub(crate) fn write_for_trigger(&mut self, shared: &Arc<Shared>, recorder: &FlightRecorder) {
        if self.last_trigger.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last_trigger = Some(Instant::now());
            self.write_if_file(shared, recorder);
        }
    }

    /// Writes the snapshot of a panic, unless the last one of a panic is less than the interval ago.
    pub(crate) fn write_for_panic(&mut self, shared: &Arc<Shared>, recorder: &FlightRecorder) {
        if self.last_panic.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last_panic = Some(Instant::now());
            self.write_if_file(shared, recorder);
        }
    }

    /// Writes the snapshot of a slow slice of the callsite, unless the last one is less than the interval
    /// ago. The file has the name of the slice. Removes the oldest one if there are too many.
    pub(crate) fn write_for_slow(
        &mut self,
        shared: &Arc<Shared>,
        recorder: &FlightRecorder,
        callsite: &'static Listed,
    ) {
        let OutputConfig::Path(template) = &self.output else { return };
        if self.last_slow.is_some_and(|last| last.elapsed() < self.interval) {
            return;
        }
        self.last_slow = Some(Instant::now());
        let path = self.directory.join(self.names.expand(template, self.serial + 1));
        let name = |n| path_of_slice(&path, callsite.category, callsite.name, self.slow + n);
        // The windows of earlier runs stay.
        match recorder.write_file(shared, Occasion::Trigger, Name::FirstFree(&name)) {
            Ok(Written { number, path, .. }) => {
                self.slow += number;
                self.kept.push_back(path);
                if self.keep > 0 && self.kept.len() > self.keep {
                    // A file that somebody has removed is no error.
                    let _ = self.kept.pop_front().map(fs::remove_file);
                }
            }
            Err(e) => report(shared, e),
        }
    }

    /// Writes the snapshot of the session's end, unless it would replace the file of a trigger's snapshot.
    pub(crate) fn write_last(&mut self, shared: &Arc<Shared>, recorder: &FlightRecorder) -> io::Result<End> {
        let has_serial = matches!(&self.output, OutputConfig::Path(template) if has_serial(template));
        if self.serial > 0 && !has_serial {
            return Ok(self.unwritten(shared));
        }
        self.write(shared, recorder, Occasion::End)
    }

    /// Writes a snapshot if the output is a file: every other output holds one trace. Reports the first error
    /// to stderr.
    fn write_if_file(&mut self, shared: &Arc<Shared>, recorder: &FlightRecorder) {
        if !matches!(self.output, OutputConfig::Path(_)) {
            return;
        }
        if let Err(e) = self.write(shared, recorder, Occasion::Trigger) {
            report(shared, e);
        }
    }

    fn write(&mut self, shared: &Arc<Shared>, recorder: &FlightRecorder, on: Occasion) -> io::Result<End> {
        match &mut self.output {
            OutputConfig::None => Ok(self.unwritten(shared)),
            OutputConfig::Path(_) => self.write_file(shared, recorder, on),
            OutputConfig::Lent(..) | OutputConfig::Service => Ok(self.unwritten(shared)), // a flight recorder has none
            OutputConfig::Memory(memory) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, on, &mut bytes);
                memory.append(&[io::IoSlice::new(&bytes)]);
                written
            }
            // Into memory first, so that no other snapshot waits for the program's code.
            OutputConfig::Writer(writer) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, on, &mut bytes);
                written.and_then(|end| copy_to_writer(recorder, &bytes, writer.as_mut()).map(|()| end))
            }
        }
    }

    /// Writes a snapshot to the path of the output. With `%n`, the path has the first number that no file
    /// has. Without it, the snapshot replaces the last one of this session, or the file of a session that has
    /// ended. Any other file stays, and the snapshot gets the next free name beside it.
    fn write_file(
        &mut self,
        shared: &Arc<Shared>,
        recorder: &FlightRecorder,
        on: Occasion,
    ) -> io::Result<End> {
        let OutputConfig::Path(template) = &self.output else { return Ok(self.unwritten(shared)) };
        let path = |serial| self.directory.join(self.names.expand(template, serial));
        let first = path(self.serial + 1);
        let numbered = |n| path(self.serial + n);
        let beside = |n| claim::nth_name(&first, n);
        let has_serial = has_serial(template);
        let name = match has_serial {
            true => Name::FirstFree(&numbered),
            false => Name::FirstReplaceable(&beside, self.file),
        };
        let Written { mut end, number, path, file } = recorder.write_file(shared, on, name)?;
        if !has_serial && number > 1 {
            let note = claim::note_of_kept(&first, &path);
            without_effect::say(&note, shared.settings.requester);
            end.notes.push(note);
        }
        self.serial += if has_serial { number } else { 1 };
        (self.path, self.file) = (Some(path), file);
        Ok(end)
    }

    /// Returns the results of a session whose end writes no snapshot.
    fn unwritten(&self, shared: &Arc<Shared>) -> End {
        End { duration: shared.elapsed(), path: self.path.clone(), ..End::default() }
    }
}

/// Keeps the error for the summary, and reports the first one to stderr.
fn report(shared: &Arc<Shared>, error: io::Error) {
    let error = Arc::new(error);
    if shared.requests.set_error(&error) {
        stderr::report_failed_snapshot(&error);
    }
}

/// The most characters of a slice's category and name in the name of a file.
const LONGEST_PART: usize = 64;

/// Returns the path of the snapshot of a slow slice: `trace.net-request.1.pftrace` beside `trace.pftrace`.
/// Characters that a file name should not have become `_`.
fn path_of_slice(path: &Path, category: &str, name: &str, number: u64) -> PathBuf {
    let plain = |text: &str| -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
        text.chars().take(LONGEST_PART).map(|c| if is_plain(&c) { c } else { '_' }).collect()
    };
    let name_of = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (name_of(path.file_stem()), name_of(path.extension()));
    let dot = if extension.is_empty() { "" } else { "." };
    path.with_file_name(format!("{stem}.{}-{}.{number}{dot}{extension}", plain(category), plain(name)))
}

/// Writes a snapshot to the program's own output.
fn copy_to_writer(recorder: &FlightRecorder, snapshot: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for piece in snapshot.chunks(PIECE) {
        out.write_all(piece)?;
        recorder.add_written(piece.len());
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_slow_slice_is_beside_the_output_and_has_its_name() {
        let of = |path: &str, category: &str, name: &str| {
            path_of_slice(Path::new(path), category, name, 2).to_string_lossy().into_owned()
        };
        assert_eq!(of("a/trace.pftrace", "net", "request"), "a/trace.net-request.2.pftrace");
        assert_eq!(of("trace-3.fxt", "my::net,x", "../../etc"), "trace-3.my__net_x-______etc.2.fxt");
        assert_eq!(of("trace", "", "a b"), "trace.-a_b.2");
        assert!(of("t.fxt", "n", &"x".repeat(1000)).len() < 100);
    }
}
