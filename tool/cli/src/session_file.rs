//! Files that sessions of Hairline have written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use hairline_formats::track_event::SessionEnd;
use hairline_formats::{FIRST, LAST, is_of_session};

use crate::platform;

/// Returns what the session of this trace has written at its end: `Some(None)` if the trace has no end.
/// `None`: it is no uncompressed trace of a session.
pub(crate) fn end_of(path: &Path) -> Option<Option<SessionEnd>> {
    // Opened without waiting for a FIFO, and without a look into a device.
    std::fs::metadata(path).is_ok_and(|about| about.is_file()).then_some(())?;
    let mut file = platform::open_at_once(path).ok()?;
    let mut first = Vec::new();
    (&mut file).take(FIRST as u64).read_to_end(&mut first).ok()?;
    is_of_session(&first).then(|| SessionEnd::at_end_of(&last(file)))
}

fn last(mut file: File) -> Vec<u8> {
    let mut last = Vec::new();
    let len = file.metadata().map_or(0, |about| about.len());
    let _ =
        file.seek(SeekFrom::Start(len.saturating_sub(LAST as u64))).and_then(|_| file.read_to_end(&mut last));
    last
}

/// Whether a later recording must not replace the file: it is the trace of a session that has not ended, or
/// one that recovery has completed.
pub(crate) fn is_kept(path: &Path) -> bool {
    end_of(path).is_some_and(|end| end.is_none_or(|end| end.pid == 0))
}
