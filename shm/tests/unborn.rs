//! Regions without a header: their process was killed, or still runs, between creating the file and writing
//! the header. Only the file name has the pid, and the namespace of that pid is not known.

#![cfg(not(loom))]

use std::fs::File;
use std::path::{Path, PathBuf};

use hairline_shm::recover::{DeadRegion, Life, RecoverError, RegionFile, SessionState};

/// Above every pid that Linux gives out.
const NOBODY: u32 = 4_194_305;

/// A file of zeros with the name of a region of process `pid`.
fn unborn(pid: u32, random: u64, len: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hairline-{pid}-{random:016x}"));
    File::create(&path).unwrap().set_len(len).unwrap();
    path
}

fn life(path: &Path) -> Life {
    let region = RegionFile::open(path).unwrap();
    assert_eq!(region.facts().state, SessionState::Starting);
    region.life()
}

#[test]
fn a_region_without_a_header_is_not_known_to_be_dead_though_no_process_has_its_pid() {
    for (random, len) in [(1, 0), (2, 512), (3, 1 << 16)] {
        let path = unborn(NOBODY, random, len);
        assert_eq!(life(&path), Life::Unknown);
        let refused = DeadRegion::open(&path).unwrap_err();
        assert!(matches!(refused, RecoverError::Unknown { pid: NOBODY, .. }), "{refused}");
        assert!(path.exists());
        let region = RegionFile::open(&path).unwrap().lock(true).unwrap();
        region.remove().unwrap();
        assert!(!path.exists(), "a caller that assumes the process dead can remove it");
    }
}

#[test]
fn a_region_without_a_header_whose_process_lives_is_left_alone_whatever_is_assumed() {
    let path = unborn(std::process::id(), 4, 1 << 16);
    assert_eq!(life(&path), Life::Alive);
    let refused = RegionFile::open(&path).unwrap().lock(true).unwrap_err();
    assert!(matches!(refused, RecoverError::Alive { .. }), "{refused}");
    std::fs::remove_file(path).unwrap();
}
