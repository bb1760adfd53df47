#!/usr/bin/env python3
"""Runs the example `pipeline` alone and below each recorder, in turns, and prints ratios of the same round (see ci/why.sh).

    compare.py FOLDER ROUNDS          FOLDER has `hairline` and `examples/pipeline`
    compare.py --timed FILE COMMAND   runs a command, and writes its time and its CPU time in seconds to a file
"""
import os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COPIES = 40  # of the sources of this repository, for the pipeline to read
COLUMNS = ("the program's time", "its CPU time", "CPU time with the recorder's", "until the recorder was done")
# All but samply run as an ordinary user: root's recording has more in it.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
PYTHON = "/usr/bin/python3"  # that of an ordinary user


def timed(file, command):
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    pathlib.Path(file).write_text(f"{time.monotonic() - start} {usage.ru_utime + usage.ru_stime}")
    sys.exit(os.waitstatus_to_exitcode(status))


class Recorder:
    """A command that precedes the program's, or variables, and a command that looks up all functions afterwards."""

    def __init__(self, name, prefix=(), variables=None, named=None, output=None, user=NOBODY):
        self.name, self.prefix, self.variables = name, [*user, *prefix], variables or {}
        self.named, self.output = named, output


def less_paranoid(out):
    """Without a PMU, samply (0.13) gives up where the setting is above 1, also as root, who may do it all the same. Root
    shows it another number, in a mount namespace of its own: the machine keeps its setting."""
    setting = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    if os.geteuid() != 0 or int(setting.read_text()) <= 1:
        return []
    (out / "paranoid").write_text("1\n")
    return ["unshare", "--mount", "sh", "-c", f'mount --bind {out}/paranoid {setting} && exec "$@"', "sh"]


def recorders(binaries, out):
    """The recorders that are installed. The first two are what the others are compared with."""
    yield Recorder("alone")
    hairline = [f"{binaries}/hairline", "record", "-o", f"{out}/hairline.pftrace"]
    yield Recorder("`hairline record`: scopes alone", [*hairline, "--"])
    yield Recorder("`hairline record --sched --sample 997`", [*hairline, "--sched", "--sample", "997", "--"],
                   output=f"{out}/hairline.pftrace")
    yield Recorder("a session of its own: `HAIRLINE_SCHED=on HAIRLINE_SAMPLE=997`", variables={
        "HAIRLINE": f"{out}/own.pftrace", "HAIRLINE_SCHED": "on", "HAIRLINE_SAMPLE": "997"}, output=f"{out}/own.pftrace")
    if shutil.which("perf"):
        data = f"{out}/perf.data"
        yield Recorder("`perf record -F 997 --call-graph dwarf --switch-events`", [
            "perf", "record", "-q", "-F", "997", "-e", "cpu-clock:u", "--call-graph", "dwarf,8192", "--switch-events",
            "-o", data, "--"], named=["perf", "report", "--stdio", "-f", "-i", data], output=data)
    else:
        print("perf is not installed: apt install linux-perf", file=sys.stderr)
    if shutil.which("samply"):
        samply = [*less_paranoid(out), "samply", "record", "--rate", "997", "--save-only", "-o", f"{out}/samply.json.gz"]
        yield Recorder("`samply record --rate 997`", [*samply, "--"], output=f"{out}/samply.json.gz", user=[])
    else:
        print("samply is not installed: cargo install samply", file=sys.stderr)


def run(recorder, program, out):
    """Four times in seconds, as the columns."""
    file = out / "times"
    file.unlink(missing_ok=True)
    command = [*recorder.prefix, PYTHON, __file__, "--timed", str(file), *program]
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        pid = os.posix_spawnp(command[0], command, {**os.environ, **recorder.variables}, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)  # and of all that it has waited for
        whole = time.monotonic() - start
        if status != 0:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}: {errors.read().decode()}")
    wall, own = map(float, file.read_text().split())
    return [wall, own, usage.ru_utime + usage.ru_stime, whole]


def after(recorder, out):
    """The time and the CPU time of the command that looks up all functions."""
    start, before = time.monotonic(), os.times()
    subprocess.run(recorder.named, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=120)
    spent = os.times()
    return time.monotonic() - start, spent[2] + spent[3] - before[2] - before[3]


def main(binaries, rounds):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        out.chmod(0o777)
        for n in range(COPIES):
            for crate in ("sdk", "tool/convert", "tool/cli", "formats"):
                shutil.copytree(ROOT / crate / "src", out / "read" / str(n) / pathlib.Path(crate).name)
        program = [str(pathlib.Path(binaries, "examples", "pipeline").resolve()), str(out / "read")]
        all_of_them = list(recorders(binaries, out))
        times = {recorder.name: [] for recorder in all_of_them}
        for round in range(rounds + 1):
            turn = round % len(all_of_them)  # none is always behind the same one
            for recorder in all_of_them[turn:] + all_of_them[:turn]:
                result = run(recorder, program, out)
                if round > 0:  # the first one fills the page cache
                    times[recorder.name].append(result)
        show(all_of_them, times)
        for recorder in all_of_them:
            if recorder.output:
                text = f"{recorder.name}: {os.path.getsize(recorder.output) / 1e6:.2f} MB"
                if recorder.named:
                    wall, cpu = after(recorder, out)
                    text += f"; `{' '.join(recorder.named[:4])}` takes {wall:.2f} s more, {cpu:.2f} s of CPU time"
                print(text)


def show(all_of_them, times):
    alone = times[all_of_them[0].name]
    print("| | " + " | ".join(COLUMNS) + " |\n|---|" + "---:|" * len(COLUMNS))
    medians = [statistics.median(column) for column in zip(*alone)]
    print("| alone | " + " | ".join(f"{median:.3f} s" for median in medians) + " |")
    for recorder in all_of_them[1:]:
        row(recorder.name, times[recorder.name], alone)
        if "--sched" in recorder.name:  # the others record no scopes
            row("the same, as a ratio to scopes alone", times[recorder.name], times[all_of_them[1].name])


def row(name, mine, base):
    ratios = [[with_it / without for with_it, without in zip(*both)] for both in zip(mine, base)]
    cells = [f"{min(column):.3f} / {statistics.median(column):.3f}" for column in zip(*ratios)]
    print(f"| {name} | " + " | ".join(cells) + " |")


if sys.argv[1] == "--timed":
    timed(sys.argv[2], sys.argv[3:])
main(sys.argv[1], int(sys.argv[2]))
