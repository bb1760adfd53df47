#!/usr/bin/env bash
# The tests of the ring and of the whole SDK under AddressSanitizer and ThreadSanitizer; some ten minutes.
#
#   ci/san.sh [address] [thread]
#   ci/san.sh profiles                     only what samples call stacks and allocations, under AddressSanitizer
#   ci/san.sh stress                       only the stress of all at once, under both
#   STRESS_SECONDS=600 STRESS_SEED=7 ci/san.sh stress
#
# The sanitizers are switched on by unstable flags of the stable compiler. The standard library stays as it is, so
# ThreadSanitizer does not see into it: ci/tsan.supp names what it then mistakes for a race.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=x86_64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1
thread_flags="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"

run() {    # SANITIZER FLAGS TEST-ARGUMENTS...
  local name=$1 flags=$2
  shift 2
  echo "=== $name: $*"
  RUSTFLAGS=$flags CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$name" cargo test --target "$target" --locked "$@"
}

# Signals, panics, sessions, threads and snapshots, all at once (tests/stress.rs).
stress_address() {
  export STRESS_SECONDS=${STRESS_SECONDS:-30}
  ASAN_OPTIONS=allocator_may_return_null=1 run asan "-Zsanitizer=address" -p hairline-tests --test stress -- --nocapture
}

stress_thread() {
  export STRESS_SECONDS=${STRESS_SECONDS:-30}
  # A handler that interrupts the allocator does not record there; one that records for the first time in a session allocates.
  TSAN_OPTIONS="report_signal_unsafe=0 suppressions=$PWD/ci/tsan.supp" \
    run tsan "$thread_flags" -p hairline-tests --test stress -- --nocapture
}

stress() {
  stress_address
  stress_thread
}

address() {
  stress_address
  export ASAN_OPTIONS=allocator_may_return_null=1    # a test asks for more memory than there is
  run asan "-Zsanitizer=address" -p hairline-shm --lib --test ring --test window --test fuzz
  run asan "-Zsanitizer=address" -p hairline --lib --test same_code
  # The judge's allocator hooks are its own business: only what records.
  run asan "-Zsanitizer=address" -p hairline-tests --test recording -- loss sessions threads vocabulary signals
  run asan "-Zsanitizer=address" -p hairline-tests --test recorder -- window requests repeated_begins
  profiles
}

# Samples in signal handlers, their unwinding, and the heap profile.
profiles() {
  export ASAN_OPTIONS=allocator_may_return_null=1
  # The tests of the sampler make tables that live as long as the process, and need some CPU time in their two seconds.
  TORTURE_SECONDS=${TORTURE_SECONDS:-10} ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 run asan "-Zsanitizer=address" -p hairline-sampler --lib --test torture
  run asan "-Zsanitizer=address" -p hairline-stacks --lib
  # A session's readers of stacks never free the handle of their thread, since a signal handler may have its address.
  ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 run asan "-Zsanitizer=address" -p hairline-tests --no-default-features --test heap_profile
}

thread() {
  stress_thread
  export TSAN_OPTIONS="allocator_may_return_null=1 suppressions=$PWD/ci/tsan.supp"
  run tsan "$thread_flags" -p hairline-shm --test ring --test window -- --test-threads=1
  run tsan "$thread_flags" -p hairline --lib --test same_code -- --test-threads=1
  # ThreadSanitizer ends a forked child that starts a thread.
  run tsan "$thread_flags" -p hairline-tests --test recording -- --test-threads=1 --skip environment loss sessions volume threads
  run tsan "$thread_flags" -p hairline-tests --test recorder -- --test-threads=1 window requests
}

for sanitizer in "${@:-address thread}"; do
  for each in $sanitizer; do "$each"; done
done
echo "ci/san.sh: clean"
