#!/usr/bin/env bash
# What an event costs with Hairline and with its peers, in one run (benches/peers/README.md, which says what it needs). Takes minutes to build,
# too: a C++ compiler is needed. Not a part of ci/test.sh, since times on a shared machine say nothing.
#
#   ci/peers.sh [--json] [--quick] [--rows] [--only NAME] [--scopes N]
#   ci/peers.sh --debug [--json] [--quick] [--only NAME]    the tables of one thread, in a debug build
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../benches/peers"

cargo fmt --check
if [ "${1:-}" = --debug ]; then
  shift
  exec cargo run --quiet --locked -- --rows "$@"
fi
cargo build --release --locked
exec cargo run --quiet --release --locked -- "$@"
