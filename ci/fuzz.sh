#!/usr/bin/env bash
# Feeds a million damaged traces to each of the two decoders; a minute or two.
#
#   ci/fuzz.sh                           the same inputs as ever
#   FUZZ_INPUTS=100000000 ci/fuzz.sh     more of them
#   FUZZ_SEED=7 ci/fuzz.sh               others
#   ci/fuzz.sh track-event               only one decoder: fxt or track-event
#
# As the code ships, but with the debug assertions and overflow checks of a test build. A failure is printed with
# the input, and with what runs that one again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"    # other flags than the rest
cargo run --release --locked -p hairline-formats --example fuzz -- \
  --inputs "${FUZZ_INPUTS:-1000000}" --seed "${FUZZ_SEED:-1}" "$@"
echo "ci/fuzz.sh: nothing found"
