#!/usr/bin/env python3
"""Whether samples tell the truth about a program that spends 70 % of its CPU time in one function and 30 % in another,
by Hairline, perf and samply, for programs that are built in each way (see ci/profilers.sh)."""

import collections
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import programs

BURN = programs.ROOT / "tests/samples/burn.rs"
POINTS = 3.0


def builds(out, only):
    """Each way to build the program that has `only` in its name: the name, and the program."""
    def cdylib():
        subprocess.run(["rustc", "--edition=2024", "-O", "-Cdebuginfo=line-tables-only", "--crate-type=cdylib", BURN],
                       cwd=out, check=True)
        return {"features": "library", "flags": ["-L", str(out), f"-Clink-arg=-Wl,-rpath,{out}"]}

    ways = {
        "without frame pointers": lambda: {"flags": ["-Cforce-frame-pointers=no"]},
        "with frame pointers": lambda: {"flags": ["-Cforce-frame-pointers=yes"]},
        "static": lambda: {"flags": ["-Ctarget-feature=+crt-static"]},
        "cdylib": cdylib,
        "panic=abort": lambda: {"flags": ["-Cpanic=abort"]},
        "LTO (fat)": lambda: {"profile": "fat"},
        "LTO (fat), static, panic=abort": lambda: {"profile": "fat", "flags": ["-Cpanic=abort", "-Ctarget-feature=+crt-static"]},
    }
    for n, (name, how) in enumerate(ways.items()):
        if only in name:
            yield name, programs.build(out, f"burns-{n}", "burns", **how())


def firefox_stacks(file, symbolise):
    """The stacks of a profile of the Firefox Profiler, each as frames (function, line), the innermost first. Those without
    names go through `symbolise`."""
    open_it = gzip.open if str(file).endswith(".gz") else open
    with open_it(file, "rt") as opened:
        profile = json.load(opened)
    for thread in profile["threads"]:
        tables = profile["shared"] if "stackTable" in profile.get("shared", {}) else thread
        stacks, frames, functions = tables["stackTable"], tables["frameTable"], tables["funcTable"]
        texts = tables.get("stringArray") or thread.get("stringArray")
        samples = thread["samples"]
        weights = samples.get("weight") or [1] * samples["length"]
        for top, weight in zip(samples["stack"], weights):
            stack, at = [], top
            while at is not None:
                frame = stacks["frame"][at]
                function = functions["name"][frames["func"][frame]]
                if symbolise:
                    resource = functions["resource"][frames["func"][frame]]
                    library = profile["libs"][tables["resourceTable"]["lib"][resource]]["path"] if resource >= 0 else None
                    stack += symbolise(library, frames["address"][frame])
                else:
                    stack.append((texts[function], frames["line"][frame] or 0))
                at = stacks["prefix"][at]
            for _ in range(weight or 0):
                yield stack


class Symbols:
    """Functions and lines by llvm-symbolizer, as a viewer looks them up. (addr2line calls the innermost function of an address
    by the name of the outermost.)"""

    def __init__(self):
        self.known = {}

    def learn(self, library, addresses):
        asked = "".join(f"{address:#x}\n" for address in addresses)
        said = subprocess.run(["llvm-symbolizer", "-a", "-f", "-i", "-C", "--output-style=GNU", "-e", library], input=asked, text=True,
                              capture_output=True, check=False).stdout
        for block in re.split(r"^0x", said, flags=re.M)[1:]:
            lines = block.splitlines()
            frames = [(name, int(re.match(r"\d*", place.rpartition(":")[2])[0] or 0)) for name, place in zip(lines[1::2], lines[2::2])]
            self.known[library, int(lines[0], 16)] = frames

    def __call__(self, library, address):
        if library is None or address < 0:
            return [("?", 0)]
        return self.known.get((library, address), [("?", 0)])


def samply_stacks(file):
    wanted = collections.defaultdict(set)

    def note(library, address):
        if library is not None and address >= 0:
            wanted[library].add(address)
        return []

    for _ in firefox_stacks(file, note):
        pass
    symbols = Symbols()
    for library, addresses in wanted.items():
        symbols.learn(library, sorted(addresses))
    return firefox_stacks(file, symbols)


def perf_stacks(file, name):
    """The stacks of `perf script`, with inlined functions and lines."""
    said = subprocess.run(["perf", "script", "-f", "-i", file, "--comm", name, "-F", "ip,sym,srcline"], text=True,
                          capture_output=True, check=True).stdout
    for block in said.split("\n\n"):
        rows = []  # address, function, line, whether it is inlined
        for line in block.splitlines():
            if found := re.match(r"\s+([0-9a-f]+) (.*)", line):
                rows.append([*found.groups(), 0, False])
            elif rows and (place := re.search(r":(\d+)( \(inlined\))?$", line)):
                rows[-1][2:] = int(place[1]), place[2] is not None
        # A function into which others are inlined comes twice: before them, and with its own line after them.
        after = [*rows[1:], [None, None, 0, False]]
        stack = [row[1:3] for row, next_ in zip(rows, after) if row[3] or row[0] != next_[0]]
        if stack:
            yield stack


