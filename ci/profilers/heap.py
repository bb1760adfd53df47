#!/usr/bin/env python3
"""Heap profiles of Hairline, jemalloc, heaptrack and dial9 beside what a program knows of itself (see ci/profilers.sh).

    heap.py sums [SCALE]      the bytes and blocks of each function, allocated and live at the end
    heap.py cost [ROUNDS] [SCALE]   the program's CPU time with each (PLAN=parses: of the program that reads text)
    heap.py leak [SECONDS]    whether a leak of 100 KiB in a second is found
    heap.py oom               whether the peak is in the file when the kernel kills the program for its memory
"""

import collections
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import programs

MEAN = 512 << 10  # bytes between two samples
CONF = "prof:true,lg_prof_sample:19"
KINDS = ("small", "small_kept", "medium", "medium_kept", "large", "large_kept")
COLUMNS = ("bytes allocated", "blocks allocated", "bytes live", "blocks live")


def function_of(names):
    """The function of the plan that a stack is in."""
    for name in names:
        if (found := re.search(r"(?:\ballocates::|^)(\w+)", name)) and found[1] in KINDS:
            return found[1]
    return None


# Each row of trace_processor's table is a change of one call stack, allocated or freed, at the time of a dump.
NAMED = r"""create perfetto table named as
    with recursive up(callsite, at, level) as (
      select distinct callsite_id, callsite_id, 0 from heap_profile_allocation union all
      select callsite, parent_id, level + 1 from up join stack_profile_callsite c on c.id = at where parent_id is not null),
    functions as (select callsite, s.name from up join stack_profile_callsite c on c.id = up.at
      join stack_profile_frame f on f.id = c.frame_id join stack_profile_symbol s using (symbol_set_id)
      where s.name glob 'allocates::*' and s.name not glob '*::block' and s.name not glob '*::main' order by callsite, level, s.id)
    select callsite, min(name) as function from (select callsite, first_value(name) over (partition by callsite) as name
      from functions) group by callsite"""


def ask(trace, *sql):
    """The rows of each question to Perfetto's trace_processor (tests/oracle)."""
    request = json.dumps({"id": 1, "trace": str(trace), "sql": [NAMED, *sql]})
    command = ["node", str(programs.ROOT / "tests/oracle/judge.mjs")]
    said = subprocess.run(command, input=request + "\n", text=True, capture_output=True, check=True).stdout
    answer = json.loads(said.splitlines()[-1])
    if answer.get("error"):
        sys.exit(f"{answer['error']}: run tests/oracle/setup.sh first")
    return [[[int(cell) if str(cell).lstrip("-").isdigit() else cell for cell in row] for row in result["rows"]]
            for result in answer["results"][1:]]


def by_hairline(out, program, scale):
    trace = out / "t.pftrace"
    ran = programs.run(out, plan(program, scale), variables={"HAIRLINE": str(trace), "HAIRLINE_HEAP": "512K"})
    (rows,) = ask(trace, "select function, sum(max(size, 0)), sum(max(count, 0)), sum(size), sum(count) "
                         "from heap_profile_allocation join named on callsite = callsite_id group by 1")
    sums = {kind: [0] * 4 for kind in KINDS}
    sums |= {function.removeprefix("allocates::"): numbers for function, *numbers in rows}
    return ran, sums


def plan(program, scale):
    return [program, os.environ.get("PLAN", "sums"), scale]


def addresses_named(stacks, exe, maps):
    """Looks up the functions of addresses in memory, by the lines of /proc/PID/maps."""
    base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(str(exe)))
    all_of_them = sorted({address for stack in stacks for address in stack})
    asked = "".join(f"{max(address - base - 1, 0):#x}\n" for address in all_of_them)
    said = subprocess.run(["addr2line", "-a", "-f", "-i", "-C", "-e", exe], input=asked, text=True, capture_output=True, check=True)
    blocks = re.split(r"^0x[0-9a-f]+\n", said.stdout, flags=re.M)[1:]
    return {address: block.splitlines()[::2] for address, block in zip(all_of_them, blocks)}


