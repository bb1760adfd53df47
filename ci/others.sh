#!/usr/bin/env bash
# Records traces with the tools of other people, and checks that `hairline stats` says of them what trace_processor
# says, and that they are the same in each format. Not a part of ci/test.sh: it fetches packages and builds them.
# It needs Node and Python with pip. Traces of clang and PyTorch are among them where those are installed
# (Debian: apt-get install clang python3-torch). JSON is also compared after it was in another format.
#
#   ci/others.sh [FOLDER]     the folder for the traces: target/others
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-target/others}
mkdir -p "$folder/traces"
folder=$(cd "$folder" && pwd)
traces=$folder/traces
rm -f "$traces"/*
own=$PWD/ci/others

[ -d "$folder/python" ] || python3 -m venv "$folder/python"
python=$folder/python/bin/python
"$python" -m pip install --quiet --disable-pip-version-check viztracer==1.1.1 perfetto==0.59.1 retrobus-perfetto==0.3.1
for tracer in viztracer recursion bazel trace_builder retrobus; do
  "$python" "$own/python_tracers.py" "$tracer" "$traces"
done
# 200 MB, and not for each version of Python.
if "$python" -m pip install --quiet --disable-pip-version-check 'jax[cpu]'; then
  "$python" "$own/python_tracers.py" jax "$traces"
else
  echo "JAX cannot be installed here: its profiles are not checked"
fi
# Debian's build is for the CPU alone; that of pip has gigabytes of libraries with it.
torch=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import torch' 2>/dev/null && torch=$candidate && break
done
if [ -n "$torch" ]; then
  "$torch" "$own/python_tracers.py" torch "$traces"
else
  echo "python3-torch is not installed: profiles of PyTorch are not checked"
fi

# The trace of processor samples that comes with the sources of the package.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$folder" fxt==0.3.0
tar -xzf "$folder/fxt-0.3.0.tar.gz" -O fxt-0.3.0/test_data/trace.fxt >"$traces/magic_trace.fxt"

categories=v8,node,node.async_hooks,node.perf,node.fs.async
node --trace-events-enabled --trace-event-categories "$categories" --trace-event-file-pattern "$traces/node.json" \
  "$own/work.js"

npm install --silent --no-audit --no-fund --prefix "$folder/npm" typescript@5.4
cp "$own/types.ts" "$folder/npm"
"$folder/npm/node_modules/.bin/tsc" --noEmit --target es2022 --generateTrace "$folder/tsc" "$folder/npm/types.ts"
cp "$folder/tsc/trace.json" "$traces/tsc.json"

if command -v clang++ >/dev/null; then
  clang++ -c -O1 -ftime-trace -ftime-trace-granularity=0 -o "$folder/clang.o" "$own/program.cpp"
  cp "$folder/clang.json" "$traces/clang.json"
else
  echo "clang++ is not installed: its traces are not checked"
fi

cargo run --quiet --release --locked --manifest-path "$own/tracers/Cargo.toml" -- "$traces"

tests/oracle/setup.sh
export OTHER_TRACES=$traces
# As in ci/test.sh: these traces have hundreds of thousands of slices.
export CARGO_PROFILE_TEST_OPT_LEVEL=${CARGO_PROFILE_TEST_OPT_LEVEL:-1}
cargo test --quiet -p hairline-tests --test tools others
cargo test --quiet -p hairline-tests --test conversion others
