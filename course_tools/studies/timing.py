"""Timing functions in turn on one machine, and the rows and lines that come of it.

Does: measure time and memory, make rows of ratios, describe the machine. Does not: know what is compared; see
`course_tools.studies.sets.speed`.
"""

import os
import statistics
import sys
import threading
import time
from pathlib import Path

import tokenizers
import torch

FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")


def interleaved(arms: dict, repetitions: int, clock=time.process_time) -> dict[str, list[float]]:
    """Seconds of each function, called in turn `repetitions` times after one turn that does not count."""
    measured = {name: [] for name in arms}
    for _ in range(repetitions + 1):
        for name, function in arms.items():
            begun = clock()
            function()
            measured[name].append(clock() - begun)
    return {name: times[1:] for name, times in measured.items()}


def row(section: str, what: str, against: str, measured: dict, ours: str = "ours", other: str = "other", **facts) -> dict:
    """One comparison: what ours is, what it is compared with, the median ratio, its spread, median milliseconds."""
    pairs = [theirs / our for our, theirs in zip(measured[ours], measured[other])]
    low, middle, high = statistics.quantiles(pairs, n=4)
    median = {name: statistics.median(measured[name]) for name in (ours, other)}
    return {
        "section": section, "what": what, "against": against, "ratio": round(middle, 3),
        "spread": [round(low, 3), round(high, 3)], "ours_ms": round(1000 * median[ours], 2),
        "other_ms": round(1000 * median[other], 2), **facts,
    }


def training_pass(function, parameters, gradient):
    """Forward and backward through function() -> tensor."""
    def run():
        for parameter in parameters:
            parameter.grad = None
        function().backward(gradient)
    return run


def inference_pass(function):
    """Forward without gradients."""
    def run():
        with torch.no_grad():
            function()
    return run


def resident_mb(field: str) -> float:
    """This process's memory in MB from the kernel's record: VmRSS now, VmHWM at most so far."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field)) / 1024
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def free_cores() -> float:
    """How many cores two busy threads get: near 2 where nothing else runs."""
    def work():
        for _ in range(60):
            torch.mm(matrix, matrix)
    matrix = torch.randn(512, 512)
    threads = [threading.Thread(target=work) for _ in range(2)]
    wall, processor = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.process_time() - processor) / (time.perf_counter() - wall)


def machine() -> dict:
    """What the ratios may depend on; nothing that names the machine."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text().split()) if info.exists() else set()
    return {
        "processor": torch.backends.cpu.get_cpu_capability(), "flags": [flag for flag in FLAGS if flag in words],
        "cores": os.cpu_count(), "threads": 1, "torch": torch.__version__.partition("+")[0],
        "tokenizers": tokenizers.__version__,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,  # near 0 on an idle machine
    }


def show(result: dict) -> str:
    """A comparison as one line."""
    low, high = result["spread"]
    memory = f"   {result['ours_mb']:.0f} MB against {result['other_mb']:.0f}" if "ours_mb" in result else ""
    return f"{result['ratio']:6.2f}  ({low:.2f} to {high:.2f})  {result['what']}  |  {result['against']}{memory}"
