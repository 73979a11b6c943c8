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
_MEASURED = """
import sys
from eaglehub.cli.main import main
code = main(sys.argv[1:])
[line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(line.split()[1]) / 1024, file=sys.stderr)
sys.exit(code)
"""


def peak_mib(*arguments: str) -> float:
    """Peak resident memory of `eaglehub ARGUMENTS`, which must succeed."""
    command = [sys.executable, "-c", _MEASURED, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
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
