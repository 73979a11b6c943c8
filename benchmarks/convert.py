"""A whole `eaglehub convert` that only renames, as a multiple of `cp` and `sync` of the same files.

Hashing the source, re-reading and comparing the output and refusing NaN are all in the measured run. Both run in turn
on the same data in the same folder, and the medians are compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.drafters import make_drafter

_LIMIT = 1.3


def main(arguments: list[str] | None = None) -> float:
    """Measure, print one line, return the ratio."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        make_drafter(source, options.size << 20, "BF16")
        copy = ["bash", "-c", 'cp -r "$0" "$1" && sync', str(source), str(output)]
        convert = [sys.executable, "-m", "eaglehub", "-q", "convert", str(source), str(output)]
        plain, converted = [], []
        _seconds(copy, output)  # both find the source in the page cache
        for _ in range(options.rounds):
            plain.append(_seconds(copy, output))
            converted.append(_seconds(convert, output))
    seconds, baseline = median(converted), median(plain)
    ratio = seconds / baseline
    print(
        f"convert: {ratio:.2f}x of cp + sync (limit {_LIMIT}x; {seconds:.2f} s, {baseline:.2f} s, {options.size} MiB)"
    )
    return ratio


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    parser.add_argument("--folder", default=".", help="where to write; not a memory file system")
    return parser.parse_args(arguments)


def _seconds(command: list[str], output: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elapsed = time.perf_counter() - start
    shutil.rmtree(output)
    os.sync()
    return elapsed


if __name__ == "__main__":
    main()
