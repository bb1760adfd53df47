#!/usr/bin/env bash
# Everything that must hold, on a machine with Rust, Node (>= 18) and Python with pip:
#
#   ci/test.sh                all steps, in the order below; stops at the first that fails
#   ci/test.sh lint loom      only these
#
# ci/cross.sh does more for other targets than the step `cross`.
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

steps=(judge format lint test release off unstable loom docs examples instructions cross deny)

# The width of comments is counted in characters.
export LC_ALL=C.UTF-8
# Tests record millions of events: lightly optimised, with the debug assertions and overflow checks of a test build.
export CARGO_PROFILE_TEST_OPT_LEVEL=${CARGO_PROFILE_TEST_OPT_LEVEL:-1}
# A crate is compiled in several units. To optimise across them takes a quarter of the time of all compiling.
export CARGO_PROFILE_TEST_LTO=${CARGO_PROFILE_TEST_LTO:-off}
# A machine may have little disk: without the compiler's own caches and the types of variables, a third is needed.
export CARGO_INCREMENTAL=0
export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-line-tables-only}
# Cargo chooses the features of a library by the packages that it is to build: three steps name the same, so that
# each library is compiled once for them. The command and the readers of traces are not among them.
export RELEASE_PACKAGES="-p hairline-tests -p hairline-examples -p hairline-benches --no-default-features
  --features hairline-examples/locks,hairline-examples/tokio,hairline-examples/web"

step_judge() {      # Perfetto's trace_processor, which the tests ask about every trace
  tests/oracle/setup.sh
  tests/oracle/traced.sh || echo "Perfetto's tracing service cannot be unpacked here: its tests are left out"
  node tests/oracle/judge.mjs </dev/null
}

step_format() {     # rustfmt has nothing to change, comments are not too wide, and no trace was committed
  cargo fmt --all --check
  ! git ls-files -z | xargs -0 du --threshold=1M -- 2>/dev/null | grep . || return 1
  # rustfmt leaves comments as they are. Diagrams, tables, code and addresses may be wider than 110 columns.
  ! git grep -hE '^ *//.{109}' -- '*.rs' | grep -E '.{111}' | grep -vE '[|=]|->|https?:|[^ ]  +[^ ]' | grep . || return 1
}

