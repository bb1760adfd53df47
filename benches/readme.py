#!/usr/bin/env python3
"""Puts the table that `report` prints (stdin, or run here) into README.md, without its last column."""
import pathlib, re, subprocess, sys

root = pathlib.Path(__file__).resolve().parent.parent
run = ["cargo", "run", "--release", "-q", "-p", "hairline-benches", "--bin", "report"]
text = sys.stdin.read() if "-" in sys.argv[1:] else subprocess.run(run, cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout
rows = [[cell.strip() for cell in line.strip().strip("|").split("|")][:6] for line in text.splitlines() if line.startswith("|")]
table = ["| | min | median | floor | ratio | budget |", "|---|---:|---:|---:|---:|---:|"]
table += ["| " + " | ".join(row) + " |" for row in rows[2:]]
readme = root / "README.md"
old = readme.read_text()
new = re.sub(r"(<!-- report -->\n).*?(\n<!-- end of report -->)", lambda m: m[1] + "\n".join(table) + m[2], old, flags=re.S)
readme.write_text(new)
