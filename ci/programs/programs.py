"""The programs: how each is run, and what its traces must say."""

import random
import re
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import measure
from judge import expect
from spans import Spans
from tasks import Tasks


class Ripgrep:
    """Searches a folder of made-up text. Its own `--stats` say what the trace must have."""

    modes = [None]
    has_peer = True

    def __init__(self, name, binaries, folder, files):
        self.name, self.binaries, self.corpus = name, binaries, folder / f"corpus of {files}"
        write_corpus(self.corpus, files)

    def run(self, state, trace, mode=None):
        binary = self.binaries / {"without": "rg-plain", "peer": "rg-peer"}.get(state, "rg")
        command = [binary, "--threads", "2", "--no-ignore", "--stats", r"\bqu\w+", self.corpus]
        return measure.run(command, state, trace)

    def check(self, judge, trace, run, mode):
        stat = lambda words: int(re.search(rf"^(\d+) {words}$", run.output, re.MULTILINE)[1])
        slices = "select name, count(*) from slice where dur >= 0 group by name order by name"
        files = """
            select count(distinct path.display_value), sum(matches.int_value), sum(lines.int_value),
              sum(matches.int_value > 0)
            from slice s
            join args path on path.arg_set_id = s.arg_set_id and path.key in ('path', 'debug.path')
            join args matches on matches.arg_set_id = s.arg_set_id
              and matches.key in ('matches', 'debug.matches')
            join args lines on lines.arg_set_id = s.arg_set_id and lines.key in ('lines', 'debug.lines')
            where s.name = 'file'"""
        parents = """
            select s.name, p.name, count(*) from slice s left join slice p on p.id = s.parent_id
            group by 1, 2 order by 1"""
        searched = """
            select count(*), max(value) from counter join counter_track t on t.id = track_id
            where t.name = 'bytes searched'"""
        rows = judge.ask(trace, slices, files, parents, searched)
        n = stat("files searched")
        expect(n > 0, "no file was searched")
        expect(rows[0] == [["file", n], ["print", n], ["run", 1], ["search", n]], f"{n} files, {rows[0]}")
        found = [n, stat("matches"), stat("matched lines"), stat("files contained matches")]
        expect(rows[1] == [found], f"--stats has {found}, the trace {rows[1]}")
        below = [["file", None, n], ["print", None, n], ["run", None, 1], ["search", "file", n]]
        expect(rows[2] == below, f"{rows[2]} is not {below}")
        expect(rows[3] == [[n, stat("bytes searched")]], f"bytes searched: {rows[3]}")
        return f"{n} files, {found[1]} matches"


def write_corpus(folder, files):
    """The same text for everybody."""
    dice = random.Random(7)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(2000)]
    words += ["quick", "quiet", "queue"]
    for number in range(files):
        path = folder / f"{number % 20}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(dice.choices(words, k=10)) for _ in range(dice.randint(0, 400)))
        path.write_text("\n".join(["" if number else "quick", *lines]) + "\n")


@dataclass
class Traced:
    """A program that is instrumented with `tracing`, and recorded through `Subscriber` or `layer`."""

    binaries: Path
    folder: Path
    quick: bool
    through: str

    modes = ["auto", "lifetimes", "threads"]

    def arguments(self, state):
        return ["--with", {"without": "none", "peer": "peer"}.get(state, self.through)]

    @property
    def has_peer(self):
        return self.through == "subscriber"

    def polls(self, run, name):
        return int(re.search(rf"^polls of {name}: (\d+)$", run.output, re.MULTILINE)[1])


