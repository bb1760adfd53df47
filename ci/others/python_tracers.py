"""Records with one of Python's tracers: NAME FOLDER. Two of them define the same protocol, so that one process
cannot load both."""

import json
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


def recursion(folder):
    """Calls deeper than Perfetto's 512 slices."""
    from viztracer import VizTracer

    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    sys.setrecursionlimit(5000)
    path = folder / "recursion_of_viztracer.json"
    with VizTracer(output_file=str(path), file_info=False, verbose=0, max_stack_depth=-1):
        for depth in (10, 500, 700, 1500):
            deep(depth)


def jax(folder):
    """The profile of a small computation on the CPU, as the UI gets it: gzip, with an empty object at the end."""
    import tempfile

    import jax as library

    def step(x):
        return library.numpy.tanh(x @ x.T).sum(axis=0)

    with tempfile.TemporaryDirectory() as profile:
        with library.profiler.trace(profile, create_perfetto_trace=True):
            x = library.numpy.ones((64, 64))
            for _ in range(5):
                x = library.jit(step)(x)[:, None] * library.numpy.ones((64, 64))
            x.block_until_ready()
        for n, trace in enumerate(sorted(Path(profile).rglob("*.json.gz"))):
            (folder / f"jax{n}.json.gz").write_bytes(trace.read_bytes())


def torch(folder):
    import torch as package
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profiler:
        weights = package.rand(64, 64, requires_grad=True)
        for _ in range(3):
            with record_function("step"):
                (package.relu(package.rand(64, 64) @ weights)).sum().backward()
    profiler.export_chrome_trace(str(folder / "torch.json"))


def bazel(folder):
    """What Bazel's profile has, without Bazel: an action that begins before the time 0, counters of two series,
    categories, garbage collections, the critical path, and names and places of threads after their events."""
    events = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "Critical Path"}}]

    def complete(name, category, start, duration, thread, **more):
        event = {"cat": category, "name": name, "ph": "X", "ts": start, "dur": duration}
        events.append(event | {"pid": 1, "tid": thread} | more)

    complete("Launch Blaze", "build phase marker", -1_204_000, 1_204_000, 31)
    for n, phase in enumerate(("Initialize command", "Evaluate target patterns", "Build artifacts")):
        instant = {"cat": "build phase marker", "name": phase, "ph": "i", "ts": n * 150_000}
        events.append(instant | {"pid": 1, "tid": 31})
    for n in range(60):
        start, thread, name = 7919 * n, 32 + n % 4, f"Compiling source/{n}.cc"
        place = {"target": f"//source:{n}", "mnemonic": "CppCompile"}
        complete(name, "action processing", start, 31_000, thread, out=f"bazel-out/{n}.o", args=place)
        complete("subprocess.run", "local action execution", start + 120, 30_700, thread)
        if n % 7 == 0:
            complete(f"action 'Compiling source/{n}.cc'", "critical path component", 8000 * n, 31_000, 0,
                     args={"tid": thread})
        if n % 9 == 0:
            complete("minor GC", "gc notification", start + 500, 900, 77)
    for n in range(-6, 24):
        for name, color, values in (
            ("CPU usage (Bazel)", "good", {"cpu": 0.25 * (n % 5)}),
            ("Memory usage (Bazel)", "olive", {"memory": 180.5 + n}),
            ("action count", "thread_state_running", {"action": max(0, n % 4), "local action cache": n % 3}),
        ):
            counter = {"name": name, "pid": 1, "tid": 31, "ph": "C", "ts": n * 20_000, "cname": color}
            events.append(counter | {"args": {series: str(value) for series, value in values.items()}})
    threads = {31: "Main Thread", 77: "Garbage Collector"}
    threads |= {32 + n: f"skyframe-evaluator-execution-{n}" for n in range(4)}
    for thread, name in threads.items():
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}})
        events.append({"name": "thread_sort_index", "ph": "M", "pid": 1, "tid": thread,
                       "args": {"sort_index": str(thread)}})
    about = {"bazel_version": "release 7.4.0", "output_base": "/base", "date": "2024-01-01"}
    lines = ",\n    ".join(json.dumps(event) for event in events)
    text = f'{{"otherData":{json.dumps(about)},"traceEvents":[\n    {lines}\n  ]\n}}\n'
    (folder / "bazel.json").write_text(text)


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


TRACERS = (viztracer, recursion, jax, torch, bazel, trace_builder, retrobus)
{tracer.__name__: tracer for tracer in TRACERS}[sys.argv[1]](Path(sys.argv[2]))
