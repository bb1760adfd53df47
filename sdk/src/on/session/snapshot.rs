//! Snapshots: what the ring of a flight recorder holds, as a trace of its own.

use std::collections::HashMap;
use std::io;
use std::io::{BufWriter, Write};
use std::path::Path;

use hairline_formats::fxt;
use hairline_shm::Window;

use crate::on::base::files::unfinished::Unfinished;
use crate::on::base::platform::process;
use crate::on::encode::{stream, tail};
use crate::on::event::flow::Flow;
use crate::on::session::end::End;
use crate::on::session::open_slices::Copied;
use crate::on::session::shared::Shared;
use crate::on::session::window::Recorder;
use crate::options::Format;

/// The most bytes that are written to a file or to the program's output at once.
pub(crate) const PIECE: usize = 1 << 16;

impl Recorder {
    /// Writes what the ring holds now as a trace of its own. Other snapshots wait meanwhile, so `out` runs no
    /// code of the program.
    pub(crate) fn write(&self, shared: &Shared, out: &mut dyn Write) -> io::Result<End> {
        let mut taken = self.take_window();
        let Some(window) = &mut taken.window else { return Ok(End::default()) };
        let mut open = Copied::default();
        // Who ends a slice waits for the chunks that are being written, some 10 us each.
        let hold = || {
            let mut copy = Copied::default();
            (self.open.hold(&mut copy), copy)
        };
        window.take_and(hold, |(held, mut copy)| {
            held.copy_to(&mut copy);
            drop(held);
            open = copy;
        })?;
        let written = write_pieces(shared, window, &open, |records| {
            self.add_written(records.len());
            out.write_all(records)
        });
        window.clear();
        written
    }

    /// The same into a file, which is there when it is complete.
    pub(crate) fn write_file(&self, shared: &Shared, path: &Path) -> io::Result<End> {
        let unfinished = Unfinished::beside(path)?;
        let mut out = BufWriter::with_capacity(PIECE, unfinished.file());
        let end = self.write(shared, &mut out)?;
        out.flush()?;
        drop(out);
        unfinished.replace(path)?;
        Ok(End { path: Some(path.to_owned()), ..end })
    }
}

/// Finds out now whether a snapshot can be written to `path`.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    Unfinished::beside(path).map(drop)
}

fn write_pieces(
    shared: &Shared,
    window: &Window,
    Copied { bytes: open, count }: &Copied,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<End> {
    let head = stream::head(shared.format(), u128::from_le_bytes(process::random()));
    write(&head)?;
    let mut bytes = (head.len() + open.len()) as u64;
    let mut records_by_sequence = HashMap::new();
    let mut chunks = 0;
    let mut flows = (shared.format() == Format::Fxt).then(fxt::FlowStarts::default);
    if let Some(flows) = &mut flows {
        flows.look(open);
        window.pieces().for_each(|piece| flows.look(piece.bytes));
    }
    let mut put = |records: &[u8]| match &mut flows {
        Some(flows) => flows.mend(records, Flow::is_of_this_process, &mut write),
        None => write(records),
    };
    put(open)?;
    for piece in window.pieces() {
        put(piece.bytes)?;
        bytes += piece.bytes.len() as u64;
        *records_by_sequence.entry(piece.info.sequence).or_insert(0) += u64::from(piece.records);
        chunks += 1;
    }
    let tail = tail::Tail {
        pid: process::id(),
        process_track: process::track_uuid(),
        thread: process::Thread::current(),
        now: shared.clock.load().now(),
        lost: shared.lost(),
        ring: u64::from(shared.region.chunk_count()) * u64::from(shared.region.chunk_size()),
        written: bytes,
        chunks,
        flushes: 0,
    };
    let tail = stream::tail(shared.format(), &tail);
    write(&tail)?;
    Ok(End {
        records: records_by_sequence.values().sum::<u64>() + count,
        bytes: bytes + tail.len() as u64,
        duration: shared.started.elapsed(),
        records_by_sequence,
        path: None,
        notes: Vec::new(),
    })
}
