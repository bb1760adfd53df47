"""Runs the programs of other people, asks the judge about their traces, and measures them."""

import argparse
import sys
import tempfile
from pathlib import Path

import measure
from judge import Judge, Wrong
from programs import all_programs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--tool", type=Path, help="the command `hairline`; without it no cause is asked for")
    parser.add_argument("--quick", action="store_true", help="fewer files and requests, three runs")
    parser.add_argument("--only", metavar="NAME", help="programs whose name has this in it")
    parser.add_argument("--no-check", action="store_true", help="only measure")
    parser.add_argument("--no-times", action="store_true", help="only ask the judge")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="leave the checked traces here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        programs = all_programs(options.binaries, scratch, options.quick)
        wanted = lambda name: name == measure.START or (options.only or "") in name
        programs = [program for program in programs if wanted(program.name)]
        folder = options.keep or scratch
        folder.mkdir(parents=True, exist_ok=True)
        wrong = 0
        if not options.no_check:
            judge = Judge()
            wrong = sum(check(program, judge, folder) for program in programs)
            if options.tool:
                wrong += sum(explain(program, options.tool, folder) for program in programs)
        if not options.no_times:
            table = measure.Table()
            for program in programs:
                table.add(program.name, measure.times(program, 3 if options.quick else 11, scratch))
    sys.exit(f"ci/programs: {wrong} traces or causes are wrong" if wrong else 0)


def check(program, judge, folder):
    """The number of traces of a program that are wrong."""
    wrong = 0
    for mode in program.modes:
        for state in ("fxt", "pftrace"):
            what = ", ".join(filter(None, [program.name, mode]))
            trace = folder / f"{what.replace(', ', '-').replace(' ', '-')}.{state}"
            what += f", {state}"
            run = program.run(state, trace, mode)
            try:
                if run.lost or not run.records:
                    raise Wrong(f"{run.records} records, {run.lost} lost")
                said = program.check(judge, trace, run, mode)
                print(f"{what}: {run.records} records; {said}: ok", flush=True)
            except Wrong as mistake:
                print(f"{what}: {mistake}", flush=True)
                wrong += 1
    return wrong


def explain(program, tool, folder):
    """The number of planted causes that `hairline explain` does not find."""
    wrong = 0
    for arguments, requests, causes in getattr(program, "causes", []):
        for state in ("fxt", "pftrace"):
            what = f"{program.name}, {state}, {arguments}"
            try:
                program.explain(tool, folder, state, arguments, requests, causes)
                print(f"{what}: explained", flush=True)
            except Wrong as mistake:
                print(f"{what}: {mistake}", flush=True)
                wrong += 1
    return wrong


if __name__ == "__main__":
    main()
