#!/usr/bin/env bash
# Makes a fleet of traces, exports it, and asks ten questions on four engines and, up to 100 traces, with
# `hairline query`, there also to the traces themselves: equal rows, and true ones.
# Not a part of ci/test.sh: the engines are fetched. It needs Python with pip, and a Java runtime of version 17 for
# Spark (apt-get install openjdk-17-jre-headless).
#
#   ci/fleet.sh             10 and 40 traces of 10,000 slices
#   ci/fleet.sh --full      10, 100 and 1,000 traces of 100,000 slices: 100 million
#   ci/fleet.sh --keep ...  keeps the exported folders, target/fleet/SIZE/tables
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sizes=(10 40) slices=10000 keep= memory=4
for argument in "$@"; do
  case $argument in
    --full) sizes=(10 100 1000) slices=100000 memory=10 ;;
    --keep) keep=yes ;;
    *) echo "ci/fleet.sh: what is $argument? $(sed -n 's/^#   //p' "$0")" >&2; exit 2 ;;
  esac
done

target=${CARGO_TARGET_DIR:-$PWD/target}
folder=$target/fleet
mkdir -p "$folder"

cargo build --release --locked -p hairline-cli
hairline=$target/release/hairline
cargo build --release --locked --manifest-path ci/fleet/generator/Cargo.toml
export HAIRLINE_TOOL=$hairline
# A workspace of its own has a target directory of its own, unless one is set for all.
generator=${CARGO_TARGET_DIR:-$PWD/ci/fleet/generator/target}/release/hairline-fleet

[ -d "$folder/python" ] || python3 -m venv "$folder/python"
python=$folder/python/bin/python
"$python" -m pip install --quiet --disable-pip-version-check \
  duckdb==2.0.0 chdb==4.4.0 datafusion==55.0.0 pyspark==4.3.0
engines=(duckdb clickhouse datafusion hairline)
if command -v java >/dev/null; then engines+=(spark); else echo "ci/fleet.sh: no Java: Spark is not asked"; fi

now() { python3 -c 'import time; print(time.monotonic())'; }

make_fleet() { # SIZE DIR: a few traces at a time, because all of them take as much disk as their tables
  local from
  rm -rf "$2"
  mkdir -p "$2/traces"
  for ((from = 0; from < $1; from += 50)); do
    "$generator" --traces "$1" --slices "$slices" --from "$from" --only 50 "$2/traces"
    "$hairline" export "$2"/traces/*.pftrace -o "$2/tables" >/dev/null
    [ "$1" -le 10 ] || rm "$2"/traces/*.pftrace
  done
}

ask() { # ENGINE NAME: the questions to what NAME.sql makes
  "$python" ci/fleet/ask.py "$1" "$place/$2.sql" ci/fleet/questions "$place/answers/$2" \
    --memory "$memory" 2>"$place/$2.log" || { tail -20 "$place/$2.log"; exit 1; }
}

for size in "${sizes[@]}"; do
  place=$folder/$size
  printf '\n=== %d traces of %d slices\n' "$size" "$slices"
  began=$(now)
  make_fleet "$size" "$place"
  echo "made and exported in $(python3 -c "print(round($(now) - $began, 1))") s: $(du -sh "$place/tables" | cut -f1)"
  for engine in "${engines[@]}"; do
    if [ "$engine" = hairline ] && [ "$size" -gt 100 ]; then
      continue # one machine's memory and SQLite: ten times as long as the engines that read columns
    elif [ "$engine" = hairline ]; then
      echo "$place/tables" >"$place/$engine.sql"
    else
      "$hairline" query --views "$engine" "$place/tables" >"$place/$engine.sql"
    fi
    ask "$engine" "$engine"
  done
  if [ "$size" -le 10 ]; then
    printf '%s\n' "$place"/traces/*.pftrace >"$place/traces.sql"
    ask hairline traces
  fi
  "$python" ci/fleet/compare.py rows "$place/answers" "$place"/traces/truth-*.json
  [ -n "$keep" ] || rm -r "$place/tables"
done

rm -rf "$folder/growth"
mkdir "$folder/growth"
for size in "${sizes[@]}"; do cp -r "$folder/$size/answers" "$folder/growth/$size"; done
printf '\n'
"$python" ci/fleet/compare.py growth "${sizes[@]/#/$folder/growth/}"
