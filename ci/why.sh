#!/usr/bin/env bash
# What scheduling and samples cost the example `pipeline`: recorded by `hairline record --sched --sample`, by `perf record` and by `samply
# record`, in turns in one run. Leaves out those that are not installed (Debian: linux-perf; crates: samply). Not a part of ci/test.sh, since
# times on a shared machine say nothing.
#
#   ci/why.sh [ROUNDS]      11 by default
#
# Prints medians: the time and the CPU time of the program itself, and the time until the recorder was done, with the trace written. Hairline
# has the program's scopes in its trace too, and the names of all functions: perf and samply look these up when the trace is shown.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --release -q -p hairline-cli
cargo build --release -q -p hairline-examples --example pipeline
exec ci/why/compare.py "${CARGO_TARGET_DIR:-target}/release" "${1:-11}"
