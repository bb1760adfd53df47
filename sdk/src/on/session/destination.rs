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
use crate::on::base::stderr;
use crate::on::callsite::Callsite;
use crate::on::session::end::End;
use crate::on::session::flight_recorder::FlightRecorder;
use crate::on::session::output::{absolute, expand, has_serial};
use crate::on::session::shared::Shared;
use crate::on::session::snapshot::PIECE;
use crate::on::session::trigger;

/// The destination of snapshots for which no caller gives a path.
pub(crate) struct Destination {
    output: OutputConfig,
    /// The program's directory at the session's start. A relative output path starts there.
    directory: PathBuf,
    /// Number of snapshots that were written, and the path of the last one.
    serial: u64,
    path: Option<PathBuf>,
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
    pub(crate) fn new(output: OutputConfig, interval: Duration, keep: u32) -> Self {
        trigger::reset();
        let directory = absolute(PathBuf::from("."));
        Self {
            output,
            directory,
            serial: 0,
            path: None,
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
    pub(crate) fn write_for_trigger(&mut self, shared: &Shared, recorder: &FlightRecorder) {
        if self.last_trigger.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last_trigger = Some(Instant::now());
            self.write_if_file(shared, recorder);
        }
    }

    /// Writes the snapshot of a panic, unless the last one of a panic is less than the interval ago.
    pub(crate) fn write_for_panic(&mut self, shared: &Shared, recorder: &FlightRecorder) {
        if self.last_panic.is_none_or(|last| last.elapsed() >= self.interval) {
            self.last_panic = Some(Instant::now());
            self.write_if_file(shared, recorder);
        }
    }

    /// Writes the snapshot of a slow slice of the callsite, unless the last one is less than the interval
    /// ago. The file has the name of the slice. Removes the oldest one if there are too many.
    pub(crate) fn write_for_slow(
        &mut self,
        shared: &Shared,
        recorder: &FlightRecorder,
        callsite: &'static Callsite,
    ) {
        let OutputConfig::Path(template) = &self.output else { return };
        if self.last_slow.is_some_and(|last| last.elapsed() < self.interval) {
            return;
        }
        self.last_slow = Some(Instant::now());
        let path = self.directory.join(expand(template, self.serial + 1));
        let path = path_of_slice(&path, callsite.category(), callsite.name(), self.slow + 1);
        match recorder.write_file(shared, &path) {
            Ok(_) => {
                self.slow += 1;
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
    pub(crate) fn write_last(&mut self, shared: &Shared, recorder: &FlightRecorder) -> io::Result<End> {
        let has_serial = matches!(&self.output, OutputConfig::Path(template) if has_serial(template));
        if self.serial > 0 && !has_serial { Ok(self.unwritten(shared)) } else { self.write(shared, recorder) }
    }

    /// Writes a snapshot if the output is a file: every other output holds one trace. Reports the first error
    /// to stderr.
    fn write_if_file(&mut self, shared: &Shared, recorder: &FlightRecorder) {
        if !matches!(self.output, OutputConfig::Path(_)) {
            return;
        }
        if let Err(e) = self.write(shared, recorder) {
            report(shared, e);
        }
    }

    fn write(&mut self, shared: &Shared, recorder: &FlightRecorder) -> io::Result<End> {
        let written = match &mut self.output {
            OutputConfig::None => return Ok(self.unwritten(shared)),
            OutputConfig::Path(template) => {
                let path = self.directory.join(expand(template, self.serial + 1));
                recorder.write_file(shared, &path)
            }
            OutputConfig::Memory(memory) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, &mut bytes);
                memory.append(&[io::IoSlice::new(&bytes)]);
                written
            }
            // Into memory first, so that no other snapshot waits for the program's code.
            OutputConfig::Writer(writer) => {
                let mut bytes = Vec::new();
                let written = recorder.write(shared, &mut bytes);
                written.and_then(|end| copy_to_writer(recorder, &bytes, writer.as_mut()).map(|()| end))
            }
        };
        if let Ok(end) = &written {
            self.serial += 1;
            self.path.clone_from(&end.path);
        }
        written
    }

    /// Returns the results of a session whose end writes no snapshot.
    fn unwritten(&self, shared: &Shared) -> End {
        End { duration: shared.elapsed(), path: self.path.clone(), ..End::default() }
    }
}

/// Keeps the error for the summary, and reports the first one to stderr.
fn report(shared: &Shared, error: io::Error) {
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
