//! A short run of the fuzzer of `recover` (`ci/fuzz.sh` is the long one).

#![cfg(not(loom))]

mod fuzzer;

const SEED: u64 = 1;
const INPUTS: u64 = 20_000;

#[test]
fn recover_withstands_damaged_regions() {
    let tally = fuzzer::run(SEED, 0..INPUTS).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(tally.inputs, INPUTS);
    // The run proves something only if it reaches all outcomes.
    let least = INPUTS / 10;
    assert!(tally.read > least && tally.refused > least, "{tally}");
    assert!(tally.fragments > least && tally.damaged > least, "{tally}");
}
