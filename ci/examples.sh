#!/usr/bin/env bash
# Runs every program of the crate hairline-examples and asks the judge about the traces it leaves.
#
# An example takes no arguments, ends by itself and writes its traces (.pftrace, .fxt) into the current directory.
# One that leaves tracing to the environment writes none by itself: it is run again with HAIRLINE set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
time_limit=60s

fail() { echo "ci/examples.sh: $*" >&2; exit 1; }

programs() {
  # shellcheck disable=SC2086 # words
  cargo build ${RELEASE_PACKAGES:--p hairline-examples --all-features} --release --locked --examples --message-format=json-render-diagnostics |
    python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable"):
        print(message["executable"])'
}

run() {    # PROGRAM [VARIABLE=VALUE...]
  env "${@:2}" timeout --kill-after=5s "$time_limit" "$1" </dev/null >output.log 2>&1 || {
    local status=$?
    cat output.log >&2
    fail "$(basename "$1") failed (exit $status)"
  }
}

shopt -s nullglob
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

list=$(programs)
[ -n "$list" ] || fail "hairline-examples has no programs"
while read -r program; do
  name=$(basename "$program")
  mkdir -p "$work/$name"
  cd "$work/$name"
  run "$program"
  traces=(*.pftrace *.fxt)
  if [ ${#traces[@]} -eq 0 ]; then
    run "$program" HAIRLINE=trace.pftrace
    traces=(*.pftrace)
  fi
  [ ${#traces[@]} -gt 0 ] || fail "$name left no trace"
  for trace in "${traces[@]}"; do
    printf '%s: %s ' "$name" "$trace"
    node "$root/tests/oracle/query.mjs" --strict "$trace" 'select count() as slices from slice' || fail "$name: $trace is not a good trace"
  done
done <<<"$list"

# The pipeline counts the scopes it enters; its trace must have as many slices, whatever the format and the workers.
pipeline=$(grep '/pipeline$' <<<"$list")
scopes="'run','walk','wait','file','read','tokenise','count','merge','sort'"
for workers in 1 2 8; do
  for format in pftrace fxt; do
    trace=$work/counted.$format
    counted=$(HAIRLINE=$trace timeout "$time_limit" "$pipeline" "$root" --workers "$workers" | sed -n 's/^scopes: //p')
    found=$(node "$root/tests/oracle/query.mjs" --strict "$trace" \
      "select count() as n from slice where dur >= 0 and name in ($scopes)" | sed 's/.*:\([0-9]*\).*/\1/')
    echo "pipeline, $workers workers, $format: $counted scopes, $found slices"
    [ "$counted" = "$found" ] || fail "pipeline: scopes and slices differ"
  done
done

# The web server counts the requests that were answered; its trace must have as many lives of requests, each with its
# query and that one's round trip, on tracks of their own, and their polls on the threads.
web=$(grep '/web$' <<<"$list")
lives() { echo "select count(*) as n from slice where dur > 0 and name = '$1' and track_id not in (select id from thread_track)"; }
for format in pftrace fxt; do
  trace=$work/requests.$format
  counted=$(HAIRLINE=$trace timeout "$time_limit" "$web" | sed -n 's/^requests: //p')
  found=$(node "$root/tests/oracle/query.mjs" --strict "$trace" \
    "$(lives request)" "$(lives user)" "$(lives query)" "$(lives 'round trip')" \
    "select count(*) as n from slice s left join slice p on s.parent_id = p.id
     where s.track_id in (select id from thread_track) and ifnull(p.name, '-') != case s.name
       when 'request' then '-' when 'user' then 'request' when 'connect' then 'query' when 'round trip' then 'query'
       else 'user' end" | sed 's/.*:\([0-9]*\).*/\1/' | paste -sd' ')
  echo "web, $format: $counted requests; lives of 'request', 'user', 'query', 'round trip', and strays: $found"
  [ "$found" = "$counted $counted $counted $counted 0" ] ||
    fail "web: requests and lives differ, or slices are not below the one they belong to"
done

# In the locks example the journal holds the lock of the cache for 3 ms or more, four times: who waits for so long says
# that the journal has it, and arrows go from releases to the ends of waits.
locks=$(grep '/locks$' <<<"$list")
(cd "$work" && timeout "$time_limit" "$locks" >/dev/null)
found=$(node "$root/tests/oracle/query.mjs" --strict "$work/locks.pftrace" \
  "select (select count(*) > 0 from slice s join thread t on t.tid = extract_arg(s.arg_set_id, 'debug.held_by')
             where s.name = 'wait: cache' and s.dur > 2e6 and t.name = 'journal') || ' '
       || (select count(*) > 0 from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
             where a.name = 'release: cache' and b.name = 'released') as n" | sed 's/.*:"\(.*\)".*/\1/')
echo "locks: waits for the journal, arrows: '$found'"
[ "$found" = "1 1" ] || fail "locks: waits for the journal, arrows are '$found'"

# The tokio example counts the tasks it spawns; its trace must have a life for each. Its two tasks that block their
# workers are the only polls of 20 ms, one on each worker at the same time, and the queue grows meanwhile. The
# requests of that time are queued, and those above the number of connections wait for one.
tokio=$(grep '/tokio$' <<<"$list")
for format in pftrace fxt; do
  trace=$work/tasks.$format
  counted=$(HAIRLINE=$trace timeout "$time_limit" "$tokio" | sed -n 's/^tasks: //p')
  found=$(node "$root/tests/oracle/query.mjs" --strict "$trace" \
    "select (select count(*) from slice where (name in ('request', 'blocks') or name like '%tokio.rs%') and dur >= 0
               and track_id not in (select id from thread_track)) || ' '
         || (select count(*) from slice where name = 'spawn') || ' '
         || (select count(distinct s.track_id) from slice s join thread_track t on s.track_id = t.id
               where s.name = 'blocks' and s.dur >= 20e6) || ' '
         || (select count(*) > 0 from slice where name = 'parked') || ' '
         || (select max(value) >= 40 from counter c join counter_track t on c.track_id = t.id
               where t.name like 'queue depth%') || ' '
         || (select count(*) >= 40 from slice where name = 'queued' and dur >= 10e6) || ' '
         || (select count(*) > 0 from slice where name = 'wait: connections') as n" | sed 's/.*:"\(.*\)".*/\1/')
  echo "tokio, $format: $counted tasks, found '$found'"
  [ "$found" = "$counted $counted 2 1 1 1 1" ] || fail "tokio: lives, spawns, blocked workers, parked, queue, queued, waits are '$found'"
done
