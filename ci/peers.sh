#!/usr/bin/env bash
# What an event costs with Hairline and with its peers, in one run (benches/peers/README.md, which says what it needs). Takes minutes to build,
# too: a C++ compiler is needed. Not a part of ci/test.sh, since times on a shared machine say nothing.
#
#   ci/peers.sh [--json] [--quick] [--rows] [--only NAME] [--scopes N]
#   ci/peers.sh --debug [--json] [--quick] [--only NAME]    the tables of one thread, in a debug build
#   ci/peers.sh --tasks [ROUNDS]                            what a recorded task of tokio costs; 11 rounds by default
#   ci/peers.sh --delays                                    polls and their delays after the wakes, beside those of dial9
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../benches/peers"

cargo fmt --check
if [ "${1:-}" = --tasks ]; then
  cd tasks
  cargo fmt --check
  # dial9 needs this flag to see the tasks that others spawn, and tokio-console to see any. That of tokio-console makes
  # tokio itself slower, so it is another build.
  export RUSTFLAGS="${RUSTFLAGS:-} --cfg tokio_unstable"
  cargo run --quiet --release --locked -- "${2:-11}"
  exec cargo run --quiet --release --locked --features console -- "${2:-11}"
fi
if [ "${1:-}" = --delays ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  (cd tasks && RUSTFLAGS="${RUSTFLAGS:-} --cfg tokio_unstable" cargo run --quiet --release --locked -- --delays "$folder")
  cd ../.. # the polls are slices of threads, the times in the queue are those of lives
  cargo run --quiet --release --locked -p hairline-cli -- query "
    select 'Hairline: ' || (select count(*) from slice where name = 'task' and tid is not null) || ' polls, ' || count(*)
      || ' delays, median ' || median(duration) || ' ns, 99 % ' || percentile(duration, 99) || ' ns' as hairline
    from slice where name = 'queued'" "$folder/hairline.fxt"
  exit
fi
if [ "${1:-}" = --debug ]; then
  shift
  exec cargo run --quiet --locked -- --rows "$@"
fi
cargo build --release --locked
exec cargo run --quiet --release --locked -- "$@"
