#!/usr/bin/env bash
# What scheduling and samples cost the example `pipeline`: recorded by `hairline record --sched --sample`, by
# a session of its own, by `perf record` and by `samply record`, in turns in one run. Those that are not
# installed are left out, and named (Debian: linux-perf; `cargo install samply`). Not a part of ci/test.sh,
# since times on a shared machine say nothing.
#
#   ci/why.sh [ROUNDS]      11 by default
#
# Prints, for each recorder, the minimum and the median of the ratios to the same round's run that nothing
# records: the program's own time and CPU time, the CPU time of program and recorder together, and the time
# until the recorder was done. Then the time of one recording with the names of all functions looked up:
# Hairline does that before it is done, perf and samply when the trace is shown.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --release -q -p hairline-cli
cargo build --release -q -p hairline-examples --features hairline/sampling --example pipeline
exec ci/why/compare.py "${CARGO_TARGET_DIR:-target}/release" "${1:-11}"