class Web(Traced):
    """axum behind tower-http's TraceLayer. A client with 16 connections asks for each user once."""

    @property
    def name(self):
        return f"axum, {self.through}"

    @property
    def requests(self):
        return 2000 if self.quick else 20_000

    def run(self, state, trace, mode=None):
        command = [self.binaries / "web", *self.arguments(state)]
        return measure.run(command, state, trace, mode, lambda process: ask_all(process, self.requests))

    def check(self, judge, trace, run, mode):
        spans = Spans(judge, trace, ["request", "handler", "query"], ["id", "uri"])
        numbers = [str(n) for n in range(self.requests)]
        if mode != "threads":
            spans.lives_once("request", [f"/users/{n}" for n in numbers], mode)
            spans.lives_once("handler", numbers, mode)
            spans.lives_once("query", numbers, mode)
            spans.lives_within("handler", "request", lambda id: f"/users/{id}")
            spans.lives_within("query", "handler")
        else:
            expect(not any(spans.lives.values()), "a life in the mode `threads`")
        spans.entries_within("request", None)
        spans.entries_within("handler", "request")
        spans.entries_within("query", "handler")
        for name in ("handler", "query"):
            spans.entries_are_polls(name, self.polls(run, name))
        if mode != "threads":
            for name in ("request", "handler", "query"):
                spans.arrows_link_polls(name, self.requests, mode)
        events = """
            select sum(category = 'tower_http::trace::on_request'),
              sum(category = 'tower_http::trace::on_response')
            from slice where dur = 0"""
        [[counts]] = judge.ask(trace, events)
        expect(counts == [self.requests, self.requests], f"TraceLayer's events: {counts}")
        return f"{self.requests} requests, {self.polls(run, 'handler')} polls of handlers"


