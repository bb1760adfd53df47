"""A small program of threads, coroutines, logging and the tracer's own events, for viztracer."""

import asyncio
import logging
import threading

from viztracer import get_tracer
from viztracer.vizcounter import VizCounter
from viztracer.vizobject import VizObject

log = logging.getLogger(__name__)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work(name):
    fib(4)
    with get_tracer().log_event(f"block {name}"):
        fib(2)
    log.warning('"%s" is done\\', name)


async def request(number):
    await asyncio.sleep(0.001)
    fib(number)


async def requests():
    await asyncio.gather(*(request(number) for number in range(3)))


def main():
    tracer = get_tracer()
    counter = VizCounter(tracer, "queue")
    box = VizObject(tracer, "box")
    counter.depth = 3
    box.label = "é"
    threads = [threading.Thread(target=work, args=(name,), name=f"worker {name}") for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counter.depth = 1.5
    tracer.log_instant("middle", args={"nested": {"list": [1, 2.5, None, True]}}, scope="p")
    asyncio.run(requests())


main()
