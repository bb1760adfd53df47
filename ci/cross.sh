#!/usr/bin/env bash
# The other targets, from an x86-64 Debian 12. Says what to install where something is missing.
#
#   ci/cross.sh [--long]        check, aarch64 and windows; --long: 100 kills instead of 20, 500 children
#                               of forks instead of 100
#   ci/cross.sh short           what ci/test.sh runs: ci/cross, an application, type-checks for three targets,
#                               and runs under qemu and wine in both formats
#   ci/cross.sh setup           installs the compilers, standard libraries and emulators (root; 1 minute, 200 MB)
#   ci/cross.sh check [TARGET..] the SDK, the application and the tool type-check for each target without a warning
#   ci/cross.sh [--long] aarch64 runs the application, and tests, under qemu; the judge on this machine reads the traces
#   ci/cross.sh [--long] windows runs the application and the tool under wine, as far as wine goes
#
# qemu-user emulates the instructions, not the memory model. Orderings are argued in the code, and modelled by loom.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TOOLS=${CROSS_TOOLS:-/opt/cross}
if [ "${1:-}" = --long ]; then
  shift
  export CROSS_KILLS=${CROSS_KILLS:-100} CROSS_CHILDREN=${CROSS_CHILDREN:-500}
fi
TARGETS=(aarch64-unknown-linux-gnu x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-apple-darwin
  wasm32-unknown-unknown wasm32-wasip1 i686-unknown-linux-gnu x86_64-unknown-freebsd)

setup() {
  dpkg --add-architecture arm64
  apt-get update -qq
  apt-get install -y -qq gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user mingw-w64 wine64
  mkdir -p "$TOOLS"
  (
    cd "$TOOLS"
    apt-get download -qq rustc-web libstd-rust-web-1.96 libstd-rust-web-dev:amd64 libstd-rust-web-dev:arm64 \
      libstd-rust-web-1.96:arm64 rust-web-src libllvm22
    for package in *.deb; do dpkg -x "$package" root; done
  )
}

# The compiler of the other targets. Cargo is that of this machine.
tools() {
  local root=$TOOLS/root/usr
  export LD_LIBRARY_PATH=$root/lib/x86_64-linux-gnu
  export RUSTC=$root/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS="--sysroot $root"
  export __CARGO_TESTS_ONLY_SRC_ROOT=$(echo "$root"/src/rustc-*/library)
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
  export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
  export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=1
  export CROSS_TARGET_DIR=${CROSS_TARGET_DIR:-${CARGO_TARGET_DIR:-target}/cross} # `aarch64` calls this script again
  export CARGO_TARGET_DIR=$CROSS_TARGET_DIR
}

# The library of a target that the packages do not have is built with the program.
std_of() {
  case "$1" in
    aarch64-unknown-linux-gnu) ;;
    *windows*) echo -Zbuild-std=std,panic_unwind ;;
    *) echo -Zbuild-std=std,panic_abort ;;
  esac
}

# checked TARGET ARGUMENT..: type-checks for a target. A warning is an error. Nothing is linked, so C code (zstd, in the
# tool) needs no compiler for the target.
checked() {
  local target=$1 of=${1//-/_}
  shift
  # shellcheck disable=SC2046
  RUSTFLAGS="$RUSTFLAGS -D warnings" env "CC_$of=true" "AR_$of=true" cargo check --quiet --locked $(std_of "$target") --target "$target" "$@"
}

check() {
  tools
  local target began
  for target in "$@"; do
    began=$SECONDS
    checked "$target" -p hairline-cross
    checked "$target" -p hairline -p hairline-perf
    checked "$target" -p hairline --all-features
    case "$target" in
      wasm*) ;; # nothing to open a trace with, and no sockets
      *) checked "$target" -p hairline-cli ;;
    esac
    echo "$target: no warning, $((SECONDS - began)) s"
  done
}

# judge TRACE SQL EXPECTED: asks trace_processor, which must have no complaint.
judge() {
  local found
  found=$(env -u LD_LIBRARY_PATH node tests/oracle/query.mjs --strict "$1" "$2") || { echo "ci/cross.sh: $1: the judge complains"; exit 1; }
  [[ $found == $3 ]] || { printf 'ci/cross.sh: %s: %s\n  found    %s\n  expected %s\n' "$1" "$2" "$found" "$3"; exit 1; }
}

