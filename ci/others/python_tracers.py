"""Records with one of Python's tracers: NAME FOLDER. Two of them define the same protocol, so that one process
cannot load both."""

import sys
import threading
from pathlib import Path


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def viztracer(folder):
    from viztracer import VizTracer

    path = folder / "work_of_viztracer.json"
    with VizTracer(output_file=str(path), log_func_args=True, file_info=False, verbose=0) as tracer:
        threads = [threading.Thread(target=fibonacci, args=(n,)) for n in (8, 9)]
        for thread in threads:
            thread.start()
        fibonacci(10)
        for thread in threads:
            thread.join()
        tracer.add_instant("an instant", {"n": 1})
        tracer.add_variable("number", 7, event="counter")


def trace_builder(folder):
    """As its guide does: threads, a track, flows, a counter, instants."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    builder = TraceProtoBuilder()

    def packet():
        packet = builder.add_packet()
        packet.trusted_packet_sequence_id = 8009
        return packet

    def descriptor(uuid):
        descriptor = packet().track_descriptor
        descriptor.uuid = uuid
        return descriptor

    def event(time, kind, track, name=None):
        into = packet()
        into.timestamp = time
        into.track_event.type = kind
        into.track_event.track_uuid = track
        if name is not None:
            into.track_event.name = name
            into.track_event.categories.append("python")
        return into.track_event

    process = descriptor(1).process
    process.pid, process.process_name = 1234, "builder"
    for uuid, name in ((2, "main"), (3, "worker")):
        thread = descriptor(uuid).thread
        thread.pid, thread.tid, thread.thread_name = 1234, 1232 + uuid, name
    requests = descriptor(4)
    requests.parent_uuid, requests.name = 1, "requests"
    size = descriptor(5)
    size.parent_uuid, size.name = 1, "size"
    size.counter.unit_name = "items"
    for n in range(50):
        start = 1_000_000 + n * 10_000
        event(start, TrackEvent.TYPE_SLICE_BEGIN, 4, "request").flow_ids.append(n)
        begin = event(start + 100, TrackEvent.TYPE_SLICE_BEGIN, 2 + n % 2, "handle")
        begin.flow_ids.append(n)
        argument = begin.debug_annotations.add()
        argument.name, argument.int_value = "n", n
        event(start + 500, TrackEvent.TYPE_INSTANT, 2 + n % 2, "half")
        event(start + 600, TrackEvent.TYPE_COUNTER, 5).counter_value = n
        event(start + 1000, TrackEvent.TYPE_SLICE_END, 2 + n % 2)
        event(start + 2000, TrackEvent.TYPE_SLICE_END, 4)
    (folder / "trace_builder.pftrace").write_bytes(builder.serialize())


def retrobus(folder):
    from retrobus_perfetto import PerfettoTraceBuilder

    for encoding in ("interned", "inline"):
        builder = PerfettoTraceBuilder("emulator", encoding=encoding)
        cpu = builder.add_thread("CPU")
        memory = builder.add_counter_track("memory", "bytes")
        for n in range(40):
            start = 1000 + n * 1000
            builder.begin_slice(cpu, f"routine {n % 3}", start).add_annotations({"pc": n, "carry": True})
            builder.begin_slice(cpu, "inner", start + 200)
            builder.add_instant_event(cpu, "interrupt", start + 300)
            builder.update_counter(memory, n * 16, start + 400)
            builder.end_slice(cpu, start + 500)
            builder.end_slice(cpu, start + 900)
        builder.add_flow(cpu, "sent", 50_000, 7)
        builder.add_flow(cpu, "received", 51_000, 7, terminating=True)
        builder.save(str(folder / f"retrobus_{encoding}.pftrace"))


{"viztracer": viztracer, "trace_builder": trace_builder, "retrobus": retrobus}[sys.argv[1]](Path(sys.argv[2]))
