"""Time, processor time and peak memory of a piece of work, printed as JSON for benchmarks/peers.mjs."""
import json
import resource
import time


def measured(work):
    before, started = time.process_time(), time.perf_counter()
    work()
    elapsed, processor = time.perf_counter() - started, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(dict(ms=1000 * elapsed, cpuMs=1000 * processor, peakBytes=peak)))
