#!/bin/sh
# Perfetto's own tracing service records programs with Hairline: kills, restarts, clones, triggers, sessions at the
# same time, a hostile service; as the code ships, so many times (1). ci/test.sh runs each once where the service
# could be unpacked (tests/oracle/traced.sh), with few connections of the hostile one.
#
#   ci/traced.sh [TIMES]                        HAIRLINE_CONNECTIONS=10000: connections of the hostile service
#   ci/traced.sh both                           Hairline and perfetto-sdk in one session have equal rows for equal
#                                               events (needs a C++ compiler, some minutes to build)
set -eu
cd "$(dirname "$0")/.."
tests/oracle/traced.sh
if [ "${1:-}" = both ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  pids=$(cargo run --quiet --release --locked --manifest-path benches/peers/Cargo.toml -- --both "$folder/t.pftrace")
  echo "$pids"
  for pid in $(echo "$pids" | tr -c '0-9\n' ' '); do
    of="join process p using (upid) where p.pid = $pid"
    for query in \
      "select s.name, s.category, s.depth, s.dur >= 0 from slice s join thread_track tt on s.track_id = tt.id
       join thread t using (utid) $of and s.name != 'ready' order by s.ts, s.depth" \
      "select s.name, s.category, s.depth, s.dur >= 0, pt.name from slice s join process_track pt
       on s.track_id = pt.id $of order by s.ts, s.depth" \
      "select s.name, a.flat_key, a.display_value from slice s join thread_track tt on s.track_id = tt.id
       join thread t using (utid) join args a on s.arg_set_id = a.arg_set_id $of and s.name != 'ready'
       and a.flat_key like 'debug%' order by s.ts, a.flat_key" \
      "select ct.name, c.value from counter c join process_counter_track ct on c.track_id = ct.id $of order by c.ts" \
      "select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
       join thread_track tt on a.track_id = tt.id join thread t using (utid) $of"
    do
      node tests/oracle/query.mjs "$folder/t.pftrace" "$query"
    done >"$folder/$pid.rows"
    [ -s "$folder/$pid.rows" ] || { echo "ci/traced.sh: no rows of process $pid" >&2; exit 1; }
    rows="${rows:-} $folder/$pid.rows"
  done
  # shellcheck disable=SC2086 # two names
  diff -u $rows
  cat "$folder/$pid.rows"
  echo "ci/traced.sh: equal rows"
  exit
fi
n=0
while [ "$n" -lt "${1:-1}" ]; do
  cargo test -p hairline-tests --all-features --release --locked --test reliability -- traced::
  n=$((n + 1))
done
