#!/usr/bin/env python3
"""Puts the figures that `report` prints where README.md and docs/performance.md have room for them:

    <!-- report --cold -->             all rows of these parts
    <!-- in short: --events -->        a few of them, the formats side by side (SHORT below)
    ...
    <!-- end of report -->

The files given as arguments, or both.
"""
import functools, json, pathlib, re, subprocess, sys

root = pathlib.Path(__file__).resolve().parent.parent
run = ["cargo", "run", "--release", "-q", "-p", "hairline-benches", "--bin", "report", "--", "--json"]

# What the rows are called in short, what they are called in the report (with the format's name for *), and what their floor is.
SHORT = [
    ("scope", "*: scope", "two clock reads"),
    ("scope + i64 + &str of 16", "*: scope + i64 + &str of 16", "two clock reads"),
    ("what a scope adds around 60 ns of work", "*: scope around 60 ns of work", "what two clock reads add there"),
    ("the same with i64 + &str of 16", "*: scope + i64 + &str of 16 around 60 ns of work", "what two clock reads add there"),
    ("scope + flow", "*: scope + flow", "two clock reads"),
    ("scope in a flight recorder", "*: scope, flight recorder", "two clock reads"),
    ("instant", "*: instant", "one clock read"),
    ("counter", "*: counter", "one clock read"),
    ("async interval", "*: async begin and end", "two clock reads"),
    ("slice on a track", "*: slice on a track, begin and end", "two clock reads"),
    ("span of `tracing`, `Subscriber`", "tracing, Subscriber *: span", "a subscriber that does nothing"),
    ("span of `tracing`, `layer`", "tracing, layer *: span", "a registry without it"),
    ("scope while nothing is recorded", "scope, no session", "an empty loop"),
]

MISSED = "**missed:** "


@functools.cache
def report(parts):
    text = subprocess.run(run + parts.split(), cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)


def number(value):
    return f"{value:.2f}" if value else ""


def budget(row):
    words = {
        "at most": "<= {} {unit}",
        "at least": ">= {} {unit}",
        "ratio to the floor, at least": ">= {} x floor",
        "above the floor, at most": "<= floor + {} {unit}",
    }
    text = words.get(row["budget_is"], "<= {} x floor").format(f"{row['budget']:.9g}", unit=row["unit"])
    return text if row["within"] else MISSED + text


def is_nothing(row):
    """Whether the row says that something did not happen, like a lost event."""
    return row["within"] and row["ns_median"] == 0 and not row["floor_ns"]


def alone(row):
    figures = [f"{row['ns_min']:.2f}", f"{row['ns_median']:.2f}", number(row["floor_ns"]), number(row["ratio"]), budget(row)]
    return f"| {row['name']} ({row['unit']}) | " + " | ".join(figures) + " |"


def side_by_side(name, fxt, track_event):
    figures = []
    for row in (fxt, track_event):
        floor = f"{row['ratio']:.2f} x {row['floor_ns']:.2f}" if row["floor_ns"] else ""
        figures += [f"{row['ns_median']:.2f} ({row['ns_min']:.2f})", floor]
    budgets = "; ".join(dict.fromkeys(budget(row).removeprefix(MISSED) for row in (fxt, track_event)))
    missed = [format for format, row in (("FXT", fxt), ("TrackEvent", track_event)) if not row["within"]]
    budgets = MISSED + budgets if len(missed) == 2 else f"{budgets} (**missed:** {missed[0]})" if missed else budgets
    return f"| {name} ({fxt['unit']}) | " + " | ".join(figures) + f" | {budgets} |"


def whole(rows):
    """Two tables: the rows of one format or of none, and those of both formats."""
    rows = {row["name"]: row for row in rows if not is_nothing(row)}
    singles, pairs = [], []
    for name, row in rows.items():
        other = rows.get(name.replace("TrackEvent:", "FXT:") if "TrackEvent:" in name else name.replace("FXT:", "TrackEvent:"))
        if other in (None, row):
            singles.append(alone(row))
        elif "FXT:" in name:
            pairs.append(side_by_side(re.sub(r"^FXT: | FXT(?=: )", "", name), row, other))
    if singles:
        yield from ["| | min | median | floor | ratio | budget |", "|---|---:|---:|---:|---:|---:|", *singles]
    if singles and pairs:
        yield ""
    if pairs:
        yield "| median (min) | FXT | ratio x floor | TrackEvent | ratio x floor | budget |"
        yield from ["|---|---:|---:|---:|---:|---:|", *pairs]


def short(rows):
    rows = {row["name"]: row for row in rows}
    for name, full, floor in SHORT:
        both = [rows.get(full.replace("*", format)) for format in ("FXT", "TrackEvent")]
        if None not in both:
            figures = [f"{row['ns_median']:.1f} ({row['ratio']:.2f} x)" for row in both]
            yield f"| {name} | {figures[0]} | {figures[1]} | {floor} |"


def table(mark):
    if mark["short"]:
        head = ["| ns | FXT | TrackEvent | what it is compared with |", "|---|---:|---:|---|"]
        return head + list(short(report(mark["parts"])))
    return list(whole(report(mark["parts"])))


for name in sys.argv[1:] or ["README.md", "docs/performance.md"]:
    file = root / name
    marked = re.compile(r"(?P<mark><!-- (?:report|(?P<short>in short:))(?P<parts>[^>]*) -->\n).*?(?P<end><!-- end of report -->)", flags=re.S)
    file.write_text(marked.sub(lambda m: m["mark"] + "\n".join(table(m)) + "\n" + m["end"], file.read_text()))
