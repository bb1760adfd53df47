#!/usr/bin/env bash
# The tests of the ring and of the whole SDK under AddressSanitizer and ThreadSanitizer; some ten minutes.
#
#   ci/san.sh [address] [thread]
#
# The sanitizers are switched on by unstable flags of the stable compiler. The standard library stays as it is, so
# ThreadSanitizer does not see into it: ci/tsan.supp names what it then mistakes for a race.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=x86_64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1

run() {    # SANITIZER FLAGS TEST-ARGUMENTS...
  local name=$1 flags=$2
  shift 2
  echo "=== $name: $*"
  RUSTFLAGS=$flags CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$name" cargo test --target "$target" --locked "$@"
}

address() {
  export ASAN_OPTIONS=allocator_may_return_null=1    # a test asks for more memory than there is
  run asan "-Zsanitizer=address" -p hairline-shm --lib --test ring --test window --test fuzz
  run asan "-Zsanitizer=address" -p hairline --lib --test same_code
  # The judge's allocator hooks are its own business: only what records.
  run asan "-Zsanitizer=address" -p hairline-tests --test first_light -- loss sessions threads vocabulary signals
  run asan "-Zsanitizer=address" -p hairline-tests --test recorder -- window requests told_again
}

thread() {
  export TSAN_OPTIONS="allocator_may_return_null=1 suppressions=$PWD/ci/tsan.supp"
  local flags="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg hairline_tsan"
  run tsan "$flags" -p hairline-shm --test ring --test window -- --test-threads=1
  run tsan "$flags" -p hairline --lib --test same_code -- --test-threads=1
  run tsan "$flags" -p hairline-tests --test first_light -- --test-threads=1 loss sessions volume threads
  run tsan "$flags" -p hairline-tests --test recorder -- --test-threads=1 window requests
}

for sanitizer in "${@:-address thread}"; do
  for each in $sanitizer; do "$each"; done
done
echo "ci/san.sh: clean"
