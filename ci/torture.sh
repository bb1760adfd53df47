#!/usr/bin/env bash
# Ends programs, and multiplies them, at random moments, and looks whether each trace is whole. Every 50th trace is also put
# before Perfetto's trace_processor. Some half an hour each.
#
#   ci/torture.sh                          ten thousand kills: all that was committed is there after recovery
#   TORTURE_KILLS=500 ci/torture.sh        fewer
#   TORTURE_FROM=10000 ci/torture.sh       others: a kill's moment and orders follow from its number
#
#   ci/torture.sh forks                    ten thousand children of every kind: none hangs, and no trace is damaged
#   TORTURE_CHILDREN=500 ci/torture.sh forks
#   TORTURE_KINDS=fork,clone ci/torture.sh forks    of these kinds alone; tests/src/bin/forker/main.rs lists them
#
#   ci/torture.sh restarts                 two thousand kills of programs that are started again at the same path
#   TORTURE_RESTARTS=100 ci/torture.sh restarts
#
#   ci/torture.sh signals                  ten minutes of samples by signals, beside all that a program does with signals,
#   TORTURE_SECONDS=10 ci/torture.sh signals       threads and children
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -d tests/oracle/perfetto-ui ] || [ -n "${PERFETTO_UI_DIR:-}" ] || tests/oracle/setup.sh
case "${1:-kills}" in
  kills)
    export TORTURE_KILLS=${TORTURE_KILLS:-10000}
    tests=torture:: ;;
  forks)
    export TORTURE_CHILDREN=${TORTURE_CHILDREN:-10000}
    tests=forking:: ;;
  restarts)
    export TORTURE_RESTARTS=${TORTURE_RESTARTS:-2000}
    tests=restarts:: ;;
  signals)
    export TORTURE_SECONDS=${TORTURE_SECONDS:-150}
    cargo test -p hairline-sampler --release --locked --test torture
    exit ;;
  *)
    echo "ci/torture.sh: kills, forks, restarts or signals, not $1" >&2
    exit 1 ;;
esac
cargo test -p hairline-tests --release --locked --test reliability -- --nocapture "$tests"
echo "ci/torture.sh: nothing lost"