def line(text):
    return next(n for n, line in enumerate(BURN.read_text().splitlines(), 1) if text in line)


def judged(stacks):
    """The number of samples; the percentage of `seventy` among those of both functions; those of the program's function
    with a root; those of `seventy` with the functions inlined into it; the same with the right lines."""
    samples, seventy, thirty, rooted, inlined, with_lines = 0, 0, 0, 0, 0, 0
    spend, body, at = line("line of spend"), {line("line of stir"), line("for _ in 0..20_000")}, line("line of seventy")
    for stack in stacks:
        samples += 1
        names = [name for name, _ in stack]
        rooted += any(re.match(r"_start\b|__libc_start_", name) for name in names)
        find = lambda word: next((n for n, name in enumerate(names) if re.search(rf"(?<![a-z]){word}(?![a-z])|\d{word}", name)), None)
        caller = find("seventy")
        thirty += caller is None and find("thirty") is not None
        if caller is None:
            continue
        seventy += 1
        below = (find("stir"), find("spend"))
        if None not in below and below[0] < below[1] < caller:
            inlined += 1
            lines = [stack[n][1] for n in (*below, caller)]
            with_lines += lines[0] in body and lines[1:] == [spend, at]
    both = seventy + thirty
    share = lambda part, whole: 100.0 * part / whole if whole else float("nan")
    return samples, share(seventy, both), share(rooted, samples), share(inlined, seventy), share(with_lines, seventy)


# At a kernel's tick of 4 ms, a thread samples itself 250 times in a second: more rounds, for as many samples.
ROUNDS, MORE_ROUNDS = 200, 600


def recorders(out, hairline, program):
    """Each recorder: its name, and what runs the program and returns the stacks."""
    file = out / "t.pftrace"
    # Rounds of 10 ms could keep step with ticks of 4 ms: hence the other work in between.
    usual = [program, ROUNDS, "uneven"]

    def converted():
        profile = out / "t.firefox.json"
        profile.unlink(missing_ok=True)
        subprocess.run([hairline, "convert", file, profile], check=True, capture_output=True)
        return firefox_stacks(profile, None)

    own = {"HAIRLINE": str(file), "HAIRLINE_SAMPLE": "997"}
    yield "Hairline, perf events", lambda: (programs.run(out, usual, variables=own), converted())[1]
    more = [program, MORE_ROUNDS, "uneven"]
    yield "Hairline, signals (seccomp)", lambda: (programs.run(out, more, variables=own, perf=False), converted())[1]
    record = [hairline, "record", "--sample", "997", "-o", str(file), "--"]
    yield "`hairline record`", lambda: (programs.run(out, usual, record), converted())[1]
    if shutil.which("perf"):
        perf = ["perf", "record", "-q", "-F", "997", "-e", "cpu-clock:u", "--call-graph", "dwarf", "-o", f"{out}/perf.data", "--"]
        yield "perf", lambda: (programs.run(out, usual, perf), perf_stacks(f"{out}/perf.data", program.name))[1]
    else:
        print("perf is not installed: apt install linux-perf", file=sys.stderr)
    if shutil.which("samply") and shutil.which("llvm-symbolizer"):
        samply = [*programs.less_paranoid(out), "samply", "record", "--rate", "997", "--save-only", "-o", f"{out}/samply.json", "--"]
        yield "samply", lambda: (programs.run(out, usual, samply), samply_stacks(f"{out}/samply.json"))[1]
    else:
        print("samply or llvm-symbolizer is not installed: cargo install samply, apt install llvm", file=sys.stderr)


def main(only):
    hairline, missed = programs.hairline_command(), []
    print("| program | recorder | samples | share of `seventy` | with root | inlined functions | and lines |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        for build, program in builds(out, only):
            for recorder, record in recorders(out, hairline, program):
                stacks = record()
                samples, share, rooted, inlined, lines = judged(stacks)
                print(f"| {build} | {recorder} | {samples} | {share:.1f} % | {rooted:.1f} % | {inlined:.1f} % | {lines:.1f} % |", flush=True)
                if "airline" in recorder and not (abs(share - 70) <= POINTS and rooted >= 98 and lines >= 90):
                    missed.append(f"{build}, {recorder}")
    if missed:
        sys.exit("not the truth: " + "; ".join(missed))


main(sys.argv[1] if len(sys.argv) > 1 else "")
