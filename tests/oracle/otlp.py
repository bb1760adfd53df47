#!/usr/bin/env python3
"""Prints the spans of OTLP files, decoded by OpenTelemetry's own package, as one line of JSON.

    tests/oracle/otlp.py SPANS.otlp|SPANS.otlp.json

tests/oracle/setup.sh installs the package beside this script.
"""

import base64
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "otlp"))

from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData  # noqa: E402


def with_base64_ids(value):
    """OTLP writes ids in hexadecimal, where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [with_base64_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in ids else with_base64_ids(each)
        for name, each in value.items()
    }


def plain(value):
    """An AnyValue as a Python value."""
    which = value.WhichOneof("value")
    if which == "array_value":
        return [plain(each) for each in value.array_value.values]
    if which == "kvlist_value":
        return attributes(value.kvlist_value.values)
    if which == "bytes_value":
        return value.bytes_value.hex()
    if which == "double_value" and not math.isfinite(value.double_value):
        return str(value.double_value)  # JSON has no such number
    return getattr(value, which) if which else None


def attributes(all_of_them):
    return {each.key: plain(each.value) for each in all_of_them}


def spans(data):
    for resource in data.resource_spans:
        about = attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "process": about.get("process.pid"),
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "events": [[event.time_unix_nano, event.name] for event in span.events],
                    "links": [[link.trace_id.hex(), link.span_id.hex()] for link in span.links],
                    "status": span.status.code,
                }


def main():
    path = pathlib.Path(sys.argv[1])
    if path.suffix == ".json":
        data = json_format.ParseDict(with_base64_ids(json.loads(path.read_text())), TracesData())
    else:
        data = TracesData.FromString(path.read_bytes())
    print(json.dumps(list(spans(data))))


main()
