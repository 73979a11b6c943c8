"""`eaglehub validate`: start-up against Click's own, reading speed against the disk's, and peak memory.

The headers are read within `HEADER_LIMIT` times what `python -c "import click"` takes; with values, the weights are
read at `SPEED_LIMIT` of the speed at which the same files are read and thrown away, in less than `MEMORY_LIMIT_MIB`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.drafters import make_drafter
from benchmarks.measure import peak_mib, seconds
from benchmarks.startup import CLICK

HEADER_LIMIT = 4.0
SPEED_LIMIT = 0.6
MEMORY_LIMIT_MIB = 250
_VALIDATE = [sys.executable, "-m", "eaglehub", "validate", "--format", "text"]
_BLOCK = 16 << 20


def make_native(folder: Path, nbytes: int) -> None:
    """Write a sound drafter in vLLM's layout of about `nbytes` bytes."""
    make_drafter(folder / "source", nbytes, "BF16")
    command = [sys.executable, "-m", "eaglehub", "-q", "convert", str(folder / "source"), str(folder / "drafter")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def header_ratio(folder: Path, runs: int = 15) -> float:
    """Median time of `validate --no-values` over that of importing Click; the two take turns."""
    ours = [*_VALIDATE, "--no-values", str(folder)]
    pairs = [(seconds(ours), seconds(CLICK)) for _ in range(runs + 1)][1:]
    mine, clicks = zip(*pairs, strict=True)
    return statistics.median(mine) / statistics.median(clicks)


def value_speed(folder: Path, rounds: int = 3) -> tuple[float, float]:
    """Bytes a second of `validate`, whole run, and of reading the files and throwing them away; both from the disk."""
    nbytes = sum(file.stat().st_size for file in folder.iterdir())
    ours, disk = [], []
    for _ in range(rounds):
        _forget(folder)
        disk.append(_plain_read(folder))
        _forget(folder)
        ours.append(seconds([*_VALIDATE, str(folder)]))
    return nbytes / statistics.median(ours), nbytes / statistics.median(disk)


def _forget(folder: Path) -> None:
    """Drop the files from the page cache, so that they come from the disk."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _plain_read(folder: Path) -> float:
    buffer = bytearray(_BLOCK)
    start = time.perf_counter()
    for file in folder.iterdir():
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
    return time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    """Measure and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--folder", default=".", help="where to write; not a memory file system")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as folder:
        drafter = Path(folder, "drafter")
        make_native(Path(folder), options.size << 20)
        print(f"validate --no-values: {header_ratio(drafter):.2f}x of importing click (limit {HEADER_LIMIT}x)")
        ours, disk = value_speed(drafter)
        print(
            f"validate: {ours / disk:.2f} of the disk's speed (limit {SPEED_LIMIT}; {ours / 1e6:.0f} of "
            f"{disk / 1e6:.0f} MB/s, {options.size} MiB)"
        )
        print(f"validate: {peak_mib('validate', str(drafter)):.0f} MiB of memory (limit {MEMORY_LIMIT_MIB} MiB)")


if __name__ == "__main__":
    main()
