#!/usr/bin/env bash
# Ten minutes of the flight recorder in each format: a million events a second in a ring of 8 MiB, a snapshot every second, each
# loaded into trace_processor.
#
#   ci/flight.sh                        twenty minutes in all
#   FLIGHT_SECONDS=60 ci/flight.sh      two
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/oracle/setup.sh
export FLIGHT_SECONDS=${FLIGHT_SECONDS:-600}
cargo test --release --locked -p hairline-tests --test recorder -- --nocapture --exact \
  long::every_snapshot_of_a_long_recording_is_whole_and_memory_stays_as_it_is
