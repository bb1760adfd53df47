#!/usr/bin/env bash
# Kills a recording program 10,000 times at random moments, recovers each trace and looks whether all that was committed
# is there; some half an hour. Every 50th trace is also put before Perfetto's trace_processor.
#
#   ci/torture.sh                          ten thousand kills
#   TORTURE_KILLS=500 ci/torture.sh        fewer
#   TORTURE_FROM=10000 ci/torture.sh       others: a kill's moment and orders follow from its number
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -d tests/oracle/perfetto-ui ] || [ -n "${PERFETTO_UI_DIR:-}" ] || tests/oracle/setup.sh
TORTURE_KILLS=${TORTURE_KILLS:-10000} cargo test -p hairline-tests --release --locked --test reliability -- --nocapture torture
echo "ci/torture.sh: nothing lost"