def by_jemalloc(out, program, scale):
    for old in out.glob("jeprof*"):
        old.unlink()
    conf = f"{CONF},prof_accum:true,prof_final:true,prof_prefix:{out}/jeprof"
    ran = programs.run(out, plan(program, scale), variables={"MALLOC_CONF": conf})
    (dump,) = out.glob("jeprof*.heap")
    text, _, maps = dump.read_text().partition("MAPPED_LIBRARIES:")
    stacks = {}
    for found in re.finditer(r"^@((?: 0x[0-9a-f]+)+)\n\s+t\*: (\d+): (\d+) \[(\d+): (\d+)\]", text, re.M):
        stacks[tuple(int(word, 16) for word in found[1].split())] = [int(found[n]) for n in (5, 4, 3, 2)]
    names = addresses_named(stacks, program, maps.splitlines())
    sums = {kind: [0.0] * 4 for kind in KINDS}
    for stack, numbers in stacks.items():
        kind = function_of(name for address in stack for name in names[address])
        if kind is None:
            continue
        for n in (0, 2):  # as jeprof does: by the mean size of the stack's blocks
            size, count = numbers[n], numbers[n + 1]
            if count:
                factor = 1 / (1 - math.exp(-size / count / MEAN))
                sums[kind][n] += size * factor
                sums[kind][n + 1] += count * factor
    return ran, sums


