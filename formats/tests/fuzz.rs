//! A short run of the fuzzer. `ci/fuzz.sh` is the long one.

mod fuzzer;

use fuzzer::{Format, Fxt, TraceEventJson, TrackEvent};

const SEED: u64 = 1;
const INPUTS: u64 = 20_000;

fn withstands<F: Format>(errors: &[usize]) {
    let tally = fuzzer::run::<F>(SEED, 0..INPUTS).unwrap_or_else(|failure| panic!("{failure}"));
    // A run that reads few items or meets few errors tests little.
    assert!(tally.items > INPUTS && tally.parts > INPUTS, "{tally}");
    assert!(errors.iter().all(|kind| tally.errors[*kind] > INPUTS / 100), "{tally}");
}

#[test]
fn the_reader_of_fxt_withstands_damaged_traces() {
    withstands::<Fxt>(&[0, 1, 2]);
}

#[test]
fn the_reader_of_track_event_withstands_damaged_traces() {
    withstands::<TrackEvent>(&[0, 2, 3, 4, 5]);
}

#[test]
fn the_reader_of_trace_event_json_withstands_damaged_traces() {
    withstands::<TraceEventJson>(&[0, 6, 7, 8]);
}