SLICES="select group_concat(name, ',') as n from (select name from slice where category = 'app' or name = 'traced' order by name)"
# The ring has 64 chunks: more threads than that, if those of idle threads were recalled.
TURNS="select count(distinct track_id) > 150 as many from slice where name = 'in turn'"
# Each of the two threads counts by two: one that lost no step has as many as its last number says. The importer
# names the argument differently for each format.
KEPT="select count(*) as threads, sum(whole) as whole, min(steps) > 10 as many from (select count(*) as steps, count(*) = (max(n) - min(n)) / 2 + 1 as whole from (select track_id, coalesce(extract_arg(arg_set_id, 'debug.n'), extract_arg(arg_set_id, 'n')) as n from slice where name = 'step') group by track_id)"

# programs PROGRAM..: records with each command of ci/cross in both formats, and asks the judge.
programs() {
  local out format
  out=$(mktemp -d)
  for format in pftrace fxt; do
    "$@" record "$out/record.$format"
    judge "$out/record.$format" "$SLICES" '*a message,guard,instant,interval,job,made at run time, 24 bytes,on the worker,scope,traced*'
    HAIRLINE=$out/environment.$format "$@" events
    judge "$out/environment.$format" "$SLICES" '*a message,guard,instant,interval,job,made at run time, 24 bytes,on the worker,scope,traced*'
    "$@" window "$out/window.$format"
    judge "$out/window.$format" "select count(*) > 1000 as many from slice where name = 'step'" '*1*'
    echo "$format: recorded, and read by the judge"
  done
  rm -r "$out"
}

# crowd PROGRAM..: more threads than chunks.
crowd() {
  local out
  out=$(mktemp -d)
  "$@" crowd "$out/crowd.pftrace"
  judge "$out/crowd.pftrace" "$TURNS" '*1*'
  rm -r "$out"
}

# kills N PROGRAM..: kills the program N times, recovers its trace and asks the judge.
kills() {
  local n=$1 out format i pid
  shift
  out=$(mktemp -d)
  for ((i = 0; i < n; i++)); do
    format=pftrace
    ((i % 2)) && format=fxt
    : >"$out/said"
    "$@" forever "$out/killed.$format" >"$out/said" &
    pid=$!
    until grep -q recording "$out/said"; do
      kill -0 "$pid" 2>/dev/null || fails "kill $i: the program ended before it recorded"
      sleep 0.05
    done
    sleep "0.$((i * 7 % 9 + 1))"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    "$@" recover "$(sed -n "s/^recording \([0-9]*\).*/\1/p" "$out/said")" >"$out/recovered"
    grep -q '^1 recovered' "$out/recovered" || { echo "ci/cross.sh: kill $i: $(cat "$out/recovered")"; exit 1; }
    ((i % 10 > 1)) || judge "$out/killed.$format" "$KEPT" '*2*2*1*'
    rm "$out/killed.$format"
  done
  rm -r "$out"
  echo "$n kills: each trace recovered"
}

# needs COMMAND WHAT: whether it is there; else a line that says so.
needs() {
  command -v "$1" >/dev/null || { echo "ci/cross.sh: not run: $1 is missing ('ci/cross.sh setup' installs $2)"; return 1; }
}

aarch64() {
  tools
  needs qemu-aarch64 qemu-user || return 0
  unshare --user --map-root-user --mount mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc 2>/dev/null ||
    { echo "ci/cross.sh: not run: no binfmt_misc of one's own here (Linux 6.7, user namespaces)"; return; }
  local target=aarch64-unknown-linux-gnu
  cargo build --locked -p hairline-cross --release --target $target
  tests --no-run
  # The kernel starts qemu for the programs that the tests start. Only in this namespace: the machine stays as it is.
  unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs tmpfs /dev/shm # no other test recovers what is left there
    mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc
    echo ":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$(command -v qemu-aarch64):F" \
      >/proc/sys/fs/binfmt_misc/register
    export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
    "$0" emulated' "$PWD/ci/cross.sh"
}

# The tests that are left out under qemu-user 7.2, and what it lacks. For the third reason only the newest thread of a
# process forks in the torture of forks. It:
LEFT_OUT=(
  # says that it wipes memory at a fork (MADV_WIPEONFORK), and does not. So no children without fork handlers.
  a_child_without_fork_handlers_finds_the_pool_empty
  # has a counter with steps of 1 us
  clocks::each_time_of_a_thousand_starts_is_within_1_us_from_the_first_event_on
  clocks::times_are_those_of_the_systems_clock_for_others_too
  # ends itself by an assertion of its own (qemu_plugin_vcpu_init_hook) where a forked child starts a thread, and its
  # parent had threads that were newer than the one that forked
  environment::own_sessions::a_forked_child_that_starts_a_session_has_the_environments_for_itself
)

