#!/usr/bin/env python3
"""Runs the example `pipeline` alone and below each recorder, in turns, and prints medians (see ci/why.sh).

    compare.py FOLDER ROUNDS          FOLDER has `hairline` and `examples/pipeline`
    compare.py --timed FILE COMMAND   runs a command, and writes its time and its CPU time in seconds to a file
"""
import os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COPIES = 40  # of the sources of this repository, for the pipeline to read


def timed(file, command):
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    pathlib.Path(file).write_text(f"{time.monotonic() - start} {usage.ru_utime + usage.ru_stime}")
    sys.exit(os.waitstatus_to_exitcode(status))


def recorders(binaries, out):
    """The recorders that are installed, with the commands that precede the program's."""
    yield "alone", []
    yield "`hairline record --sched --sample 997`", [
        f"{binaries}/hairline", "record", "--sched", "--sample", "997", "-o", f"{out}/hairline.pftrace", "--"]
    if shutil.which("perf"):
        yield "`perf record -F 997 --call-graph dwarf --switch-events`", [
            "perf", "record", "-q", "-F", "997", "-e", "cpu-clock:u", "--call-graph", "dwarf,8192", "--switch-events",
            "-o", f"{out}/perf.data", "--"]
    if shutil.which("samply"):
        yield "`samply record --rate 997`", [
            "samply", "record", "--rate", "997", "--save-only", "-o", f"{out}/samply.json.gz", "--"]


def run(prefix, program, out):
    """Three times in seconds: of the program, its CPU time, until the recorder was done."""
    file = out / "times"
    start = time.monotonic()
    command = [*prefix, sys.executable, __file__, "--timed", str(file), *program]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    whole = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [*map(float, file.read_text().split()), whole]


def main(binaries, rounds):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        for n in range(COPIES):
            for crate in ("sdk", "convert", "cli", "formats"):
                shutil.copytree(ROOT / crate / "src", out / "read" / str(n) / crate)
        program = [str(pathlib.Path(binaries, "examples", "pipeline").resolve()), str(out / "read")]
        commands = dict(recorders(binaries, out))
        times = {name: [] for name in commands}
        for round in range(rounds + 1):
            for name, prefix in commands.items():
                result = run(prefix, program, out)
                if round > 0:  # the first one fills the page cache
                    times[name].append(result)
    print("| | the program's time | its CPU time | until the trace was written |\n|---|---:|---:|---:|")
    alone = None
    for name, results in times.items():
        medians = [statistics.median(column) for column in zip(*results)]
        alone = alone or medians
        cell = lambda n: f"{medians[n]:.3f} s" + ("" if medians is alone else f" ({100 * (medians[n] / alone[n] - 1):+.1f} %)")
        print(f"| {name} | {cell(0)} | {cell(1)} | {medians[2]:.2f} s |")


if sys.argv[1] == "--timed":
    timed(sys.argv[2], sys.argv[3:])
main(sys.argv[1], int(sys.argv[2]))