def by_heaptrack(out, program, scale):
    for old in out.glob("heaptrack*"):
        old.unlink()
    # It preloads its library into the program itself only, not into what that starts.
    ran = programs.run(out, ["heaptrack", "-o", f"{out}/heaptrack", *plan(program, scale)])
    (file,) = out.glob("heaptrack*")
    sums = {kind: [None, 0, 0, None] for kind in KINDS}
    start = time.monotonic()
    for column, cost in ((1, "allocations"), (2, "leaked")):
        flames = out / "flames"
        subprocess.run(["heaptrack_print", "-f", file, "-F", flames, "--flamegraph-cost-type", cost], capture_output=True, check=True)
        for line in flames.read_text().splitlines():
            stack, _, weight = line.rpartition(" ")
            if kind := function_of(reversed(stack.split(";"))):
                sums[kind][column] += int(weight)
    print(f"heaptrack: {file.stat().st_size / 1e6:.0f} MB, read in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return ran, sums


def truth_of(said):
    lines = (line.split() for line in said.splitlines())
    return {words[0]: [int(n) for n in words[1:]] for words in lines if words and words[0] in KINDS}


def expected(kind, truth, column):
    """The standard error of a sampled sum, as a part of it."""
    size = truth[kind][0] / truth[kind][1]
    samples = truth[kind][column] if column in (1, 3) else truth[kind][column] / size
    chance = 1 - math.exp(-size / MEAN)
    return math.sqrt((1 - chance) / (samples * chance)) if samples else 0.0


def sums(out, scale):
    heap = programs.build(out, "heap", "allocates", features="heap")
    tools = [("Hairline", lambda: by_hairline(out, heap, scale))]
    jemalloc = programs.build(out, "jemalloc", "allocates", features="jemalloc")
    tools.append(("jemalloc", lambda: by_jemalloc(out, jemalloc, scale)))
    if shutil.which("heaptrack"):
        system = programs.build(out, "system", "allocates")
        tools.append(("heaptrack", lambda: by_heaptrack(out, system, scale)))
    print("| | function | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---:|" * len(COLUMNS))
    missed = []
    for tool, measure in tools:
        ran, found = measure()
        notes = [line for line in ran.errors.splitlines() if "heap profile" in line]
        print(tool, *notes, sep=": ", file=sys.stderr)
        truth = truth_of(ran.said)
        total = [0.0] * 4
        for kind in KINDS:
            cells = []
            for column in range(4):
                if truth[kind][min(column | 1, 3)] < 100 or found[kind][column] is None:  # of "none", one is kept
                    cells.append("")
                    continue
                ratio = found[kind][column] / truth[kind][column]
                error = expected(kind, truth, column)
                cells.append(f"{ratio:.3f} (+- {error:.3f})" if tool != "heaptrack" else f"{ratio:.3f}")
                total[column] += found[kind][column]
                if tool == "Hairline" and abs(ratio - 1) > max(0.05, 4 * error):
                    missed.append(f"{kind}: {ratio:.3f} of the {COLUMNS[column]}")
            print(f"| {tool} | `{kind}` | " + " | ".join(cells) + " |")
        whole = [sum(truth[kind][column] for kind in KINDS) for column in range(4)]
        print(f"| {tool} | all | " + " | ".join(f"{part / all_of_it:.3f}" if part else "" for part, all_of_it in zip(total, whole)) + " |", flush=True)
    if missed:
        sys.exit("not the truth: " + "; ".join(missed))


def cost(out, rounds, scale):
    system = programs.build(out, "system", "allocates")
    heap = programs.build(out, "heap", "allocates", features="heap")
    jemalloc = programs.build(out, "jemalloc", "allocates", features="jemalloc")
    dial9 = programs.build(out, "dial9", "allocates", features="dial9", flags=["-Cforce-frame-pointers=yes"])
    session = {"HAIRLINE": f"{out}/t.pftrace"}
    ways = [
        ("system", [system], (), {}, None),
        ("`Heap`, no session", [heap], (), {}, "system"),
        ("`Heap`, a session without a profile", [heap], (), session, "system"),
        ("`Heap`, `HAIRLINE_HEAP=512K`", [heap], (), {**session, "HAIRLINE_HEAP": "512K"}, "system"),
        ("jemalloc", [jemalloc], (), {}, "system"),
        (f"jemalloc, `{CONF}`", [jemalloc], (), {"MALLOC_CONF": f"{CONF},prof_final:true,prof_prefix:{out}/jeprof"}, "jemalloc"),
        ("`Dial9Allocator`, frame pointers, not recording", [dial9], (), {}, "system"),
        ("dial9, 512 KiB, with frees", [dial9], (), {"DIAL9": f"{out}/d9", "DIAL9_RECORDS": "heap"}, "system"),
    ]
    if shutil.which("heaptrack"):
        command = ["heaptrack", "-o", f"{out}/heaptrack", system]
        ways.append(("heaptrack, with the process that reads for it", command, (), {}, "system"))
    cpu = {name: [] for name, *_ in ways}
    for round in range(rounds + 1):
        turn = round % len(ways)
        for name, program, prefix, variables, _ in ways[turn:] + ways[:turn]:
            if name.startswith("heaptrack") and round > 3:
                continue  # some ten times as long as the others
            ran = programs.run(out, [*program, os.environ.get("PLAN", "work"), scale], prefix, variables)
            if round > 0:
                cpu[name].append(ran.cpu)
    print(f"| {rounds} rounds in turn at scale {scale}: CPU time | beside | min | lower quartile | median | upper quartile |\n|---|---|---:|---:|---:|---:|")
    print(f"| system's allocator | | {min(cpu['system']):.3f} s | | {statistics.median(cpu['system']):.3f} s | |")
    for name, _, _, _, base in ways[1:]:
        ratios = [mine / other for mine, other in zip(cpu[name], cpu[base])]
        print(f"| {name} | {base} | {programs.spread(ratios)} |", flush=True)
    profile, counted = cpu["`Heap`, `HAIRLINE_HEAP=512K`"], cpu["`Heap`, a session without a profile"]
    print(f"| the profile alone | a session without one | {programs.spread([a / b for a, b in zip(profile, counted)])} |")


def leak(out, seconds):
    """A dump at each new peak of 512 KiB: what has grown from the dump after a fifth of the run to the end."""
    heap = programs.build(out, "heap", "allocates", features="heap")
    trace = out / "t.pftrace"
    ran = programs.run(out, [heap, "leaks", seconds], variables={"HAIRLINE": str(trace), "HAIRLINE_HEAP": "512K,peak:512K"})
    since = f"(select min(ts) + {seconds} * 200000000 from heap_profile_allocation)"
    grown, live, dumps = ask(
        trace,
        f"select function, sum(size) from heap_profile_allocation join named on callsite = callsite_id where ts > {since} group by 1 order by 2 desc",
        "select function, sum(size) from heap_profile_allocation join named on callsite = callsite_id group by 1 order by 2 desc",
        "select count(distinct ts) from heap_profile_allocation")
    show = lambda rows: ", ".join(f"`{function}` {size / 1024:.0f} KiB" for function, size in rows)
    print(f"leaked in {seconds} s: {ran.said.strip()}; {dumps[0][0]} dumps", ran.errors.strip())
    print(f"grown since {seconds / 5:.0f} s: {show(grown)}\nlive at the end: {show(live)}")
    if not grown or grown[0][0] != "allocates::leaks":
        sys.exit("the leak is not what has grown most")


def peak_of(trace):
    """What `hoards` has live in the last dump, in bytes."""
    (rows,) = ask(trace, "select coalesce(sum(size), 0) from heap_profile_allocation join named on callsite = callsite_id "
                         "where function glob '*hoards'")
    return rows[0][0]


def oom(out):
    """By the memory limit of a cgroup (version 1 or 2) if this user may make one, else a watcher sends SIGKILL."""
    hairline = programs.hairline_command()
    heap = programs.build(out, "heap", "allocates", features="heap")
    group, limit = None, 256 << 20
    for folder, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        try:
            made = pathlib.Path(folder, f"hairline-{os.getpid()}")
            made.mkdir()
            if (made / file).exists():
                (made / file).write_text(str(limit))
                group = made
                break
            made.rmdir()
        except OSError:
            continue
    print("killed by", "the kernel's OOM killer, in a cgroup of 256 MiB" if group else "SIGKILL at 256 MiB")
    missed = False
    for extension in "pftrace", "fxt":
        for pause in 10, 2, 0:
            trace = out / f"oom-{pause}.{extension}"
            variables = {**os.environ, "HAIRLINE": str(trace), "HAIRLINE_HEAP": "512K,peak:16M"}
            join = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
            process = subprocess.Popen([heap, "hoards", "4096", str(pause)], env=variables, preexec_fn=join, stderr=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            while group is None and process.poll() is None:
                status = pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()
                if len(status) > 1 and int(status[1]) * os.sysconf("SC_PAGE_SIZE") > limit:
                    process.kill()
                time.sleep(0.001)
            process.communicate(timeout=120)
            killed = process.returncode == -signal.SIGKILL
            before = peak_of(trace) if killed and trace.exists() else 0
            subprocess.run([hairline, "recover", str(trace)], capture_output=True, check=False)
            after = peak_of(trace) if killed and trace.exists() else 0
            print(f"{extension}, a MiB in {pause} ms: exit {process.returncode}; the last peak has {before / 2**20:.0f} MiB by `hoards`, "
                  f"after `hairline recover` {after / 2**20:.0f} MiB", flush=True)
            missed |= not killed or after < limit / 2
    if group:
        group.rmdir()
    if missed:
        sys.exit("a peak is missing")


def main(what, number, scale):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        match what:
            case "sums": sums(out, number or 1)
            case "cost": cost(out, number or 15, scale or 2)
            case "leak": leak(out, number or 60)
            case "oom": oom(out)
            case _: sys.exit(__doc__)


numbers = [int(argument) for argument in sys.argv[2:]] + [0, 0]
main(sys.argv[1] if len(sys.argv) > 1 else "", *numbers[:2])