# tests [--no-run]: the tests that run under qemu.
tests() {
  local target=aarch64-unknown-linux-gnu name skip=()
  for name in "${LEFT_OUT[@]}"; do skip+=(--skip "$name"); done
  cargo test --locked --target $target "$@" -p hairline-shm -p hairline-formats -p hairline --all-features --lib -- "${skip[@]}"
  # A sample's registers and return addresses. The rest of that crate asks for more of a system than qemu-user has.
  cargo test --locked --target $target "$@" -p hairline-sampler -p hairline-stacks --lib -- machine:: chain:: ring:: watch:: a_stack_of
  cargo test --locked --target $target "$@" -p hairline-tests --all-features --test vocabulary --test recording \
    -- "${skip[@]}"
  TORTURE_NEWEST=1 TORTURE_KINDS=fork,spawn,exec TORTURE_CHILDREN=${CROSS_CHILDREN:-100} \
    cargo test --locked --target $target "$@" -p hairline-tests --all-features --test reliability -- forking::
}

# What runs under qemu, in that namespace.
emulated() {
  tools
  local program=$CARGO_TARGET_DIR/aarch64-unknown-linux-gnu/release/hairline-cross
  programs "$program"
  crowd "$program"
  kills "${CROSS_KILLS:-20}" "$program"
  tests
}

# Builds the application, and PACKAGE.. beside it, for Windows, and starts wine. Sets `folder` and `wine`.
build_for_wine() {
  local target=x86_64-pc-windows-gnu
  cargo build --quiet --locked -p hairline-cross "$@" "$(std_of $target)" --release --target $target
  folder=$CARGO_TARGET_DIR/$target/release
  x86_64-w64-mingw32-gcc -shared -o "$folder/bcryptprimitives.dll" ci/cross/bcryptprimitives.c -ladvapi32 -Wl,--kill-at
  unset LD_LIBRARY_PATH
  export WINEDEBUG=-all WINEPREFIX=${WINEPREFIX:-$(realpath "$folder")/wine}
  wine=$(command -v wine64 || command -v wine)
}

windows() {
  tools
  needs wine wine64 || return 0
  local folder wine
  build_for_wine -p hairline-cli
  # One server for all: it ends with the last program, and a program that starts at that moment with it.
  trap 'wineserver --kill' EXIT
  wineserver --persistent
  programs "$wine" "$folder/hairline-cross.exe"
  crowd "$wine" "$folder/hairline-cross.exe"
  kills "${CROSS_KILLS:-10}" "$wine" "$folder/hairline-cross.exe"
  tool "$wine" "$folder"
}

# fails WHAT: ends with what went wrong.
fails() {
  echo "ci/cross.sh: $1" >&2
  exit 1
}

# tool WINE FOLDER: the tool on Windows. Records, reads and changes traces, and looks into a process.
tool() {
  local folder=$2 run=("$1" "$2/hairline.exe") format other trace port
  local out
  out=$(mktemp -d)
  for format in pftrace fxt; do
    trace=$out/recorded.$format
    "${run[@]}" record -o "$trace" -- "$folder/hairline-cross.exe" events 2>"$out/said" || fails "record: $(cat "$out/said")"
    judge "$trace" "$SLICES" '*a message,guard,instant,interval,job,made at run time, 24 bytes,on the worker,scope,traced*'
    "${run[@]}" validate "$trace" >/dev/null || fails "validate: $format"
    for other in pftrace fxt json; do
      "${run[@]}" convert "$trace" "$out/to.$other" 2>/dev/null || fails "convert: $format to $other"
      judge "$out/to.$other" "$SLICES" '*a message,guard,instant*on the worker,scope,traced*'
    done
    "${run[@]}" convert - - --to fxt <"$trace" 2>/dev/null | cmp - "$out/to.fxt" || fails "convert: not the same from stdin to stdout"
    grep -q 'on the worker' <("${run[@]}" stats "$trace") || fails "stats: $format"
    grep -q 'on the worker' <("${run[@]}" flame "$trace") || fails "flame: $format"
    grep -q '"name":' <("${run[@]}" explain "$trace" --json) || fails "explain: $format"
    "${run[@]}" flame "$trace" --svg -o "$out/flame.svg" && grep -q '<svg' "$out/flame.svg" || fails "flame --svg: $format"
    viewed "$trace" "$out" "${run[@]}"
    looked "$format" "$out" "${run[@]}"
  done
  "${run[@]}" merge "$out/recorded.pftrace" "$out/recorded.fxt" -o "$out/both.pftrace" 2>/dev/null || fails merge
  judge "$out/both.pftrace" "select count(*) as n from slice where name = 'scope'" '*2*'
  # What Windows lacks is an error, or a note beside the trace.
  "${run[@]}" record --sched --sample -o "$out/more.pftrace" -- "$folder/hairline-cross.exe" events 2>"$out/said"
  grep -q 'no context switches: this system has no perf events' "$out/said" || fails "record --sched: $(cat "$out/said")"
  grep -q 'no samples: this system has no perf events' "$out/said" || fails "record --sample: $(cat "$out/said")"
  "${run[@]}" record -o "$out/none.pftrace" -- "$out/none.exe" 2>/dev/null && fails "record: a program that does not exist"
  [ $? = 127 ] || fails "record: not 127 for a program that does not exist"
  "${run[@]}" stats "$out" 2>"$out/said" && fails "stats: a folder"
  grep -q 'it is a folder' "$out/said" || fails "stats: $(cat "$out/said")"
  rm -r "$out"
  echo "the tool: records, reads and changes traces, and looks into a process"
}

