#!/usr/bin/env bash
# The other targets, from an x86-64 Debian 12. Says what to install where something is missing.
#
#   ci/cross.sh [--long]        check, aarch64 and windows; --long: 100 kills and 100 forked children instead of 20
#   ci/cross.sh setup           installs the compilers, standard libraries and emulators (root; 1 minute, 200 MB)
#   ci/cross.sh check [TARGET..] the SDK and ci/cross, an application, type-check for each target without a warning
#   ci/cross.sh aarch64         runs it, and tests, under qemu; the judge on this machine reads the traces
#   ci/cross.sh windows         runs it under wine, as far as wine goes
#
# qemu-user emulates the instructions, not the memory model. Orderings are argued in the code, and modelled by loom.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TOOLS=${CROSS_TOOLS:-/opt/cross}
if [ "${1:-}" = --long ]; then
  shift
  export CROSS_KILLS=${CROSS_KILLS:-100} CROSS_CHILDREN=${CROSS_CHILDREN:-100}
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

check() {
  tools
  local target
  for target in "$@"; do
    echo "--- $target"
    # shellcheck disable=SC2046
    RUSTFLAGS="$RUSTFLAGS -D warnings" cargo check --locked -p hairline-cross $(std_of "$target") --target "$target"
    RUSTFLAGS="$RUSTFLAGS -D warnings" cargo check --locked -p hairline -p hairline-perf $(std_of "$target") --target "$target"
    RUSTFLAGS="$RUSTFLAGS -D warnings" cargo check --locked -p hairline --all-features $(std_of "$target") --target "$target"
  done
}

# judge TRACE SQL EXPECTED: asks trace_processor, which must have no complaint.
judge() {
  local found
  found=$(env -u LD_LIBRARY_PATH node tests/oracle/query.mjs --strict "$1" "$2") || { echo "ci/cross.sh: $1: the judge complains"; exit 1; }
  [[ $found == $3 ]] || { printf 'ci/cross.sh: %s: %s\n  found    %s\n  expected %s\n' "$1" "$2" "$found" "$3"; exit 1; }
}

SLICES="select group_concat(name, ',') as n from (select name from slice where category = 'app' or name = 'traced' order by name)"
STEPS="select count(*) = max(n) - min(n) + 1 and count(*) > 50000 as whole from (select extract_arg(arg_set_id, 'debug.n') as n from slice where name = 'step')"
# The ring has 64 chunks: more threads than that, if those of idle threads were recalled.
TURNS="select count(distinct track_id) > 150 as many from slice where name = 'in turn'"
# Each of the two threads counts by two: one that lost no step has as many as its last number says.
KEPT="select count(*) as threads, sum(whole) as whole, min(steps) > 10 as many from (select count(*) as steps, count(*) = (max(n) - min(n)) / 2 + 1 as whole from (select track_id, extract_arg(arg_set_id, 'debug.n') as n from slice where name = 'step') group by track_id)"

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
    until grep -q recording "$out/said"; do sleep 0.05; done
    sleep "0.$((i * 7 % 9 + 1))"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    "$@" recover "$(sed -n "s/^recording \([0-9]*\).*/\1/p" "$out/said")" >"$out/recovered"
    grep -q '^1 recovered' "$out/recovered" || { echo "ci/cross.sh: kill $i: $(cat "$out/recovered")"; exit 1; }
    ((i % 10)) || judge "$out/killed.$format" "$KEPT" '*2*2*1*'
    rm "$out/killed.$format"
  done
  rm -r "$out"
  echo "$n kills: each trace recovered"
}

aarch64() {
  tools
  command -v qemu-aarch64 >/dev/null || { echo "ci/cross.sh: not run: qemu-user is missing"; return; }
  unshare --user --map-root-user --mount mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc 2>/dev/null ||
    { echo "ci/cross.sh: not run: no binfmt_misc of one's own here (Linux 6.7, user namespaces)"; return; }
  local target=aarch64-unknown-linux-gnu
  cargo build --locked -p hairline-cross --release --target $target
  cargo test --no-run --locked --target $target -p hairline-shm -p hairline-formats -p hairline -p hairline-tests --all-features \
    --lib --test vocabulary --test recording --test reliability
  # The kernel starts qemu for the programs that the tests start. Only in this namespace: the machine stays as it is.
  unshare --user --map-root-user --mount bash -c '
    mount -t tmpfs tmpfs /dev/shm # no other test recovers what is left there
    mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc
    echo ":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$(command -v qemu-aarch64):F" \
      >/proc/sys/fs/binfmt_misc/register
    export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
    "$0" emulated' "$PWD/ci/cross.sh"
}

# What runs under qemu, in that namespace.
emulated() {
  tools
  local target=aarch64-unknown-linux-gnu
  local program=$CARGO_TARGET_DIR/$target/release/hairline-cross
  programs "$program"
  crowd "$program"
  kills "${CROSS_KILLS:-20}" "$program"
  # qemu-user says that it wipes memory at a fork (MADV_WIPEONFORK), and does not. So children without fork handlers are
  # not tested here.
  cargo test --locked --target $target -p hairline-shm -p hairline-formats -p hairline --all-features --lib -- \
    --skip a_child_without_fork_handlers_finds_the_pool_empty
  # Its counter has ticks of 1 us, so many events have equal times.
  cargo test --locked --target $target -p hairline-tests --all-features --test vocabulary --test recording
  TORTURE_KINDS=fork,spawn,exec,handler,returned TORTURE_CHILDREN=${CROSS_CHILDREN:-20} \
    cargo test --locked --target $target -p hairline-tests --all-features --test reliability -- forking::
}

windows() {
  tools
  command -v wine >/dev/null || command -v wine64 >/dev/null || { echo "ci/cross.sh: not run: wine is missing"; return; }
  local target=x86_64-pc-windows-gnu
  cargo build --locked -p hairline-cross "$(std_of $target)" --release --target $target
  local folder=$CARGO_TARGET_DIR/$target/release
  x86_64-w64-mingw32-gcc -shared -o "$folder/bcryptprimitives.dll" ci/cross/bcryptprimitives.c -ladvapi32 -Wl,--kill-at
  unset LD_LIBRARY_PATH
  export WINEDEBUG=-all WINEPREFIX=${WINEPREFIX:-$PWD/$folder/wine}
  local wine
  wine=$(command -v wine64 || command -v wine)
  programs "$wine" "$folder/hairline-cross.exe"
  crowd "$wine" "$folder/hairline-cross.exe"
  kills "${CROSS_KILLS:-10}" "$wine" "$folder/hairline-cross.exe"
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
  aarch64 | windows) timed "$1" ;;
  *)
    echo "ci/cross.sh: setup, check, aarch64 or windows, not $1" >&2
    exit 1 ;;
esac
