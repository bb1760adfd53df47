#!/usr/bin/env bash
# Feeds a million damaged traces to each of the three decoders, and a million damaged regions to the crash recovery; some
# five minutes.
#
#   ci/fuzz.sh                           the same inputs as ever
#   FUZZ_INPUTS=100000000 ci/fuzz.sh     more of them
#   FUZZ_SEED=7 ci/fuzz.sh               others
#   ci/fuzz.sh track-event               only one: fxt, track-event, trace-event-json or recover
#
# As the code ships, but with the debug assertions and overflow checks of a test build. A failure is printed with
# the input, and with what runs that one again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"    # other flags than the rest
fuzz() {    # PACKAGE EXAMPLE ARGUMENTS...
  cargo run --release --locked -p "$1" --example "$2" -- --inputs "${FUZZ_INPUTS:-1000000}" --seed "${FUZZ_SEED:-1}" "${@:3}"
}

case "${1:-}" in
  recover) fuzz hairline-shm fuzz_recover "${@:2}" ;;
  fxt | track-event | trace-event-json) fuzz hairline-formats fuzz "$@" ;;
  *)
    fuzz hairline-formats fuzz "$@"
    fuzz hairline-shm fuzz_recover "$@"
    ;;
esac
echo "ci/fuzz.sh: nothing found"
