"""The CPU time of a program, and what Hairline said at its end."""

import os
import re
import subprocess
from dataclasses import dataclass

# The program without Hairline, with Hairline while nothing is recorded, recording into each format, and with
# another tracer.
STATES = ["without", "off", "fxt", "pftrace", "peer"]
# The program that shows what a session costs: a search of one file.
START = "start and end"
SUMMARY = re.compile(r"^hairline: .*: ([\d,]+) records, ([\d,]+) bytes", re.MULTILINE)
LOST = re.compile(r"^hairline: .*[:,] ([\d,]+) events lost", re.MULTILINE)


@dataclass
class Run:
    output: str         # its standard output
    cpu: float          # seconds of user and system time
    records: int = 0
    bytes: int = 0
    lost: int = 0


def environment(state, trace, mode):
    """A recording program waits for room in its ring: the checks are about events, not about loss."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HAIRLINE")}
    if state in ("fxt", "pftrace"):
        variables |= {"HAIRLINE": str(trace), "HAIRLINE_LOG": "info", "HAIRLINE_OVERFLOW": "block",
                      "HAIRLINE_LEVEL": "trace"}
    if mode:
        variables["HAIRLINE_MODE"] = mode
    if state == "peer":
        variables["PEER"] = str(trace)
    return variables


def run(command, state, trace, mode=None, converse=None):
    """Runs a program to its end. `converse` gets its standard input and output."""
    errors = trace.with_suffix(".errors")
    with open(errors, "w") as stderr:
        process = subprocess.Popen(
            command, env=environment(state, trace, mode), stderr=stderr, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
    if converse:
        converse(process)
    process.stdin.close()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    said = errors.read_text()
    if status != 0:
        raise SystemExit(f"ci/programs: {' '.join(map(str, command))} failed ({status}):\n{output}{said}")
    result = Run(output, usage.ru_utime + usage.ru_stime)
    if summary := SUMMARY.search(said):
        numbers = *summary.groups(), LOST.search(said)[1]
        result.records, result.bytes, result.lost = (int(number.replace(",", "")) for number in numbers)
    if state == "peer":
        result.bytes = trace.stat().st_size
    return result


def times(program, rounds, folder):
    """The runs of each state, in turn, so that all states meet the same weather."""
    states = [state for state in STATES if state != "peer" or program.has_peer]
    runs = {state: [] for state in states}
    for turn in range(rounds):
        for step in range(len(states)):
            state = states[(turn + step) % len(states)]
            runs[state].append(program.run(state, folder / f"measured.{state}"))
    return runs


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


class Table:
    """Prints a row for each state of each program."""

    def __init__(self):
        self.start = dict.fromkeys(STATES, 0.0)
        print("""\
| program | Hairline | CPU ms, least | median | of off | records | MB | ns a record |
|---|---|---:|---:|---:|---:|---:|---:|""", flush=True)

    def add(self, name, runs):
        """`a record` is the median's distance from `off`, without that of a program that records next to
        nothing: a session's start and end."""
        medians = {state: median([run.cpu for run in of_state]) for state, of_state in runs.items()}
        if name == START:
            self.start = {state: of_state - medians["off"] for state, of_state in medians.items()}
        for state in runs:
            least = min(run.cpu for run in runs[state])
            row = f"| {name} | {state} | {least * 1e3:.1f} | {medians[state] * 1e3:.1f} "
            row += f"| {medians[state] / medians['off']:.3f} x |"
            records = median([run.records for run in runs[state]])
            size = median([run.bytes for run in runs[state]])
            if state == "peer":
                row += f" | {size / 1e6:.2f} | |"
            elif records and name != START:
                each = (medians[state] - medians["off"] - self.start[state]) / records
                row += f" {records:.0f} | {size / 1e6:.2f} | {each * 1e9:.0f} |"
            else:
                row += " | | |"
            print(row, flush=True)