step_lint() {       # the files form layers; clippy has nothing to say: all features, and those a user has by default
  python3 ci/layers.py --self-test
  python3 ci/layers.py
  cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
  cargo clippy -p hairline --all-targets --locked -- -D warnings
  # Each feature alone: in the workspace's build, other packages switch on what a feature has forgotten.
  local feature
  for feature in recovery subscriber tracing log metrics futures compress serde sampling sync lock_api; do
    cargo clippy -p hairline --features "$feature" --locked -- -D warnings
  done
  for feature in '' read json; do
    cargo clippy -p hairline-formats --no-default-features --features "$feature" --locked -- -D warnings
  done
  cargo clippy -p hairline-shm --no-default-features --locked -- -D warnings
  # Cargo locks whatever a manifest names for any platform and any `cfg`.
  if cargo tree -p hairline --locked --edges normal,build --target all --prefix none | grep -w loom; then
    echo "loom is in the lock file of every program that uses Hairline" >&2
    return 1
  fi
  # ci/san.sh says nothing of certain functions, by their paths. One that has moved would be a false alarm.
  local path
  for path in $(sed -n 's/^race:hairline_//p' ci/tsan.supp); do
    path=${path//:://}
    grep -q "fn ${path##*/}(" "${path%%/*}/src/$(dirname "${path#*/}").rs" || { echo "ci/tsan.supp: no ${path##*/}" >&2; return 1; }
  done
  # The peers, the fleet's generator and the programs of other people are not built here, but they could be.
  cargo update --quiet --workspace --locked --manifest-path benches/peers/Cargo.toml
  cargo update --quiet --workspace --locked --manifest-path benches/peers/tasks/Cargo.toml
  cargo update --quiet --workspace --locked --manifest-path benches/peers/profilers/Cargo.toml
  cargo update --quiet --workspace --locked --manifest-path ci/fleet/generator/Cargo.toml
  cargo update --quiet --workspace --locked --manifest-path ci/programs/Cargo.toml
}

step_test() {       # all tests, debug assertions on
  # Programs and examples are not built as tests once more: they have none.
  ! git grep -l '#\[test\]' -- '*src/bin/*.rs' '*examples/*.rs' tool/cli/src/main.rs ci/cross/src/main.rs || return 1
  ci/side_by_side.py --workspace --all-features --locked --lib --test '*'
  # The models of shm include its files, and so their examples.
  cargo test --quiet --doc --workspace --exclude hairline-shm-models --all-features --locked
}

step_release() {    # what records is tested once more, with the code as it ships; what needs the command is not
  # shellcheck disable=SC2086 # words
  ci/side_by_side.py $RELEASE_PACKAGES --release --locked $(printf -- '--test %s ' \
    asynchronous heap heap_always heap_profile locks many_strings metrics metrics_limit recorder recording reliability \
    stress tokio tracing_allocator vocabulary)
  ci/side_by_side.py -p hairline-sampler --release --locked
}

step_off() {        # the feature `enable` off: everything still builds, and costs nothing
  cargo clippy -p hairline --no-default-features --all-targets --locked -- -D warnings
  cargo test -p hairline --no-default-features --locked
  # With all features that have an off side.
  cargo clippy -p hairline --no-default-features --features compress,futures,http,lock_api,log,metrics,recovery,serde,tracing --all-targets --locked -- -D warnings
  cargo test -p hairline --no-default-features --features compress,futures,http,lock_api,log,metrics,recovery,serde,tracing --locked
  cargo clippy -p hairline-tokio --no-default-features --all-targets --locked -- -D warnings
  cargo test -p hairline-tokio --no-default-features --locked
}

step_unstable() {   # with `--cfg tokio_unstable`, all tasks of a runtime are recorded, beside what tokio counts
  # Other flags than the rest, hence a target directory of its own. Most of the time is that of the compiler.
  (
    export RUSTFLAGS="--cfg tokio_unstable" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/unstable"
    export CARGO_PROFILE_TEST_OPT_LEVEL=0
    cargo clippy -p hairline-tokio --all-targets --locked -- -D warnings # without `schedule-latency`
    cargo test -p hairline-tests --no-default-features --features hairline-tokio/schedule-latency --test tokio \
      --locked -- unstable --nocapture
  )
}

step_loom() {       # the models of the shared-memory protocol, and of the SDK's own atomics
  # All interleavings of up to three preemptions, which bounds the time; set LOOM_MAX_PREEMPTIONS to look further.
  # Other flags than the rest, hence a target directory of its own.
  # Each model maps and unmaps stacks for every interleaving: threads of one process would wait for each other.
  LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3} \
  RUSTFLAGS="--cfg loom" \
  CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
  ALONE=1 \
    ci/side_by_side.py -p hairline-shm-models --release --locked --test loom --test sdk
}

step_docs() {       # the documentation builds without a warning, and names only what is there
  python3 ci/vocabulary.py
  RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked
}

step_examples() {   # each example runs, and the judge has nothing against its trace
  ci/examples.sh
}

step_instructions() { # no event executes more than it may: counts by callgrind, which do not depend on the machine
  ci/instructions.sh
}

step_cross() {      # other targets, where their compilers and emulators are
  ci/cross.sh short
}

step_deny() {       # licences, sources and duplicates of the dependencies
  if cargo deny --version >/dev/null 2>&1; then
    cargo fetch --locked # packages of other platforms too, which nothing here builds
    cargo deny --offline --all-features check licenses bans sources
  else
    echo "cargo-deny is not installed: not checked here"
  fi
}

require() {
  command -v "$1" >/dev/null && return
  echo "ci/test.sh: $1 is needed ($2)" >&2
  exit 1
}

current=start
report() {
  local status=$?
  [ "$status" -eq 0 ] || printf '\nci/test.sh: FAILED in step "%s" (exit %d)\n' "$current" "$status" >&2
}
trap report EXIT

require cargo "a Rust toolchain with rustfmt and clippy"
require node "apt-get install nodejs"
require python3 "apt-get install python3 python3-pip"

[ $# -gt 0 ] || set -- "${steps[@]}"
for current in "$@"; do
  declare -F "step_$current" >/dev/null || { echo "ci/test.sh: the steps are: ${steps[*]}" >&2; exit 1; }
done
for current in "$@"; do
  printf '\n=== %s\n' "$current"
  began=$SECONDS
  "step_$current"
  printf '=== %s: ok, %d s\n' "$current" $((SECONDS - began))
done
printf '\nci/test.sh: all of it passed in %d s: %s\n' "$SECONDS" "$*"
