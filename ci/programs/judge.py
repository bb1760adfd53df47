"""Perfetto's trace_processor, asked through tests/oracle/judge.mjs: one engine for all traces."""

import json
import subprocess
from pathlib import Path

JUDGE = Path(__file__).resolve().parents[2] / "tests/oracle/judge.mjs"


class Judge:
    def __init__(self):
        self.process = subprocess.Popen(
            ["node", JUDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        hello = json.loads(self.process.stdout.readline())
        if "error" in hello:
            raise SystemExit(f"ci/programs: {hello['error']}")

    def ask(self, trace, *queries):
        """Returns the rows of each query. A trace about which the importer complains is an error."""
        request = {"id": 1, "trace": str(trace), "sql": list(queries)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        expect(answer["error"] is None, f"{trace.name}: {answer['error']}")
        expect(not answer["complaints"], f"{trace.name}: {answer['complaints']}")
        return [result["rows"] for result in answer["results"]]


class Wrong(Exception):
    """A trace does not say what happened."""


def expect(holds, what):
    if not holds:
        raise Wrong(what)
