//! The destination of snapshots for which no caller gives a path: those of triggers, of panics and of the
//! session's end.

use std::io;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::builder::OutputConfig;
use crate::on::base::stderr;
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
}

impl Destination {
    /// Creates the destination at a session's start. `interval` is the shortest time between two snapshots of
    /// triggers.
    pub(crate) fn new(output: OutputConfig, interval: Duration) -> Self {
        trigger::reset();
        let directory = absolute(PathBuf::from("."));
        Self { output, directory, serial: 0, path: None, interval, last_trigger: None, last_panic: None }
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
            let e = Arc::new(e);
            if shared.requests.set_error(&e) {
                stderr::report_failed_snapshot(&e);
            }
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

/// Writes a snapshot to the program's own output.
fn copy_to_writer(recorder: &FlightRecorder, snapshot: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for piece in snapshot.chunks(PIECE) {
        out.write_all(piece)?;
        recorder.add_written(piece.len());
    }
    out.flush()
}
