#!/usr/bin/env python3
"""Checks that all engines gave the same rows, and that the rows are true. Shows how times grow.

    compare.py rows OUT TRUTH...     OUT/ENGINE/QUESTION.csv and the files of hairline-fleet
    compare.py growth OUT...         one folder for each size, the smallest first
"""

import collections
import csv
import json
import pathlib
import sys


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def engines_of(out):
    return sorted(folder.name for folder in out.iterdir() if (folder / "seconds.json").exists())


def compare(out):
    """Checks that all engines agree. Returns the answers."""
    engines = engines_of(out)
    if len(engines) < 2:
        sys.exit(f"{out}: only {engines} answered")
    questions = sorted(path.stem for path in (out / engines[0]).glob("*.csv"))
    answers = {}
    for question in questions:
        expected = rows_of(out / engines[0] / f"{question}.csv")
        for engine in engines[1:]:
            found = rows_of(out / engine / f"{question}.csv")
            if found != expected:
                pairs = zip(found + [None], expected + [None])
                at = next(n for n, (one, other) in enumerate(pairs) if one != other)
                sys.exit(f"{question}: row {at} differs\n  {engines[0]}: {expected[at:at + 1]}\n"
                         f"  {engine}: {found[at:at + 1]}")
        names, *rows = expected
        if not rows:
            sys.exit(f"{question}: no rows")
        answers[question] = [dict(zip(names, row)) for row in rows]
    print(f"{len(questions)} questions, equal rows from {', '.join(engines)}")
    return answers


def truth_of(paths):
    """Adds up what the generator counted."""
    total = {"slices": 0, "stalled": [], "lost": {}, "fan_out": collections.Counter(),
             "requests": collections.Counter()}
    for path in paths:
        truth = json.loads(path.read_text())
        total["slices"] += truth["slices"]
        total["stalled"] += truth["stalled"]
        total["lost"].update(truth["lost"])
        total["fan_out"].update({str(processes): flows for processes, flows in truth["fan_out"]})
        for row in truth["requests"]:
            total["requests"][row["service"], row["version"], "requests"] += row["requests"]
            total["requests"][row["service"], row["version"], "failures"] += row["failures"]
    return total


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}:\n  found    {found}\n  expected {expected}")
    print(f"true: {what}")


def check(answers, truth):
    def number(trace):
        return trace.replace("-", "")

    slices = sum(int(row["total"]) for row in answers["01_p99_by_service"])
    expect("the number of slices", slices, truth["slices"])
    slower = [(row["service"], row["name"]) for row in answers["02_regressions"]]
    expect("what is slower in the new build", slower, [("orders", "price")])
    stalled = sorted(number(row["trace"]) for row in answers["03_not_running"])
    expect("the traces with a slice that did not run", stalled, sorted(truth["stalled"]))
    found = collections.Counter()
    for row in answers["05_errors"]:
        for count in ["requests", "failures"]:
            found[row["service"], row["version"], count] += int(row[count])
    expect("the failures of each build", found, truth["requests"])
    flows = collections.Counter()
    for row in answers["06_fan_out"]:
        flows[row["processes"]] += int(row["flows"])
    expect("the flows over processes", flows, truth["fan_out"])
    lost = {number(row["trace"]): int(row["lost_events"]) for row in answers["10_incomplete"]}
    expect("the traces that lack events", lost, truth["lost"])


def growth(outs):
    """Prints a table: the seconds of each question at each size, and how they grew."""
    sizes = [int(out.name) for out in outs]
    print("| engine | question | " + " | ".join(f"{size} traces" for size in sizes) + " | growth |")
    print("|---|---|" + "---:|" * (len(sizes) + 1))
    for engine in engines_of(outs[-1]):
        times = [json.loads((out / engine / "seconds.json").read_text()) for out in outs]
        for question in [*times[0], "all"]:
            all_of = [sum(time.values()) if question == "all" else time[question] for time in times]
            cells = " | ".join(f"{seconds:.2f} s" for seconds in all_of)
            print(f"| {engine} | {question} | {cells} | x {all_of[-1] / max(all_of[0], 0.001):.1f} |")
    print(f"\nThe number of traces grew x {sizes[-1] / sizes[0]:.0f}.")


if sys.argv[1:2] == ["rows"] and len(sys.argv) > 3:
    out, *truths = map(pathlib.Path, sys.argv[2:])
    check(compare(out), truth_of(truths))
elif sys.argv[1:2] == ["growth"] and len(sys.argv) > 2:
    growth([pathlib.Path(argument) for argument in sys.argv[2:]])
else:
    sys.exit(__doc__)
