#!/usr/bin/env bash
# Whether `hairline diff` finds a function that became 5 % slower, and reports nothing of two equal builds. Two builds
# of the pipeline example, recorded in turns; the second one splits a twentieth of each text twice,
# without an allocation, which would move those of other functions.
#
#   ci/diff.sh [REPETITIONS [TRACES]]     100 comparisons with 40 traces a side; prints how many raised an alarm
#
# Fails if the slower function is not the first row in nine of ten comparisons, or if more than 3 of 100 of equal builds
# report anything: 1 is expected.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

repetitions=${1:-100}
traces=${2:-40}
repository=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A package for both builds, with the repository's versions of its dependencies.
mkdir -p "$work/package/src/bin"
cat >"$work/package/Cargo.toml" <<MANIFEST
[package]
name = "pipelines"
version = "0.0.0"
edition = "2024"
[dependencies]
hairline = { path = "$repository/sdk" }
[workspace]
MANIFEST
cp Cargo.lock "$work/package/"
cp examples/pipeline.rs "$work/package/src/bin/plain.rs"
twice='    let twentieth = (0..=text.len() / 20).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);\
    let again = text[..twentieth].split(|c: char| !c.is_alphanumeric() \&\& c != '"'_'"').filter(|w| w.len() > 1);\
    std::hint::black_box(again.count());'
sed "/scope!(\"pipeline.work\", \"tokenise\"/a\\
$twice" examples/pipeline.rs >"$work/package/src/bin/slower.rs"
cmp -s "$work/package/src/bin/plain.rs" "$work/package/src/bin/slower.rs" && { echo "nothing was slowed" >&2; exit 1; }

cargo build --quiet --release --offline --manifest-path "$work/package/Cargo.toml"
cargo build --quiet --release --locked -p hairline-cli
programs=${CARGO_TARGET_DIR:-$work/package/target}/release
hairline=${CARGO_TARGET_DIR:-target}/release/hairline

record() { # PROGRAM TRACE
  "$programs/$1" "$repository/sdk/src" --workers 1 --trace "$2" >"$work/output" 2>&1 || { cat "$work/output" >&2; exit 1; }
}

# Records both sides in turns, the first of a pair in turns too, and prints the rows that changed.
compare() { # PROGRAM PROGRAM TRACES
  rm -f "$work"/*.pftrace
  local n
  for ((n = 0; n < $3; n++)); do
    if ((n % 2)); then
      record "$1" "$work/old-$n.pftrace"; record "$2" "$work/new-$n.pftrace"
    else
      record "$2" "$work/new-$n.pftrace"; record "$1" "$work/old-$n.pftrace"
    fi
  done
  "$hairline" diff --csv "$work"/old-*.pftrace -- "$work"/new-*.pftrace | grep ',true$' || true
}

# Counts the comparisons of equal builds that report anything.
alarms() { # TRACES
  local alarms=0 n rows
  for ((n = 0; n < repetitions; n++)); do
    rows=$(compare plain plain "$1")
    if [ -n "$rows" ]; then
      alarms=$((alarms + 1))
      sed 's/^/  alarm: /' <<<"$rows" >&2
    fi
  done
  echo "$alarms"
}

found=0
tries=$(((repetitions + 4) / 5))
for ((n = 0; n < tries; n++)); do
  first=$(compare plain slower "$traces" | head -1)
  case $first in
    tokenise,*) found=$((found + 1)) ;;
    *) echo "  not found; first: ${first:-nothing}" >&2 ;;
  esac
done
echo "5 % slower, $traces traces a side: the first row in $found of $tries"
equal=$(alarms "$traces")
echo "equal builds, $traces traces a side: $equal of $repetitions comparisons reported anything"
single=$(alarms 1)
echo "equal builds, one trace a side: $single of $repetitions comparisons reported anything"
((found * 10 >= tries * 9)) || { echo "the slower function was missed too often" >&2; exit 1; }
((equal * 100 <= repetitions * 3 || equal <= 1)) || { echo "too many alarms" >&2; exit 1; }
