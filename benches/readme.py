#!/usr/bin/env python3
"""Puts the tables that `report` prints, without their last column, where README.md and docs/performance.md have room for them:

    <!-- report --cold -->
    ...
    <!-- end of report -->

with the parts that are to be run between `report` and the end of the mark. The files given as arguments, or both.
"""
import pathlib, re, subprocess, sys

root = pathlib.Path(__file__).resolve().parent.parent
run = ["cargo", "run", "--release", "-q", "-p", "hairline-benches", "--bin", "report", "--"]


def table(parts):
    text = subprocess.run(run + parts, cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")][:6] for line in text.splitlines() if line.startswith("|")]
    lines = ["| | min | median | floor | ratio | budget |", "|---|---:|---:|---:|---:|---:|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows[2:]])


for name in sys.argv[1:] or ["README.md", "docs/performance.md"]:
    file = root / name
    marked = re.compile(r"(<!-- report([^>]*) -->\n).*?(<!-- end of report -->)", flags=re.S)
    file.write_text(marked.sub(lambda m: m[1] + table(m[2].split()) + "\n" + m[3], file.read_text()))
