#!/usr/bin/env bash
# How many instructions an event executes, counted by callgrind, and whether that is within ci/instructions.limits. Times depend on the
# machine and on who else uses it; these counts do not. Needs valgrind; without it nothing is checked.
#
#   ci/instructions.sh
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "$(uname -m)" != x86_64 ]; then
  echo "the limits are those of x86-64: not checked here"
  exit
fi
if ! command -v valgrind >/dev/null; then
  echo "valgrind is not installed: not checked here"
  exit
fi

# shellcheck disable=SC2086 # words
cargo build --quiet --release --locked ${RELEASE_PACKAGES:--p hairline-benches} --bin instructions
program=${CARGO_TARGET_DIR:-target}/release/instructions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counted is what the function `measured` executes, with all that it calls, on the thread that calls it: not the writer thread. Each call ends
# with a file of its own, counts.1, counts.2, ...
count() {
  valgrind --tool=callgrind --callgrind-out-file="$work/counts" \
    --toggle-collect=instructions::measured --dump-after=instructions::measured \
    "$program" >"$work/calls" 2>"$work/messages" || { cat "$work/messages" >&2; exit 1; }
  local call calls
  calls=$(wc -l <"$work/calls")
  for ((call = 1; call <= calls; call++)); do
    sed -n 's/^totals: //p' "$work/counts.$call"
  done | paste -d' ' - "$work/calls" >>"$work/table" # count, events, name
}

# Calls of N and of 2 N events: what is between them is N events and nothing else. Of equal calls the least counts.
judge() {
  awk '
  FNR == NR { if (/^[0-9]/) { limit[name_after(1)] = $1 } next }
  { name = name_after(2) }
  !(name in few) { few[name] = $2; names[++count] = name }
  { key = name SUBSEP $2; if (!(key in least) || $1 < least[key]) least[key] = $1 }
  function name_after(fields,  rest) {
    rest = $0
    while (fields-- > 0) sub(/^[^ ]+ +/, "", rest)
    return rest
  }
  function of_one(name,  n) {
    n = few[name]
    return (least[name, 2 * n] - least[name, n]) / n
  }
  END {
    printf "%-40s %12s %7s\n", "event", "instructions", "limit"
    for (i = 1; i <= count; i++) {
      if ((name = names[i]) == "nothing") continue
      instructions = of_one(name) - of_one("nothing")
      if (!(name in limit)) { verdict = "NO LIMIT"; failed = 1 }
      else if (instructions > limit[name]) { verdict = "ABOVE IT"; failed = 1 }
      else verdict = ""
      printf "%-40s %12.1f %7s %s\n", name, instructions, limit[name], verdict
      delete limit[name]
    }
    for (name in limit) { print name ": has a limit, and was not measured"; failed = 1 }
    exit failed
  }
' ci/instructions.limits "$work/table"
}

# On a busy machine the drain thread may be so late that threads ask the system for the time. Such calls are counted again.
for attempt in 1 2 3; do
  count
  judge >"$work/verdict" && break
  [ "$attempt" -lt 3 ] || { cat "$work/verdict"; exit 1; }
done
cat "$work/verdict"
