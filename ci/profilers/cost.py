#!/usr/bin/env python3
"""What samples cost: the example `pipeline` in a flight recorder, and a program of two threads that compute, beside perf,
samply and dial9 (see ci/profilers.sh)."""

import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import programs

COPIES, FEW_COPIES = 60, 2  # of the sources of this repository, for the pipeline to read


class Way:
    """A way to run a program. `perf=False`: perf_event_open is refused."""

    def __init__(self, name, program, prefix=(), variables=None, perf=True):
        self.name, self.program, self.prefix, self.variables, self.perf = name, program, prefix, variables, perf


def outside(out, program, hertz):
    """The recorders that are commands."""
    if shutil.which("perf"):
        perf = ["perf", "record", "-q", "-F", str(hertz), "-e", "cpu-clock:u", "--call-graph", "dwarf,8192", "-o", f"{out}/perf.data", "--"]
        yield Way(f"`perf record -F {hertz} --call-graph dwarf,8192`", program, perf)
    if shutil.which("samply"):
        samply = [*programs.less_paranoid(out), "samply", "record", "--rate", str(hertz), "--save-only", "-o", f"{out}/samply.json"]
        yield Way(f"`samply record --rate {hertz}`", program, [*samply, "--"])


def of_pipeline(out, copies):
    command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "hairline-examples", "--features", "hairline/sampling",
               "--example", "pipeline"]
    subprocess.run(command, cwd=programs.ROOT, check=True)
    read = out / f"read-{copies}"
    for n in range(copies):
        for crate in ("sdk", "tool/convert", "tool/cli", "formats"):
            shutil.copytree(programs.ROOT / crate / "src", read / str(n) / pathlib.Path(crate).name)
    program = [programs.TARGET / "release/examples/pipeline", read]
    recorder = {"HAIRLINE": f"{out}/t.pftrace", "HAIRLINE_OVERFLOW": "overwrite"}
    samples = {**recorder, "HAIRLINE_SAMPLE": "99"}
    yield Way("off", program)
    yield Way("flight recorder", program, variables=recorder)
    yield Way("flight recorder, 99 Hz by perf events", program, variables={**recorder, "HAIRLINE_SAMPLE": "kernel:99"})
    yield Way("flight recorder, 99 Hz by signals", program, variables=samples)
    if copies == COPIES:
        yield from outside(out, program, 99)


def of_computing(out):
    alone = [programs.build(out, "computes", "computes", flags=["-Cforce-frame-pointers=yes"])]
    own = {"HAIRLINE": f"{out}/t.pftrace", "HAIRLINE_SAMPLE": "99"}
    yield Way("alone", alone)
    yield Way("Hairline, 99 Hz by perf events", alone, variables=own)
    yield Way("Hairline, 99 Hz by signals", alone, variables=own, perf=False)
    yield Way("Hairline, 4999 Hz by perf events", alone, variables={**own, "HAIRLINE_SAMPLE": "4999"})
    yield from outside(out, alone, 99)
    dial9 = [programs.build(out, "computes-dial9", "computes", features="dial9", flags=["-Cforce-frame-pointers=yes"])]
    for what, perf in ("perf", True), ("signals", False):
        yield Way(f"dial9, 99 Hz by {what}, frame pointers", dial9, variables={"DIAL9": f"{out}/d9", "DIAL9_RECORDS": what}, perf=perf)


def measure(out, title, ways, rounds):
    ways = list(ways)
    cpu, whole = {way.name: [] for way in ways}, {way.name: [] for way in ways}
    for round in range(rounds + 1):
        turn = round % len(ways)  # none is always behind the same one
        for way in ways[turn:] + ways[:turn]:
            ran = programs.run(out, way.program, way.prefix, way.variables, way.perf)
            if round > 0:  # the first round fills the page cache
                cpu[way.name].append(ran.cpu)
                whole[way.name].append(ran.whole)
    print(f"\n{title}, {rounds} rounds in turn, CPU time of the program as a ratio to the same round's run in the first row")
    print("| | min | lower quartile | median | upper quartile | with the recorder's, median |\n|---|---:|---:|---:|---:|---:|")
    first = ways[0].name
    print(f"| {first} | {min(cpu[first]):.3f} s | | {statistics.median(cpu[first]):.3f} s | | |")
    for way in ways[1:]:
        row(way.name, cpu, whole, first)
    if "flight recorder" in cpu:
        print("as a ratio to the flight recorder without samples:")
        for way in ways[2:4]:
            row(way.name, cpu, whole, "flight recorder")


def row(name, cpu, whole, base):
    own = [mine / other for mine, other in zip(cpu[name], cpu[base])]
    both = statistics.median(mine / other for mine, other in zip(whole[name], whole[base]))
    name += f" ({1000 * statistics.median(mine - other for mine, other in zip(cpu[name], cpu[base])):+.0f} ms)"
    print(f"| {name} | {programs.spread(own)} | {both:.3f} |", flush=True)


def main(rounds):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        measure(out, "The example `pipeline`", of_pipeline(out, COPIES), rounds)
        # What samples cost once, to look up the functions when the window is written, is most of this one.
        measure(out, "The example `pipeline`, a thirtieth of the files", of_pipeline(out, FEW_COPIES), rounds)
        measure(out, "Two threads compute", of_computing(out), rounds)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