# viewed TRACE FOLDER TOOL..: `view` serves the trace to who has its link, and to nobody else.
viewed() {
  local trace=$1 out=$2 pid address
  shift 2
  : >"$out/said"
  "$@" view --no-open --port 0 "$trace" >"$out/said" &
  pid=$!
  until grep -q 'url=' "$out/said"; do
    kill -0 $pid || fails view
    sleep 0.1
  done
  address=$(sed -n 's/.*url=\([^[:space:]]*\).*/\1/p' "$out/said")
  curl --silent --fail --output /dev/null "${address%/*/*}/" && fails "view: answers without the token"
  curl --silent --fail "$address" | cmp - "$trace" || fails "view: not the trace"
  wait $pid || fails "view: not 0 at the end"
}

# looked FORMAT FOLDER TOOL..: what the tool says of a living process and of a killed one.
looked() {
  local format=$1 out=$2 pid process
  shift 2
  : >"$out/said"
  "$1" "${2%hairline.exe}hairline-cross.exe" forever "$out/living.$format" >"$out/said" &
  process=$!
  until grep -q recording "$out/said"; do
    kill -0 "$process" 2>/dev/null || fails "looked: the program ended before it recorded"
    sleep 0.05
  done
  pid=$(sed -n 's/^recording \([0-9]*\).*/\1/p' "$out/said")
  sleep 0.5
  grep -Eq "^ *$pid alive " <("$@" ls) || fails "ls: $("$@" ls)"
  "$@" snapshot "$pid" -o "$out/snapshot.$format" >"$out/said" || fails "snapshot: $(cat "$out/said")"
  judge "$out/snapshot.$format" "$KEPT" '*2*2*1*'
  grep -q "^$pid .* slices/s" <("$@" top --once --interval 0.3 "$pid") || fails top
  "$@" recover "$pid" 2>/dev/null && fails "recover: of a living process"
  kill -9 $process
  wait $process 2>/dev/null || true
  grep -Eq "^ *$pid dead " <("$@" ls) || fails "ls: $("$@" ls)"
  "$@" recover "$pid" >"$out/said" || fails "recover: $(cat "$out/said")"
  judge "$out/living.$format" "$KEPT" '*2*2*1*'
  rm "$out/living.$format" "$out/snapshot.$format"
}

# What every run of ci/test.sh does, where the tools are.
short() {
  tools
  local target folder wine
  for target in aarch64-apple-darwin wasm32-unknown-unknown i686-unknown-linux-gnu; do
    checked $target -p hairline-cross
    echo "$target: no warning"
  done
  if needs qemu-aarch64 qemu-user; then
    target=aarch64-unknown-linux-gnu
    cargo build --quiet --locked -p hairline-cross --release --target $target
    echo "$target, under qemu"
    programs qemu-aarch64 -L /usr/aarch64-linux-gnu "$CARGO_TARGET_DIR/$target/release/hairline-cross"
  fi
  if needs wine wine64; then
    build_for_wine
    echo "x86_64-pc-windows-gnu, under wine"
    programs "$wine" "$folder/hairline-cross.exe"
  fi
}

# timed STEP ARGUMENT..
timed() {
  local began=$SECONDS
  ("$@")
  echo "ci/cross.sh: $1: $((SECONDS - began)) s"
}

if [ "${1:-}" != setup ] && [ ! -x "$TOOLS/root/usr/bin/rustc" ]; then
  echo "ci/cross.sh: not checked: 'ci/cross.sh setup' installs what is missing"
  exit 0
fi
case "${1:-all}" in
  all)
    timed check "${TARGETS[@]}"
    timed aarch64
    timed windows ;;
  setup) setup ;;
  check) if [ $# -gt 1 ]; then timed "$@"; else timed check "${TARGETS[@]}"; fi ;;
  emulated) emulated ;;
  short | aarch64 | windows) timed "$1" ;;
  *)
    echo "ci/cross.sh: short, setup, check, aarch64 or windows, not $1" >&2
    exit 1 ;;
esac