def ask_all(process, requests):
    address = process.stdout.readline().removeprefix("address: ").strip()
    host, port = address.rsplit(":", 1)
    connections = [socket.create_connection((host, int(port))) for _ in range(16)]
    for first in range(0, requests, len(connections)):
        turn = list(zip(connections, range(first, requests)))
        for connection, user in turn:
            connection.sendall(b"GET /users/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % user)
        for connection, user in turn:
            answer = b""
            while not answer.endswith(b"\n") or b"\r\n\r\n" not in answer.removesuffix(b"\r\n\r\n"):
                answer += connection.recv(4096)
            if not answer.endswith(b"user %d: %d\n" % (user, user * 7)):
                raise SystemExit(f"ci/programs: a wrong answer: {answer}")
    for connection in connections:
        connection.close()


class Quic(Traced):
    """quinn over loopback. quinn's own spans are recorded too."""

    streams = 3200

    @property
    def name(self):
        return f"quinn, {self.through}"

    def run(self, state, trace, mode=None):
        command = [self.binaries / "quic", *self.arguments(state), "--streams", str(self.streams)]
        return measure.run(command, state, trace, mode)

    def check(self, judge, trace, run, mode):
        names = ["call", "exchange", "serve_stream"]
        spans = Spans(judge, trace, names, ["stream"])
        numbers = [str(n) for n in range(self.streams)]
        if mode != "threads":
            spans.lives_once("call", numbers, mode)
            spans.lives_once("exchange", numbers, mode)
            spans.lives_once("serve_stream", numbers, mode)
            spans.lives_within("exchange", "call")
        if mode == "threads":
            expect(not any(spans.lives.values()), "a life in the mode `threads`")
        spans.entries_within("call", None)
        spans.entries_within("exchange", "call")
        spans.entries_within("serve_stream", None)
        for name in names:
            spans.entries_are_polls(name, self.polls(run, name))
            if mode != "threads":
                spans.arrows_link_polls(name, self.streams, mode)
        own = """
            select count(distinct name) from slice
            where name in ('drive', 'recv', 'frame', 'send') and dur > 0"""
        [[[kinds]]] = judge.ask(trace, own)
        expect(kinds == 4, f"{kinds} of quinn's own four spans")
        return f"{self.streams} streams, {self.polls(run, 'call')} polls of calls"


@dataclass
class WithTasks:
    """A program whose tasks are recorded by `hairline-tokio`. Its floor is the same program over tokio alone."""

    binaries: Path
    folder: Path
    quick: bool

    modes = [None]
    has_peer = False
    causes = []

    def binary(self, state):
        return self.binaries / f"{self.program}-{'plain' if state == 'without' else 'tasks'}"

    def polls(self, run, kind):
        """How many tasks had so many polls, as the program counted."""
        counts = re.search(rf"^polls of {kind}:(.*)$", run.output, re.MULTILINE)[1].split()
        return {int(polls): int(tasks) for polls, tasks in (count.split("x") for count in counts)}

    def waits(self, run, name):
        """The number of waits, and the least and the most of their time in ns."""
        return [int(n) for n in re.search(rf"^waits for {name}:(.*)$", run.output, re.MULTILINE)[1].split()]

    def place(self, kind):
        """The name of the tasks that are spawned where the source has this comment."""
        source = Path(__file__).parent / self.program / "src/tasks.rs"
        [line] = [n for n, text in enumerate(source.read_text().splitlines(), 1) if text.endswith(f"// {kind}")]
        return rf"{self.program}/src/tasks\.rs:{line}"


class WebTasks(WithTasks):
    """axum over an accept loop of its own. Each query is a task."""

    name = "axum, tasks"
    program = "web"

    @property
    def requests(self):
        return 2000 if self.quick else 20_000

    def run(self, state, trace, mode=None):
        ask = lambda process: ask_all(process, self.requests)
        return measure.run([self.binary(state)], state, trace, mode, ask)

    def check(self, judge, trace, run, mode):
        kinds = {self.place(kind): self.polls(run, kind) for kind in ("connection", "database")}
        tasks = Tasks(judge, trace, kinds | {"query": self.polls(run, "query")})
        waits = {name: tasks.waits(name, "query", self.waits(run, name)) for name in ("pool", "questions", "log")}
        expect(waits["pool"] and waits["log"], "nobody waited")
        named = tasks.holders(waits["log"], "append")
        return f"{len(tasks.tasks)} tasks, {sum(map(len, waits.values()))} waits, {named}"

    causes = [
        # The arguments, the requests, and what `hairline explain` must say of which name in its first five lines.
        ("--pool 1 --hold 5", 400, {"db/query": ["Cause: waiting for a permit of the semaphore `pool`"]}),
        ("--pool 16 --block 20", 1000, {
            "db/query": ["Cause: waiting for the lock `log`", "tasks query"],
            "db/append": ["In their polls", "Cause: off the CPU"],
        }),
    ]

    def explain(self, tool, folder, state, arguments, requests, causes):
        """Makes queries slow, and asks for the cause."""
        trace = folder / f"axum-tasks{arguments.replace(' ', '')}.{state}"
        # The CPU time needs no permission, as the scheduling does.
        command = ["env", "HAIRLINE_THREAD_TIME=on", self.binary(state), *arguments.split()]
        measure.run(command, state, trace, None, lambda process: ask_all(process, requests))
        for name, words in causes.items():
            said = subprocess.run([tool, "explain", trace, name], capture_output=True, text=True)
            first = "\n".join(said.stdout.splitlines()[:5])
            missing = [word for word in words if word not in first]
            expect(not missing, f"explain {name} has no {missing} in\n{first}{said.stderr}")


class QuicTasks(WithTasks):
    """quinn over a runtime of its own, so that quinn's tasks are recorded too."""

    name = "quinn, tasks"
    program = "quic"
    streams = Quic.streams

    def run(self, state, trace, mode=None):
        return measure.run([self.binary(state), "--streams", str(self.streams)], state, trace, mode)

    def check(self, judge, trace, run, mode):
        kinds = {name: self.polls(run, name) for name in ("call", "serve_stream")}
        kinds |= {self.place("serve"): self.polls(run, "serve"), r"(.*/)?quinn-.*/src/.*": self.polls(run, "quinn")}
        tasks = Tasks(judge, trace, kinds)
        waits = tasks.waits("calls", "call", self.waits(run, "calls"))
        expect(len(waits) > self.streams / 2, "nobody waited")
        return f"{len(tasks.tasks)} tasks, {len(waits)} waits"


def all_programs(binaries, folder, quick):
    yield Ripgrep(measure.START, binaries, folder, 1)
    yield Ripgrep("ripgrep", binaries, folder, 400 if quick else 4000)
    for kind in (Web, Quic):
        for through in ("subscriber", "layer"):
            yield kind(binaries, folder, quick, through)
    yield WebTasks(binaries, folder, quick)
    yield QuicTasks(binaries, folder, quick)
