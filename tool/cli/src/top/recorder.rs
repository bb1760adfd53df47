//! Takes snapshots of the ring of a flight recorder.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hairline::recovery::{self, RecoverError};

use crate::opening::Opening;
use crate::platform::Folder;
use crate::stats::Gather;
use crate::top::rates::Rates;
use crate::top::source::SliceSource;
use crate::trace;

pub(super) struct Recorder {
    region: PathBuf,
    /// Only this user may read it, as the region.
    folder: Folder,
    /// The time of the latest event shown.
    since: Option<i64>,
}

impl Recorder {
    pub(super) fn start(region: &Path) -> Result<Self, String> {
        let folder = Folder::create(&std::env::temp_dir(), ".hairline-".as_ref())
            .map_err(|e| format!("a temporary folder: {e}"))?;
        Ok(Self { region: region.to_owned(), folder, since: None })
    }
}

/// The number of attempts, and the pause between them. A snapshot of a ring that changes fast may fail.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

impl Recorder {
    fn snapshot(&self, path: &Path) -> Result<(), String> {
        let mut tries = 0;
        loop {
            tries += 1;
            match recovery::snapshot(&self.region, path) {
                Ok(_) => return Ok(()),
                Err(RecoverError::Changing { .. }) if tries < TRIES => std::thread::sleep(PAUSE),
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}

impl SliceSource for Recorder {
    fn take(&mut self, _: &AtomicBool) -> Result<Rates, String> {
        let path = self.folder.path().join("snapshot");
        self.snapshot(&path)?;
        let mut gather = Gather::new(None).with_live_timeline();
        gather.since(self.since);
        trace::show(&path, Opening::default(), false, &mut gather)?;
        let (gathered, keys, _) = gather.finish().map_err(|e| e.to_string())?;
        let (first, last) = (gathered.totals.first, gathered.totals.last);
        let is_all = self.since.is_none_or(|since| first.is_none_or(|first| first <= since));
        let covered = Duration::from_nanos(gathered.totals.span().unsigned_abs());
        self.since = self.since.max(last);
        Ok(Rates { gathered, keys, behind: 0, covered: (!is_all && !covered.is_zero()).then_some(covered) })
    }
}
