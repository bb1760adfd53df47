//! Records through the public API, in either format, and hands the trace to the judge.
//!
//! A process has one session at a time, so recordings in one test process take turns.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hairline::{Format, Session, SessionBuilder, Summary};

use crate::judge::{self, Verdict};

/// Both formats: every test of a recording runs in each.
pub const FORMATS: [Format; 2] = [Format::Fxt, Format::TrackEvent];

/// Slices without their args: begin order, nesting, names.
pub const SLICES: &str = "select s.depth, s.category, s.name, t.name as thread \
     from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
     order by t.name, s.ts, s.depth";

static TURN: Mutex<()> = Mutex::new(());

/// This process's turn to record.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner) // a failed test before this one
}

/// A finished recording.
#[derive(Debug)]
pub struct Trace {
    /// Which format it is in.
    pub format: Format,
    /// What the session said at its end.
    pub summary: Summary,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

/// The file extension of a format.
#[must_use]
pub fn extension(format: Format) -> &'static str {
    if format == Format::Fxt { "fxt" } else { "pftrace" }
}

/// Records what `program` does into a file, by a session as `configure` makes it.
///
/// # Panics
/// When the session cannot be started or stopped.
pub fn record_with(
    format: Format,
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Trace {
    record_in(&turn(), format, configure, program)
}

/// As [`record_with`], for a program whose scopes end out of order.
///
/// # Panics
/// When the session cannot be started or stopped.
pub fn record_in_any_order(
    format: Format,
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Trace {
    record_unchecked(&turn(), format, configure, program)
}

/// As [`record_with`], in a turn that is longer than the recording: for threads that record all the time.
///
/// # Panics
/// When the session cannot be started or stopped, or counts a scope that ended out of order.
pub fn record_in(
    turn: &MutexGuard<'static, ()>,
    format: Format,
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Trace {
    let trace = record_unchecked(turn, format, configure, program);
    assert_eq!(trace.summary.out_of_order, 0, "{format:?}: no scope of this program ends out of order");
    trace
}

fn record_unchecked(
    _turn: &MutexGuard<'static, ()>,
    format: Format,
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
    program: impl FnOnce(&Session),
) -> Trace {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(format!("trace.{}", extension(format)));
    let builder = Session::builder().output(&path).level(hairline::Level::Trace);
    let session = configure(builder).start().expect("a session");
    program(&session);
    let summary = session.stop().expect("a stopped session");
    Trace { format, summary, path, _directory: directory }
}

/// Records what `program` does, with a session as it is by default.
///
/// # Panics
/// When the session cannot be started or stopped.
pub fn record(format: Format, program: impl FnOnce(&Session)) -> Trace {
    record_with(format, |builder| builder, program)
}

/// Records what `program` does in the smallest ring: four chunks of 4 KiB.
///
/// # Panics
/// When the session cannot be started or stopped.
pub fn record_tiny(format: Format, program: impl FnOnce(&Session)) -> Trace {
    record_with(format, |builder| builder.chunk_size(4096).buffer_size(16 << 10), program)
}

impl Trace {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the judge.
    #[must_use]
    pub fn ask(&self, sql: &[&str]) -> Verdict {
        judge::load(&self.path, sql)
    }

    /// Asks the judge, requires that it has no complaint, and gives the rows of the one query as text.
    #[must_use]
    pub fn rows(&self, sql: &str) -> String {
        let verdict = self.ask(&[sql]);
        verdict.require_clean();
        verdict.results[0].text()
    }

    /// The arguments of all slices as `slice: key = value`, keys as the program wrote them.
    #[must_use]
    pub fn arguments(&self) -> String {
        // TrackEvent's importer puts debug annotations under `debug.`; FXT's writes them as they are.
        self.rows(
            "select s.name || ': ' || replace(a.key, 'debug.', '') || ' = ' || ifnull(a.display_value, 'NULL') \
             from slice s join args a using (arg_set_id) \
             where a.key like 'debug.%' or (select count(*) from args b where b.key like 'debug.%') = 0 \
             order by s.ts, a.id",
        )
    }

    /// All counters' values as `name = value`.
    #[must_use]
    pub fn counters(&self) -> String {
        // FXT's importer names a track "name:argument:id".
        self.rows(
            "select replace(t.name, ':value:0', '') || ' = ' || c.value \
             from counter c join track t on c.track_id = t.id order by c.ts, c.id",
        )
    }
}
