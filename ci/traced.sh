#!/bin/sh
# Perfetto's own tracing service records programs with Hairline: kills, restarts, clones, triggers, sessions at the
# same time, a hostile service; as the code ships, so many times (1). ci/test.sh runs each once where the service
# could be unpacked (tests/oracle/traced.sh).
#
#   ci/traced.sh [TIMES]
set -eu
cd "$(dirname "$0")/.."
tests/oracle/traced.sh
n=0
while [ "$n" -lt "${1:-1}" ]; do
  cargo test -p hairline-tests --all-features --release --locked --test reliability -- traced::
  n=$((n + 1))
done
