#!/usr/bin/env bash
# The unit tests of shm and formats under Miri, which finds undefined behaviour. Needs the component `miri`, which only some
# toolchains have; without it nothing is checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! cargo miri --version >/dev/null 2>&1; then
  echo "ci/miri.sh: the component miri is not installed: not checked here"
  exit
fi
# The system's clock and processes are asked for. Regions are on the heap: Miri maps no files, and gives no memory back.
export MIRIFLAGS="-Zmiri-disable-isolation"
cargo miri test -p hairline-formats --lib
cargo miri test -p hairline-shm --lib --test ring -- --skip memory --skip hostile --skip threads --skip a_child --skip backing --skip ledger
