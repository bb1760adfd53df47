#!/usr/bin/env bash
# The speed and the memory of `hairline export` on one core and on two, beside reading the same trace alone (`hairline stats`).
#
#   ci/export.sh [MIB [FOLDER]]     traces of 1024 MiB, in a temporary folder
#
# Prints for each format and number of cores: MB of input a second, peak memory in MiB, MB written. Fails above 256 MiB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mib=${1:-1024}
work=${2:-$(mktemp -d)}
[ $# -ge 2 ] || trap 'rm -rf "$work"' EXIT

cargo build --quiet --release --locked -p hairline-cli
cargo build --quiet --release --locked -p hairline-convert --example speed
target=${CARGO_TARGET_DIR:-target}/release
mkdir -p "$work"
[ -f "$work/a.fxt" ] || "$target/examples/speed" make "$work/a.fxt" "$mib"
[ -f "$work/a.pftrace" ] || "$target/hairline" convert "$work/a.fxt" "$work/a.pftrace" 2>/dev/null

python3 - "$target/hairline" "$work" <<'PYTHON'
import os, pathlib, resource, shutil, subprocess, sys, time

hairline, work = sys.argv[1], pathlib.Path(sys.argv[2])
most = 0


def measured(command, cores):
    """Seconds and peak memory in MiB of a command on so many cores."""
    cpus = sorted(os.sched_getaffinity(0))[:cores]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{command}: status {status}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


for name in ["a.fxt", "a.pftrace"]:
    trace, out = work / name, work / "out"
    megabytes = trace.stat().st_size / 1e6
    with open(trace, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    for what, command in [
        ("stats", [hairline, "stats", trace]),
        ("export", [hairline, "export", trace, "-o", out]),
        ("export --table slice", [hairline, "export", "--table", "slice", trace, "-o", out]),
    ]:
        for cores in [1, 2]:
            shutil.rmtree(out, ignore_errors=True)
            seconds, peak = measured(command, cores)
            written = sum(file.stat().st_size for file in out.rglob("*.parquet")) / 1e6 if out.exists() else 0
            speed = f"{megabytes / seconds:6.0f} MB/s {peak:6.0f} MiB {written:8.1f} MB written"
            print(f"{name:10} {what:22} {cores} {'core ' if cores == 1 else 'cores'} {speed}")
            most = max(most, peak if what != "stats" else 0)
sys.exit(f"more than 256 MiB: {most:.0f}" if most > 256 else 0)
PYTHON
