"""Builds and runs the programs of benches/peers/profilers, with and without perf events."""

import ctypes
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "benches/peers/profilers"
PEERS_TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", FOLDER / "target"))
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def build(out, name, program, features="", profile="release", flags=()):
    """Compiles a program, with these flags for its own crate, and copies it to `out` as `name`."""
    command = ["cargo", "rustc", "--quiet", "--locked", "--profile", profile, "--bin", program]
    command += ["--features", features, "--", *flags]
    subprocess.run(command, cwd=FOLDER, check=True)
    folder = PEERS_TARGET / profile
    return pathlib.Path(shutil.copy2(folder / program, out / name))


def hairline_command():
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "hairline-cli"], cwd=ROOT, check=True)
    return str(TARGET / "release/hairline")


def refuse_perf_events():
    """Makes `perf_event_open` fail with EPERM in this process and its children, as most containers do."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    filters = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x0005_0001), (0x06, 0, 0, 0x7FFF_0000)]
    packed = b"".join(code.to_bytes(2, "little") + bytes([jt, jf]) + k.to_bytes(4, "little") for code, jt, jf, k in filters)
    buffer = ctypes.create_string_buffer(packed)
    program = ctypes.create_string_buffer(
        len(filters).to_bytes(8, "little") + ctypes.addressof(buffer).to_bytes(8, "little")
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def timed(file, command):
    """Runs a command and writes the CPU time of it and of all that it waited for, in seconds, to a file."""
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    pathlib.Path(file).write_text(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}")
    sys.exit(os.waitstatus_to_exitcode(status))


class Ran:
    """What a program printed, its CPU time and that of program and recorder in seconds, its peak memory in MiB."""

    def __init__(self, said, cpu, whole, memory, errors):
        self.said, self.cpu, self.whole, self.memory, self.errors = said, cpu, whole, memory, errors


def run(out, program, prefix=(), variables=None, perf=True):
    """Runs a program below the command `prefix`, with these variables."""
    times = out / "times"
    times.unlink(missing_ok=True)
    inner = [sys.executable, str(pathlib.Path(__file__).resolve()), "--timed", str(times), *map(str, program)]
    process = subprocess.Popen(
        [*prefix, *inner], env={**os.environ, **(variables or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=None if perf else refuse_perf_events)
    said, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{[*prefix, *inner]}: {process.returncode}: {said}{errors}")
    cpu, memory = map(float, times.read_text().split())
    return Ran(said, cpu, usage.ru_utime + usage.ru_stime, memory, errors)


def spread(ratios):
    """The minimum, the quartiles and the median of ratios, as text."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{min(ratios):.3f} | {low:.3f} | {middle:.3f} | {high:.3f}"


def less_paranoid(out):
    """samply gives up where perf_event_paranoid is above 1, also as root. Root shows it another number, in a mount
    namespace of its own: the machine keeps its setting."""
    setting = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    if os.geteuid() != 0 or int(setting.read_text()) <= 1:
        return []
    (out / "paranoid").write_text("1\n")
    return ["unshare", "--mount", "sh", "-c", f'mount --bind {out}/paranoid {setting} && exec "$@"', "sh"]


if __name__ == "__main__" and sys.argv[1:2] == ["--timed"]:
    timed(sys.argv[2], sys.argv[3:])
