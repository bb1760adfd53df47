#!/usr/bin/env python3
"""Runs the tests of `cargo test ARGUMENTS`, several test programs at a time.

    ci/side_by_side.py --workspace --all-features --locked
    AT_ONCE=8 ci/side_by_side.py -p hairline-tests --release --locked

`cargo test` runs one program after the other, and many tests wait: for a child, a file, a pause. What a program
prints is shown when it fails. The examples in the documentation are no programs: `cargo test --doc` runs them.
Programs that test when threads run come after all others, one at a time: they need the processors.

A test that fails beside others runs once more at the end, alone. If it passes then, it is named as unstable, with the
output of its failure, and the run goes on: it is a fault to be mended, but it does not hold up everything else. More
than two such tests fail the run, and so does each that fails again.

AT_ONCE: how many programs run at a time. Default: two for each processor.
TIMES: how many times each program runs, to find tests that fail now and then: none runs once more. Default: 1.
ALONE=1: each test is a process of its own.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# Seconds after which a test program hangs. The slowest takes a tenth of it.
TIME_LIMIT = 900

# Programs about the times at which threads run. They also share the limited amount of memory that the kernel
# gives all processes of a user for the rings of perf_event_open.
NEED_THE_PROCESSORS = {"samples", "scheduling", "live"}
# Of these programs, the tests whose names have this word: they run after all others too.
NEED_THEM_IN_PART = {"tools": "causes::"}

# Programs whose tests wait most of their time, for children and for pauses: so many tests for each processor run at
# once.
WAIT = {"reliability": 3}

# How many tests may pass only the second time.
MOST_UNSTABLE = 2


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


def parts(executable, name, folder):
    """A program as it runs: whole, or without the tests that need the processors, and these."""
    word = NEED_THEM_IN_PART.get(name)
    if word is None:
        yield executable, name, folder, [], name in NEED_THE_PROCESSORS
    else:
        yield executable, name, folder, ["--skip", word], False
        yield executable, f"{name} {word.strip(':')}", folder, [word], True


def run(executable, name, folder, arguments, libraries):
    """The tests of one program that failed: None if all passed, no names if the program did not come to its end."""
    began = time.monotonic()
    # What cargo sets, as far as a test needs it: trybuild its package, a procedural macro the compiler's libraries.
    environment = os.environ | {"CARGO_MANIFEST_DIR": folder, "LD_LIBRARY_PATH": libraries}
    if name in WAIT:
        environment |= {"RUST_TEST_THREADS": str(WAIT[name] * len(os.sched_getaffinity(0)))}
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
        return None
    print(f"\n{text}\n{about} FAILED: {status}\n", flush=True)
    return re.findall(r"^test (\S+) \.\.\. FAILED$", text, flags=re.M) if summary else []


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
        programs = [(*program, program[1].split()[0] in NEED_THE_PROCESSORS) for program in alone(programs)]
    else:
        programs = [part for program in programs for part in parts(*program)]
    programs *= int(os.environ.get("TIMES", 1))
    failed = []
    for group, workers in [(False, at_once), (True, 1)]:
        now = [program for *program, need in programs if need == group]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            results = pool.map(lambda program: run(*program, libraries), now)
            failed += [(program, tests) for program, tests in zip(now, results) if tests is not None]
    count = sum(len(tests) for _, tests in failed)
    if "TIMES" not in os.environ and all(tests for _, tests in failed) and count <= MOST_UNSTABLE:
        failed = [(program, tests) for program, tests in failed if not are_unstable(program, tests, libraries)]
    if failed:
        names = ", ".join(name for (_, name, *_), _ in failed)
        sys.exit(f"{len(failed)} of {len(programs)} test programs failed: {names}")


def are_unstable(program, tests, libraries):
    """Whether tests that failed beside others pass alone. Says so."""
    executable, name, folder, _ = program
    for test in tests:
        if run(executable, f"{name} {test}", folder, ["--exact", test], libraries) is not None:
            return False
        print(f"UNSTABLE: {name} {test} failed beside other tests, see above, and passed alone", flush=True)
    return True


if __name__ == "__main__":
    main()
