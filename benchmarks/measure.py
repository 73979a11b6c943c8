"""What several benchmarks measure."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# VmHWM starts afresh with the program; ru_maxrss would remember the size of the process that started it.
_PEAK = """
[line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(line.split()[1]) / 1024, file=sys.stderr)
"""
_COMMAND = """
import sys
from eaglehub.cli.main import main
if code := main(sys.argv[1:]):
    sys.exit(code)
"""
# What is freed goes back to the system at once: how much malloc keeps for later differs by 100 MiB from run to run.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}


def peak_mib(*arguments: str) -> float:
    """Peak resident memory of `eaglehub ARGUMENTS`, which must succeed."""
    return peak_mib_of(_COMMAND, *arguments)


def peak_mib_of(script: str, *arguments: str) -> float:
    """Peak resident memory of a script, which imports sys and must succeed."""
    command = [sys.executable, "-c", script + _PEAK, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | _MALLOC)
    return float(done.stderr.split()[-1])


def seconds(command: list[str]) -> float:
    """Wall time of a command, which must succeed."""
    # An installed tool has its bytecode cached.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def seconds_of(work: Callable[[], None]) -> float:
    """Wall time of a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
