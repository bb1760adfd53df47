#!/usr/bin/env python3
"""Prints the packets of a Perfetto trace, decoded by Perfetto's own package, as one line of JSON.

    tests/oracle/packets.py TRACE.pftrace

The package has a newer schema than trace_processor v52. tests/oracle/setup.sh installs it beside this script.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "perfetto"))

from google.protobuf import json_format  # noqa: E402
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace  # noqa: E402

trace = Trace.FromString(pathlib.Path(sys.argv[1]).read_bytes())
size = trace.ByteSize()
trace.DiscardUnknownFields()
if trace.ByteSize() != size:
    sys.exit("there are fields that the schema does not have")
packets = [json_format.MessageToDict(packet, preserving_proto_field_name=True) for packet in trace.packet]
print(json.dumps(packets))
