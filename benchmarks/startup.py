"""Start-up: `eaglehub --help` against `python -c "import click"`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMIT = 1.7
RUNS = 25

HELP = [sys.executable, "-m", "eaglehub", "--help"]
CLICK = [sys.executable, "-c", "import click"]


def startup_ratio(runs: int = RUNS) -> float:
    """Ratio of the median times in seconds; the two take turns, so that a busy machine slows both."""
    pairs = [(_seconds(HELP), _seconds(CLICK)) for _ in range(runs + 1)][1:]  # the first pair warms the disk cache
    ours, clicks = zip(*pairs, strict=True)
    return statistics.median(ours) / statistics.median(clicks)


def main() -> None:
    """Print the ratio."""
    print(f"startup: {startup_ratio():.2f}x (limit {LIMIT}x)")


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
