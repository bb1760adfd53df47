//! Regions that are damaged in any way: recovery neither panics nor touches a file that is not its trace.
//! (The reading alone is fuzzed in `shm/tests/fuzz.rs`.)

use std::fs;
use std::path::{Path, PathBuf};

use hairline::recovery::{self, RecoverOptions};
use hairline::{Session, trace_scope};
use hairline_tests::recording::{FORMATS, extension, turn};
use hairline_tests::regions::region_of;

#[path = "../../formats/tests/fuzzer/random.rs"]
#[allow(dead_code)]
mod random;

use random::Random;

const INPUTS: u64 = 1500;

/// A region of four chunks and its trace, as they stand in the middle of a session.
fn images(directory: &Path, format: hairline::Format) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let trace = directory.join(format!("trace.{}", extension(format)));
    let _turn = turn();
    let session =
        Session::builder().output(&trace).buffer_size(4 * 4096).chunk_size(4096).start().expect("a session");
    trace_scope!("hostile", "outer");
    for n in 0..20 {
        trace_scope!("hostile", "inner", n = n);
    }
    session.flush().expect("flushed");
    for n in 0..20 {
        trace_scope!("hostile", "inner", n = n);
    }
    let mut region = fs::read(region_of(&trace)).expect("read");
    region[48..52].fill(0xff); // the pid: nobody's
    let whole = fs::read(&trace).expect("a trace");
    session.stop().expect("stopped");
    (trace, region, whole)
}

fn damage(region: &mut Vec<u8>, random: &mut Random) {
    // Numbers of the header, those of the place after it where the path and the stream's head stand, numbers
    // of the chunks.
    let offset =
        region.get(32..40).and_then(|bytes| bytes.first_chunk()).map_or(0, |of| u64::from_le_bytes(*of));
    let chunks = usize::try_from(offset).unwrap_or(0).min(region.len());
    let at = match random.below(4) {
        0 => random.below(512),
        1 => 512 + random.below(chunks.saturating_sub(512)),
        _ => chunks + 4096 * random.below(4) + random.below(64),
    } & !3;
    let width = [1, 4, 8][random.below(3)];
    if random.one_in(20) {
        region.truncate(at);
    } else if let Some(place) = region.get_mut(at..at + width) {
        place.copy_from_slice(&random.number().to_le_bytes()[..width]);
    }
}

#[test]
fn a_damaged_region_makes_no_panic_and_harms_no_other_file() {
    for format in FORMATS {
        // In memory: what is recovered is synced.
        let directory = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let (trace, image, whole) = images(directory.path(), format);
        let precious = directory.path().join("precious");
        let region = directory.path().join("region");
        let (mut recovered, mut refused) = (0, 0);
        for index in 0..INPUTS {
            let mut random = Random::new(1, index);
            let mut bytes = image.clone();
            (0..1 + random.below(3)).for_each(|_| damage(&mut bytes, &mut random));
            fs::write(&trace, &whole).expect("written");
            fs::write(&precious, b"precious").expect("written");
            fs::write(&region, &bytes).expect("written");
            let options = RecoverOptions::new().assume_dead(true);
            match recovery::recover(&region, &options) {
                Ok(_) => recovered += 1,
                Err(_) => refused += 1,
            }
            assert_eq!(fs::read(&precious).expect("read"), b"precious", "{index}");
            // How much of it is whole is the region's to say; that it is this trace must be seen in its head.
            let now = fs::read(&trace).expect("a trace");
            assert!(now[..64] == whole[..64], "{index}");
        }
        assert!(recovered > INPUTS / 10 && refused > INPUTS / 10, "{recovered} recovered, {refused} refused");
    }
}
