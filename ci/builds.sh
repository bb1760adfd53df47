#!/usr/bin/env bash
# What Hairline adds to the builds of a program that depends on it, with the default features, each beside its budget:
#
#   ci/builds.sh              all of it: some minutes
#   ci/builds.sh --short      packages and sizes, which do not depend on the machine; fails if a row is above its budget
#
# * packages: those that are compiled, the program itself not counted (`cargo tree`);
# * size: bytes of text that one more event adds, from programs with 1 and with 1001 of them in a function each;
# * CPU time of a clean release build, user and system, of all of rustc's processes, in a fresh target directory;
# * debug builds: ns of an event beside two clock reads in the same run, with Hairline optimised and not (ci/builds/debug.rs).
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD

short=
case ${1-} in
  "") ;;
  --short) short=yes ;;
  *) echo "usage: ci/builds.sh [--short]" >&2; exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CARGO_INCREMENTAL RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTFLAGS
mkdir "$work/src"
cp Cargo.lock "$work/Cargo.lock" # the versions that the workspace is tested with
cat >"$work/Cargo.toml" <<TOML
[package]
name = "program"
version = "0.0.0"
edition = "2024"

[dependencies]
hairline = { path = "$repository/sdk" }

[workspace]
TOML

failed=0
printf '%-64s %10s %10s  %s\n' "" measured floor budget
# row NAME VALUE FLOOR LIMIT UNIT: a row, and whether its value is within the limit.
row() {
  local verdict=
  if awk -v value="$2" -v limit="$4" 'BEGIN { exit !(value > limit) }'; then
    verdict="  MISSED"
    failed=1
  fi
  printf '%-64s %10s %10s  <= %s %s%s\n' "$1" "$2" "$3" "$4" "$5" "$verdict"
}
build() { cargo build --quiet --offline --manifest-path "$work/Cargo.toml" "$@"; }

echo 'fn main() {}' >"$work/src/main.rs"
cargo fetch --quiet --manifest-path "$work/Cargo.toml"

packages=$(cargo tree --offline --manifest-path "$work/Cargo.toml" --edges normal,build --prefix none --no-dedupe |
  awk '$1 != "program" { print $1, $2 }' | sort -u | wc -l)
row "packages that are compiled" "$packages" "" 9 packages

locked=$(grep -c '^name = ' "$work/Cargo.lock") # with the program itself
row "packages in the program's lock file" "$((locked - 1))" "" 12 packages

# A program with so many events, each in a function of its own that differs from all others and calls two others.
program() { # COUNT EVENT ABI
  printf '#![allow(unused)]\nuse hairline::trace_scope;\nuse std::hint::black_box;\n'
  for ((n = 0; n < $1; n++)); do
    printf '#[inline(never)]\nfn event_%d(n: i64, text: &str) {\n    other(n);\n    %s\n    other(%d);\n}\n' "$n" "$2" "$n"
  done
  printf '#[inline(never)]\nextern "%s" fn other(n: i64) {\n    assert!(black_box(n) >= 0);\n}\n' "$3"
  printf 'fn main() {\n    let functions: [fn(i64, &str); %d] = [' "$1"
  for ((n = 0; n < $1; n++)); do printf 'event_%d, ' "$n"; done
  printf '];\n    let text = std::env::args().next().unwrap_or_default();\n'
  printf '    for (n, function) in functions.iter().enumerate() {\n        function(n as i64, &text);\n    }\n}\n'
}

text_of() { # COUNT EVENT ABI: bytes of text of that program
  program "$@" >"$work/src/main.rs"
  CARGO_TARGET_DIR=$target build --release
  # Instructions alone: names and callsites are data, and unwinding has tables of its own.
  size -A "$target/release/program" | awk '$1 == ".text" { print $2 }'
}

size_row() { # NAME EVENT ABI LIMIT
  local few many plain_few plain_many
  plain_few=$(text_of 1 "" "$3") plain_many=$(text_of 1001 "" "$3")
  few=$(text_of 1 "$2" "$3") many=$(text_of 1001 "$2" "$3")
  row "$1" "$((((many - few) - (plain_many - plain_few)) / 1000))" "" "$4" bytes
}

time_of() { # the CPU seconds of a command
  local TIMEFORMAT='%U %S'
  { time "$@" 2>"$work/messages"; } 2>&1 | awk '{ print $1 + $2 }'
}

if [ -n "$short" ]; then
  target=${CARGO_TARGET_DIR:-$repository/target}/builds
else
  target=$work/target
  seconds=$(CARGO_TARGET_DIR=$target time_of build --release) || { cat "$work/messages" >&2; exit 1; }
  row "clean release build, CPU time" "$seconds" "" 9 s
fi

if command -v size >/dev/null; then
  scope='trace_scope!("size", "scope");' with_two='trace_scope!("size", "two", n, text);'
  # The functions of the first two rows call nothing that can panic. A panic ends a scope by a second call of the end.
  size_row "one more scope, text" "$scope" C 60
  size_row "one more scope with two arguments, text" "$with_two" C 160
  size_row "one more scope that a panic can end, text" "$scope" Rust 60
  size_row "one more scope with two arguments that a panic can end, text" "$with_two" Rust 160
else
  echo "binutils' size is not installed: sizes not checked"
fi
[ -z "$short" ] || exit "$failed"

cp ci/builds/debug.rs "$work/src/main.rs"
debug_rows() { # NAME LIMIT_OF_A_SCOPE LIMIT_WITH_TWO
  CARGO_TARGET_DIR=$target build
  "$target/debug/program" >"$work/rows"
  while IFS=';' read -r name _ median floor; do
    case $name in
      *": scope") row "$1, $name" "$median" "$floor" "$2" ns ;;
      *"two arguments") row "$1, $name" "$median" "$floor" "$3" ns ;;
      *) printf '%-64s %10s %10s\n' "$1, $name" "$median" "$floor" ;;
    esac
  done <"$work/rows"
}
debug_rows "debug build" 350 600
printf '\n[profile.dev.package.hairline]\nopt-level = 3\n' >>"$work/Cargo.toml"
debug_rows "debug build, hairline optimised" 100 200
