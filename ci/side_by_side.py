#!/usr/bin/env python3
"""Runs the tests of `cargo test ARGUMENTS`, several test programs at a time.

    ci/side_by_side.py --workspace --all-features --locked
    AT_ONCE=8 ci/side_by_side.py -p hairline-tests --release --locked

`cargo test` runs one program after the other, and many tests wait: for a child, a file, a pause. What a program
prints is shown when it fails. The examples in the documentation are no programs: `cargo test --doc` runs them.
Programs that test when threads run come after all others, one at a time: they need the processors.

AT_ONCE: how many programs run at a time. Default: two for each processor.
TIMES: how many times each program runs, to find tests that fail now and then. Default: 1.
ALONE=1: each test is a process of its own.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

# Seconds after which a test program hangs. The slowest takes a tenth of it.
TIME_LIMIT = 900

# Programs about the times at which threads run. They also share the limited amount of memory that the kernel
# gives all processes of a user for the rings of perf_event_open.
NEED_THE_PROCESSORS = {"samples", "scheduling", "live"}


def built(arguments):
    """The test programs, each with its package's folder: those with much code first, since they take longest."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cargo:
        messages = [json.loads(line) for line in cargo.stdout if line.startswith("{")]
    if cargo.returncode:
        sys.exit(cargo.returncode)
    programs = [
        (message["executable"], message["target"]["name"], os.path.dirname(message["manifest_path"]))
        for message in messages
        if message.get("executable") and message["profile"]["test"]
    ]
    return sorted(programs, key=lambda program: -os.path.getsize(program[0]))


def alone(programs):
    """The tests of the programs, each as a program with arguments."""
    for executable, name, folder in programs:
        tests = subprocess.check_output([executable, "--list", "--format=terse"], cwd=folder, text=True)
        for line in tests.splitlines():
            if test := line.removesuffix(": test"):
                yield executable, f"{name} {test}", folder, ["--exact", test]


def run(executable, name, folder, arguments, libraries):
    """Whether the tests of one program passed."""
    began = time.monotonic()
    # What cargo sets, as far as a test needs it: trybuild its package, a procedural macro the compiler's libraries.
    environment = os.environ | {"CARGO_MANIFEST_DIR": folder, "LD_LIBRARY_PATH": libraries}
    with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
        try:
            status = subprocess.run(
                [executable, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=TIME_LIMIT,
            ).returncode
        except subprocess.TimeoutExpired:
            status = f"it took more than {TIME_LIMIT} s"
        output.seek(0)
        text = output.read()
    about = f"{os.path.basename(folder)}/{name}"
    summary = [line for line in text.splitlines() if line.startswith("test result:")]
    if status == 0 and summary:
        counts = summary[-1].removeprefix("test result: ok. ").split("; ")
        told = [count for count in counts[:3] if not count.startswith("0 ")]  # passed, failed, ignored
        if told:
            print(f"{time.monotonic() - began:6.1f} s  {about}: {', '.join(told)}", flush=True)
        return True
    print(f"\n{text}\n{about} FAILED: {status}\n", flush=True)
    return False


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return
    programs = built(arguments)
    if not programs:
        sys.exit("no tests")
    libraries = subprocess.check_output(["rustc", "--print", "target-libdir"], text=True).strip()
    at_once = int(os.environ.get("AT_ONCE", 2 * len(os.sched_getaffinity(0))))
    if os.environ.get("ALONE") == "1":
        programs = list(alone(programs))
    else:
        programs = [(*program, []) for program in programs]
    programs *= int(os.environ.get("TIMES", 1))
    needs = [program[1].split()[0] in NEED_THE_PROCESSORS for program in programs]
    failed = []
    for group, workers in [(False, at_once), (True, 1)]:
        now = [program for program, need in zip(programs, needs) if need == group]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            passed = pool.map(lambda program: run(*program, libraries), now)
            failed += [name for (_, name, *_), is_good in zip(now, passed) if not is_good]
    if failed:
        sys.exit(f"{len(failed)} of {len(programs)} test programs failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
