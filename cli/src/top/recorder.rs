//! Of a process that keeps what it records in its ring: each time a snapshot of that.

use std::path::{Path, PathBuf};

use hairline::recovery;
use tempfile::TempDir;

use super::Source;
use super::rates::Rates;
use crate::stats::Gather;
use crate::trace;

pub(super) struct Recorder {
    region: PathBuf,
    folder: TempDir,
    /// Up to when slices were shown already.
    since: Option<i64>,
}

impl Recorder {
    pub(super) fn start(region: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
        Ok(Self { region: region.to_owned(), folder, since: None })
    }
}

impl Source for Recorder {
    fn take(&mut self) -> Result<Rates, String> {
        let path = self.folder.path().join("snapshot");
        recovery::snapshot(&self.region, &path).map_err(|e| e.to_string())?;
        let mut gather = Gather::new(None);
        gather.since(self.since);
        trace::show(&path, None, false, &mut gather)?;
        let (gathered, keys, _) = gather.finish();
        self.since = self.since.max(gathered.totals.last);
        Ok(Rates { gathered, keys, behind: 0 })
    }
}
