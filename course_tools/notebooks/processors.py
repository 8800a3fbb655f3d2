"""Run the notebooks' tests as if on other processors, since the last digits differ from one kind to another.

    python -m course_tools processors                    every notebook, on each kind of processor
    python -m course_tools processors 08 --threads 2     one of them, with two threads

This only works downwards: environment variables tell the libraries which instructions not to use. A kind that
this processor can't emulate isn't tried, and a line says so.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from typing import NamedTuple

import torch

from course_utils.copies import notebooks


class Kind(NamedTuple):
    """A kind of processor: what it needs, and the environment variables that make the libraries behave as on it."""

    needs: str                                            # nothing, x86, AVX2 or AVX512
    settings: dict


KINDS = {
    "as-it-is": Kind("", {}),
    "avx512": Kind("AVX512", {"OPENBLAS_CORETYPE": "SkylakeX"}),
    "avx2": Kind("AVX2", {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
                          "ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}),
    "plain": Kind("x86", {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
                          "ONEDNN_MAX_CPU_ISA": "SSE41", "OPENBLAS_CORETYPE": "Prescott"}),
}


def abilities(machine: str | None = None, capability: str | None = None) -> set[str]:
    """Which of '', 'x86', 'AVX2' and 'AVX512' this processor has; the arguments describe another processor."""
    machine = (machine or platform.machine()).lower()
    if machine not in ("x86_64", "amd64"):
        return {""}
    capability = capability or torch.backends.cpu.get_cpu_capability()
    more = {"AVX512": {"AVX2", "AVX512"}, "AVX2": {"AVX2"}}
    return {"", "x86"} | more.get(capability, set())


def choose(names: list[str]) -> list[str]:
    """The kinds of these names (or 'all') that can be tried here; prints a line for each that can't."""
    for name in names:
        if name not in ("all", *KINDS):
            sys.exit(f"there is no kind of processor {name!r}; there are {', '.join(KINDS)}, and all")
    here, chosen = abilities(), []
    for name, kind in KINDS.items():
        if name in names or "all" in names:
            if kind.needs in here:
                chosen.append(name)
            else:
                print(f"{name}: not tried, this processor has no {kind.needs}")
    return chosen


def environment(kind: str, threads: int) -> dict[str, str]:
    """This process's environment, as the kind of processor would have it."""
    return {**os.environ, "TQDM_DISABLE": "1", "OMP_NUM_THREADS": str(threads), **KINDS[kind].settings}


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run the tests, print a line for each kind; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the notebooks' tests as if on other processors.")
    parser.add_argument("names", nargs="*", help="numbers of notebooks, such as 08, or names of extras (default: all)")
    parser.add_argument("--kinds", nargs="+", default=["all"], metavar="KIND", help=f"all, or some of {', '.join(KINDS)}")
    parser.add_argument("--threads", type=int, default=1, help="how many threads each notebook's kernel may use")
    chosen = parser.parse_args(arguments)
    paths, failed = [str(path) for path in (notebooks.find(chosen.names) if chosen.names else notebooks.everything())], 0
    pytest = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-q", "--color=no"]
    together = ["-n", "2", "--dist", "loadfile"] if len(paths) > 1 else []
    for kind in choose(chosen.kinds):
        begun = time.perf_counter()
        done = subprocess.run([*pytest, *together, *paths], cwd=notebooks.ROOT, env=environment(kind, chosen.threads),
                              capture_output=True, text=True)
        lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["pytest printed nothing"]
        print(f"{kind}: {re.sub(r' in .*', '', lines[-1].strip('= '))} ({time.perf_counter() - begun:.0f} s)", flush=True)
        if done.returncode:
            failed += 1
            print("".join(f"  {line}\n" for line in lines if re.match("FAILED|ERROR", line)), end="", flush=True)
    return int(failed > 0)
